"""Record usage: entries made once by their key, for one lineage, failed attempts included.

The id of an entry is derived from its key, so a repeated booking finds it, on every machine. While an
attempt runs its entry may grow; when the attempt ends, the entry is final. `budget.py` computes what was
spent and which budget is used up.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.settings.money import micros_from
from landlane.store import records
from landlane.tasks.records import read_task
from landlane.usage.budget import park_spent
from landlane.usage.model import (
    IDLE,
    LONGEST_KEY,
    MOST_TOKENS,
    PRICED,
    REPORTED,
    UNKNOWN,
    UsageEntry,
    attempt_key,
    day_of,
    price_of,
    usage_id,
)
from landlane.usage.totals import NOUN
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.protocol.worker.messages import Usage
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Attempt


NOT_STARTED = "not_started"  # the code of an attempt whose worker never ran
# Concurrent bookings of the same key must see each other; bookings are rare.
BOOKING = {"//usage": True}


@value
class Booked:
    """An entry, new or existing; it `differs` when it was booked again with another cost."""

    entry: UsageEntry
    is_new: bool
    differs: bool = False


def book(repo: Repository, entry: UsageEntry, session: Session | None = None) -> Booked:
    """Record usage, once per key; without a cost its cost is unknown.

    An entry that is not final has what an attempt has used so far: the same key may raise it until its end is
    booked. An attempt that ends without a report keeps the last recorded cost as a lower bound.

    Raises:
        Malformed: there is no such task, or the key cannot be used.
    """
    check_key(entry.key)
    booked = repo.change(lambda tx: book_in(tx, repo, entry, session), areas=BOOKING)
    if booked.is_new and entry.task:
        park_spent(repo, entry.task)
    return booked


def with_reported(entry: UsageEntry, usage: Usage | None) -> UsageEntry:
    """Return the entry with the tokens and cost that a worker reported; invalid numbers count as unknown."""
    if usage is None:
        return entry
    return replace(
        entry,
        input_tokens=_valid_tokens(usage.input_tokens),
        output_tokens=_valid_tokens(usage.output_tokens),
        cost_micros=micros_from(usage.cost_usd),
    )


def record_usage_so_far(repo: Repository, attempt: Attempt, usage: Usage, *, model: str = "") -> Booked:
    """Record what an attempt has used so far; it counts against every budget at once."""
    entry = replace(_attempt_entry(attempt), model=model, is_final=False)
    return book(repo, with_reported(entry, usage))


def _attempt_entry(attempt: Attempt) -> UsageEntry:
    return UsageEntry(
        key=attempt_key(attempt.id),
        task=attempt.task,
        attempt=attempt.attempt,
        agent=attempt.agent,
        client=attempt.client,
        run=attempt.orchestrator,
    )


def book_ended_attempt(tx: Transaction, repo: Repository, attempt: Attempt) -> None:
    """Book an ended attempt that did not report its usage, for example because its supervisor was killed.

    Its cost is unknown, or at least what was recorded so far. If no worker ran, nothing was used.
    """
    entry = replace(_attempt_entry(attempt), lineage=attempt.lineage, at=attempt.ended_at)
    if not attempt.run or attempt.code == NOT_STARTED:
        entry = replace(entry, cost_micros=0, how=IDLE)
    book_in(tx, repo, entry)


def check_key(key: str) -> str:
    """Return the key of an entry after checking it.

    Raises:
        Malformed: the key is invalid.
    """
    if not key or len(key) > LONGEST_KEY or not key.isprintable():
        raise Malformed(
            f"{key[:40]!r} cannot be the key of a booking",
            code="BAD_KEY",
            hint=f"use 1 to {LONGEST_KEY} printable characters that tell this usage from every other",
        )
    return key


def _valid_tokens(count: object) -> int | None:
    is_count = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_TOKENS
    return count if is_count else None  # pyright: ignore[reportReturnType]


def book_in(tx: Transaction, repo: Repository, request: UsageEntry, session: Session | None = None) -> Booked:
    """Like `book`, in a transaction that holds `BOOKING`."""
    request = replace(request, id=usage_id(request.key), by=session.agent if session else "")
    found = records.lock(tx, NOUN, request.id)
    old = UsageEntry.from_document(found) if found is not None else None
    if old is None:
        entry = _priced(repo, _placed(tx, repo, request))
    elif old.is_final and not (_is_unreported(old) and _is_report(request)):
        return Booked(entry=old, is_new=False, differs=_differs(old, request))
    else:
        entry = _raised(repo, old, request)
        if entry == old:
            return Booked(entry=old, is_new=False)
    records.put(tx, NOUN, as_dict(entry), "booked" if entry.is_final else "noted", session)
    return Booked(entry=entry, is_new=old is None)


def _placed(tx: Transaction, repo: Repository, request: UsageEntry) -> UsageEntry:
    """Return a new entry with its day, lineage and run."""
    at = request.at or repo.store.wall_of(tx.now)
    lineage, run = request.lineage, request.run
    if request.task:
        lineage = read_task(tx, request.task).lineage  # always the task's own lineage
    if request.task and request.attempt and not run:
        attempts = records.find_by_key(tx, "attempt", request.task)
        runs = (str(one.get("orchestrator", "")) for one in attempts if one["attempt"] == request.attempt)
        run = next(runs, "")
    return replace(request, at=at, state=day_of(at), lineage=lineage, run=run)


def _priced(repo: Repository, entry: UsageEntry) -> UsageEntry:
    """Return the entry with the client's cost, or else the price of its tokens."""
    if entry.cost_micros is not None:
        return replace(entry, how=entry.how or REPORTED)
    prices = repo.settings.prices
    cost = price_of(prices, entry.model, entry.input_tokens, entry.output_tokens)
    return replace(entry, cost_micros=cost, how=PRICED if cost is not None else UNKNOWN)


def _raised(repo: Repository, old: UsageEntry, request: UsageEntry) -> UsageEntry:
    """Return a recorded entry updated with a new report; missing numbers keep their old value."""
    updated = replace(
        old,
        model=request.model or old.model,
        client=request.client or old.client,
        input_tokens=_larger(old.input_tokens, request.input_tokens, is_final=request.is_final),
        output_tokens=_larger(old.output_tokens, request.output_tokens, is_final=request.is_final),
        cost_micros=request.cost_micros,
        how=request.how,
        is_final=request.is_final,
        is_least=False,
    )
    now = _priced(repo, updated)
    if _is_report(request) and now.cost_micros is not None:
        return now
    before = old.cost_micros
    if before is not None and (now.cost_micros is None or now.cost_micros < before):
        now = replace(now, cost_micros=before, how=old.how)
    is_least = request.is_final and now.cost_micros is not None
    return replace(now, is_least=is_least)


def _is_unreported(entry: UsageEntry) -> bool:
    """Return whether an attempt was booked as ended before its own report arrived."""
    is_unknown = entry.cost_micros is None or entry.is_least or entry.how == IDLE
    return is_unknown and bool(entry.attempt) and entry.key.startswith(attempt_key(""))


def _is_report(request: UsageEntry) -> bool:
    """Return whether this is a worker's final report."""
    is_said = request.cost_micros is not None or request.input_tokens is not None
    return request.is_final and is_said and request.how != IDLE


def _larger(old: int | None, new: int | None, *, is_final: bool) -> int | None:
    if old is None or new is None:
        return old if new is None else new
    return new if is_final else max(old, new)


def _differs(old: UsageEntry, request: UsageEntry) -> bool:
    """Return whether the same key comes with another cost; a changed price does not count."""
    tokens = (request.input_tokens, request.output_tokens)
    if request.cost_micros is not None:
        return old.cost_micros != request.cost_micros
    return any(tokens) and tokens != (old.input_tokens, old.output_tokens)

"""Record usage: entries made once by their key, for one lineage, failed attempts included.

The id of an entry is derived from its key, so a repeated booking finds it, on every machine. While an
attempt runs its entry may grow; when the attempt ends, the entry is final. `budget.py` computes what was
spent and which budget is used up.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.settings.money import micros_from
from landlane.store import records
from landlane.tasks.records import task_in
from landlane.usage.budget import left_for, over_budget, park_spent, why_over_budget
from landlane.usage.model import (
    IDLE,
    LONGEST_KEY,
    MOST_TOKENS,
    PRICED,
    REPORTED,
    UsageEntry,
    attempt_key,
    day_of,
    price_of,
    usage_id,
)
from landlane.usage.totals import (
    NOUN,
    Totals,
    cost_of_attempt,
    entries_in,
    list_usage,
    spent,
    spent_today,
    totals,
    totals_of,
)
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.protocol.worker.messages import Usage
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Attempt


__all__ = [
    "BOOKING",
    "Booked",
    "Totals",
    "attempt_key",
    "book",
    "book_exactly",
    "book_in",
    "check_key",
    "cost_of_attempt",
    "entries_in",
    "left_for",
    "list_usage",
    "note_so_far",
    "over_budget",
    "settle_in",
    "spent",
    "spent_today",
    "totals",
    "totals_of",
    "why_over_budget",
]

NOT_STARTED = "not_started"  # the code of an attempt whose worker never ran
# Concurrent bookings of the same key must see each other; bookings are rare.
BOOKING = {"//usage": True}


@value
class Booked:
    """An entry, new or existing; it `differs` when it was booked again with another cost."""

    entry: UsageEntry
    is_new: bool
    differs: bool = False


def book(
    repo: Repository,
    *,
    key: str,
    task: str = "",
    lineage: str = "",
    attempt: int = 0,
    agent: str = "",
    client: str = "",
    model: str = "",
    usage: Usage | None = None,
    at: int = 0,
    run: str = "",
    links: Sequence[str] = (),
    session: Session | None = None,
    is_final: bool = True,
) -> Booked:
    """Record usage, once per key; without `usage` its cost is unknown.

    With `is_final` false it records what an attempt has used so far: the same key may raise it until its end
    is booked. An attempt that ends without a report keeps the last recorded cost as a lower bound.

    Raises:
        Malformed: there is no such task, or the key cannot be used.
    """
    return book_exactly(
        repo,
        key=key,
        task=task,
        lineage=lineage,
        attempt=attempt,
        agent=agent,
        client=client,
        model=model,
        input_tokens=_tokens(usage.input_tokens) if usage else None,
        output_tokens=_tokens(usage.output_tokens) if usage else None,
        cost_micros=micros_from(usage.cost_usd) if usage else None,
        at=at,
        run=run,
        links=links,
        session=session,
        is_final=is_final,
    )


def book_exactly(
    repo: Repository,
    *,
    key: str,
    task: str = "",
    lineage: str = "",
    attempt: int = 0,
    agent: str = "",
    client: str = "",
    model: str = "",
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cost_micros: int | None = None,
    at: int = 0,
    run: str = "",
    links: Sequence[str] = (),
    session: Session | None = None,
    is_final: bool = True,
) -> Booked:
    """Like `book`, with the cost in millionths of a US dollar.

    Raises:
        Malformed: there is no such task, or the key cannot be used.
    """
    request = UsageEntry(
        id=usage_id(check_key(key)),
        key=key,
        lineage=lineage,
        task=task,
        state="",
        at=at,
        attempt=attempt,
        agent=agent,
        client=client,
        model=model,
        run=run,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_micros=cost_micros,
        links=list(links),
        is_final=is_final,
        by=session.agent if session else "",
    )
    booked = repo.change(lambda tx: book_in(tx, repo, request, session), areas=BOOKING)
    if booked.is_new and task:
        park_spent(repo, task)
    return booked


def note_so_far(repo: Repository, attempt: Attempt, usage: Usage, *, model: str = "") -> Booked:
    """Record what an attempt has used so far; it counts against every budget at once."""
    return book(
        repo,
        key=attempt_key(attempt.id),
        task=attempt.task,
        attempt=attempt.attempt,
        agent=attempt.agent,
        client=attempt.client,
        model=model,
        run=attempt.orchestrator,
        usage=usage,
        is_final=False,
    )


def settle_in(tx: Transaction, repo: Repository, attempt: Attempt) -> None:
    """Book an ended attempt that did not report its usage, for example because its supervisor was killed.

    Its cost is unknown, or at least what was recorded so far. If no worker ran, nothing was used.
    """
    is_idle = not attempt.run or attempt.code == NOT_STARTED
    request = UsageEntry(
        id=usage_id(attempt_key(attempt.id)),
        key=attempt_key(attempt.id),
        lineage=attempt.lineage,
        task=attempt.task,
        state="",
        at=attempt.ended_at,
        attempt=attempt.attempt,
        agent=attempt.agent,
        client=attempt.client,
        run=attempt.orchestrator,
        cost_micros=0 if is_idle else None,
        how=IDLE if is_idle else "",
    )
    book_in(tx, repo, request)


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


def _tokens(count: object) -> int | None:
    """Return a token count from a client; None when it is not a valid count."""
    is_count = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_TOKENS
    return count if is_count else None  # pyright: ignore[reportReturnType]


def book_in(tx: Transaction, repo: Repository, request: UsageEntry, session: Session | None = None) -> Booked:
    """Like `book`, in a transaction that holds `BOOKING`; the request has no day and no price yet."""
    found = records.lock(tx, NOUN, request.id)
    old = UsageEntry(**found) if found is not None else None
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
        lineage = task_in(tx, request.task).lineage  # always the task's own lineage
    if request.task and request.attempt and not run:
        tries = records.by_key(tx, "attempt", request.task)
        run = next(
            (
                str(attempt.get("orchestrator", ""))
                for attempt in tries
                if attempt["attempt"] == request.attempt
            ),
            "",
        )
    return replace(request, at=at, state=day_of(at), lineage=lineage, run=run)


def _priced(repo: Repository, entry: UsageEntry) -> UsageEntry:
    """Return the entry with the client's cost, or else the price of its tokens."""
    if entry.cost_micros is not None:
        return replace(entry, how=entry.how or REPORTED)
    prices = repo.settings.prices
    cost = price_of(prices, entry.model, entry.input_tokens, entry.output_tokens)
    return replace(entry, cost_micros=cost, how=PRICED if cost is not None else "")


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

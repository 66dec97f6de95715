"""Import the usage records of other tools: each is booked once, to its first known task."""

from __future__ import annotations

import json
from decimal import Decimal

from landlane.errors import Malformed
from landlane.ids import digest
from landlane.tasks.records import find_task, find_task_by_key
from landlane.usage.add import BOOKING, Booked, book_in, check_key
from landlane.usage.budget import park_spent
from landlane.usage.model import Total, UsageEntry, add_up, read_foreign, usage_id
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.usage.model import Foreign

_AT_ONCE = 500  # per transaction; an interrupted import can be repeated and books nothing twice
LONGEST_LINE = 1_000_000


@value
class Imported:
    """The result of an import: `known` were booked before, `differing` of them with another cost."""

    booked: int
    known: int
    differing: int
    unattributed: int
    strange: tuple[str, ...]  # names of unknown tasks
    total: Total  # of the new entries


def import_usage(repo: Repository, session: Session | None, text: str) -> Imported:
    """Book records from JSON lines. Nothing is booked when one of them cannot be parsed.

    Raises:
        Malformed: a line cannot be parsed; the message names it.
    """
    found = read_lines(text)
    done: list[Booked] = []
    strange: dict[str, None] = {}
    for start in range(0, len(found), _AT_ONCE):
        some = found[start : start + _AT_ONCE]

        def work(tx: Transaction, some: Sequence[Foreign] = some) -> tuple[list[Booked], list[str]]:
            unknown: list[str] = []
            booked = [_book_one(tx, repo, session, record, unknown) for record in some]
            return booked, unknown

        booked, unknown = repo.change(work, areas=BOOKING)
        done += booked
        strange.update(dict.fromkeys(unknown))
    new = [result.entry for result in done if result.is_new]
    for task in dict.fromkeys(result.task for result in new if result.task):
        park_spent(repo, task)
    return Imported(
        booked=len(new),
        known=len(done) - len(new),
        differing=sum(result.differs for result in done),
        unattributed=sum(not result.task for result in new),
        strange=tuple(strange),
        total=add_up(new),
    )


def read_lines(text: str) -> list[Foreign]:
    """Return the records of a text. One without a key is identified by its content and repetition.

    Raises:
        Malformed: a line cannot be parsed; the message names it.
    """
    found: list[Foreign] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = _parse(line)
            content = digest(json.dumps(record, sort_keys=True, default=str))
            seen[content] = seen.get(content, 0) + 1
            one = read_foreign(record, f"record/{content[:32]}/{seen[content]}")
            check_key(one.key)
            found.append(one)
        except Malformed as error:
            error.message = f"line {number}: {error.message}"
            error.facts["line"] = number
            raise
    return found


def _parse(line: str) -> object:
    if len(line) > LONGEST_LINE:
        raise _no_json("it is too long")
    try:
        return json.loads(
            line, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_without_doubles
        )
    except (ValueError, RecursionError) as error:
        raise _no_json(str(error)[:80]) from error


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no number")


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field stands there twice")
    return found


def _no_json(why: str) -> Malformed:
    return Malformed(
        f"not a JSON object: {why}",
        code="BAD_USAGE_RECORD",
        hint="each line holds one JSON object; `landlane usage import --help` shows one",
    )


def _book_one(
    tx: Transaction, repo: Repository, session: Session | None, record: Foreign, unknown: list[str]
) -> Booked:
    task, links, strange = _place(tx, record.tasks)
    unknown += strange
    request = UsageEntry(
        id=usage_id(record.key),
        key=record.key,
        lineage="",
        task=task,
        state="",
        at=record.at,
        attempt=record.attempt,
        agent=record.agent,
        client=record.client,
        model=record.model,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        cost_micros=record.cost_micros,
        links=[*links, *strange],
        by=session.agent if session else "",
    )
    return book_in(tx, repo, request, session)


def _place(tx: Transaction, names: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """Return the task that a record is booked to, the other tasks it refers to, and the unknown ones.

    A task is named by its id or its key. The record belongs to the first known one.
    """
    known: dict[str, None] = {}
    strange: list[str] = []
    for name in names:
        task = find_task(tx, name) or find_task_by_key(tx, name)
        if task is None:
            strange.append(name)
        else:
            known[task.id] = None
    first, *others = known or ("",)
    return first, others, strange

"""Reading in the usage records of other tools: each is booked once, to the first task of it that is known."""

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

_AT_ONCE = 500  # so many in one transaction; whoever is cut off begins again, and books nothing twice
LONGEST_LINE = 1_000_000


@value
class Imported:
    """What became of the records: `known` were booked before, and `differing` of them with another cost."""

    booked: int
    known: int
    differing: int
    unattributed: int
    strange: tuple[str, ...]  # names of tasks that nobody knows here
    total: Total  # of those that were booked now


def import_usage(repo: Repository, session: Session | None, text: str) -> Imported:
    """Book records written as JSON lines. Nothing is booked when one of them cannot be read.

    Raises:
        Malformed: a line cannot be read; it is named.
    """
    found = read_lines(text)
    done: list[Booked] = []
    strange: dict[str, None] = {}
    for start in range(0, len(found), _AT_ONCE):
        some = found[start : start + _AT_ONCE]

        def work(tx: Transaction, some: Sequence[Foreign] = some) -> tuple[list[Booked], list[str]]:
            unknown: list[str] = []
            booked = [_book_one(tx, repo, session, one, unknown) for one in some]
            return booked, unknown

        booked, unknown = repo.change(work, areas=BOOKING)
        done += booked
        strange.update(dict.fromkeys(unknown))
    new = [one.entry for one in done if one.is_new]
    for task in dict.fromkeys(one.task for one in new if one.task):
        park_spent(repo, task)
    return Imported(
        booked=len(new),
        known=len(done) - len(new),
        differing=sum(one.differs for one in done),
        unattributed=sum(not one.task for one in new),
        strange=tuple(strange),
        total=add_up(new),
    )


def read_lines(text: str) -> list[Foreign]:
    """The records of a text. One without a key is known by its content, and by how often that came before.

    Raises:
        Malformed: a line cannot be read; it is named.
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
    tx: Transaction, repo: Repository, session: Session | None, one: Foreign, unknown: list[str]
) -> Booked:
    task, links, strange = _place(tx, one.tasks)
    unknown += strange
    wish = UsageEntry(
        id=usage_id(one.key),
        key=one.key,
        lineage="",
        task=task,
        state="",
        at=one.at,
        attempt=one.attempt,
        agent=one.agent,
        client=one.client,
        model=one.model,
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        cost_micros=one.cost_micros,
        links=[*links, *strange],
        by=session.agent if session else "",
    )
    return book_in(tx, repo, wish, session)


def _place(tx: Transaction, names: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """The task that a record is booked to, the others that it refers to, and those that nobody knows here.

    A task goes by its id or its key. The first that is known is the record's own.
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

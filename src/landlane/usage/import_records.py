"""Import the usage records of other tools: each is booked once, to its first known task."""

from __future__ import annotations

import json
from decimal import Decimal

from landlane.errors import Malformed
from landlane.ids import digest
from landlane.tasks.records import find_task, find_task_by_key
from landlane.usage.add import BOOKING, Booked, book_in, check_key
from landlane.usage.budget import park_spent
from landlane.usage.model import LONGEST_KEY, Total, UsageEntry, add_up, read_money, read_tokens
from landlane.usage.period import read_instant
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

_BATCH = 500  # records per transaction; an interrupted import can be repeated and books nothing twice
_LONGEST_LINE = 1_000_000
_MOST_TASKS = 10_000
_TEXTS = ("key", "task", "agent", "client", "model")
_KNOWN = (*_TEXTS, "tasks", "input_tokens", "output_tokens", "cost_usd", "at", "attempt")


@value
class ImportRecord:
    """A record of another tool: an entry, and the tasks it names; it is booked to the first known one."""

    entry: UsageEntry
    tasks: tuple[str, ...]


@value
class ImportResult:
    """The result of an import: `known` were booked before, `differing` of them with another cost."""

    booked: int
    known: int
    differing: int
    unattributed: int
    unknown_tasks: tuple[str, ...]
    total: Total  # of the new entries


def import_usage(repo: Repository, session: Session | None, text: str) -> ImportResult:
    """Book records from JSON lines. Nothing is booked when one of them cannot be parsed.

    Raises:
        Malformed: a line cannot be parsed; the message names it.
    """
    parsed = _read_lines(text)
    done: list[Booked] = []
    unknown_tasks: dict[str, None] = {}
    for start in range(0, len(parsed), _BATCH):
        batch = parsed[start : start + _BATCH]

        def work(tx: Transaction, batch: Sequence[ImportRecord] = batch) -> tuple[list[Booked], list[str]]:
            unknown: list[str] = []
            booked = [_book_record(tx, repo, session, record, unknown) for record in batch]
            return booked, unknown

        booked, unknown = repo.change(work, areas=BOOKING)
        done += booked
        unknown_tasks.update(dict.fromkeys(unknown))
    new = [result.entry for result in done if result.is_new]
    for task in dict.fromkeys(entry.task for entry in new if entry.task):
        park_spent(repo, task)
    return ImportResult(
        booked=len(new),
        known=len(done) - len(new),
        differing=sum(result.differs for result in done),
        unattributed=sum(not entry.task for entry in new),
        unknown_tasks=tuple(unknown_tasks),
        total=add_up(new),
    )


def _read_lines(text: str) -> list[ImportRecord]:
    """Return the records of a text. One without a key is identified by its content and repetition."""
    records: list[ImportRecord] = []
    repetitions: dict[str, int] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            document = _parse_json(line)
            content = digest(json.dumps(document, sort_keys=True, default=str))
            repetitions[content] = repetitions.get(content, 0) + 1
            record = parse_import_record(document, f"record/{content[:32]}/{repetitions[content]}")
            check_key(record.entry.key)
            records.append(record)
        except Malformed as error:
            error.message = f"line {number}: {error.message}"
            error.facts["line"] = number
            raise
    return records


def _parse_json(line: str) -> object:
    if len(line) > _LONGEST_LINE:
        raise _bad_record("not a JSON object: it is too long")
    try:
        return json.loads(
            line, parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_without_duplicates
        )
    except (ValueError, RecursionError) as error:
        raise _bad_record(f"not a JSON object: {str(error)[:80]}") from error


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number")


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field stands there twice")
    return fields


def _book_record(
    tx: Transaction, repo: Repository, session: Session | None, record: ImportRecord, unknown: list[str]
) -> Booked:
    """Book a record to the first known task; its tasks are named by id or key."""
    known: dict[str, None] = {}
    missing: list[str] = []
    for name in record.tasks:
        task = find_task(tx, name) or find_task_by_key(tx, name)
        if task is None:
            missing.append(name)
        else:
            known[task.id] = None
    unknown += missing
    first, *others = known or ("",)
    return book_in(tx, repo, replace(record.entry, task=first, links=[*others, *missing]), session)


def parse_import_record(record: object, fallback_key: str) -> ImportRecord:
    """Return the record of a parsed line; one without a key gets the fallback.

    Raises:
        Malformed: a field is invalid; the message names it.
    """
    if not isinstance(record, dict):
        raise _bad_record("a record is a JSON object")
    fields: dict[str, Any] = record  # pyright: ignore[reportUnknownVariableType]
    for name in fields:
        if name not in _KNOWN:
            raise _bad_record(f"{name[:40]!r} is unknown; known: {', '.join(_KNOWN)}")
    texts = {name: _read_text(fields, name) for name in _TEXTS}
    cost = fields.get("cost_usd")
    entry = UsageEntry(
        key=texts["key"] or fallback_key,
        at=_read_at(fields.get("at")),
        agent=texts["agent"],
        client=texts["client"],
        model=texts["model"],
        attempt=read_tokens(fields.get("attempt"), "attempt") or 0,
        input_tokens=read_tokens(fields.get("input_tokens"), "input_tokens"),
        output_tokens=read_tokens(fields.get("output_tokens"), "output_tokens"),
        cost_micros=None if cost is None else read_money(cost, "cost_usd"),
    )
    return ImportRecord(entry=entry, tasks=_read_tasks(fields, texts["task"]))


def _read_text(fields: dict[str, Any], name: str) -> str:
    text = fields.get(name)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > LONGEST_KEY or not text.isprintable():
        raise _bad_record(f"{name} must be a text in one line of at most {LONGEST_KEY} characters")
    return text


def _read_tasks(fields: dict[str, Any], first: str) -> tuple[str, ...]:
    """Return all tasks of a record, the one that it is booked to first."""
    tasks = fields.get("tasks")
    listed: list[object] = [] if tasks is None else tasks
    are_texts = isinstance(listed, list) and all(  # pyright: ignore[reportUnnecessaryIsInstance]
        isinstance(name, str) and name and name.isprintable() for name in listed
    )
    if not are_texts or len(listed) > _MOST_TASKS:
        raise _bad_record(f"tasks must be a list of at most {_MOST_TASKS:,} tasks")
    return tuple(dict.fromkeys(str(name)[:LONGEST_KEY] for name in ([first] if first else []) + listed))


def _read_at(at: object) -> int:
    if at is None:
        return 0
    if isinstance(at, str):
        return read_instant(at, "at")
    raise _bad_record("at must be an instant such as 2026-01-31T09:30:00Z")


def _bad_record(message: str) -> Malformed:
    hint = "each line holds one JSON object; `landlane usage import --help` shows one"
    return Malformed(message, code="BAD_USAGE_RECORD", hint=hint)

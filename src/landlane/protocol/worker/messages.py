"""The worker protocol: its messages, which of them may come when, and how long a worker may be silent.

Messages are values, read strictly from lines of JSON and written to them. One line is one message. Anything
else is a `Flaw`, never an exception: the supervisor must go on whatever a worker sends.

    new ── WorkAssignment ──▶ working ── Heartbeat, Progress ──▶ working
                                 └────── WorkComplete, WorkFailed ──▶ over: nothing more may come

A conversation is a value: receiving a message returns the next one, or a `Flaw`. Time is passed in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

from landlane.errors import Malformed
from landlane.protocol.worker.fields import (
    ASSIGNMENT,
    COMPLETE,
    FAILED,
    HEARTBEAT,
    MOST_LINE_BYTES,
    ONE_OF,
    PROGRESS,
    TABLE,
    USAGE,
    VERSION,
    find_problem,
)
from landlane.units import exact_duration
from landlane.values import as_dict, replace, value

_LONGEST_SHOWN = 80


@value
class Usage:
    """Tokens and money used; None where unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@value
class WorkAssignment:
    """One attempt at one task, for one worker."""

    assignment: str
    task: str
    attempt: int
    title: str
    folder: str
    heartbeat_seconds: float
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    may_commit: bool = False
    may_change: bool | None = None
    output: str | None = None
    next_action: str | None = None
    feedback: tuple[str, ...] | None = None
    lineage: tuple[str, ...] | None = None
    results: tuple[str, ...] | None = None
    rules: str | None = None
    rules_version: str | None = None
    body: str | None = None
    role: str | None = None
    check: str | None = None
    scratch: str | None = None
    branch: str | None = None
    base: str | None = None
    limit_seconds: float | None = None
    budget_usd: float | None = None


@value
class Heartbeat:
    """The worker is alive and busy."""

    assignment: str
    doing: str | None = None


@value
class Progress:
    """Something happened that a person may want to see."""

    assignment: str
    text: str
    done: float | None = None
    usage: Usage | None = None


@value
class WorkComplete:
    """It is done; the change is a commit, a patch, files in scratch, or there is none."""

    assignment: str
    summary: str
    commit: str | None = None
    patch: str | None = None
    files: tuple[str, ...] | None = None
    verdict: str | None = None  # of a reviewer
    findings: tuple[Mapping[str, Any], ...] | None = None
    usage: Usage | None = None
    notes: str | None = None


@value
class WorkFailed:
    """It is not done, with the reason."""

    assignment: str
    code: str
    reason: str
    retry: bool | None = None
    retry_after_seconds: float | None = None
    usage: Usage | None = None
    notes: str | None = None


@value
class Flaw:
    """Why a message is wrong or comes at the wrong time; `code` is that of the resulting `WorkFailed`."""

    code: str
    reason: str


Ending: TypeAlias = WorkComplete | WorkFailed
Message: TypeAlias = WorkAssignment | Heartbeat | Progress | WorkComplete | WorkFailed

CLASSES: dict[str, type[Message]] = {
    ASSIGNMENT: WorkAssignment,
    HEARTBEAT: Heartbeat,
    PROGRESS: Progress,
    COMPLETE: WorkComplete,
    FAILED: WorkFailed,
}
_NAMES = {message_class: name for name, message_class in CLASSES.items()}


def read_line(line: bytes) -> Message | Flaw:
    """Return the message in a line, or what is wrong with it."""
    if len(line) > MOST_LINE_BYTES:
        return Flaw(
            code="oversized", reason=f"a line of {len(line):,} bytes; {MOST_LINE_BYTES:,} are the most"
        )
    try:
        item = json.loads(line.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_constant)
    except UnicodeDecodeError:
        return _malformed("a line is not UTF-8")
    except _DuplicateKey as error:
        return _malformed(f"a key stands twice: {_shown(error.args[0])}")
    except RecursionError:
        return _malformed("a line is nested too deeply")
    except ValueError as error:
        return _malformed(f"a line is not JSON ({error}): {_shown(line)}")
    return read_object(item)


def read_object(item: object) -> Message | Flaw:
    """Return the message that a parsed object is, or what is wrong with it."""
    if not isinstance(item, dict):
        return _malformed(f"a line is not an object: {_shown(item)}")
    given: dict[str, object] = dict(item)  # pyright: ignore[reportUnknownArgumentType]
    name, version = given.pop("type", None), given.pop("version", None)
    if not isinstance(name, str) or name not in TABLE:
        return _malformed(f"there is no message of type {_shown(name)}; known: {', '.join(TABLE)}")
    if version != VERSION or isinstance(version, (bool, float)):
        return _malformed(f"{name} is of version {_shown(version)}, and only {VERSION} is understood")
    if problem := _find_problem(name, given):
        return _malformed(f"{name}: {problem}")
    fields: dict[str, Any] = {key: _as_value(TABLE[name][key].kind, item) for key, item in given.items()}
    return CLASSES[name](**fields)


def _find_problem(name: str, given: dict[str, object]) -> str:
    """Return what is wrong with the fields of a message; empty when nothing is."""
    table = TABLE[name]
    for key in given:
        if key not in table:
            return f"there is no field {_shown(key)}; known: {', '.join(table)}"
    for key, field in table.items():
        if key not in given and not field.is_optional:
            return f"the field {key} is missing"
        if problem := find_problem(field, given.get(key)):
            return f"the field {key} {problem}"
    changes = [key for key in ONE_OF.get(name, ()) if given.get(key) is not None]
    return f"only one of {', '.join(changes)} can be the change" if len(changes) > 1 else ""


def _as_value(kind: str, item: Any) -> object:
    if kind == USAGE and item is not None:
        return Usage(**item)
    return tuple(item) if isinstance(item, list) else item  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


class _DuplicateKey(ValueError):
    """Its text is the key."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, item in pairs:
        if key in made:
            raise _DuplicateKey(key)
        made[key] = item
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _malformed(reason: str) -> Flaw:
    return Flaw(code="malformed", reason=reason)


def _shown(item: object) -> str:
    text = repr(item[: 2 * _LONGEST_SHOWN] if isinstance(item, (str, bytes)) else item)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def as_object(message: Message) -> dict[str, Any]:
    """Return a message as a JSON object with every field; nothing is checked."""
    name = _NAMES[type(message)]
    document: dict[str, Any] = {"type": name, "version": VERSION}
    for key in TABLE[name]:
        item: Any = getattr(message, key)
        document[key] = _as_json(item)
    return document


def _as_json(item: Any) -> object:
    if isinstance(item, Usage):
        return as_dict(item)
    return list(item) if isinstance(item, tuple) else item  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def write_line(message: Message) -> bytes:
    """Return the line for a message.

    Raises:
        Malformed: a field holds what the protocol does not allow, or the line would be too long.
    """
    document = as_object(message)
    name = document["type"]
    if problem := _find_problem(name, {key: document[key] for key in TABLE[name]}):
        raise Malformed(f"{name}: {problem}", code="BAD_MESSAGE", hint="see the worker protocol")
    known = {key: item for key, item in document.items() if item is not None}
    line = json.dumps(known, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    if len(line) > MOST_LINE_BYTES:
        raise Malformed(
            f"the message would be a line of {len(line):,} bytes; {MOST_LINE_BYTES:,} are the most",
            code="BAD_MESSAGE",
            hint="hand a large change back as files in scratch, or commit it",
        )
    return line


def failed(assignment: str, flaw: Flaw, usage: Usage | None = None) -> WorkFailed:
    """Return the end of work whose worker broke the protocol."""
    return WorkFailed(assignment=assignment, code=flaw.code, reason=flaw.reason, usage=usage)


@value
class WorkerLimits:
    """How long a worker may be silent, how long it may take in all, and how much it may send."""

    silence_ms: int = 60_000
    total_ms: int | None = None
    most_messages: int = 100_000
    most_bytes: int = 64 * 1024 * 1024


def limits_of(assignment: WorkAssignment) -> WorkerLimits:
    """Return the limits that an assignment sets for its worker."""
    total = assignment.limit_seconds
    return WorkerLimits(
        silence_ms=round(assignment.heartbeat_seconds * 1000),
        total_ms=None if total is None else round(total * 1000),
    )


@value
class Conversation:
    """What was received so far, as far as it matters for what may follow. Instants are milliseconds."""

    assignment: WorkAssignment | None = None
    began_at: int = 0
    received_at: int = 0
    messages: int = 0
    usage: Usage | None = None  # the worker's last report of it
    end: Ending | None = None

    @property
    def is_working(self) -> bool:
        """Whether the worker has its assignment and has not ended it."""
        return self.assignment is not None and self.end is None

    def receive(self, message: Message, now: int) -> Conversation | Flaw:
        """Return the conversation after this message, or why it may not come now."""
        name = type(message).__name__
        if isinstance(message, WorkAssignment):
            if self.assignment is not None:
                return _out_of_order("a WorkAssignment may not come from a worker, nor a second time")
            return replace(self, assignment=message, began_at=now, received_at=now)
        if self.assignment is None:
            return _out_of_order(f"{name} came before any WorkAssignment")
        if self.end is not None:
            return _out_of_order(f"{name} came after {type(self.end).__name__}, which was the end")
        if message.assignment != self.assignment.assignment:
            return _out_of_order(
                f"{name} is about {message.assignment[:60]!r}, and the assignment is "
                f"{self.assignment.assignment[:60]!r}"
            )
        changes: dict[str, object] = {"received_at": now, "messages": self.messages + 1}
        if isinstance(message, (Progress, WorkComplete, WorkFailed)) and message.usage is not None:
            changes["usage"] = message.usage
        if isinstance(message, (WorkComplete, WorkFailed)):
            changes["end"] = message
        return replace(self, **changes)

    def excuse_silence(self, unread_ms: int, now: int) -> Conversation:
        """Return the conversation without the time before now in which the worker's output was not read."""
        return replace(self, received_at=max(min(self.received_at + unread_ms, now), self.received_at))

    def check_limits(self, now: int, limits: WorkerLimits) -> Flaw | None:
        """Return why the worker must be ended now; None while it may go on."""
        if not self.is_working:
            return None
        silent_ms = now - self.received_at
        if silent_ms >= limits.silence_ms:
            return Flaw(code="silent", reason=f"no sign of life for {exact_duration(silent_ms)}")
        if limits.total_ms is not None and now - self.began_at >= limits.total_ms:
            return Flaw(code="late", reason=f"not done within {limits.total_ms / 1000:g} s")
        if self.messages > limits.most_messages:
            return Flaw(code="flooded", reason=f"more than {limits.most_messages:,} messages")
        return None


def _out_of_order(reason: str) -> Flaw:
    return Flaw(code="out_of_order", reason=reason)

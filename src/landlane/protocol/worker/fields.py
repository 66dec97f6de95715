"""The fields of the worker protocol as one table: read by the parser, the writer, the schema and the docs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from landlane.values import value

VERSION = 1
MOST_LINE_BYTES = 4 * 1024 * 1024  # with its line end; a patch is the longest content

TEXT, WORD, WHOLE, NUMBER, FLAG = "text", "word", "whole", "number", "flag"
TEXTS, PATHS, COMMIT, USAGE, FINDINGS = "texts", "paths", "commit", "usage", "findings"

_LONG = 64_000
_LONGEST_PATCH = 3_000_000  # characters; even escaped, most patches fit into a line
_MOST_WHOLE = 2**53 - 1  # every language reads it exactly
_HEX = frozenset("0123456789abcdef")


@value
class Field:
    """One field: its kind, its meaning and its limit. An optional one may be left out, or null."""

    kind: str
    help: str
    most: int = 0  # characters of a text, items of a list, or the highest number
    is_optional: bool = False


def _required(kind: str, help: str, most: int = 0) -> Field:
    return Field(kind=kind, help=help, most=most)


def _optional(kind: str, help: str, most: int = 0) -> Field:
    return Field(kind=kind, help=help, most=most, is_optional=True)


_LONG_TEXT = _required(TEXT, "", _LONG)
_ASSIGNMENT = _required(WORD, "the id of the assignment, as it was given", 100)
_USAGE = _optional(USAGE, "what was used since the assignment began; unknown is null")
_NOTES = _optional(TEXT, "for the next agent", _LONG)

ASSIGNMENT, HEARTBEAT, PROGRESS = "WorkAssignment", "Heartbeat", "Progress"
COMPLETE, FAILED = "WorkComplete", "WorkFailed"

# message type → field. Every message also has `type` and `version`.
TABLE: dict[str, dict[str, Field]] = {
    ASSIGNMENT: {
        "assignment": _required(WORD, "an id; every answer repeats it", 100),
        "task": _required(WORD, "the task, such as T7", 100),
        "attempt": _required(WHOLE, "which attempt at the task this is, from 1 on", 1_000_000),
        "title": _required(TEXT, "what is to be done, in one line", 1_000),
        "body": _optional(TEXT, "the description", _LONG),
        "role": _optional(WORD, "what the worker may do", 100),
        "paths": _required(TEXTS, "patterns of what it may change", 1_000),
        "check": _optional(TEXT, "the command that proves it", 4_000),
        "output": _optional(TEXT, "the file or folder that it must leave", 4_096),
        "next_action": _optional(TEXT, "what to do first, as the last owner or the parts left it", 4_000),
        "folder": _required(TEXT, "the checkout to work in", 4_096),
        "scratch": _optional(TEXT, "a folder of its own", 4_096),
        "branch": _optional(TEXT, "where to commit, if it may", 1_000),
        "base": _optional(COMMIT, "the commit that the checkout stands on"),
        "may_commit": _required(FLAG, "else the change is handed back as a patch or as files"),
        "may_change": _optional(FLAG, "false: what it changes is not used, only saved; its report counts"),
        "heartbeat_seconds": _required(
            NUMBER, "say something at least this often, or be taken for dead", 86_400
        ),
        "limit_seconds": _optional(NUMBER, "how long all of it may take", 31_536_000),
        "budget_usd": _optional(NUMBER, "what it may cost", 1_000_000),
        "notes": _required(TEXTS, "what earlier attempts left, the oldest first", 100),
        "feedback": _optional(TEXTS, "why earlier attempts of the task failed, the oldest first", 100),
        "lineage": _optional(TEXTS, "what became of the tasks that this one comes from or waited for", 200),
        "results": _optional(TEXTS, "the results of its parts, if it was split, in their order", 200),
        "rules": _optional(TEXT, "the rules of the repository, which hold for this work", 200_000),
        "rules_version": _optional(WORD, "their version", 100),
    },
    HEARTBEAT: {
        "assignment": _ASSIGNMENT,
        "doing": _optional(TEXT, "what it is at", 1_000),
    },
    PROGRESS: {
        "assignment": _ASSIGNMENT,
        "text": _required(TEXT, "what happened", 8_000),
        "done": _optional(NUMBER, "how much of it is done, from 0 to 1", 1),
        "usage": _USAGE,
    },
    COMPLETE: {
        "assignment": _ASSIGNMENT,
        "summary": _required(TEXT, "what was done", _LONG),
        "commit": _optional(COMMIT, "the commit that holds the change, for workers that may commit"),
        "patch": _optional(TEXT, "the change as a unified diff against `base`", _LONGEST_PATCH),
        "files": _optional(
            PATHS, "paths of the repository whose new content lies in `scratch` under the same path", 10_000
        ),
        "verdict": _optional(WORD, "of a reviewer: `approve` or `reject`", 40),
        "findings": _optional(
            FINDINGS, "of a reviewer: objects with `path`, `line`, `severity` and `text`", 500
        ),
        "usage": _USAGE,
        "notes": _NOTES,
    },
    FAILED: {
        "assignment": _ASSIGNMENT,
        "code": _required(WORD, "why, as one word; see below", 40),
        "reason": _required(TEXT, "why, in a sentence", _LONG),
        "retry": _optional(FLAG, "whether another attempt could do better; yes when left out"),
        "retry_after_seconds": _optional(NUMBER, "with `rate_limited`: how long to wait", 31_536_000),
        "usage": _USAGE,
        "notes": _NOTES,
    },
}
# A message has at most one of these.
ONE_OF = {COMPLETE: ("commit", "patch", "files")}
USAGE_FIELDS: dict[str, Field] = {
    "input_tokens": _optional(WHOLE, "tokens read", _MOST_WHOLE),
    "output_tokens": _optional(WHOLE, "tokens written", _MOST_WHOLE),
    "cost_usd": _optional(NUMBER, "US dollars", 1_000_000_000),
}
# What a reviewer found; only the text is required.
FINDING_FIELDS: dict[str, Field] = {
    "path": _optional(TEXT, "from the root of the repository", 4_096),
    "line": _optional(WHOLE, "from 1 on", 10_000_000),
    "severity": _optional(WORD, "`blocker`, `major`, `minor`, `note` or `praise`", 40),
    "text": _required(TEXT, "what is wrong, or right, and why", 4_000),
}
# Why work failed. Workers report the first five; the supervisor finds the others.
CODES: dict[str, str] = {
    "failed": "it could not be done",
    "blocked": "something or someone else must act first",
    "rate_limited": "the model's provider wants fewer requests",
    "refused": "the worker will not do it",
    "stopped": "it was asked to end",
    "malformed": "it printed something that is not a message of this protocol",
    "oversized": "it said more in one line than fits",
    "flooded": "it printed too much",
    "out_of_order": "it said something at the wrong time, or about another assignment",
    "silent": "it said nothing for longer than it may",
    "late": "it took longer than it may",
    "closed": "it closed its output without an end, and went on",
    "died": "it ended without an end, or badly after one",
    "not_started": "it could not be started",
}


def find_problem(field: Field, item: object) -> str:
    """Return what is wrong with the content of a field; empty when nothing is."""
    if item is None:
        return "" if field.is_optional else "must not be null"
    return _CHECKS[field.kind](field, item)


def _check_text(field: Field, item: object) -> str:
    if not isinstance(item, str):
        return "must be a text"
    if len(item) > field.most:
        return f"has {len(item):,} characters; {field.most:,} are the most"
    if "\0" in item or (not item.isascii() and any("\ud800" <= letter <= "\udfff" for letter in item)):
        return "holds characters that are no text"
    return ""


def _check_word(field: Field, item: object) -> str:
    problem = _check_text(field, item)
    is_word = isinstance(item, str) and item.isascii() and item.isprintable() and item and " " not in item
    return problem or ("" if is_word else "must be one word in plain letters")


def _check_integer(field: Field, item: object) -> str:
    is_integer = isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= field.most
    return "" if is_integer else f"must be a whole number up to {field.most:,}"


def _check_number(field: Field, item: object) -> str:
    # NaN and infinity are not within the limits either.
    is_number = isinstance(item, (int, float)) and not isinstance(item, bool) and 0 <= item <= field.most
    return "" if is_number else f"must be a number from 0 to {field.most:,}"


def _check_flag(_: Field, item: object) -> str:
    return "" if isinstance(item, bool) else "must be true or false"


def _check_list(field: Field, item: object, what: str, check: Callable[[object], str]) -> str:
    if not isinstance(item, (list, tuple)):
        return f"must be a list of {what}"
    items = cast("list[object]", item)
    if len(items) > field.most:
        return f"has {len(items):,} items; {field.most:,} are the most"
    return next((f"holds an item that {problem}" for one in items if (problem := check(one))), "")


def _check_texts(field: Field, item: object) -> str:
    return _check_list(field, item, "texts", lambda one: _check_text(_LONG_TEXT, one))


def _check_paths(field: Field, item: object) -> str:
    problem = _check_texts(field, item)
    outside = [path for path in cast("list[str]", item) if not _is_inside(path)] if not problem else []
    return f"holds {outside[0][:80]!r}, which is not a path inside the repository" if outside else problem


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return bool(path) and len(path) <= 4_096 and not any(part in ("", ".", "..", ".git") for part in parts)


def _check_commit(_: Field, item: object) -> str:
    is_id = isinstance(item, str) and len(item) in (40, 64) and _HEX.issuperset(item)
    return "" if is_id else "must be the full id of a commit"


def _check_usage(_: Field, item: object) -> str:
    if not isinstance(item, dict):
        return "must be an object"
    for name, number in cast("dict[str, object]", item).items():
        known = USAGE_FIELDS.get(name)
        if problem := find_problem(known, number) if known else "is unknown":
            return f"holds {name[:40]!r}, which {problem}"
    return ""


def _check_findings(field: Field, item: object) -> str:
    return _check_list(field, item, "objects", _check_finding)


def _check_finding(item: object) -> str:
    if not isinstance(item, dict):
        return "must be an object"
    given = cast("dict[str, object]", item)
    unknown = next((name for name in given if name not in FINDING_FIELDS), None)
    if unknown is not None:
        return f"has an unknown field {unknown[:40]!r}"
    for name, field in FINDING_FIELDS.items():
        if problem := find_problem(field, given.get(name)):
            return f"has a {name} that {problem}"
    return ""


_CHECKS: dict[str, Callable[[Field, object], str]] = {
    TEXT: _check_text,
    WORD: _check_word,
    WHOLE: _check_integer,
    NUMBER: _check_number,
    FLAG: _check_flag,
    TEXTS: _check_texts,
    PATHS: _check_paths,
    COMMIT: _check_commit,
    USAGE: _check_usage,
    FINDINGS: _check_findings,
}

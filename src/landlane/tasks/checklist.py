"""Write tasks as a Markdown checklist that people can edit, and read it back.

A line is a task: `- [ ] T3 Title (after: T1) (path: src/a.py) (role: test) (priority: 2)`. The indented
lines below it are its body; Landlane quotes them with `>`. A task without an id is identified by its title,
so reading the same list twice adds nothing. `after` names an id or a title, which may come later in the list.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.ids import digest
from landlane.tasks.model import DONE, DROPPED, READY, NewTask, Task
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MARKS = {DONE: "x", DROPPED: "-"}
_MANY = frozenset({"after", "path", "label"})
_ONE = frozenset({"role", "priority", "kind", "check", "output", "key", "attempts"})
_IGNORED = frozenset({"state", "owner"})  # written for people, ignored when read
_ATTRIBUTES = _MANY | _ONE | _IGNORED


@value
class ChecklistItem:
    """A task of a checklist, its id if it has one, and whether it is ticked off."""

    line: int
    task_id: str
    is_ticked: bool
    task: NewTask


@value
class ChecklistEntry:
    """A line of a checklist as it was written, with its attributes and the numbered lines of its body."""

    line: int
    task_id: str
    is_ticked: bool
    title: str
    attributes: dict[str, list[str]]
    body: tuple[tuple[int, str], ...]


def as_checklist(tasks: Iterable[tuple[Task, tuple[str, ...]]]) -> str:
    """Return tasks and their declared paths as a checklist."""
    lines = ["# Tasks", ""]
    for task, paths in tasks:
        attributes = [f"({name}: {_escape(text)})" for name, text in _attributes_of(task, paths)]
        head = f"- [{_MARKS.get(task.state, ' ')}] {task.id} {_escape(task.title)}"
        lines.append(" ".join([head, *attributes]))
        lines += [f"  > {line}".rstrip() for line in task.body.splitlines()]
    return "\n".join(lines) + "\n"


def _attributes_of(task: Task, paths: tuple[str, ...]) -> list[tuple[str, str]]:
    lists = [("after", before) for before in task.after] + [("path", path) for path in paths]
    lists += [("label", label) for label in task.labels]
    others = {"role": task.role, "kind": task.kind, "check": task.check, "output": task.output}
    others["priority"] = str(task.priority) if task.priority else ""
    others["state"] = task.state if task.state not in (READY, DONE) else ""
    others["owner"] = task.owner if task.state not in (DONE, DROPPED) else ""
    return lists + [(name, " ".join(text.split())) for name, text in others.items() if text]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _unescape(text: str) -> str:
    out: list[str] = []
    letters = iter(text)
    for letter in letters:
        following = next(letters, "") if letter == "\\" else ""
        out.append(following if following in ("(", ")", "\\") and following else letter + following)
    return "".join(out)


def read_checklist(text: str) -> list[ChecklistItem]:
    """Return the items of a checklist, in order.

    Raises:
        Malformed: an item is invalid; the message names its line.
    """
    return [_read_item(entry) for entry in read_entries(text, _ATTRIBUTES)]


def read_entries(text: str, names: frozenset[str]) -> list[ChecklistEntry]:
    """Return the lines of a checklist with the attributes of these names, without validating them."""
    items: list[tuple[int, str, str]] = []
    bodies: list[list[tuple[int, str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        item = _read_mark(line)
        if item is not None:
            items.append((number, *item))
            bodies.append([])
        elif bodies and line[:1] in (" ", "\t") and line.strip():
            bodies[-1].append((number, line))
    return [
        _read_entry(number, mark, rest, tuple(body), names)
        for (number, mark, rest), body in zip(items, bodies, strict=True)
    ]


def _read_mark(line: str) -> tuple[str, str] | None:
    stripped = line.strip()
    is_item = stripped[:3] in ("- [", "* [", "+ [") and stripped[4:5] == "]" and stripped[3] in " xX-"
    return (stripped[3], stripped[5:].strip()) if is_item else None


def _unquoted(line: str) -> str:
    stripped = line.strip()
    return stripped[1:].removeprefix(" ") if stripped.startswith(">") else stripped


def _read_entry(
    number: int, mark: str, rest: str, body: tuple[tuple[int, str], ...], names: frozenset[str]
) -> ChecklistEntry:
    first, _, behind = rest.partition(" ")
    task_id = first if is_task_id(first) else ""
    title, attributes = _split_attributes(behind if task_id else rest, names)
    return ChecklistEntry(
        line=number, task_id=task_id, is_ticked=mark in "xX-", title=title, attributes=attributes, body=body
    )


def _read_item(entry: ChecklistEntry) -> ChecklistItem:
    number, title, attributes = entry.line, entry.title, entry.attributes
    if not title:
        raise _bad(number, "has no title", "- [ ] what is to be done")
    one = {name: texts[-1] for name, texts in attributes.items() if name in _ONE}
    task = NewTask(
        title=title,
        body="\n".join(_unquoted(line) for _, line in entry.body),
        paths=tuple(attributes.get("path", ())),
        after=tuple(attributes.get("after", ())),
        labels=tuple(attributes.get("label", ())),
        role=one.get("role", ""),
        kind=one.get("kind", ""),
        check=one.get("check", ""),
        output=one.get("output", ""),
        priority=_number(one.get("priority", "0"), number, "priority"),
        max_attempts=_number(one.get("attempts", "3"), number, "attempts"),
        key=one.get("key", "") or f"list:{digest(' '.join(title.lower().split()))[:16]}",
    )
    return ChecklistItem(line=number, task_id=entry.task_id, is_ticked=entry.is_ticked, task=task)


def is_task_id(word: str) -> bool:
    """Return whether a word has the form of a task's id."""
    return word[:1] == "T" and word[1:].isascii() and word[1:].isdigit()


def _number(text: str, line: int, what: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 6:
        raise _bad(line, f"{what} {text[:20]!r} is not a number", f"({what}: 2)")
    return int(text)


def _bad(line: int, message: str, hint: str) -> Malformed:
    return Malformed(f"line {line}: {message}", code="BAD_CHECKLIST", hint=hint, line=line)


def _split_attributes(text: str, names: frozenset[str]) -> tuple[str, dict[str, list[str]]]:
    """Return the title, and the `(name: value)` groups after it."""
    attributes: dict[str, list[str]] = {}
    rest = text.strip()
    while (start := _last_group(rest, names)) >= 0:
        name, _, given = rest[start + 1 : -1].partition(":")
        attributes.setdefault(name, []).insert(0, _unescape(given.strip()))
        rest = rest[:start].rstrip()
    return _unescape(rest), attributes


def _last_group(text: str, names: frozenset[str]) -> int:
    """Return where the last group of a text begins; -1 when it does not end with a group of these names."""
    if not text.endswith(")") or _is_escaped(text, len(text) - 1):
        return -1
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] in "()" and not _is_escaped(text, at):
            depth += 1 if text[at] == ")" else -1
            if not depth:
                name = text[at + 1 :].partition(":")[0]
                return at if name in names and text[at - 1 : at] in ("", " ") and at else -1
    return -1


def _is_escaped(text: str, at: int) -> bool:
    slashes = 0
    while at - slashes > 0 and text[at - slashes - 1] == "\\":
        slashes += 1
    return slashes % 2 == 1

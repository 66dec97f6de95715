"""Write tasks as a Markdown checklist that people can edit, and read it back.

A line is a task: `- [ ] T3 Title (after: T1) (path: src/a.py) (role: test) (priority: 2)`. The indented
lines below it are its body; Landlane quotes them with `>`. A task without an id is identified by its title,
so reading the same list twice adds nothing. `after` names an id or a title, which may come later in the list.
"""

from __future__ import annotations

import re

from landlane.errors import Malformed
from landlane.ids import digest
from landlane.tasks.model import DONE, DROPPED, READY, NewTask, Task, assign_labels
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MARKS = {DONE: "x", DROPPED: "-"}
_MANY = frozenset({"after", "path", "label"})
_ONE = frozenset({"role", "priority", "kind", "check", "output", "key", "attempts"})
_IGNORED = frozenset({"state", "owner"})  # written for people, ignored when read
_ATTRIBUTES = _MANY | _ONE | _IGNORED
_TRAILING_ID = re.compile(r"\s+\((T\d{1,9})\)$")
_TRAILING_ASSIGNEE = re.compile(r"\s+@([A-Za-z0-9][A-Za-z0-9_.:-]*)$")
_WORD = re.compile(r"[a-z][a-z-]*")


@value
class ChecklistItem:
    """A task of a checklist, its id if it has one, and whether it is ticked off."""

    line: int
    task_id: str
    is_ticked: bool
    task: NewTask
    unknown: tuple[str, ...] = ()  # words of groups that mean nothing in a checklist


@value
class ChecklistEntry:
    """A line of a checklist as it was written, with its attributes and the numbered lines of its body."""

    line: int
    task_id: str
    is_ticked: bool
    title: str
    attributes: dict[str, list[str]]
    body: tuple[tuple[int, str], ...]
    written: str = ""  # all of the text behind the box


@value
class ItemText:
    """The text of a line behind its box: the title as it is meant and as it is written, and what follows."""

    title: str
    head: str  # the title as it is written
    attributes: dict[str, list[str]]
    assignee: str = ""
    task_id: str = ""
    unknown: tuple[str, ...] = ()  # groups that mean nothing here, as they are written
    tail: str = ""  # what follows the title, as it is written
    lead: str = ""  # an id before the title

    def text(self) -> str:
        """Return the text as it is written."""
        return f"{self.lead}{self.head}{self.tail}"

    def with_title(self, head: str) -> ItemText:
        """Return the text with another title, in its written form."""
        return replace(self, title=_unescape(head), head=head)

    def with_assignee(self, name: str) -> ItemText:
        """Return the text for another agent; an empty name removes it."""
        written = re.compile(rf"\s+@{re.escape(self.assignee)}(?=\s|$)")
        tail = written.sub("", self.tail) if self.assignee else self.tail
        return replace(self, assignee=name, tail=f" @{name}{tail}" if name else tail)

    def with_id(self, task_id: str) -> ItemText:
        """Return the text with the id of its task at its end."""
        return replace(self, task_id=task_id, tail=f"{self.tail} ({task_id})")


def split_item(text: str, names: frozenset[str]) -> ItemText:
    """Return the parts of the text behind a box: `Title (path: src) @agent (T12)`.

    Groups with other names than these are `unknown`, and no part of the title.
    """
    first, _, behind = text.partition(" ")
    task_id = first if is_task_id(first) else ""
    lead = (f"{first} " if behind else first) if task_id else ""
    rest = text[len(lead) :]
    attributes: dict[str, list[str]] = {}
    unknown: list[str] = []
    assignee = ""
    while True:
        rest = rest.rstrip()
        if (found := _TRAILING_ID.search(rest)) and not task_id:
            task_id = found[1]
        elif (found := _TRAILING_ASSIGNEE.search(rest)) and not assignee:
            assignee = found[1]
        elif (group := _read_group(rest)) is not None:
            word, text_in = group
            start = _group_start(rest)
            if word in names:
                attributes.setdefault(word, []).insert(0, _unescape(text_in.strip()))
            else:
                unknown.insert(0, rest[start:])
            rest = rest[:start]
            continue
        else:
            break
        rest = rest[: found.start()]
    return ItemText(
        title=_unescape(rest),
        head=rest,
        attributes=attributes,
        assignee=assignee,
        task_id=task_id,
        unknown=tuple(unknown),
        tail=text[len(lead) + len(rest) :],
        lead=lead,
    )


def escape_title(text: str) -> str:
    """Return a title in the form in which none of it is read as something else."""
    return re.sub(r"(?<!\S)@", r"\\@", _escape(" ".join(text.split())))


def as_checklist(tasks: Iterable[tuple[Task, tuple[str, ...]]]) -> str:
    """Return tasks and their declared paths as a checklist."""
    lines = ["# Tasks", ""]
    for task, paths in tasks:
        attributes = [f"({name}: {_escape(text)})" for name, text in _attributes_of(task, paths)]
        head = f"- [{_MARKS.get(task.state, ' ')}] {task.id} {escape_title(task.title)}"
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
        out.append(following if following in ("(", ")", "\\", "@") and following else letter + following)
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
        line=number,
        task_id=task_id,
        is_ticked=mark in "xX-",
        title=title,
        attributes=attributes,
        body=body,
        written=rest,
    )


def _read_item(entry: ChecklistEntry) -> ChecklistItem:
    item = split_item(entry.written, _ATTRIBUTES)
    number, attributes, task_id = entry.line, item.attributes, item.task_id
    title = " ".join(filter(None, [item.title, *map(_unescape, item.unknown)]))
    if not title:
        raise _bad(number, "has no title", "- [ ] what is to be done")
    one = {name: texts[-1] for name, texts in attributes.items() if name in _ONE}
    task = NewTask(
        title=title,
        body="\n".join(_unquoted(line) for _, line in entry.body),
        paths=tuple(attributes.get("path", ())),
        after=tuple(attributes.get("after", ())),
        labels=assign_labels(tuple(attributes.get("label", ())), item.assignee),
        role=one.get("role", ""),
        kind=one.get("kind", ""),
        check=one.get("check", ""),
        output=one.get("output", ""),
        priority=_number(one.get("priority", "0"), number, "priority"),
        max_attempts=_number(one.get("attempts", "3"), number, "attempts"),
        key=one.get("key", "") or f"list:{digest(' '.join(title.lower().split()))[:16]}",
    )
    words = tuple(part[1:].partition(":")[0] for part in item.unknown)
    return ChecklistItem(line=number, task_id=task_id, is_ticked=entry.is_ticked, task=task, unknown=words)


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


def _read_group(text: str) -> tuple[str, str] | None:
    """Return the word and the content of the group at the end of a text; None if there is none."""
    start = _group_start(text)
    word, _, content = text[start + 1 : -1].partition(":")
    is_group = start > 0 and text[start - 1] == " " and _WORD.fullmatch(word)
    return (word, content) if is_group and content.strip() and content[:2] != "//" else None


def _last_group(text: str, names: frozenset[str]) -> int:
    """Return where the last group of a text begins; -1 when it does not end with a group of these names."""
    at = _group_start(text)
    if at <= 0 or text[at - 1] != " ":
        return -1
    return at if text[at + 1 :].partition(":")[0] in names else -1


def _group_start(text: str) -> int:
    """Return where the brackets at the end of a text open; -1 when it does not end with such."""
    if not text.endswith(")") or _is_escaped(text, len(text) - 1):
        return -1
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] in "()" and not _is_escaped(text, at):
            depth += 1 if text[at] == ")" else -1
            if not depth:
                return at
    return -1


def _is_escaped(text: str, at: int) -> bool:
    slashes = 0
    while at - slashes > 0 and text[at - slashes - 1] == "\\":
        slashes += 1
    return slashes % 2 == 1

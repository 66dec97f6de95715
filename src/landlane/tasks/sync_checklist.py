"""Keep a Markdown checklist and the queue equal: ticks, titles, assignees and new tasks, in both directions.

Both sides are compared with what the last sync of the file saw, so an edit on one side reaches the other, and
different edits on both are conflicts, which are shown and left alone. Only the lines of tasks are changed. A
tick in the file is never believed: done means evidence.
"""

from __future__ import annotations

import re
from enum import StrEnum

from landlane.errors import NotAllowed
from landlane.ids import digest
from landlane.store import records
from landlane.tasks.add import ADD_LOCK, Added, TaskEdit, add_task_in, edit_task_in, new_task_patterns
from landlane.tasks.checklist import ItemText, escape_title, split_item
from landlane.tasks.model import (
    DONE,
    DROPPED,
    FINAL,
    FINISHED,
    NewTask,
    assign_labels,
    assignee_of,
    check_new_task,
    is_for_person,
)
from landlane.tasks.records import FAN_LABEL, REVIEW_LABEL, list_tasks_in, task_paths
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task

_NOUN = "checklist"
_BOX = r"(?P<indent>\s*)(?P<bullet>[-*+]) \[(?P<mark>[ xX-])\]"
_ITEM = re.compile(_BOX + r"(?P<rest> .*?)(?P<end>\s*)", re.DOTALL)
_FENCE = re.compile(r"\s*(```|~~~)")
_INTERNAL = (FAN_LABEL, REVIEW_LABEL)
_NOT_LISTED = frozenset({"integration", "bounced"})
_NAMES = frozenset({"after", "path", "label", "role", "priority", "kind", "check", "output", "attempts"})
_IGNORED = frozenset({"state", "owner", "key"})  # written by `task list --markdown`
_LONGEST_SHOWN = 60


class Prefer(StrEnum):
    """Which side wins where both were changed."""

    NEITHER = ""
    QUEUE = "queue"
    FILE = "file"


@value
class SyncNote:
    """Something that a person must look at; `line` is 0 if it is in no line."""

    line: int
    text: str


@value
class Synced:
    """The new text of a checklist, and what changed on both sides."""

    text: str
    added: tuple[Task, ...] = ()
    listed: tuple[str, ...] = ()  # tasks of the queue that got a line
    ticked: tuple[int, ...] = ()  # lines
    edited: tuple[str, ...] = ()  # tasks with another title or assignee
    assigned: int = 0
    notes: tuple[SyncNote, ...] = ()


@value
class _Line:
    """A line with a task: where it is, and its parts."""

    number: int  # from 1
    indent: str
    bullet: str
    mark: str
    parts: ItemText
    end: str  # white space and the line break

    @property
    def is_ticked(self) -> bool:
        return self.mark in "xX-"

    def text(self) -> str:
        """Return the line as it is written."""
        return f"{self.indent}{self.bullet} [{self.mark}] {self.parts.text()}{self.end}"


def sync_checklist(
    repo: Repository,
    author: Session | None,
    path: str,
    text: str,
    *,
    agents: Collection[str],
    prefer: Prefer = Prefer.NEITHER,
) -> Synced:
    """Bring a checklist and the queue together in one transaction; the caller writes the new text.

    `path` identifies the file, and `agents` are the names that a line may assign its task to. What the new
    text says is only remembered by the next sync, which reads it: the caller may end before it is written.

    Raises:
        Malformed: a line cannot be a task.
        NotAllowed: a sandboxed caller gives a check.
    """
    return repo.change(lambda tx: _Sync(tx, repo, author, path, text, agents, prefer).run(), areas=ADD_LOCK)


class _Sync:
    """One sync, inside its transaction."""

    def __init__(
        self,
        tx: Transaction,
        repo: Repository,
        author: Session | None,
        path: str,
        text: str,
        agents: Collection[str],
        prefer: Prefer,
    ) -> None:
        self._tx = tx
        self._repo = repo
        self._author = author
        self._path = path
        self._raw = text.splitlines(keepends=True)
        self._agents = agents
        self._prefer = prefer
        self._key = f"C{digest(path)[:16]}"
        known = records.lock(tx, _NOUN, self._key)
        self._seen: Mapping[str, Any] = known["lines"] if known is not None else {}
        self._lines = _read_lines(self._raw)
        self._read = {line.number: line for line in self._lines}  # as they are in the file
        self._tasks = {task.id: task for task in list_tasks_in(tx)}
        self._added: list[Task] = []
        self._ticked: list[int] = []
        self._edited: list[str] = []
        self._assigned = 0
        self._notes: list[SyncNote] = []

    def run(self) -> Synced:
        lines: dict[str, _Line] = {}  # task → its line
        new: list[_Line] = []
        for line in self._lines:
            for part in line.parts.unknown:
                word, known = part[1:].partition(":")[0], ", ".join(sorted(_NAMES))
                self._note(line, f'unknown word "{word}"; known: {known}')
            task_id = line.parts.task_id
            if not task_id:
                new.append(line)
            elif task_id not in self._tasks:
                self._note(line, f"there is no task {task_id}; the line is left as it is")
            elif task_id in lines:
                self._note(line, f"{task_id} is listed twice, first in line {lines[task_id].number}")
            else:
                lines[task_id] = line
        lines = {task_id: self._bring_together(self._tasks[task_id], line) for task_id, line in lines.items()}
        for line in new:
            self._take_new(line, lines)
        self._note_removed(lines)
        listed = self._append_missing(lines)
        self._remember(lines)
        return Synced(
            text="".join(self._raw),
            added=tuple(self._added),
            listed=tuple(listed),
            ticked=tuple(self._ticked),
            edited=tuple(dict.fromkeys(self._edited)),
            assigned=self._assigned,
            notes=tuple(self._notes),
        )

    def _note(self, line: _Line | None, text: str) -> None:
        self._notes.append(SyncNote(line=line.number if line is not None else 0, text=text))

    def _write(self, line: _Line, **changes: object) -> _Line:
        changed = replace(line, **changes)
        self._raw[line.number - 1] = changed.text()
        return changed

    # ------------------------------------------------------------------------------- known tasks

    def _bring_together(self, task: Task, line: _Line) -> _Line:
        seen: Mapping[str, Any] = self._seen.get(task.id, {})
        line = self._bring_title(task, line, seen)
        line = self._bring_assignee(self._tasks[task.id], line, seen)
        return self._bring_tick(self._tasks[task.id], line, seen)

    def _bring_title(self, task: Task, line: _Line, seen: Mapping[str, Any]) -> _Line:
        written = line.parts.title
        if written == task.title:
            return line
        before = seen.get("title", task.title)
        is_edited_here, is_edited_there = written != before, task.title != before
        if is_edited_here and is_edited_there and self._prefer == Prefer.NEITHER:
            self._note(line, f'{task.id} is "{_cut(task.title)}" in the queue and was reworded here, too')
            return line
        if self._prefer == Prefer.QUEUE or not is_edited_here or not written:
            return self._write(line, parts=line.parts.with_title(escape_title(task.title)))
        if task.state in FINAL:
            self._note(line, f"{task.id} is {task.state} and keeps its title")
            return line
        self._edit(task, TaskEdit(title=written))
        return line

    def _bring_assignee(self, task: Task, line: _Line, seen: Mapping[str, Any]) -> _Line:
        written, queued = line.parts.assignee, assignee_of(task.labels)
        if written == queued:
            return line
        before = seen.get("assignee", queued)
        is_edited_here, is_edited_there = written != before, queued != before
        if is_edited_here and is_edited_there and self._prefer == Prefer.NEITHER:
            self._note(line, f"{task.id} is for {queued or 'anybody'} in the queue; the line says otherwise")
            return line
        if self._prefer == Prefer.QUEUE or not is_edited_here:
            return self._write(line, parts=line.parts.with_assignee(queued))
        if written and not self._is_known(written):
            self._note(line, f'"@{written}" is not a known agent; {task.id} stays {queued or "unassigned"}')
            return line
        if task.state in FINAL:
            self._note(line, f"{task.id} is {task.state} and is not assigned any more")
            return line
        try:
            self._edit(task, TaskEdit(assignee=written))
        except NotAllowed as error:  # an agent's sync takes no task from a person
            self._note(line, error.message)
            return line
        self._assigned += 1
        return line

    def _bring_tick(self, task: Task, line: _Line, seen: Mapping[str, Any]) -> _Line:
        mark = {DONE: "x", DROPPED: "-"}.get(task.state, " ")
        if line.is_ticked == (mark != " "):
            return line
        if self._prefer != Prefer.QUEUE and mark == " ":
            owner = f" by {task.owner}" if task.owner else ""
            self._note(line, f"{task.id} is ticked but {task.state}{owner} in the queue; done needs evidence")
            return line
        if self._prefer != Prefer.QUEUE and seen.get("ticked"):
            self._note(line, f"{task.id} is {task.state} in the queue but was unticked here; both are left")
            return line
        self._ticked.append(line.number)
        return self._write(line, mark=mark)

    def _edit(self, task: Task, edit: TaskEdit) -> None:
        outcome = edit_task_in(self._tx, self._repo, self._author, task.id, edit, force=True)
        assert isinstance(outcome, Added)
        self._tasks[task.id] = outcome.task
        self._edited.append(task.id)

    # --------------------------------------------------------------------------------- new lines

    def _take_new(self, line: _Line, lines: dict[str, _Line]) -> None:
        title = line.parts.title
        if not title:
            self._note(line, "the line has no title")
            return
        same = next((one for one in lines.values() if _same(one.parts.title, title)), None)
        if same is not None:
            self._note(line, f"it has the same title as line {same.number}; it is not added")
            return
        queued = (task for task in self._tasks.values() if _same(task.title, title))
        known = next((task for task in queued if task.state not in FINISHED and task.id not in lines), None)
        if known is not None:  # the file was written by hand, or a sync was cut off before it wrote the file
            line = self._write(line, parts=line.parts.with_id(known.id))
            lines[known.id] = self._bring_together(known, line)
            return
        if line.is_ticked:
            return  # done before it was a task
        task = self._add(line, lines)
        self._tasks[task.id] = task
        self._added.append(task)
        lines[task.id] = self._write(line, parts=line.parts.with_id(task.id))

    def _add(self, line: _Line, lines: Mapping[str, _Line]) -> Task:
        item = line.parts
        assignee = item.assignee
        if assignee and not self._is_known(assignee):
            self._note(line, f'"@{assignee}" is not a known agent; the task stays unassigned')
            assignee = ""
        fields = item.attributes
        one = {name: texts[-1] for name, texts in fields.items()}
        after: list[str] = []
        for name in fields.get("after", ()):
            before = name if name in self._tasks else self._find_line(name, lines)
            if before:
                after.append(before)
            else:
                self._note(line, f'there is no task "{_cut(name)}" to wait for')
        new = check_new_task(
            NewTask(
                title=item.title,
                paths=tuple(fields.get("path", ())),
                after=tuple(after),
                labels=assign_labels(tuple(fields.get("label", ())), assignee),
                role=one.get("role", ""),
                kind=one.get("kind", ""),
                check=one.get("check", ""),
                output=one.get("output", ""),
                priority=self._number(line, one, "priority", 0),
                max_attempts=self._number(line, one, "attempts", 3),
            )
        )
        patterns = new_task_patterns(self._repo, new)
        outcome = add_task_in(
            self._tx, self._repo, self._author, new, patterns, force=True, position=line.number
        )
        assert isinstance(outcome, Added)
        return outcome.task

    def _number(self, line: _Line, one: Mapping[str, str], name: str, default: int) -> int:
        text = one.get(name, str(default))
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) < 7:
            return int(text)
        self._note(line, f"{name} {_cut(text)} is not a number; {default} is used")
        return default

    def _find_line(self, title: str, lines: Mapping[str, _Line]) -> str:
        return next((task_id for task_id, line in lines.items() if _same(line.parts.title, title)), "")

    def _is_known(self, name: str) -> bool:
        return is_for_person(name) or name in self._agents

    # ------------------------------------------------------------------------ removed and missing

    def _note_removed(self, lines: Mapping[str, _Line]) -> None:
        """Report the tasks whose lines were deleted; they stay in the queue."""
        for task_id, seen in self._seen.items():
            task = None if seen.get("gone") else self._tasks.get(task_id)
            if task_id not in lines and task is not None and task.state not in FINISHED:
                command = f"landlane task drop {task_id} --why 'not needed'"
                self._note(None, f"the line of {task_id} is gone; the task stays. To drop it: {command}")

    def _append_missing(self, lines: dict[str, _Line]) -> list[str]:
        """Append a line for each open task that never had one; return their ids."""
        listed: list[str] = []
        for task in self._tasks.values():
            is_internal = any(label.startswith(_INTERNAL) or label in _NOT_LISTED for label in task.labels)
            if task.id in lines or task.id in self._seen or task.state in FINISHED or is_internal:
                continue
            if self._raw and not self._raw[-1].endswith("\n"):
                self._raw[-1] += self._line_break
            item = ItemText(
                title=task.title,
                head=escape_title(task.title),
                attributes={"path": list(task_paths(task))},
                assignee=assignee_of(task.labels),
                task_id=task.id,
                tail="".join(f" (path: {escape_title(path)})" for path in task_paths(task))
                + (f" @{assignee_of(task.labels)}" if assignee_of(task.labels) else "")
                + f" ({task.id})",
            )
            line = _Line(
                number=len(self._raw) + 1, indent="", bullet="-", mark=" ", parts=item, end=self._line_break
            )
            self._raw.append(line.text())
            lines[task.id] = line
            listed.append(task.id)
        return listed

    @property
    def _line_break(self) -> str:
        return "\r\n" if self._raw and self._raw[0].endswith("\r\n") else "\n"

    def _remember(self, lines: Mapping[str, _Line]) -> None:
        found = {task_id: self._read.get(line.number) for task_id, line in lines.items()}
        seen = {
            task_id: self._state_of(self._tasks[task_id], line)
            for task_id, line in found.items()
            if line is not None
        }
        # A task that lost its line is reported once, and gets no new line.
        gone = {task_id: {"gone": True} for task_id in self._seen if task_id not in lines}
        document = {"id": self._key, "state": "open", "path": self._path, "lines": {**gone, **seen}}
        if document["lines"] != self._seen:
            records.put_without_entry(self._tx, _NOUN, document)

    def _state_of(self, task: Task, line: _Line) -> dict[str, object]:
        """Return what both sides agree on; where they do not, what they agreed on before."""
        before: Mapping[str, Any] = self._seen.get(task.id, {})
        assignee = assignee_of(task.labels)
        queue = {"ticked": task.state in FINAL, "title": task.title, "assignee": assignee}
        file = {"ticked": line.is_ticked, "title": line.parts.title, "assignee": line.parts.assignee}
        defaults = {"ticked": False, "title": task.title, "assignee": assignee}
        return {
            name: item if item == queue[name] else before.get(name, defaults[name])
            for name, item in file.items()
        }


def _read_lines(raw: Sequence[str]) -> list[_Line]:
    """Return the lines with a box, outside of code blocks."""
    lines: list[_Line] = []
    is_code = False
    for number, text in enumerate(raw, start=1):
        if _FENCE.match(text):
            is_code = not is_code
        found = None if is_code else _ITEM.fullmatch(text)
        if found:
            item = split_item(found["rest"].strip(), _NAMES | _IGNORED)
            lines.append(
                _Line(
                    number=number,
                    indent=found["indent"],
                    bullet=found["bullet"],
                    mark=found["mark"],
                    parts=item,
                    end=found["end"],
                )
            )
    return lines


def _same(one: str, other: str) -> bool:
    return " ".join(one.lower().split()) == " ".join(other.lower().split())


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"

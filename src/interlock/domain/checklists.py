"""Tasks as a Markdown checklist that people read and edit, and back again.

A line is a task: `- [ ] T3 Title (after: T1) (path: src/a.py) (role: test) (priority: 2)`. Lines that stand
further in below it are its body. A task that has no id yet is known by its title, so that reading the same
list twice adds nothing.
"""

from __future__ import annotations

from interlock.domain.tasks import DONE, DROPPED, NewTask, Task
from interlock.errors import Malformed
from interlock.ids import digest
from interlock.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MARKS = {DONE: "x", DROPPED: "-"}
_MANY = {"after", "path", "label"}
_ONE = {"role", "priority", "kind", "check", "output", "key"}


def as_checklist(tasks: Iterable[tuple[Task, tuple[str, ...]]]) -> str:
    """Tasks with their declared paths as a checklist."""
    lines = ["# Tasks", ""]
    for task, paths in tasks:
        facts = [f"({name}: {text})" for name, text in _facts(task, paths)]
        state = "" if task.state in ("ready", "done") else f" *{task.state}*"
        owner = f" @{task.owner}" if task.owner and task.state not in (DONE, DROPPED) else ""
        lines.append(
            " ".join([f"- [{_MARKS.get(task.state, ' ')}] {task.id} {task.title}", *facts]) + state + owner
        )
        lines += [f"      {line}" for line in task.body.splitlines()]
    return "\n".join(lines) + "\n"


def _facts(task: Task, paths: tuple[str, ...]) -> list[tuple[str, str]]:
    found = [("after", before) for before in task.after] + [("path", path) for path in paths]
    found += [("label", label) for label in task.labels]
    for name, text in (
        ("role", task.role),
        ("kind", task.kind),
        ("check", task.check),
        ("output", task.output),
    ):
        if text:
            found.append((name, text))
    if task.priority:
        found.append(("priority", str(task.priority)))
    return found


def read_checklist(text: str) -> list[tuple[str, bool, NewTask]]:
    """Each item as (id or nothing, whether it is ticked off, the task).

    Raises:
        Malformed: an item cannot be understood; the line is named.
    """
    found: list[tuple[str, bool, NewTask]] = []
    bodies: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        item = _item(line)
        if item is not None:
            mark, rest = item
            task_id, new = _read_item(rest, number)
            found.append((task_id, mark in "xX-", new))
            bodies.append([])
        elif found and line.startswith((" ", "\t")) and line.strip():
            bodies[-1].append(line.strip())
    return [
        (task_id, ticked, _with_body(new, "\n".join(body)))
        for (task_id, ticked, new), body in zip(found, bodies, strict=True)
    ]


def _item(line: str) -> tuple[str, str] | None:
    stripped = line.strip()
    if (
        stripped[:3] in ("- [", "* [", "+ [")
        and len(stripped) > 5
        and stripped[4] == "]"
        and stripped[3] in " xX-"
    ):
        return stripped[3], stripped[5:].strip()
    return None


def _read_item(rest: str, number: int) -> tuple[str, NewTask]:
    first, _, behind = rest.partition(" ")
    task_id = first if first[:1] == "T" and first[1:].isdigit() else ""
    title, many, one = _split_facts(behind if task_id else rest)
    if not title:
        raise Malformed(f"line {number} has no title", code="BAD_CHECKLIST", hint="- [ ] what is to be done")
    priority = one.get("priority", "0")
    if not priority.lstrip("-").isdigit():
        raise Malformed(
            f"line {number}: priority {priority[:20]!r} is no number",
            code="BAD_CHECKLIST",
            hint="(priority: 2)",
        )
    return task_id, NewTask(
        title=title,
        paths=tuple(many.get("path", ())),
        after=tuple(many.get("after", ())),
        labels=tuple(many.get("label", ())),
        role=one.get("role", ""),
        kind=one.get("kind", ""),
        check=one.get("check", ""),
        output=one.get("output", ""),
        priority=int(priority),
        key=one.get("key", "") or f"list:{digest(title.lower())[:16]}",
    )


def _split_facts(text: str) -> tuple[str, dict[str, list[str]], dict[str, str]]:
    """The title, and the `(name: value)` groups behind it."""
    many: dict[str, list[str]] = {}
    one: dict[str, str] = {}
    rest = _without_state(text.rstrip())
    while rest.endswith(")"):
        start = rest.rfind(" (")
        name, colon, fact = rest[start + 2 : -1].partition(": ") if start >= 0 else ("", "", "")
        if not colon or name not in _MANY | _ONE:
            break
        if name in _MANY:
            many.setdefault(name, []).insert(0, fact.strip())
        else:
            one[name] = fact.strip()
        rest = _without_state(rest[:start].rstrip())
    return rest.strip(), many, one


def _without_state(text: str) -> str:
    """The text without the `*state*` and `@owner` that a written list shows."""
    words = text.split(" ")
    while words and (words[-1].startswith("@") or (words[-1].startswith("*") and words[-1].endswith("*"))):
        words.pop()
    return " ".join(words)


def _with_body(new: NewTask, body: str) -> NewTask:
    return replace(new, body=body) if body else new

"""Draw tasks and what they wait for, as a graph in columns: each task stands right of those before it."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.tasks.model import Task

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 210, 44, 56, 12
_LONGEST = 28
_CLASSES = {"active": "active", "reported": "active", "landing": "active", "waiting_for_person": "you"}
_ENDED_BADLY = {"failed": "bad", "dead": "bad", "done": "done"}


@value
class Node:
    """A task at its place."""

    id: str
    title: str
    state: str
    kind: str
    x: int
    y: int


@value
class Graph:
    """The tasks, and the lines from each to those that wait for it."""

    nodes: tuple[Node, ...]
    lines: tuple[str, ...]
    width: int
    height: int


def draw_graph(tasks: Sequence[Task]) -> Graph:
    """Return the graph of these tasks."""
    known = {task.id: task for task in tasks}
    columns: dict[str, int] = {}

    def column(id: str, seen: frozenset[str]) -> int:
        if id not in columns:
            before = [one for one in known[id].after if one in known and one not in seen]
            columns[id] = 1 + max((column(one, seen | {id}) for one in before), default=-1)
        return columns[id]

    rows: dict[int, int] = {}
    nodes: dict[str, Node] = {}
    for task in tasks:
        at = column(task.id, frozenset((task.id,)))
        row = rows.get(at, 0)
        rows[at] = row + 1
        title = task.title if len(task.title) <= _LONGEST else task.title[: _LONGEST - 1] + "…"
        nodes[task.id] = Node(
            id=task.id,
            title=title,
            state=task.state,
            kind=_CLASSES.get(task.state) or _ENDED_BADLY.get(task.state, ""),
            x=at * (_WIDTH + _GAP_X),
            y=row * (_HEIGHT + _GAP_Y),
        )
    lines = [
        _line(nodes[before], nodes[task.id]) for task in tasks for before in task.after if before in nodes
    ]
    return Graph(
        nodes=tuple(nodes.values()),
        lines=tuple(lines),
        width=max((node.x for node in nodes.values()), default=0) + _WIDTH + 2,
        height=max((node.y for node in nodes.values()), default=0) + _HEIGHT + 2,
    )


def _line(one: Node, other: Node) -> str:
    x, y, to_x, to_y = one.x + _WIDTH, one.y + _HEIGHT // 2, other.x, other.y + _HEIGHT // 2
    middle = (x + to_x) // 2
    return f"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}"

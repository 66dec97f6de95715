"""What a node may return besides an update: hand the task off, try it again, split it or finish it.

The command for LangGraph that follows is stored as text with the change, so that it can be repeated.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END
from langgraph.types import Command, Send

from landlane.tasks.model import DONE
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Goto = str | Sequence[tuple[str, Mapping[str, Any]]]  # a node, or several with their inputs

_SERIALIZER = JsonPlusSerializer()


@value
class HandTo:
    """Hand the task off to another agent; the graph continues at `goto`.

    After too many handoffs it continues at `otherwise`; without that, the graph waits for a person.
    """

    agent: str
    goto: str
    next: str = ""
    context: str = ""
    product: str = ""
    constraints: Sequence[str] = ()
    blockers: Sequence[str] = ()
    assumptions: Sequence[str] = ()
    fields: Mapping[str, Any] = {}
    maximum: int = 0
    update: Mapping[str, Any] = {}
    otherwise: str = ""


@value
class TryAgain:
    """End this attempt with feedback; the graph continues at `goto` if another one is allowed.

    `change` identifies this version of the work. When the budget of the lineage is used up, or the work
    repeats itself, the graph continues at `otherwise`; without that, it waits for a person.
    """

    feedback: str
    goto: str
    otherwise: str = ""
    change: object = None
    code: str = "failed"
    cost_usd: float | None = None
    update: Mapping[str, Any] = {}


@value
class FanOut:
    """Split the task: `node` runs once for each part (name → its input), then the join runs.

    `policy` is all, any, collect, or how many must be done; `deadline` is a duration such as `10m`.
    """

    parts: Mapping[str, Mapping[str, Any]]
    node: str
    policy: str | int = "all"
    deadline: str | float = 0
    update: Mapping[str, Any] = {}


@value
class Finish:
    """The task is done."""

    result: str = ""
    goto: str = END
    update: Mapping[str, Any] = {}


@value
class Result:
    """The result of one part of a fan: `done` with a value, or why not."""

    name: str
    state: str
    task: str
    value: Any = None
    why: str = ""

    @property
    def is_done(self) -> bool:
        return self.state == DONE


def make_command(goto: Goto, update: Mapping[str, Any]) -> Command[Any]:
    """Return the command for LangGraph."""
    if isinstance(goto, str):
        return Command(goto=goto, update=dict(update))
    return Command(goto=[Send(node, dict(given)) for node, given in goto], update=dict(update))


def dump_command(goto: Goto, update: Mapping[str, Any]) -> str:
    """Return a command as text."""
    target = goto if isinstance(goto, str) else [[node, dict(given)] for node, given in goto]
    kind, data = _SERIALIZER.dumps_typed({"goto": target, "update": dict(update)})
    return f"{kind}:{b64encode(data).decode()}"


def load_command(text: str) -> Command[Any]:
    """Return a command from its text."""
    kind, _, data = text.partition(":")
    stored: dict[str, Any] = _SERIALIZER.loads_typed((kind, b64decode(data)))
    goto = stored["goto"]
    return make_command(
        goto if isinstance(goto, str) else [(node, given) for node, given in goto], stored["update"]
    )

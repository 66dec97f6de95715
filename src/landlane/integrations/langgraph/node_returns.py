"""What a node may return beside an update: to hand the task on, try it again, split it, or end it."""

from __future__ import annotations

from langgraph.graph import END

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


@value
class HandTo:
    """Hand the task to another agent, whose node is next. The graph goes on at `goto`.

    Too many handoffs go to `otherwise`; without that, the graph waits for a person.
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
    """End this attempt with feedback: the graph goes on at `goto` if there is to be another one.

    `change` tells one version of the work from another. When the budget of the lineage is used up, or the
    work repeats itself, it goes on at `otherwise`; without that, the graph waits for a person.
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
    """Split the task: one run of `node` for each part, name → its input. Then the join comes.

    `policy` is all, any, collect, or how many must be done; `deadline` a length of time such as `10m`.
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
    """What one part of a fan brought: `done` with a value, or why not."""

    name: str
    state: str
    task: str
    value: Any = None
    why: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it brought what it should."""
        return self.state == "done"

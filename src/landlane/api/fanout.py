"""Split tasks for Python agents: `Landlane.fans` and `Landlane.fan_out`."""

from __future__ import annotations

from landlane.api.session_view import Duration, SessionView, milliseconds
from landlane.api.task_values import SplitTask
from landlane.fanout.join import find_fan, list_fans
from landlane.fanout.split import split_task
from landlane.plans.fields import make_task
from landlane.plans.model import Plan, make_plan
from landlane.plans.parse import read_plan
from landlane.state.steps import find_step
from landlane.tasks.records import get_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.api.task_values import Fan
    from landlane.fanout.model import BranchResult

    Parts = str | Plan | Sequence[str | Mapping[str, Any]]


def plan_of(parts: Parts) -> Plan:
    """Return a plan from its TOML or Markdown text, a list of titles, or a list of facts such as `paths`.

    Raises:
        Malformed: it cannot be parsed.
    """
    if isinstance(parts, Plan):
        return parts
    if isinstance(parts, str):
        return read_plan(parts, "")
    facts = [{"title": part} if isinstance(part, str) else dict(part) for part in parts]
    tasks = [make_task({key: (item, 0) for key, item in fact.items()}, 0) for fact in facts]
    return make_plan("", tasks)


class Fans(SessionView):
    """Split tasks of one repository."""

    def out(
        self,
        task: str,
        parts: Parts,
        *,
        policy: str | int = "all",
        deadline: Duration = 0,
        rest: str = "drop",
        key: str = "",
        memo: Callable[[SplitTask], str] = lambda _: "",
    ) -> SplitTask:
        """Split a task into branches; the task waits for them and continues once with all results.

        `policy` is all, any, collect, or how many branches must be done; `deadline` is a duration. With a
        `key` it is split once: the same key again gives back the same fan. `memo` is kept with it in the same
        change; see `Landlane.steps`.

        Example:
            `ann.fans.out("T1", ["read the law", "ask the users"], policy="collect", deadline="10m")`

        Raises:
            Malformed: the plan or the policy cannot be used.
            Stale: the task belongs to another session.
            Held: it already waits for other branches.
        """
        repo, session = self._repo, self._session
        deadline_ms = milliseconds(deadline, "deadline")
        step = find_step(repo, key) if key else None
        if step is not None:
            fan, branches = self.get(step.about)
            tasks = self._public(tuple(get_task(repo, branch.task) for branch in branches))
            return SplitTask(fan=fan, tasks=tasks, is_new=False)
        plan, also = plan_of(parts), self._step_recorder(key, task, lambda split: split.fan.id, memo)
        return self._settled(split_task(repo, session, task, plan, str(policy), deadline_ms, rest, also))

    def get(self, name: str) -> tuple[Fan, tuple[BranchResult, ...]]:
        """Return a fan by its id or its task, with results and failures in the order of its plan."""
        return self._settled(find_fan(self._repo, name))

    def list(self, *, with_all: bool = False) -> Sequence[Fan]:
        """Return the open fans, or all of them."""
        return self._settled(list_fans(self._repo, with_all=with_all))

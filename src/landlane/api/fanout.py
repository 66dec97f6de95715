"""Split tasks for Python agents: `Landlane.fans` and `Landlane.fan_out`."""

from __future__ import annotations

from landlane.clock import parse_duration
from landlane.fanout import read as fanout_read
from landlane.fanout import split as fans
from landlane.fanout.model import Branch, Fan
from landlane.plans.model import Plan, make_plan, make_task
from landlane.plans.parse import read_plan
from landlane.state.steps import find_step, put_step_in
from landlane.tasks.records import get_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

    Parts = str | Plan | Sequence[str | Mapping[str, Any]]


def plan_of(parts: Parts, title: str = "") -> Plan:
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
    return make_plan(title, tasks)


class Fans:
    """Split tasks of one repository."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def out(
        self,
        task: str,
        parts: Parts,
        *,
        policy: str | int = "all",
        deadline: str | float = 0,
        rest: str = "drop",
        key: str = "",
        memo: Callable[[fans.FannedOut], str] = lambda _: "",
    ) -> fans.FannedOut:
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
        deadline_ms = (
            parse_duration(deadline, what="deadline") if isinstance(deadline, str) else int(deadline * 1000)
        )
        repo, session = self._repo, self._session()
        step = find_step(repo, key) if key else None
        if step is not None:
            fan, branches = self.get(step.about)
            tasks = tuple(get_task(repo, branch.task) for branch in branches)
            return fans.FannedOut(fan=fan, tasks=tasks, is_new=False)

        def also(tx: Transaction, fanned: fans.FannedOut) -> None:
            if key:
                about, kept = fanned.fan.id, memo(fanned)
                put_step_in(tx, repo, session, key, task=task, about=about, memo=kept)

        plan = plan_of(parts)
        done = fans.fan_out(repo, session, task, plan, str(policy), deadline_ms, rest, also)
        repo.settle()
        return done

    def get(self, name: str) -> tuple[Fan, tuple[Branch, ...]]:
        """Return a fan by its id or its task, with results and failures in the order of its plan."""
        found = fanout_read.find_fan(self._repo, name)
        self._repo.settle()
        return found

    def list(self, *, with_all: bool = False) -> Sequence[Fan]:
        """Return the open fans, or all of them."""
        found = fanout_read.list_fans(self._repo, with_all=with_all)
        self._repo.settle()
        return found

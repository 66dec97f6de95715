"""Reviews and split tasks for Python agents: `Landlane.reviews`, `Landlane.fans`, `Landlane.fan_out`."""

from __future__ import annotations

from landlane.clock import parse_duration
from landlane.fanout import split as fans
from landlane.fanout.model import Branch, Fan
from landlane.plans.model import Plan, make_plan, make_task
from landlane.plans.parse import read_plan
from landlane.reviews import close as review_ends
from landlane.reviews import give_verdict as reviews
from landlane.reviews.model import Review
from landlane.state.steps import find_step, put_step_in
from landlane.tasks.change import get_task
from landlane.tasks.model import Task

__all__ = ["Branch", "Fan", "Fans", "Review", "Reviews"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.app.open import House
    from landlane.sessions.model import Session
    from landlane.store.interface import Change

    Parts = str | Plan | Sequence[str | Mapping[str, Any]]


def plan_of(parts: Parts, title: str = "") -> Plan:
    """A plan from its text, TOML or Markdown; or from a list of titles, or of facts such as `paths`.

    Raises:
        Malformed: it cannot be understood.
    """
    if isinstance(parts, Plan):
        return parts
    if isinstance(parts, str):
        return read_plan(parts, "")
    facts = [{"title": one} if isinstance(one, str) else dict(one) for one in parts]
    tasks = [make_task({key: (item, 0) for key, item in one.items()}, 0) for one in facts]
    return make_plan(title, tasks)


class Fans:
    """Split tasks of one repository."""

    def __init__(self, house: House, session: Callable[[], Session]) -> None:
        self._house = house
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
        """Split a task into branches; it waits for them, and goes on once with all that came.

        `policy` is all, any, collect, or how many branches must be done; `deadline` a length of time. With a
        `key` it is split once: the same key again gives back the same fan. `memo` is kept with it in the same
        change; see `Landlane.steps`.

        Example:
            `ann.fans.out("T1", ["read the law", "ask the users"], policy="collect", deadline="10m")`

        Raises:
            Malformed: the plan or the policy cannot be used.
            Stale: the task is another's.
            Held: it waits for other branches already.
        """
        deadline_ms = (
            parse_duration(deadline, what="deadline") if isinstance(deadline, str) else int(deadline * 1000)
        )
        house, session = self._house, self._session()
        step = find_step(house.context, key) if key else None
        if step is not None:
            fan, branches = self.get(step.about)
            tasks = tuple(get_task(house.context, one.task) for one in branches)
            return fans.FannedOut(fan=fan, tasks=tasks, is_new=False)

        def also(tx: Change, fanned: fans.FannedOut) -> None:
            if key:
                about, kept = fanned.fan.id, memo(fanned)
                put_step_in(tx, house.context, session, key, task=task, about=about, memo=kept)

        plan = plan_of(parts)
        done = fans.fan_out(house.context, session, task, plan, str(policy), deadline_ms, rest, also)
        house.settle()
        return done

    def get(self, name: str) -> tuple[Fan, tuple[Branch, ...]]:
        """A fan by its id or its task, with results and failures in the order of its plan."""
        found = fans.find_fan(self._house.context, name)
        self._house.settle()
        return found

    def list(self, *, with_all: bool = False) -> Sequence[Fan]:
        """The fans that are open, or all of them."""
        found = fans.list_fans(self._house.context, with_all=with_all)
        self._house.settle()
        return found


class Reviews:
    """Reviews of one repository, as one session sees them."""

    def __init__(self, house: House, session: Callable[[], Session]) -> None:
        self._house = house
        self._session = session

    def get(self, name: str) -> Review:
        """A review by its id, or the newest of a task."""
        return reviews.get_review(self._house.context, name)

    def list(self, *, with_all: bool = False) -> Sequence[Review]:
        """The reviews that go on, or all of them."""
        found = reviews.list_reviews(self._house.context, with_all=with_all)
        self._house.settle()
        return found

    def give(
        self,
        name: str,
        verdict: str,
        *,
        findings: Sequence[Mapping[str, Any]] = (),
        summary: str = "",
        head: str = "",
    ) -> Review:
        """Approve or reject exactly the commit that is under review.

        Raises:
            Malformed: the verdict does not keep to the contract.
            Stale: the review is over, or of another commit.
            NotAllowed: it is one's own work, or somebody else is asked.
        """
        given = reviews.give_verdict(
            self._house.context,
            self._session(),
            self.get(name).id,
            verdict=verdict,
            findings=list(findings),
            summary=summary,
            head=head,
        )
        self._house.settle()
        return given

    def withdraw(self, name: str) -> Task:
        """Take one's own work back from review, to go on with it."""
        task = reviews.take_back(self._house.context, self._session(), self.get(name).task)
        self._house.settle()
        return task

    def adopt(self, name: str) -> Task:
        """Take over approved work whose author is gone, with its claims, to land it as it is."""
        task = review_ends.adopt(self._house.context, self._session(), name)
        self._house.settle()
        return task

"""Parts of a split task: each runs by itself, fails by itself, and is not waited for without need."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from threading import Event, Thread
from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from landlane.errors import LandlaneError, Malformed
from landlane.fanout.model import OPEN
from landlane.integrations.langgraph.node_returns import Result
from landlane.integrations.langgraph.node_run import Visit, read
from landlane.integrations.langgraph.saved_results import from_memo, memo_of
from landlane.tasks.model import AT_WORK, LONGEST_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from landlane.api import Landlane

_LOOK_SECONDS = 0.1
_LATE = "late"


class BranchVisit(Visit):
    """One run of a part of a fan."""

    def __init__(self, terms: Any, state: Any, thread: str, run: str) -> None:
        super().__init__(terms, state, thread, run)
        branch = read(state, "branch")
        if not branch:
            raise Malformed(
                "this node is a part of a fan, and was not reached by one",
                code="GRAPH_NO_FAN",
                hint="reach it by returning FanOut(…, node='…')",
            )
        self.fan, self.task, self.name = branch["fan"], branch["task"], branch["name"]

    def begin(self) -> tuple[bool, Any]:
        """Take the part's own task and claims; or the answer, when it has ended or is not needed."""
        with self.open() as landlane:
            step = landlane.steps.get(self.key)
            if step is not None:
                update: Any = from_memo(step.memo).update
                self._settle(landlane, step.about, update["branches"][self.task]["why"])
                return True, update
            task = landlane.tasks.get(self.task)
            is_own = task.state in AT_WORK and task.session == landlane.session.id
            if not is_own and (self._is_joined(landlane) or landlane.tasks.take(self.task) is None):
                return True, self._told(_LATE, why=task.why or "others brought enough before it began")
            refused = self._claim(landlane)
            if refused:
                return True, self._fail(landlane, f"{refused[0]['pattern']}: {refused[0]['hint']}")
        return False, None

    def end(self, outcome: Any) -> Any:
        """What the part brought is kept, and its task is done."""
        with self.open() as landlane:
            self._release(landlane, is_quiet=True)
            update = self._told("done", result=outcome)
            landlane.steps.keep(self.key, task=self.task, about="done", memo=memo_of("", update))
            self._settle(landlane, "done")
        return update

    def break_off(self, error: Exception) -> Any:
        """The part failed: that is its result, and no other part's."""
        with self.open() as landlane:
            self._release(landlane, is_quiet=True)
            return self._fail(landlane, f"{type(error).__name__}: {error}")

    def give_up(self) -> Any:
        """The join does not wait for this part any more."""
        with self.open() as landlane:
            self._release(landlane, is_quiet=True)
            try:
                landlane.tasks.drop(self.task, f"{self.fan} was joined without it")
            except LandlaneError:
                pass  # it has ended meanwhile
        return self._told(_LATE, why="it came too late for the join")

    def is_unneeded(self) -> bool:
        """Whether the fan was joined while this part is still at work."""
        with self.open() as landlane:
            return self._is_joined(landlane)

    def _is_joined(self, landlane: Landlane) -> bool:
        return landlane.fans.get(self.fan)[0].state != OPEN

    def _fail(self, landlane: Landlane, why: str) -> Any:
        why = why.replace("\0", "").encode("utf-8", "replace").decode()[:LONGEST_LINE]
        update = self._told("failed", why=why)
        landlane.steps.keep(self.key, task=self.task, about="failed", memo=memo_of("", update))
        self._settle(landlane, "failed", why)
        return update

    def _settle(self, landlane: Landlane, how: str, why: str = "") -> None:
        """Bring the part's task to its end; a former run may have done that, or the fan."""
        task = landlane.tasks.get(self.task)
        if task.state not in AT_WORK or task.session != landlane.session.id:
            return
        if how == "done":
            landlane.tasks.done(self.task, result=f"{self.name}: done")
        else:
            landlane.tasks.fail(self.task, why or "it failed", final=True)

    def _told(self, state: str, *, result: Any = None, why: str = "") -> dict[str, Any]:
        return {"branches": {self.task: {"state": state, "result": result, "why": why}}}


def run_part(visit: BranchVisit, work: Callable[[], Any]) -> Any:
    """Run a part in a thread of its own, and leave it there when the join does not wait for it any more."""
    is_over, found = Event(), list[Any]()
    context = copy_context()

    def carry_out() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again where somebody waits
            found.append(error)
        is_over.set()

    Thread(target=context.run, args=(carry_out,), daemon=True).start()
    while not is_over.wait(_LOOK_SECONDS):
        if visit.is_unneeded():
            return visit.give_up()
    return _settled(visit, found[0])


async def run_part_async(visit: BranchVisit, work: Callable[[], Awaitable[Any]]) -> Any:
    """The same for a part that is a coroutine: it is cancelled."""
    part = asyncio.ensure_future(work())
    while not (await asyncio.wait({part}, timeout=_LOOK_SECONDS))[0]:
        if await asyncio.to_thread(visit.is_unneeded):
            part.cancel()
            return await asyncio.to_thread(visit.give_up)
    error = part.exception()
    return await asyncio.to_thread(_settled, visit, part.result() if error is None else error)


def _settled(visit: BranchVisit, outcome: Any) -> Any:
    if isinstance(outcome, GraphBubbleUp):
        visit.fail()
        raise outcome
    if isinstance(outcome, Exception):
        return visit.break_off(outcome)
    if isinstance(outcome, BaseException):
        raise outcome
    return visit.end(outcome)


class JoinVisit(Visit):
    """One run of the node behind a fan: it has the task again, and all that the parts brought."""

    results: tuple[Result, ...] = ()

    def begin(self) -> tuple[bool, Any]:
        """Wait until the fan is joined, then take the task as any node does."""
        fan_id = str(read(self.state, "fan") or "")
        while True:
            with self.open() as landlane:
                fan, branches = landlane.fans.get(fan_id)
            if fan.state != OPEN:
                break
            waits = [one.task for one in branches if not one.is_done]
            interrupt({"fan": fan_id, "waits_for": waits, "hint": "run the graph again when they have ended"})
        brought: dict[str, dict[str, Any]] = read(self.state, "branches") or {}
        self.results = tuple(
            Result(
                name=one.name,
                state=one.state if one.is_done or one.state in ("failed", "dead") else _LATE,
                task=one.task,
                value=brought.get(one.task, {}).get("result") if one.is_done else None,
                why="" if one.is_done else brought.get(one.task, {}).get("why") or one.why,
            )
            for one in branches
        )
        return super().begin()

"""The parts of a split task: each runs and fails alone, and the join waits only for those it needs."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from threading import Event, Thread
from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from landlane.errors import LandlaneError, Malformed
from landlane.fanout.model import OPEN
from landlane.integrations.langgraph.node_returns import Result, dump_command, load_command
from landlane.integrations.langgraph.node_run import NodeRun, read
from landlane.tasks.model import DEAD, DONE, FAILED, IN_PROGRESS, LONGEST_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from landlane.api import Landlane

_POLL_SECONDS = 0.1
_LATE = "late"


class BranchRun(NodeRun):
    """One run of a part of a fan."""

    def __init__(self, options: Any, state: Any, thread: str, run: str) -> None:
        super().__init__(options, state, thread, run)
        branch = read(state, "branch")
        if not branch:
            raise Malformed(
                "this node is a part of a fan, and was not reached by one",
                code="GRAPH_NO_FAN",
                hint="reach it by returning FanOut(…, node='…')",
            )
        self.fan, self.task, self.name = branch["fan"], branch["task"], branch["name"]

    def begin(self) -> tuple[bool, Any]:
        """Take the part's own task and claims; return its answer if it has ended or is not needed."""
        with self.open() as landlane:
            step = landlane.steps.get(self.key)
            if step is not None:
                update: Any = load_command(step.memo).update
                self._settle(landlane, update["branches"][self.task]["why"])
                return True, update
            task = landlane.tasks.get(self.task)
            is_own = task.state in IN_PROGRESS and task.session == landlane.session.id
            if not is_own and (self._is_joined(landlane) or landlane.tasks.take(self.task) is None):
                return True, self._update(_LATE, why=task.why or "others brought enough before it began")
            refused = self._claim(landlane)
            if refused:
                return True, self._fail(landlane, f"{refused[0]['pattern']}: {refused[0]['hint']}")
        return False, None

    def end(self, outcome: Any) -> Any:
        """Store the result of the part, and finish its task."""
        with self.open() as landlane:
            self._release(landlane, is_quiet=True)
            update = self._update(DONE, result=outcome)
            landlane.steps.keep(self.key, task=self.task, about=DONE, memo=dump_command("", update))
            self._settle(landlane)
        return update

    def fail_with(self, error: Exception) -> Any:
        """Store the failure of the part as its result."""
        with self.open() as landlane:
            self._release(landlane, is_quiet=True)
            return self._fail(landlane, f"{type(error).__name__}: {error}")

    def give_up(self) -> Any:
        """Drop the task of a part that the join no longer waits for."""
        with self.open() as landlane:
            self._release(landlane, is_quiet=True)
            try:
                landlane.tasks.drop(self.task, f"{self.fan} was joined without it")
            except LandlaneError:
                pass  # it has ended meanwhile
        return self._update(_LATE, why="it came too late for the join")

    def is_unneeded(self) -> bool:
        """Return whether the fan was joined while this part is still running."""
        with self.open() as landlane:
            return self._is_joined(landlane)

    def _is_joined(self, landlane: Landlane) -> bool:
        return landlane.fans.get(self.fan)[0].state != OPEN

    def _fail(self, landlane: Landlane, why: str) -> Any:
        why = why.replace("\0", "").encode("utf-8", "replace").decode()[:LONGEST_LINE]
        update = self._update(FAILED, why=why)
        landlane.steps.keep(self.key, task=self.task, about=FAILED, memo=dump_command("", update))
        self._settle(landlane, why)
        return update

    def _settle(self, landlane: Landlane, failure: str = "") -> None:
        """End the part's task, unless an earlier run or the fan has done that."""
        task = landlane.tasks.get(self.task)
        if task.state not in IN_PROGRESS or task.session != landlane.session.id:
            return
        if failure:
            landlane.tasks.fail(self.task, failure, final=True)
        else:
            landlane.tasks.done(self.task, result=f"{self.name}: done")

    def _update(self, state: str, *, result: Any = None, why: str = "") -> dict[str, Any]:
        return {"branches": {self.task: {"state": state, "result": result, "why": why}}}


def run_part(node_run: BranchRun, work: Callable[[], Any]) -> Any:
    """Run a part in a thread of its own, and abandon it when the join no longer waits for it."""
    has_ended, outcome = Event(), list[Any]()
    context = copy_context()

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            outcome.append(error)
        has_ended.set()

    Thread(target=context.run, args=(run,), daemon=True).start()
    while not has_ended.wait(_POLL_SECONDS):
        if node_run.is_unneeded():
            return node_run.give_up()
    return _settled(node_run, outcome[0])


async def run_part_async(node_run: BranchRun, work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a part that is a coroutine, and cancel it when the join no longer waits for it."""
    part = asyncio.ensure_future(work())
    while not (await asyncio.wait({part}, timeout=_POLL_SECONDS))[0]:
        if await asyncio.to_thread(node_run.is_unneeded):
            part.cancel()
            return await asyncio.to_thread(node_run.give_up)
    error = part.exception()
    return await asyncio.to_thread(_settled, node_run, part.result() if error is None else error)


def _settled(node_run: BranchRun, outcome: Any) -> Any:
    if isinstance(outcome, GraphBubbleUp):
        node_run.fail()
        raise outcome
    if isinstance(outcome, Exception):
        return node_run.fail_with(outcome)
    if isinstance(outcome, BaseException):
        raise outcome
    return node_run.end(outcome)


class JoinRun(NodeRun):
    """One run of the node after a fan: it gets the task again, and the results of the parts."""

    results: tuple[Result, ...] = ()

    def begin(self) -> tuple[bool, Any]:
        """Wait until the fan is joined, then take the task like any other node."""
        fan_id = str(read(self.state, "fan") or "")
        while True:
            with self.open() as landlane:
                fan, branches = landlane.fans.get(fan_id)
            if fan.state != OPEN:
                break
            unfinished = [branch.task for branch in branches if not branch.is_done]
            interrupt(
                {"fan": fan_id, "waits_for": unfinished, "hint": "run the graph again when they have ended"}
            )
        updates: dict[str, dict[str, Any]] = read(self.state, "branches") or {}
        self.results = tuple(
            Result(
                name=branch.name,
                state=branch.state if branch.is_done or branch.state in (FAILED, DEAD) else _LATE,
                task=branch.task,
                value=updates.get(branch.task, {}).get("result") if branch.is_done else None,
                why="" if branch.is_done else updates.get(branch.task, {}).get("why") or branch.why,
            )
            for branch in branches
        )
        return super().begin()

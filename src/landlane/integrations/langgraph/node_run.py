"""One run of a node: take its task and claims, then act on what it returns, once per run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread
from typing import Any

from langgraph.types import Command, interrupt

from landlane.api import Decision, Landlane, Refused, SplitTask, Taken
from landlane.errors import Held, LandlaneError, Malformed, NotAllowed, WaitsForPerson
from landlane.ids import digest
from landlane.integrations.langgraph.graph_state import write_owned
from landlane.integrations.langgraph.interrupts import RunningNode, describe_gate
from landlane.integrations.langgraph.node_returns import (
    FanOut,
    Finish,
    HandTo,
    TryAgain,
    dump_command,
    load_command,
    make_command,
)
from landlane.integrations.langgraph.take_task import refusals_of, take
from landlane.patterns.pattern import LITERAL
from landlane.tasks.model import DONE
from landlane.tasks.retry_rules import ABORT, ESCALATE
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.integrations.langgraph.take_task import Refusals


_FINISHED = "finished"
_BEAT_SECONDS = 60.0  # well below the lease of a session


@value
class NodeOptions:
    """How a node runs."""

    folder: str
    agent: str
    role: str = ""
    claims: str | Sequence[str] | Callable[[Any], str | Sequence[str]] = ()
    shared: bool = False
    wait: str | float = 0
    takes_task: bool = True
    on_refused: str | Callable[[Any, list[dict[str, Any]]], Any] = ""
    owned: Mapping[str, str] = {}


class NodeRun:
    """One run of one node."""

    def __init__(self, options: NodeOptions, state: Any, thread: str, run: str) -> None:
        self.options = options
        self.state = state
        self.task = str(read(state, "task") or "") if options.takes_task else ""
        self.prefix = f"graph/{key_part(thread)}/"
        self.key = f"{self.prefix}run/{key_part(run)}"
        self.run = run
        self._taken: Taken | None = None

    @property
    def running(self) -> RunningNode:
        return RunningNode(
            folder=self.options.folder, agent=self.options.agent, role=self.options.role, task=self.task
        )

    def open(self) -> Landlane:
        """Open the repository as the agent of this node."""
        return Landlane(self.options.folder, agent=self.options.agent, role=self.options.role)

    def begin(self) -> tuple[bool, Any]:
        """Take the task and the claims; return whether the node must not run, and its answer then."""
        with self.open() as landlane:
            step = landlane.steps.get(self.key)
            if step is not None and self._has_ended(landlane, step.about):
                return True, load_command(step.memo)
            refused = take(landlane, self.task) if self.task else []
            refused = refused or self._claim(landlane)
            if refused:
                self._return_task(landlane)
                return True, self._refuse(refused)
        return False, None

    def _has_ended(self, landlane: Landlane, about: str) -> bool:
        """Return whether the change of an earlier run is complete; a finish is completed now."""
        return about != _FINISHED or self._conclude(landlane, "").state == DONE

    def _claim(self, landlane: Landlane) -> Refusals:
        claims = self.options.claims
        claims = claims(self.state) if callable(claims) else claims
        patterns = (claims,) if isinstance(claims, str) else tuple(claims)
        if not patterns:
            return []
        outcome = landlane.claim(
            *patterns,
            wait=self.options.wait,
            shared=self.options.shared,
            task=self.task,
            note="a node of a graph",
        )
        if isinstance(outcome, Refused):
            return refusals_of(outcome)
        self._taken = outcome
        return []

    def _return_task(self, landlane: Landlane) -> None:
        """Return the task to the queue after a refusal, so that another agent can take it."""
        if not self.task or landlane.tasks.get(self.task).session != landlane.session.id:
            return
        try:
            landlane.retries.end(self.task, "what it needs is held by others", code="stopped")
        except LandlaneError:
            return

    def _refuse(self, refused: Refusals) -> Any:
        """Return the answer to a refusal: of `on_refused`, or in the key `refused` of the state."""
        chosen = self.options.on_refused
        if callable(chosen):
            return chosen(self.state, refused)
        if chosen:
            return Command(goto=chosen, update={"refused": refused})
        if read(self.state, "refused") is not None:
            return {"refused": refused}
        first = refused[0]
        raise Held(
            f"{first['pattern']} is held by {first.get('holder') or 'others'}",
            code=str(first.get("code") or "CLAIM_HELD"),
            hint="let the state inherit `Coordinated`, or name a node: on_refused='…'",
            refused=refused,
        )

    def end(self, outcome: Any) -> Any:
        """Return the node's update, or the command for what it wants with its task."""
        with self.open() as landlane:
            if isinstance(outcome, (HandTo, TryAgain, FanOut, Finish)):
                answer = self._move(landlane, outcome)
                self._release(landlane, is_quiet=True)
                return answer
            self._release(landlane, is_quiet=False)
            returned: Any = outcome
            is_command = isinstance(outcome, Command)
            given: Any = returned.update if is_command else returned or {}
            if not isinstance(given, dict):
                return returned  # only a mapping has owned keys
            update = self._write_owned(landlane, given)  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(update, list):
                return self._refuse(update)
            if not is_command:
                return update
            return Command(graph=returned.graph, update=update, resume=returned.resume, goto=returned.goto)

    def fail(self) -> None:
        """Release the claims after an error or an interrupt; the agent keeps the task."""
        with self.open() as landlane:
            self._release(landlane, is_quiet=True)

    def _release(self, landlane: Landlane, *, is_quiet: bool) -> None:
        """Release the claims; raise if a lease has expired, since the work was not protected then."""
        taken, self._taken = self._taken, None
        try:
            for claim in taken.granted if taken is not None else ():
                landlane.release(claim.pattern, literal=claim.kind == LITERAL)
        except LandlaneError:
            if not is_quiet:
                raise

    def _write_owned(self, landlane: Landlane, update: Mapping[str, Any]) -> dict[str, Any] | Refusals:
        made = write_owned(
            landlane,
            self.options.owned,
            update,
            prefix=self.prefix,
            known=read(self.state, "versions") or {},
            run=self.run,
        )
        if isinstance(made, dict):
            return {**made, "refused": []} if read(self.state, "refused") else made
        return [
            {"pattern": stale.key, "holder": stale.agent, "until": "", "code": stale.code, "hint": stale.hint}
            for stale in made
        ]

    def _move(self, landlane: Landlane, move: HandTo | TryAgain | FanOut | Finish) -> Any:
        if not self.task:
            raise Malformed(
                f"{type(move).__name__} is about a task, and this node has none",
                code="GRAPH_NO_TASK",
                hint="run the graph with Bridge.run, or put the id of a task into `task` of its state",
            )
        update = self._write_owned(landlane, move.update)
        if isinstance(update, list):
            return self._refuse(update)
        if isinstance(move, HandTo):
            return self._hand(landlane, move, update)
        if isinstance(move, TryAgain):
            return self._try_again(landlane, move, update)
        if isinstance(move, FanOut):
            return self._fan_out(landlane, move, update)
        return self._finish(landlane, move, update)

    def _hand(self, landlane: Landlane, move: HandTo, update: dict[str, Any]) -> Any:
        try:
            landlane.handoffs.send(
                self.task,
                to=move.agent,
                product=move.product,
                context=move.context,
                constraints=move.constraints,
                next=move.next,
                blockers=move.blockers,
                assumptions=move.assumptions,
                fields=move.fields,
                maximum=move.maximum,
                key=self.key,
                memo=lambda _: dump_command(move.goto, update),
            )
        except WaitsForPerson as limit:
            if move.otherwise:
                refused = [
                    {"pattern": self.task, "holder": "", "until": "", "code": limit.code, "hint": str(limit)}
                ]
                return Command(goto=move.otherwise, update={**update, "refused": refused})
            gate = next(gate for gate in landlane.gates.waiting() if gate.task == self.task)
            interrupt(describe_gate(gate))
            raise  # the graph was resumed without an answer
        return make_command(move.goto, update)

    def _try_again(self, landlane: Landlane, move: TryAgain, update: dict[str, Any]) -> Any:
        feedback = [*landlane.retries.feedback(self.task), move.feedback]
        change = "" if move.change is None else digest(json.dumps(move.change, sort_keys=True, default=repr))

        def answer(decision: Decision) -> tuple[str, dict[str, Any]]:
            has_ended = decision.outcome in (ESCALATE, ABORT)
            goto = move.otherwise if has_ended and move.otherwise else move.goto
            return goto, {**update, "feedback": feedback}

        decision = landlane.retries.end(
            self.task,
            move.feedback,
            code=move.code,
            change=change,
            cost_usd=move.cost_usd,
            at_once=True,  # the next node reads the feedback at once
            key=self.key,
            memo=lambda made: dump_command(*answer(made)),
        )
        return make_command(*answer(decision))

    def _fan_out(self, landlane: Landlane, move: FanOut, update: dict[str, Any]) -> Any:
        def answer(made: SplitTask) -> tuple[list[tuple[str, Mapping[str, Any]]], dict[str, Any]]:
            sends: list[tuple[str, Mapping[str, Any]]] = [
                (move.node, {**given, "branch": {"fan": made.fan.id, "task": task.id, "name": name}})
                for task, (name, given) in zip(made.tasks, move.parts.items(), strict=True)
            ]
            return sends, {**update, "fan": made.fan.id}

        fanned = landlane.fans.out(
            self.task,
            [{"title": name, "name": name, "kind": "chore"} for name in move.parts],
            policy=move.policy,
            deadline=move.deadline,
            key=self.key,
            memo=lambda made: dump_command(*answer(made)),
        )
        return make_command(*answer(fanned))

    def _finish(self, landlane: Landlane, move: Finish, update: dict[str, Any]) -> Any:
        landlane.steps.keep(self.key, task=self.task, about=_FINISHED, memo=dump_command(move.goto, update))
        concluded = self._conclude(landlane, move.result)
        if concluded.state != DONE:
            raise NotAllowed(
                f"{self.task} is not believed to be done yet: it is {concluded.state}",
                code="TASK_NOT_DONE",
                hint=concluded.why or f"see what is missing: landlane task show {self.task}",
            )
        return make_command(move.goto, update)

    def _conclude(self, landlane: Landlane, result: str) -> Any:
        task = landlane.tasks.get(self.task)
        return task if task.state == DONE else landlane.tasks.done(self.task, result=result).task


class KeepAlive:
    """Keeps the session of a running node alive: a model may think for longer than a lease lasts."""

    def __init__(self, node_run: NodeRun) -> None:
        self._visit = node_run
        self._is_over = Event()

    def __enter__(self) -> None:
        Thread(target=self._beat, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def _beat(self) -> None:
        while not self._is_over.wait(_BEAT_SECONDS):
            try:
                self._visit.open().close()
            except LandlaneError:
                continue  # the end of the node reports it


def read(state: Any, key: str) -> Any:
    """Return a key of the state, which may be a mapping or an object."""
    found: Any = state
    return found.get(key) if isinstance(state, Mapping) else getattr(found, key, None)


def key_part(name: str) -> str:
    """Return a name of LangGraph for use in a key: unchanged if possible, else its digest."""
    is_plain = name.replace("-", "").replace("_", "").isalnum() and name.isascii() and len(name) <= 64
    return name if is_plain else digest(name)[:32]

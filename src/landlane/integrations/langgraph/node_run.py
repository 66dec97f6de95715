"""One run of a node: what is taken before it, what becomes of what it returns, and what was done already."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread
from typing import Any

from langgraph.types import Command, interrupt

from landlane.api import Landlane
from landlane.claims.model import Refused, Taken
from landlane.errors import Held, LandlaneError, Malformed, NotAllowed, WaitsForPerson
from landlane.ids import digest
from landlane.integrations.langgraph.graph_state import write_owned
from landlane.integrations.langgraph.interrupts import Running, told
from landlane.integrations.langgraph.node_returns import FanOut, Finish, HandTo, TryAgain
from landlane.integrations.langgraph.saved_results import command, from_memo, memo_of
from landlane.integrations.langgraph.take_task import refusals_of, take
from landlane.tasks.model import DONE
from landlane.tasks.retry_rules import ABORT, ESCALATE, Decision
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.fanout.split import FannedOut
    from landlane.integrations.langgraph.take_task import Refusals


_FINISHED = "finished"
_BEAT_SECONDS = 60.0  # well below the lease of a session


@value
class Terms:
    """How a node runs, as its bridge was told."""

    folder: str
    agent: str
    role: str = ""
    claims: str | Sequence[str] | Callable[[Any], str | Sequence[str]] = ()
    shared: bool = False
    wait: str | float = 0
    takes_task: bool = True
    on_refused: str | Callable[[Any, list[dict[str, Any]]], Any] = ""
    owned: Mapping[str, str] = {}


class Visit:
    """One run of one node, from taking what it needs to what it answers."""

    def __init__(self, terms: Terms, state: Any, thread: str, run: str) -> None:
        self.terms = terms
        self.state = state
        self.task = str(read(state, "task") or "") if terms.takes_task else ""
        self.prefix = f"graph/{plain(thread)}/"
        self.key = f"{self.prefix}run/{plain(run)}"
        self.run = run
        self._taken: Taken | None = None

    @property
    def running(self) -> Running:
        """What is known of this run inside the node."""
        return Running(folder=self.terms.folder, agent=self.terms.agent, role=self.terms.role, task=self.task)

    def open(self) -> Landlane:
        """The repository as the agent of this node sees it."""
        return Landlane(self.terms.folder, agent=self.terms.agent, role=self.terms.role)

    # ------------------------------------------------------------------------------------ before the node

    def begin(self) -> tuple[bool, Any]:
        """Take the task and the claims; or the answer, when the node need not or may not run."""
        with self.open() as landlane:
            step = landlane.steps.get(self.key)
            if step is not None and self._is_over(landlane, step.about):
                return True, from_memo(step.memo)
            refused = take(landlane, self.task) if self.task else []
            refused = refused or self._claim(landlane)
            if refused:
                self._give_back(landlane)
                return True, self._refuse(refused)
        return False, None

    def _is_over(self, landlane: Landlane, about: str) -> bool:
        """Whether what a former run began has come to its end, or is brought to it now."""
        return about != _FINISHED or self._conclude(landlane, "").state == DONE

    def _claim(self, landlane: Landlane) -> Refusals:
        wanted = self.terms.claims
        found = wanted(self.state) if callable(wanted) else wanted
        patterns = (found,) if isinstance(found, str) else tuple(found)
        if not patterns:
            return []
        outcome = landlane.claim(
            *patterns,
            wait=self.terms.wait,
            shared=self.terms.shared,
            task=self.task,
            note="a node of a graph",
        )
        if isinstance(outcome, Refused):
            return refusals_of(landlane, outcome)
        self._taken = outcome
        return []

    def _give_back(self, landlane: Landlane) -> None:
        """Whoever is refused does not sit on the task meanwhile: another agent may be next."""
        if not self.task or landlane.tasks.get(self.task).session != landlane.session.id:
            return
        try:
            landlane.retries.end(self.task, "what it needs is held by others", code="stopped")
        except LandlaneError:
            return

    def _refuse(self, refused: Refusals) -> Any:
        """A refusal is an answer: where to go, what the caller makes of it, or a key of the state."""
        chosen = self.terms.on_refused
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

    # ------------------------------------------------------------------------------------- behind the node

    def end(self, outcome: Any) -> Any:
        """What LangGraph is told: the node's own update, or a command for what it wants with its task."""
        with self.open() as landlane:
            if isinstance(outcome, (HandTo, TryAgain, FanOut, Finish)):
                answer = self._move(landlane, outcome)
                self._release(landlane, is_quiet=True)
                return answer
            self._release(landlane, is_quiet=False)
            found: Any = outcome
            is_command = isinstance(outcome, Command)
            said: Any = found.update if is_command else found or {}
            if not isinstance(said, dict):
                return found  # a state that is no mapping has no owned keys
            update = self._owned(landlane, said)  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(update, list):
                return self._refuse(update)
            return _with_update(found, update) if is_command else update

    def fail(self) -> None:
        """The node ended with an error or an interrupt: nothing is held for it; its task stays in hand."""
        with self.open() as landlane:
            self._release(landlane, is_quiet=True)

    def _release(self, landlane: Landlane, *, is_quiet: bool) -> None:
        """Give the claims back; if a lease was over meanwhile, what the node did is not taken."""
        taken, self._taken = self._taken, None
        try:
            for claim in taken.granted if taken is not None else ():
                landlane.release(claim.pattern, literal=claim.kind == "literal")
        except LandlaneError:
            if not is_quiet:
                raise

    def _owned(self, landlane: Landlane, update: Mapping[str, Any]) -> dict[str, Any] | Refusals:
        made = write_owned(
            landlane,
            self.terms.owned,
            update,
            prefix=self.prefix,
            seen=read(self.state, "versions") or {},
            run=self.run,
        )
        if isinstance(made, dict):
            return {**made, "refused": []} if read(self.state, "refused") else made
        return [
            {"pattern": one.key, "holder": one.agent, "until": "", "code": one.code, "hint": one.hint}
            for one in made
        ]

    def _move(self, landlane: Landlane, move: HandTo | TryAgain | FanOut | Finish) -> Any:
        if not self.task:
            raise Malformed(
                f"{type(move).__name__} is about a task, and this node has none",
                code="GRAPH_NO_TASK",
                hint="run the graph with Bridge.run, or put the id of a task into `task` of its state",
            )
        update = self._owned(landlane, move.update)
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
                memo=lambda _: memo_of(move.goto, update),
            )
        except WaitsForPerson as limit:
            if move.otherwise:
                refused = [
                    {"pattern": self.task, "holder": "", "until": "", "code": limit.code, "hint": str(limit)}
                ]
                return Command(goto=move.otherwise, update={**update, "refused": refused})
            gate = next(one for one in landlane.gates.waiting() if one.task == self.task)
            interrupt(told(gate))
            raise  # somebody resumed the graph, and no person has answered
        return command(move.goto, update)

    def _try_again(self, landlane: Landlane, move: TryAgain, update: dict[str, Any]) -> Any:
        told_so_far = [*landlane.retries.feedback(self.task), move.feedback]
        change = "" if move.change is None else digest(json.dumps(move.change, sort_keys=True, default=repr))

        def answer(decision: Decision) -> tuple[str, dict[str, Any]]:
            has_ended = decision.outcome in (ESCALATE, ABORT)
            goto = move.otherwise if has_ended and move.otherwise else move.goto
            return goto, {**update, "feedback": told_so_far}

        decision = landlane.retries.end(
            self.task,
            move.feedback,
            code=move.code,
            change=change,
            cost_usd=move.cost_usd,
            at_once=True,  # who reads the feedback is there already
            key=self.key,
            memo=lambda made: memo_of(*answer(made)),
        )
        return command(*answer(decision))

    def _fan_out(self, landlane: Landlane, move: FanOut, update: dict[str, Any]) -> Any:
        def answer(made: FannedOut) -> tuple[list[tuple[str, Mapping[str, Any]]], dict[str, Any]]:
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
            memo=lambda made: memo_of(*answer(made)),
        )
        return command(*answer(fanned))

    def _finish(self, landlane: Landlane, move: Finish, update: dict[str, Any]) -> Any:
        landlane.steps.keep(self.key, task=self.task, about=_FINISHED, memo=memo_of(move.goto, update))
        concluded = self._conclude(landlane, move.result)
        if concluded.state != DONE:
            raise NotAllowed(
                f"{self.task} is not believed to be done yet: it is {concluded.state}",
                code="TASK_NOT_DONE",
                hint=concluded.why or f"`landlane task show {self.task}` tells what is missing",
            )
        return command(move.goto, update)

    def _conclude(self, landlane: Landlane, result: str) -> Any:
        task = landlane.tasks.get(self.task)
        return task if task.state == DONE else landlane.tasks.done(self.task, result=result).task


class Alive:
    """While a node works, its session lives: a model may think for longer than a lease lasts."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
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
                continue  # the end of the node will tell


def _with_update(outcome: Any, update: dict[str, Any]) -> Command[Any]:
    return Command(graph=outcome.graph, update=update, resume=outcome.resume, goto=outcome.goto)


def read(state: Any, key: str) -> Any:
    """A key of the state, which may be a mapping or an object."""
    found: Any = state
    return found.get(key) if isinstance(state, Mapping) else getattr(found, key, None)


def plain(name: str) -> str:
    """A name of LangGraph as a part of a key: as it is where that is possible, else a digest."""
    is_plain = name.replace("-", "").replace("_", "").isalnum() and name.isascii() and len(name) <= 64
    return name if is_plain else digest(name)[:32]

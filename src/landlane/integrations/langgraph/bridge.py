"""The bridge between graphs and a repository: makes nodes, and runs threads until they end or must wait."""

from __future__ import annotations

import asyncio
import fcntl
import inspect
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, get_type_hints

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.runtime import Runtime

from landlane.api import Landlane
from landlane.errors import Held, LandlaneError, Malformed
from landlane.integrations.langgraph.fan_out import BranchVisit, JoinVisit, run_part, run_part_async
from landlane.integrations.langgraph.graph_state import owned_keys
from landlane.integrations.langgraph.interrupts import running
from landlane.integrations.langgraph.node_run import Alive, Terms, Visit, plain
from landlane.tasks.add import LooksAlike

Node = Callable[..., Any]
Patterns = str | Sequence[str] | Callable[[Any], str | Sequence[str]]
OnRefused = str | Callable[[Any, list[dict[str, Any]]], Any]

_GIVEN = ("config", "runtime", "writer", "store")  # what LangGraph gives a node that asks for it by name


class Bridge:
    """Makes nodes that run under Landlane in one repository.

    `state` is the state's class, in which owned keys are found; `agent` whoever has no name of its own.
    """

    def __init__(
        self, folder: str | os.PathLike[str] = ".", *, state: type[Any] | None = None, agent: str = "graph"
    ) -> None:
        self.folder = os.path.abspath(folder)
        self.agent = agent
        self._owned = owned_keys(state)

    def open(self, agent: str = "") -> Landlane:
        """The repository as an agent sees it."""
        return Landlane(self.folder, agent=agent or self.agent)

    # ------------------------------------------------------------------------------------------ nodes

    def node(
        self,
        function: Node | None = None,
        *,
        agent: str = "",
        role: str = "",
        claims: Patterns = (),
        shared: bool = False,
        wait: str | float = 0,
        takes_task: bool = True,
        on_refused: OnRefused = "",
    ) -> Any:
        """A node that has the thread's task and these claims while it runs: `@bridge.node(claims="docs/**")`.

        `claims` are patterns, or a function that makes them from the state. Who is refused answers with
        `{"refused": […]}`, goes to the node `on_refused`, or answers what that function returns. The node
        returns an update or a Command as ever, or `HandTo`, `TryAgain`, `FanOut` or `Finish`.
        """
        terms = self._terms(agent, role, claims, shared, wait, on_refused, takes_task=takes_task)
        make = partial(_wrapped, terms=terms, kind=Visit)
        return make if function is None else make(function)

    def branch(
        self,
        function: Node | None = None,
        *,
        agent: str = "",
        role: str = "",
        claims: Patterns = (),
        wait: str | float = 0,
    ) -> Any:
        """A part of a `FanOut`: what it returns is its result, and what it raises is its failure alone."""
        terms = self._terms(agent, role, claims, False, wait, "", takes_task=False)
        make = partial(_wrapped, terms=terms, kind=BranchVisit)
        return make if function is None else make(function)

    def join(
        self,
        function: Node | None = None,
        *,
        agent: str = "",
        role: str = "",
        claims: Patterns = (),
        wait: str | float = 0,
        on_refused: OnRefused = "",
    ) -> Any:
        """The node behind a fan, called with the state and with `Result`s in the order of the parts.

        When the parts brought less than the policy wants, the task has failed: that is a refusal.
        """
        terms = self._terms(agent, role, claims, False, wait, on_refused, takes_task=True)
        make = partial(_wrapped, terms=terms, kind=JoinVisit)
        return make if function is None else make(function)

    def _terms(
        self,
        agent: str,
        role: str,
        claims: Patterns,
        shared: bool,
        wait: str | float,
        on_refused: OnRefused,
        *,
        takes_task: bool,
    ) -> Terms:
        return Terms(
            folder=self.folder,
            agent=agent or self.agent,
            role=role,
            claims=claims,
            shared=shared,
            wait=wait,
            takes_task=takes_task,
            on_refused=on_refused,
            owned=self._owned,
        )

    # ---------------------------------------------------------------------------------------- running

    def task(self, thread: str, title: str, **facts: Any) -> str:
        """The task of a thread, added when it is not there yet; facts as `Tasks.add` takes them."""
        with self.open() as landlane:
            given: dict[str, Any] = {"kind": "chore", "key": f"graph-{plain(thread)}", **facts}
            outcome = landlane.tasks.add(title, force=True, **given)
            assert not isinstance(outcome, LooksAlike)
            return outcome.task.id

    def run(
        self, graph: Any, given: Mapping[str, Any], *, thread: str, title: str = "", **facts: Any
    ) -> dict[str, Any]:
        """Begin a thread, or go on with it where it was killed or stopped; ended, it tells how it ended.

        What waits for a person is under `__interrupt__`. The graph needs a checkpointer: see `checkpoints`.

        Raises:
            Held: another process of this machine runs the thread.
        """
        config = _config(thread)
        with self._alone(thread):
            found = graph.get_state(config)
            if found.created_at is None:
                begin = self._input(thread, title, given, facts)
                return graph.invoke(begin, config, durability="sync")
            # `next` leaves out nodes whose writes are kept but not applied: a kill in between ends nothing.
            return graph.invoke(None, config, durability="sync") if found.tasks else dict(found.values)

    async def arun(
        self, graph: Any, given: Mapping[str, Any], *, thread: str, title: str = "", **facts: Any
    ) -> dict[str, Any]:
        """The same for a graph with nodes that are coroutines."""
        config = _config(thread)
        with self._alone(thread):
            found = await graph.aget_state(config)
            if found.created_at is None:
                begin = await asyncio.to_thread(self._input, thread, title, given, facts)
                return await graph.ainvoke(begin, config, durability="sync")
            return await graph.ainvoke(None, config, durability="sync") if found.tasks else dict(found.values)

    @contextmanager
    def _alone(self, thread: str) -> Generator[None]:
        """Run a thread in one process at a time; the lock ends with its process, however that ends."""
        with self.open() as landlane:
            path = os.path.join(landlane.folder, f"graph-{plain(thread)}.lock")
        with open(path, "a", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Held(
                    f"another process runs the thread {thread}",
                    code="GRAPH_RUNNING",
                    hint="wait until it has ended, or use another thread",
                ) from None
            yield

    def _input(
        self, thread: str, title: str, given: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {"task": self.task(thread, title or f"Graph {thread}", **facts), **given}

    @contextmanager
    def checkpoints(self, path: str = "") -> Generator[SqliteSaver]:
        """LangGraph's own SQLite checkpointer, in the repository's state folder unless it is said where."""
        if not path:
            with self.open() as landlane:
                path = os.path.join(landlane.folder, "langgraph.db")
        with SqliteSaver.from_conn_string(path) as saver:
            yield saver


def _config(thread: str) -> RunnableConfig:
    if not thread:
        raise Malformed("a thread has a name", code="GRAPH_NO_THREAD", hint="thread='article-1'")
    return {"configurable": {"thread_id": thread}}


# ------------------------------------------------------------------------------------------ wrapping


def _wrapped(function: Node, terms: Terms, kind: type[Visit]) -> Node:
    """The function as LangGraph calls it, with the same name, input and destinations."""
    wants = set(inspect.signature(function).parameters)

    def call(visit: Visit, state: Any, config: Any, runtime: Any) -> Any:
        given = {
            "config": config,
            "runtime": runtime,
            "writer": runtime.stream_writer,
            "store": runtime.store,
        }
        more = {name: given[name] for name in _GIVEN if name in wants}
        running.set(visit.running)
        if isinstance(visit, JoinVisit):
            return function(state, visit.results, **more)
        return function(state, **more)

    def run(state: Any, config: Any, runtime: Any) -> Any:
        visit = kind(terms, state, *_place(config, runtime))
        is_answered, answer = visit.begin()
        if is_answered:
            return answer
        with Alive(visit):
            if isinstance(visit, BranchVisit):
                return run_part(visit, lambda: call(visit, state, config, runtime))
            try:
                outcome = call(visit, state, config, runtime)
            except BaseException:
                _quietly(visit.fail)
                raise
            return visit.end(outcome)

    async def run_async(state: Any, config: Any, runtime: Any) -> Any:
        visit = kind(terms, state, *_place(config, runtime))
        is_answered, answer = await asyncio.to_thread(visit.begin)
        if is_answered:
            return answer
        with Alive(visit):
            if isinstance(visit, BranchVisit):
                return await run_part_async(visit, lambda: call(visit, state, config, runtime))
            try:
                outcome = await call(visit, state, config, runtime)
            except BaseException:
                await asyncio.to_thread(_quietly, visit.fail)
                raise
            return await asyncio.to_thread(visit.end, outcome)

    made: Any = run_async if inspect.iscoroutinefunction(function) else run
    made.__name__ = getattr(function, "__name__", "node")
    made.__doc__ = function.__doc__
    made.__annotations__ = _annotations(function)
    return made


def _annotations(function: Node) -> dict[str, Any]:
    """What LangGraph reads of a node's types: its input, its destinations, and what it is to be given."""
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):
        hints = {}
    first = next(iter(inspect.signature(function).parameters), "")
    found = {"state": hints[first]} if first in hints else {}
    found |= {"return": hints["return"]} if "return" in hints else {}
    return {**found, "config": RunnableConfig, "runtime": Runtime}


def _place(config: Mapping[str, Any], runtime: Any) -> tuple[str, str]:
    """The thread and the run of a node: the run has the same name when it is repeated after a kill."""
    info = runtime.execution_info
    thread = str(config.get("configurable", {}).get("thread_id") or "")
    if not thread or info is None:
        raise Malformed(
            "the graph runs without a thread",
            code="GRAPH_NO_THREAD",
            hint="compile it with a checkpointer, and run it with Bridge.run(graph, …, thread='…')",
        )
    return thread, str(info.task_id)


def _quietly(work: Callable[[], None]) -> None:
    """Clean up after a failure: the failure itself is what the caller must hear of."""
    try:
        work()
    except LandlaneError:
        return

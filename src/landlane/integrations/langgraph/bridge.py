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
from landlane.integrations.langgraph.fan_out import BranchRun, JoinRun, run_part, run_part_async
from landlane.integrations.langgraph.graph_state import owned_keys
from landlane.integrations.langgraph.interrupts import running
from landlane.integrations.langgraph.node_run import KeepAlive, NodeOptions, NodeRun, key_part

Node = Callable[..., Any]
Patterns = str | Sequence[str] | Callable[[Any], str | Sequence[str]]
OnRefused = str | Callable[[Any, list[dict[str, Any]]], Any]

_GIVEN = ("config", "runtime", "writer", "store")  # arguments that LangGraph passes by name


class Bridge:
    """Makes nodes that run under Landlane in one repository.

    `state` is the class of the state, which declares owned keys; `agent` is the default agent.
    """

    def __init__(
        self, folder: str | os.PathLike[str] = ".", *, state: type[Any] | None = None, agent: str = "graph"
    ) -> None:
        self.folder = os.path.abspath(folder)
        self.agent = agent
        self._owned = owned_keys(state)

    def open(self, agent: str = "") -> Landlane:
        """Open the repository as an agent."""
        return Landlane(self.folder, agent=agent or self.agent)

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
        """Make a node that holds the thread's task and these claims: `@bridge.node(claims="docs/**")`.

        `claims` are patterns, or a function that returns them for a state. After a refusal the node answers
        `{"refused": […]}`, continues at the node `on_refused`, or answers what that function returns. The
        node returns an update or a Command, as usual, or `HandTo`, `TryAgain`, `FanOut` or `Finish`.
        """
        more = {"shared": shared, "takes_task": takes_task, "on_refused": on_refused}
        return self._wrap(NodeRun, function, agent, role=role, claims=claims, wait=wait, **more)

    def branch(
        self,
        function: Node | None = None,
        *,
        agent: str = "",
        role: str = "",
        claims: Patterns = (),
        wait: str | float = 0,
    ) -> Any:
        """Make a part of a `FanOut`: it returns its result; an exception fails this part only."""
        options = {"role": role, "claims": claims, "wait": wait, "takes_task": False}
        return self._wrap(BranchRun, function, agent, **options)

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
        """Make the node after a fan, called with the state and the `Result`s in the order of the parts.

        When fewer parts succeeded than the policy requires, the task has failed, which is a refusal.
        """
        options = {"role": role, "claims": claims, "wait": wait, "on_refused": on_refused}
        return self._wrap(JoinRun, function, agent, **options)

    def _wrap(self, kind: type[NodeRun], function: Node | None, agent: str, **options: Any) -> Any:
        """Return the node, or a decorator that makes it."""
        given = NodeOptions(folder=self.folder, agent=agent or self.agent, owned=self._owned, **options)
        make = partial(_wrapped, options=given, kind=kind)
        return make if function is None else make(function)

    def task(self, thread: str, title: str, **facts: Any) -> str:
        """Return the task of a thread; add it first if necessary, with `facts` as `Tasks.add` takes them."""
        with self.open() as landlane:
            given: dict[str, Any] = {"kind": "chore", "key": f"graph-{key_part(thread)}", **facts}
            outcome = landlane.tasks.add(title, force=True, **given)
            return outcome.unwrap().task.id

    def run(
        self, graph: Any, given: Mapping[str, Any], *, thread: str, title: str = "", **facts: Any
    ) -> dict[str, Any]:
        """Begin a thread, or resume it where it was killed or stopped; return its final state.

        A question to a person is under `__interrupt__`. The graph needs a checkpointer: see `checkpoints`.

        Raises:
            Held: another process of this machine runs the thread.
        """
        config = _config(thread)
        with self._lock_thread(thread):
            found = graph.get_state(config)
            if found.created_at is None:
                begin = self._input(thread, title, given, facts)
                return graph.invoke(begin, config, durability="sync")
            # `next` omits nodes whose writes are stored but not applied yet, so `tasks` decides.
            return graph.invoke(None, config, durability="sync") if found.tasks else dict(found.values)

    async def arun(
        self, graph: Any, given: Mapping[str, Any], *, thread: str, title: str = "", **facts: Any
    ) -> dict[str, Any]:
        """Run a graph whose nodes are coroutines; see `run`."""
        config = _config(thread)
        with self._lock_thread(thread):
            found = await graph.aget_state(config)
            if found.created_at is None:
                begin = await asyncio.to_thread(self._input, thread, title, given, facts)
                return await graph.ainvoke(begin, config, durability="sync")
            return await graph.ainvoke(None, config, durability="sync") if found.tasks else dict(found.values)

    @contextmanager
    def _lock_thread(self, thread: str) -> Generator[None]:
        """Let one process at a time run a thread; the lock ends with its process."""
        with self.open() as landlane:
            path = os.path.join(landlane.folder, f"graph-{key_part(thread)}.lock")
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
        """Open LangGraph's SQLite checkpointer, by default in the repository's state folder."""
        if not path:
            with self.open() as landlane:
                path = os.path.join(landlane.folder, "langgraph.db")
        with SqliteSaver.from_conn_string(path) as saver:
            yield saver


def _config(thread: str) -> RunnableConfig:
    if not thread:
        raise Malformed("a thread has a name", code="GRAPH_NO_THREAD", hint="thread='article-1'")
    return {"configurable": {"thread_id": thread}}


def _wrapped(function: Node, options: NodeOptions, kind: type[NodeRun]) -> Node:
    """Wrap a function as a node with the same name, input and destinations."""
    wants = set(inspect.signature(function).parameters)

    def call(node_run: NodeRun, state: Any, config: Any, runtime: Any) -> Any:
        given = {
            "config": config,
            "runtime": runtime,
            "writer": runtime.stream_writer,
            "store": runtime.store,
        }
        more = {name: given[name] for name in _GIVEN if name in wants}
        running.set(node_run.running)
        if isinstance(node_run, JoinRun):
            return function(state, node_run.results, **more)
        return function(state, **more)

    def run(state: Any, config: Any, runtime: Any) -> Any:
        node_run = kind(options, state, *_thread_and_run(config, runtime))
        is_answered, answer = node_run.begin()
        if is_answered:
            return answer
        with KeepAlive(node_run):
            if isinstance(node_run, BranchRun):
                return run_part(node_run, lambda: call(node_run, state, config, runtime))
            try:
                outcome = call(node_run, state, config, runtime)
            except BaseException:
                _quietly(node_run.fail)
                raise
            return node_run.end(outcome)

    async def run_async(state: Any, config: Any, runtime: Any) -> Any:
        node_run = kind(options, state, *_thread_and_run(config, runtime))
        is_answered, answer = await asyncio.to_thread(node_run.begin)
        if is_answered:
            return answer
        with KeepAlive(node_run):
            if isinstance(node_run, BranchRun):
                return await run_part_async(node_run, lambda: call(node_run, state, config, runtime))
            try:
                outcome = await call(node_run, state, config, runtime)
            except BaseException:
                await asyncio.to_thread(_quietly, node_run.fail)
                raise
            return await asyncio.to_thread(node_run.end, outcome)

    made: Any = run_async if inspect.iscoroutinefunction(function) else run
    made.__name__ = getattr(function, "__name__", "node")
    made.__doc__ = function.__doc__
    made.__annotations__ = _annotations(function)
    return made


def _annotations(function: Node) -> dict[str, Any]:
    """Return the types that LangGraph reads: a node's input, its destinations, and its extra arguments."""
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):
        hints = {}
    first = next(iter(inspect.signature(function).parameters), "")
    types = {"state": hints[first]} if first in hints else {}
    types |= {"return": hints["return"]} if "return" in hints else {}
    return {**types, "config": RunnableConfig, "runtime": Runtime}


def _thread_and_run(config: Mapping[str, Any], runtime: Any) -> tuple[str, str]:
    """Return the thread and the run of a node; a run that is repeated after a kill has the same id."""
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
    """Clean up after a failure without hiding it by another one."""
    try:
        work()
    except LandlaneError:
        return

"""LangGraph, the real package: nodes under claims, handoffs, fans, owned state, gates and bounded loops."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from landlane import Landlane
from landlane.errors import Held, LandlaneError, Malformed, NotAllowed
from landlane.gates.decide import answer_gate
from landlane.integrations.langgraph import (
    Bridge,
    Coordinated,
    FanOut,
    Finish,
    HandTo,
    Owned,
    Result,
    TryAgain,
    ask_person,
)
from landlane.testing.repositories import make_repository

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

DYING = Path(__file__).parent / "dying_graph.py"


class State(Coordinated):
    """A state with something of everything."""

    said: str
    found: list[Any]
    draft: Annotated[str, Owned("writer")]


@pytest.fixture
def bridge(tmp_path: Path) -> Bridge:
    settings = "[handoffs]\nmax = 2\n"
    return Bridge(make_repository(tmp_path / "shop", settings=settings), state=State)


def compile_graph(nodes: dict[str, Any], *edges: tuple[str, str], saver: Any = None) -> Any:
    graph: StateGraph[Any] = StateGraph(State)
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_edge(START, next(iter(nodes)))
    for one, other in edges:
        graph.add_edge(one, other)
    return graph.compile(checkpointer=saver or InMemorySaver())


def run(bridge: Bridge, graph: Any, thread: str = "one", **facts: Any) -> dict[str, Any]:
    return bridge.run(graph, {"said": ""}, thread=thread, title=f"Thread {thread}", **facts)


def approve(bridge: Bridge, gate: str, *, yes: bool = True) -> None:
    with Landlane(bridge.folder) as person:
        answer_gate(person._repo, person._session, gate, approve=yes, why="" if yes else "no")


@contextmanager
def held(bridge: Bridge, agent: str, pattern: str) -> Iterator[None]:
    with bridge.open(agent) as other, other.claiming(pattern):
        yield


# ------------------------------------------------------------------------------------------- claims


def test_a_node_holds_its_claims_while_it_runs_and_no_longer(bridge: Bridge) -> None:
    seen: list[tuple[str, str]] = []

    def paths(state: State) -> list[str]:
        return [f"{state['said'] or 'src'}/**"]

    @bridge.node(agent="ann", claims=paths)
    def work(state: State) -> dict[str, Any]:
        with bridge.open("bob") as bob:
            seen.extend((one.pattern, one.agent) for one in bob.claims())
        return {"said": "done"}

    assert run(bridge, compile_graph({"work": work}))["said"] == "done"

    assert seen == [("src/**", "ann")]
    with bridge.open("bob") as bob:
        assert bob.claims() == []


def test_after_a_refusal_the_graph_continues_at_the_named_node(bridge: Bridge) -> None:
    @bridge.node(agent="ann", claims="src/**", takes_task=False)
    def plain(state: State) -> dict[str, Any]:
        raise AssertionError("it must not run")

    @bridge.node(agent="ann", claims="src/**", on_refused="elsewhere")
    def routed(state: State) -> dict[str, Any]:
        raise AssertionError("it must not run")

    def elsewhere(state: State) -> dict[str, Any]:
        return {"said": f"{state['refused'][0]['holder']} has it"}

    with held(bridge, "bob", "src/app.py"):
        (refusal,) = run(bridge, compile_graph({"plain": plain}))["refused"]
        said = run(bridge, compile_graph({"routed": routed, "elsewhere": elsewhere}), "two")["said"]

    assert (refusal["holder"], refusal["code"]) == ("bob", "CLAIM_HELD")
    assert refusal["until"].endswith("Z")
    assert said == "bob has it"
    with bridge.open() as graph:  # whoever was refused does not sit on the task
        assert {task.state for task in graph.tasks.list()} == {"ready"}


def test_a_refusal_is_an_error_for_a_state_without_the_key(bridge: Bridge) -> None:
    @bridge.node(agent="ann", claims="src/**", takes_task=False)
    def work(state: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("it must not run")

    graph: StateGraph[Any] = StateGraph(dict)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    with held(bridge, "bob", "src/app.py"), pytest.raises(Held) as refused:
        graph.compile(checkpointer=InMemorySaver()).invoke({}, {"configurable": {"thread_id": "one"}})

    assert "Coordinated" in refused.value.hint


def test_the_update_of_a_node_that_lost_its_claims_is_refused(bridge: Bridge) -> None:
    @bridge.node(agent="ann", claims="src/**", takes_task=False)
    def work(state: State) -> dict[str, Any]:
        with bridge.open("ann") as ann:
            ann.release("src/**")  # as if the lease had ended
        return {"said": "done"}

    graph = compile_graph({"work": work})
    with pytest.raises(LandlaneError):
        run(bridge, graph)

    assert graph.get_state({"configurable": {"thread_id": "one"}}).values["said"] == ""


def test_nodes_that_are_coroutines_run_under_claims_too(bridge: Bridge) -> None:
    @bridge.node(agent="ann", claims="src/**")
    async def split(state: State) -> FanOut:
        await asyncio.sleep(0)
        return FanOut(parts={"a": {"n": 1}, "b": {"n": 0}}, node="divide", policy="collect")

    @bridge.branch(agent="bob")
    async def divide(part: dict[str, Any]) -> float:
        await asyncio.sleep(0)
        return 1 / part["n"]

    @bridge.join(agent="ann")
    async def gather(state: State, results: tuple[Result, ...]) -> Finish:
        return Finish(update={"found": [(one.name, one.value) for one in results]})

    graph = compile_graph({"split": split, "divide": divide, "gather": gather}, ("divide", "gather"))
    ended = asyncio.run(bridge.arun(graph, {"said": ""}, thread="one"))

    assert ended["found"] == [("a", 1.0), ("b", None)]


# ----------------------------------------------------------------------------------------- handoffs


def test_a_handoff_between_nodes_is_an_landlane_handoff(bridge: Bridge) -> None:
    @bridge.node(agent="ann", claims="src/**")
    def begin(state: State) -> HandTo:
        return HandTo(
            agent="bob", goto="finish", next="test it", product="a parser", update={"said": "handed"}
        )

    @bridge.node(agent="bob")
    def finish(state: State) -> Finish:
        with bridge.open("bob") as bob:
            holder = {one.pattern: one.agent for one in bob.claims()}
            return Finish(result="well", update={"found": [bob.tasks.get(state["task"]).owner, holder]})

    ended = run(bridge, compile_graph({"begin": begin, "finish": finish}))

    assert ended["said"] == "handed"
    assert ended["found"] == ["bob", {"src/**": "bob"}]  # the claims went along
    with bridge.open() as graph:
        (handoff,) = graph.handoffs.list(everything=True)
        assert (handoff.sender, handoff.to, handoff.next, handoff.product) == (
            "ann",
            "bob",
            "test it",
            "a parser",
        )
        assert (handoff.state, handoff.accepted_by) == ("accepted", "bob")
        assert graph.tasks.get(ended["task"]).state == "done"


def test_an_empty_handoff_is_not_sent(bridge: Bridge) -> None:
    @bridge.node(agent="ann")
    def begin(state: State) -> HandTo:
        return HandTo(agent="bob", goto=END)

    with pytest.raises(Malformed) as refused:
        run(bridge, compile_graph({"begin": begin}))

    assert refused.value.code == "HANDOFF_INCOMPLETE"


@pytest.mark.slow
def test_handing_to_and_fro_ends_at_the_maximum(bridge: Bridge) -> None:
    rounds: Counter[str] = Counter()

    def hot(agent: str, other: str) -> Any:
        @bridge.node(agent=agent)
        def node(state: State) -> HandTo:
            rounds[agent] += 1
            otherwise = "stop" if state["said"] == "" else ""
            return HandTo(agent=other, goto=other, next="your turn", otherwise=otherwise)

        return node

    def stop(state: State) -> dict[str, Any]:
        return {"said": state["refused"][0]["code"]}

    nodes = {"ann": hot("ann", "bob"), "bob": hot("bob", "ann"), "stop": stop}
    assert run(bridge, compile_graph(nodes))["said"] == "HANDOFF_LIMIT"
    assert rounds == {"ann": 2, "bob": 1}  # the third was refused

    graph = compile_graph(nodes)  # without a way out it waits for a person, and goes on after a yes
    waits = bridge.run(graph, {"said": "wait"}, thread="two")["__interrupt__"][0].value
    assert "handed on 2 times" in waits["why"]
    before = rounds.copy()
    assert "__interrupt__" in bridge.run(graph, {}, thread="two")
    assert rounds == before
    approve(bridge, waits["gate"])
    bridge.run(graph, {}, thread="two")
    assert rounds["bob"] > before["bob"]


# ---------------------------------------------------------------------------------------- retries


def never_agree(bridge: Bridge, feedback: Any) -> Any:
    @bridge.node(agent="writer")
    def write(state: State) -> HandTo:
        draft = f"draft {len(state.get('feedback', []))}"
        return HandTo(agent="reviewer", goto="review", next="review it", update={"draft": draft})

    @bridge.node(agent="reviewer")
    def review(state: State) -> TryAgain:
        said = feedback(len(state["feedback"]))
        return TryAgain(feedback=said, change=state["draft"], goto="write", otherwise="give_up")

    def give_up(state: State) -> dict[str, Any]:
        return {"said": "gave up"}

    return compile_graph({"write": write, "review": review, "give_up": give_up})


@pytest.mark.promise(
    "langgraph.loops-end",
    "Two nodes that never agree stop at the limit with all feedback; a repetition stops earlier.",
)
def test_a_writer_and_a_reviewer_that_never_agree_stop_with_all_feedback(tmp_path: Path) -> None:
    bridge = Bridge(make_repository(tmp_path / "shop", settings="[handoffs]\nmax = 9\n"), state=State)
    faults = ["too long", "too short", "too dull", "too loud"]

    ended = run(bridge, never_agree(bridge, lambda count: faults[count]), max_attempts=3)
    repeats = run(bridge, never_agree(bridge, lambda _: "line 7: too long"), "two", max_attempts=3)

    assert (ended["said"], ended["feedback"]) == ("gave up", ["too long", "too short", "too dull"])
    assert len(repeats["feedback"]) == 2  # one that repeats itself stops a round earlier
    with bridge.open() as graph:
        assert graph.tasks.get(ended["task"]).state == "waiting_for_person"
        assert graph.tasks.get(repeats["task"]).state == "waiting_for_person"


# ------------------------------------------------------------------------------------------- fans


def fan(bridge: Bridge, policy: str | int, *, work: Any, deadline: str | float = 0) -> Any:
    @bridge.node(agent="ann")
    def split(state: State) -> FanOut:
        parts = {name: {"name": name} for name in ("slow", "good", "bad")}
        return FanOut(parts=parts, node="part", policy=policy, deadline=deadline)

    @bridge.branch(agent="worker")
    def part(given: dict[str, Any]) -> Any:
        return work(given["name"])

    @bridge.join(agent="ann", on_refused="unmet")
    def gather(state: State, results: tuple[Result, ...]) -> Finish:
        return Finish(update={"found": [(one.name, one.state, one.value, one.why) for one in results]})

    def unmet(state: State) -> dict[str, Any]:
        return {"said": state["refused"][0]["hint"]}

    nodes = {"split": split, "part": part, "gather": gather, "unmet": unmet}
    return compile_graph(nodes, ("part", "gather"))


def good_or_bad(name: str) -> str:
    if name == "bad":
        raise RuntimeError("it is bad")
    return f"{name} is good"


def test_one_failing_part_takes_no_other_down_and_the_join_has_all_in_order(bridge: Bridge) -> None:
    ended = run(bridge, fan(bridge, "collect", work=good_or_bad))

    assert ended["found"] == [
        ("slow", "done", "slow is good", ""),
        ("good", "done", "good is good", ""),
        ("bad", "failed", None, "RuntimeError: it is bad"),
    ]
    with bridge.open() as graph:
        assert [one.state for one in graph.tasks.list()] == ["done", "done", "done", "failed"]
        kinds = Counter(entry.kind for entry in graph.journal())
    assert (kinds["fan.begun"], kinds["fan.joined"], kinds["task.joined"]) == (1, 1, 1)


def test_a_policy_that_is_not_met_is_a_refusal(bridge: Bridge) -> None:
    assert "2 of 3 done, 1 failed, 3 needed" in run(bridge, fan(bridge, "all", work=good_or_bad))["said"]


@pytest.mark.parametrize(("policy", "deadline"), [("any", 0), ("collect", 1.0)])
def test_the_join_waits_only_for_the_parts_it_needs(bridge: Bridge, policy: str, deadline: float) -> None:
    is_over = Barrier(2)

    def work(name: str) -> str:
        if name == "slow":
            is_over.wait(60)
        return good_or_bad(name)

    ended = run(bridge, fan(bridge, policy, work=work, deadline=deadline))
    is_over.wait(60)

    slow, good, _ = ended["found"]
    assert (slow[1], slow[2]) == ("late", None)
    assert good[2] == "good is good"


# ------------------------------------------------------------------------------------ owned state


def test_only_its_owner_writes_a_key_and_each_write_is_a_version(bridge: Bridge) -> None:
    @bridge.node(agent="writer", takes_task=False)
    def write(state: State) -> dict[str, Any]:
        return {"draft": state.get("draft", "") + "x"}

    @bridge.node(agent="reviewer", takes_task=False)
    def meddle(state: State) -> dict[str, Any]:
        return {"draft": "mine"}

    def past_it(state: State) -> dict[str, Any]:
        return {"draft": "mine"}

    ended = run(bridge, compile_graph({"one": write, "two": write}, ("one", "two")))
    assert (ended["draft"], ended["versions"]) == ("xx", {"draft": 2})
    with bridge.open() as graph:
        standing = graph.state.get("graph/one/draft")
        assert standing is not None
        assert (standing.version, standing.agent, standing.value["value"]) == (2, "writer", "xx")

    with pytest.raises(NotAllowed) as refused:
        run(bridge, compile_graph({"meddle": meddle}), "two")
    assert refused.value.code == "STATE_OWNED"
    with pytest.raises(InvalidUpdateError):
        run(bridge, compile_graph({"past_it": past_it}), "three")


def test_a_write_to_a_version_that_is_not_the_newest_is_refused(bridge: Bridge) -> None:
    @bridge.node(agent="writer", takes_task=False)
    def write(state: State) -> dict[str, Any]:
        with bridge.open("writer") as other:  # another thread of the same owner is quicker
            other.state.set("graph/one/draft", "newer", overwrite=True)
        return {"draft": "older"}

    ended = run(bridge, compile_graph({"write": write}))

    assert [one["code"] for one in ended["refused"]] == ["STATE_STALE"]
    assert "draft" not in ended


# ------------------------------------------------------------------------------------------ gates


@pytest.mark.promise(
    "langgraph.only-persons-pass-gates",
    "Whatever resumes a graph, only a person's answer passes a gate in it.",
)
def test_only_a_persons_answer_lets_a_graph_pass_a_gate_also_after_a_restart(bridge: Bridge) -> None:
    @bridge.node(agent="ann", claims="prices/**")
    def publish(state: State) -> Finish:
        gate = ask_person("May it go out?", kind="legal", about={"draft": 7})
        return Finish(update={"said": gate.state})

    with bridge.checkpoints() as saver:
        graph = compile_graph({"publish": publish}, saver=saver)
        stop = run(bridge, graph)["__interrupt__"][0].value
        assert (stop["gate"], stop["kind"], list(stop["about"])) == ("G1", "legal", ["hash"])
        with bridge.open("ann") as ann:
            assert [one.agent for one in ann.claims()] == ["G1"]  # kept while it waits
            with pytest.raises(NotAllowed):
                ann.gates.answer("G1", approve=True)
        config = {"configurable": {"thread_id": "one"}}
        for _ in range(2):  # whoever says so to the graph has said nothing to the gate
            forced = graph.invoke(Command(resume="approved"), config, durability="sync")
            assert forced["__interrupt__"][0].value["gate"] == "G1"
            assert run(bridge, graph)["__interrupt__"][0].value["gate"] == "G1"
    approve(bridge, "G1")
    with bridge.checkpoints() as saver:
        assert run(bridge, compile_graph({"publish": publish}, saver=saver))["said"] == "approved"


def test_an_answer_reaches_the_graph_after_the_asking_session_has_ended(bridge: Bridge) -> None:
    @bridge.node(agent="ann", claims="prices/**")
    def publish(state: State) -> Finish:
        return Finish(update={"said": ask_person("May it go out?", about="amount=10 EUR").state})

    graph = compile_graph({"publish": publish})
    assert "__interrupt__" in run(bridge, graph)
    with bridge.open("ann") as ann:
        ann.leave()
    approve(bridge, "G1", yes=False)

    ended = run(bridge, graph)

    assert ended["said"] == "rejected"
    with bridge.open() as reader:
        assert reader.tasks.get(ended["task"]).state == "done"


def test_one_process_runs_a_thread_at_a_time(bridge: Bridge) -> None:
    @bridge.node(agent="ann")
    def work(state: State) -> dict[str, Any]:
        with pytest.raises(Held) as refused:
            run(bridge, compile_graph({"work": work}))
        return {"said": refused.value.code}

    assert run(bridge, compile_graph({"work": work}))["said"] == "GRAPH_RUNNING"


def test_without_a_node_of_a_bridge_there_is_nothing_to_ask_about(bridge: Bridge) -> None:
    with pytest.raises(Malformed) as refused:
        ask_person("May I?")

    assert refused.value.code == "GRAPH_NO_TASK"


# ---------------------------------------------------------------------------------------- killed


@pytest.mark.promise(
    "langgraph.killed-anywhere",
    "A graph whose process is killed at any change continues, and repeats nothing on its task.",
)
@pytest.mark.slow
def test_the_example_survives_kills_and_does_nothing_twice(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "shop")
    seed = time.time_ns() % 10_000

    done = subprocess.run(
        [sys.executable, str(DYING), str(repository), str(seed)],
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert "ended with 0 after " in done.stdout, f"seed {seed}:\n{done.stdout}{done.stderr}"
    published = (repository / "published" / "git.md").read_text(encoding="utf-8")
    assert published.endswith("Fixed: say what it is good for\n")
    with Landlane(repository, agent="judge") as judge:
        entries = list(judge.journal())
        kinds = Counter(entry.kind for entry in entries)
        own = Counter(entry.kind for entry in entries if entry.data.get("task") == "T1")
        assert judge.verify().trouble == ()
        assert {task.id: task.state for task in judge.tasks.list()} == {
            "T1": "done", "T2": "done", "T3": "done", "T4": "failed",
        }  # fmt: skip
        assert judge.claims() == []
    wanted = {"fan.begun": 1, "fan.joined": 1, "handoff.sent": 4, "handoff.accepted": 4, "gate.asked": 1}
    assert {kind: kinds[kind] for kind in wanted} == wanted, f"seed {seed}"
    assert (own["task.failed"], own["task.done"]) == (1, 1), f"seed {seed}"

#!/usr/bin/env python3
"""An article by several agents: research in parallel, a writer, a reviewer, a person's word, a publisher.

Kill it whenever you like, and start it again: it goes on where it was, and nothing is done twice.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

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


class Article(Coordinated):
    """What the graph knows; only the writer writes the draft."""

    topic: str
    findings: list[str]
    draft: Annotated[str, Owned("writer")]
    published: str


class Question(TypedDict):
    """What one researcher is asked."""

    question: str


# Here models would be asked. These answer the same every time, and need no network.
def look_up(question: str) -> str:
    """Find something out; one of the questions has no answer."""
    if "future" in question:
        raise LookupError("the answer is unknown")
    return f"{question} Yes, since 2005."


def compose(topic: str, findings: list[str], feedback: list[str]) -> str:
    """Write a draft that takes all feedback in."""
    return "\n".join([f"# {topic}", *findings, *(f"Fixed: {one}" for one in feedback)]) + "\n"


def criticise(draft: str) -> str:
    """Find fault with a draft once."""
    return "" if "Fixed" in draft else "say what it is good for"


def release(target: Path, text: str) -> None:
    """Publish an article atomically and once; a second call finds it there."""
    target.parent.mkdir(exist_ok=True)
    new = target.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    try:
        os.link(new, target)
    except FileExistsError:
        pass
    new.unlink()


def build(folder: str) -> tuple[Bridge, StateGraph[Any]]:
    """The graph of one repository."""
    bridge = Bridge(folder, state=Article)
    root = Path(folder)

    @bridge.node(agent="editor")
    def plan(state: Article) -> FanOut:
        questions = (
            f"Is {state['topic']} old?",
            f"Is {state['topic']} quick?",
            "What has the future in store?",
        )
        parts = {question: {"question": question} for question in questions}
        return FanOut(parts=parts, node="research", policy=2, deadline="1m")

    @bridge.branch(agent="researcher")
    def research(question: Question) -> str:
        return look_up(question["question"])

    @bridge.join(agent="editor", on_refused=END)
    def gather(state: Article, results: tuple[Result, ...]) -> HandTo:
        findings = [one.value if one.is_done else f"{one.name} Unknown: {one.why}" for one in results]
        return HandTo(
            agent="writer",
            goto="write",
            next="write a draft",
            product="\n".join(findings),
            update={"findings": findings},
        )

    @bridge.node(agent="writer", claims="articles/**", wait="10s")
    def write(state: Article) -> HandTo:
        draft = compose(state["topic"], state["findings"], state.get("feedback", []))
        (root / "articles").mkdir(exist_ok=True)
        (root / "articles" / "draft.md").write_text(draft, encoding="utf-8")
        return HandTo(
            agent="reviewer", goto="review", next="review articles/draft.md", update={"draft": draft}
        )

    @bridge.node(agent="reviewer")
    def review(state: Article) -> HandTo | TryAgain:
        fault = criticise(state["draft"])
        if fault:
            return TryAgain(feedback=fault, change=state["draft"], goto="write", otherwise="give_up")
        return HandTo(
            agent="publisher", goto="publish", next="publish it", context="I have no objection left"
        )

    @bridge.node(agent="publisher", claims="published/**")
    def publish(state: Article) -> Finish | TryAgain:
        gate = ask_person("May this be published?", kind="taste", about={"draft": state["draft"]})
        if gate.state != "approved":
            return TryAgain(feedback=gate.answer or "a person said no", goto="write", otherwise="give_up")
        name = f"{state['topic'].replace('/', '-')}.md"
        release(root / "published" / name, state["draft"])  # this run may be a repetition
        return Finish(result=f"published {name}", update={"published": name})

    def give_up(state: Article) -> dict[str, Any]:
        return {"published": ""}

    graph: StateGraph[Any] = StateGraph(Article)
    for node in (plan, research, gather, write, review, publish, give_up):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "plan")
    graph.add_edge("research", "gather")
    return bridge, graph


def main(topic: str) -> int:
    """Begin an article, or go on with it."""
    bridge, builder = build(".")
    with bridge.checkpoints() as saver:
        graph = builder.compile(checkpointer=saver)
        state = bridge.run(graph, {"topic": topic}, thread=topic, title=f"Write about {topic}")
    for stop in state.get("__interrupt__", ()):
        sys.stdout.write(f"{stop.value['why']}\n{stop.value['hint']}\n")
        return 7
    sys.stdout.write(f"published: {state['published'] or 'nothing'}\n")
    return 0 if state["published"] else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["git"]))

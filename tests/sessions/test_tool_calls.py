"""Calls of our own tools that hooks announce, and tasks that are let go of, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import Stale
from landlane.sessions.client_sessions import ClientName, bind_session
from landlane.sessions.tool_calls import (
    announce_call,
    begin_call,
    end_call,
    list_announced_calls,
    list_open_calls,
)
from landlane.tasks.add import add_task
from landlane.tasks.change import hand_back
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from tests.support.project import MINUTE

if TYPE_CHECKING:
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract


def with_task(agent: Agent) -> str:
    add_task(agent.repo, agent.session, NewTask(title="Say y", paths=("src/y.py",)))
    picked = next_task(agent.repo, agent.session)
    assert isinstance(picked, Picked)
    return picked.task.id


def test_an_announced_call_is_found_until_it_was_answered_or_is_old(project: Project) -> None:
    ann, sub = project.agent("ann"), project.agent("ann.sub")
    bind_session(sub.repo, ClientName(client="claude", session="c", agent="a"), sub.joined, ann.session.id)
    announce_call(ann.repo, ann.session.id, "1", "mcp__landlane__claim")
    announce_call(sub.repo, sub.session.id, "1", "mcp__landlane__next")
    begin_call(ann.repo, ann.session.id, "2", "/root", "")

    found = {(one.agent, one.call, one.parent) for one in list_announced_calls(ann.repo)}
    assert found == {("ann", "1", ""), ("ann.sub", "1", ann.session.id)}
    # What goes on in a shell is told apart from it.
    assert [one.call for one in list_open_calls(ann.repo, ann.session.id)] == ["2"]

    end_call(ann.repo, ann.session.id, "1")
    assert [one.agent for one in list_announced_calls(ann.repo)] == ["ann.sub"]
    project.clock.advance(11 * MINUTE)
    assert list_announced_calls(ann.repo) == []


def test_a_task_handed_back_is_ready_again_and_charged_to_nobody(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    task = with_task(ann)
    handed = hand_back(ann.repo, ann.session, task, "the parser is missing")
    assert (handed.state, handed.owner, handed.failures, handed.lapses) == ("ready", "", 0, 0)
    picked = next_task(bob.repo, bob.session)
    assert isinstance(picked, Picked)
    assert [lesson.why for lesson in picked.lessons] == ["the parser is missing"]
    with pytest.raises(Stale, match="belongs to bob"):
        hand_back(ann.repo, ann.session, task, "mine")

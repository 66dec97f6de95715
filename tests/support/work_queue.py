"""What the tests of the work queue share: adding, taking and ending tasks in few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from landlane.tasks.add import Added, LooksAlike, add_task
from landlane.tasks.finish import finish_on_word
from landlane.tasks.model import NewTask
from landlane.tasks.pick import NothingReady, Picked, next_task
from landlane.tasks.records import get_task, task_history

if TYPE_CHECKING:
    from landlane.tasks.model import Task
    from tests.support.sites import Agent, Site


def add(agent: Agent, title: str, *, force: bool = True, kind: str = "chore", **facts: Any) -> Task:
    """Add a task, and be sure of it; most tests do not care for evidence or likeness."""
    outcome = try_to_add(agent, title, force=force, kind=kind, **facts)
    assert isinstance(outcome, Added), outcome
    return outcome.task


def try_to_add(
    agent: Agent, title: str, *, force: bool = False, kind: str = "chore", **facts: Any
) -> Added | LooksAlike:
    facts = {name: tuple(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}
    new = NewTask(title=title, kind=kind, **facts)
    return add_task(agent.repo, agent.session, new, force=force)


def take(agent: Agent, role: str = "") -> Picked:
    """Take the next task, and be sure that there is one."""
    outcome = next_task(agent.repo, agent.session, role)
    assert isinstance(outcome, Picked), outcome
    return outcome


def take_nothing(agent: Agent, role: str = "") -> NothingReady:
    """Ask for a task, and be sure that there is none."""
    outcome = next_task(agent.repo, agent.session, role)
    assert isinstance(outcome, NothingReady), outcome
    return outcome


def end(agent: Agent, task_id: str, result: str = "") -> Task:
    """End a chore on its owner's word."""
    return finish_on_word(agent.repo, agent.session, task_id, result)


def state(site: Site, task_id: str) -> str:
    return get_task(site.repo(), task_id).state


def task_kinds(site: Site, task_id: str) -> list[str]:
    """What happened to a task, in order."""
    return [entry.kind for entry in task_history(site.repo(), task_id)]

"""What the tests of the work queue share: adding, taking and ending tasks in few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from landlane.tasks import add as task_adding
from landlane.tasks import finish, read
from landlane.tasks import pick as picking
from landlane.tasks.model import NewTask

if TYPE_CHECKING:
    from landlane.tasks.model import Task
    from tests.support.sites import Agent, Site


def add(agent: Agent, title: str, *, force: bool = True, kind: str = "chore", **facts: Any) -> Task:
    """Add a task, and be sure of it; most tests do not care for evidence or likeness."""
    outcome = try_to_add(agent, title, force=force, kind=kind, **facts)
    assert isinstance(outcome, task_adding.Added), outcome
    return outcome.task


def try_to_add(
    agent: Agent, title: str, *, force: bool = False, kind: str = "chore", **facts: Any
) -> task_adding.Added | task_adding.LooksAlike:
    facts = {name: tuple(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}
    new = NewTask(title=title, kind=kind, **facts)
    return task_adding.add_task(agent.repo, agent.session, new, force=force)


def take(agent: Agent, role: str = "") -> picking.Picked:
    """Take the next task, and be sure that there is one."""
    outcome = picking.next_task(agent.repo, agent.session, role)
    assert isinstance(outcome, picking.Picked), outcome
    return outcome


def take_nothing(agent: Agent, role: str = "") -> picking.NothingReady:
    """Ask for a task, and be sure that there is none."""
    outcome = picking.next_task(agent.repo, agent.session, role)
    assert isinstance(outcome, picking.NothingReady), outcome
    return outcome


def end(agent: Agent, task_id: str, result: str = "") -> Task:
    """End a chore on its owner's word."""
    return finish.finish_on_word(agent.repo, agent.session, task_id, result)


def state(site: Site, task_id: str) -> str:
    return read.get_task(site.repo(), task_id).state


def task_kinds(site: Site, task_id: str) -> list[str]:
    """What happened to a task, in order."""
    return [entry.kind for entry in read.task_history(site.repo(), task_id)]

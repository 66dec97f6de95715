"""Add, take and finish tasks in one call each; shared by tests of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from landlane.tasks.add import Added, LooksAlike, add_task
from landlane.tasks.finish import finish_without_evidence
from landlane.tasks.model import NewTask
from landlane.tasks.pick import NothingReady, Picked, next_task
from landlane.tasks.records import get_task, task_history

if TYPE_CHECKING:
    from landlane.tasks.model import Task
    from tests.support.project import Agent, Project


def add(agent: Agent, title: str, *, force: bool = True, kind: str = "chore", **fields: Any) -> Task:
    """Add a task, which must succeed; by default without evidence or a check for similar tasks."""
    outcome = try_to_add(agent, title, force=force, kind=kind, **fields)
    assert isinstance(outcome, Added), outcome
    return outcome.task


def try_to_add(
    agent: Agent, title: str, *, force: bool = False, kind: str = "chore", **fields: Any
) -> Added | LooksAlike:
    fields = {name: tuple(one) if isinstance(one, list) else one for name, one in fields.items()}
    new = NewTask(title=title, kind=kind, **fields)
    return add_task(agent.repo, agent.session, new, force=force)


def take(agent: Agent, role: str = "") -> Picked:
    """Take the next task; fail if there is none."""
    outcome = next_task(agent.repo, agent.session, role)
    assert isinstance(outcome, Picked), outcome
    return outcome


def expect_no_task(agent: Agent, role: str = "") -> NothingReady:
    """Ask for a task; fail if there is one."""
    outcome = next_task(agent.repo, agent.session, role)
    assert isinstance(outcome, NothingReady), outcome
    return outcome


def finish_task(agent: Agent, task_id: str, result: str = "") -> Task:
    """Finish a task without evidence."""
    return finish_without_evidence(agent.repo, agent.session, task_id, result)


def state(project: Project, task_id: str) -> str:
    return get_task(project.repo(), task_id).state


def task_kinds(project: Project, task_id: str) -> list[str]:
    """Return the kinds of the journal entries of a task, in order."""
    return [entry.kind for entry in task_history(project.repo(), task_id)]

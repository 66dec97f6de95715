"""Questions and answers killed at every step leave a task with one owner, on both stores."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from landlane.gates.decide import answer_gate
from landlane.gates.open import open_task_gate
from landlane.gates.records import list_gates
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task
from tests.support.project import Agent

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from tests.support.project import Project

pytestmark = [pytest.mark.contract, pytest.mark.timeout(120), pytest.mark.slow]


class CrashingTransaction:
    """A transaction that kills its process at the n-th step."""

    def __init__(self, tx: Any, steps: list[int]) -> None:
        object.__setattr__(self, "_tx", tx)
        object.__setattr__(self, "_steps", steps)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._tx, name, value)

    def step(self) -> None:
        self._steps[0] -= 1
        if not self._steps[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def run(self, statement: str, /, **parameters: object) -> int:
        self.step()
        return self._tx.run(statement, **parameters)

    def record(self, *words: Any, **more: Any) -> None:
        self.step()
        self._tx.record(*words, **more)


def dies_at(project: Project, count: int, do: Callable[[Repository], object]) -> bool:
    """Run an action in a process that is killed at this step; return whether it got that far."""
    child = os.fork()
    if not child:
        try:
            repo = project.repo()
            change, steps = repo.store.change, [count]

            def dying(work: Callable[[Any], Any], **options: Any) -> Any:
                def until(tx: Any) -> Any:
                    killer = CrashingTransaction(tx, steps)
                    found = work(killer)
                    killer.step()  # everything is written, and nothing is committed
                    return found

                return change(until, **options)

            repo.store.change = dying  # type: ignore[method-assign]
            do(repo)
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the parent reports any error
            print(repr(error))
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def kill_everywhere(
    project: Project, do: Callable[[Repository], object], look: Callable[[], str]
) -> list[str]:
    """Kill an action at each of its steps in turn until it completes; return the state after each time."""
    seen: list[str] = []
    count = 1
    while dies_at(project, count, do):
        seen.append(look())
        count += 1
        assert count < 200
    return [*seen, look()]


def find_owner(project: Project, repo: Repository, task_id: str) -> str:
    """Return who has a task; fail if the task, its claims and its gate do not agree."""
    task = get_task(repo, task_id)
    holders = {claim.agent for claim in project.claims()}
    waiting = [gate.id for gate in list_gates(repo)]
    if task.state == "waiting_for_person":
        assert (task.owner, holders, len(waiting)) == ("ann", {waiting[0]}, 1)
        return "gate"
    assert waiting == []
    if task.state == "active":
        assert (task.owner, holders) == ("ann", {"ann"})
        return "ann"
    assert (task.state, task.owner, holders) == ("ready", "", set())
    return "queue"


@pytest.mark.promise(
    "gates.killed-anywhere",
    "A question or an answer that is killed at any step leaves the task with exactly one owner.",
)
def test_a_killed_question_or_answer_leaves_one_owner(live_project: Project) -> None:
    project = live_project
    ann = project.agent("ann")
    add_task(ann.repo, ann.session, NewTask(title="Say y", paths=("src/y.py", "docs")))
    picked = next_task(ann.repo, ann.session)
    assert isinstance(picked, Picked)
    task = picked.task.id
    repo = project.repo()
    eve = Agent(repo, sessions.join(repo, "eve", kind=SessionKind.PERSON))

    def ask(repo: Repository) -> None:
        open_task_gate(repo, ann.session, task, "approval", "May I?", {"head": "1" * 40})

    seen = kill_everywhere(project, ask, lambda: find_owner(project, repo, task))
    assert len(seen) > 10, "killed in the middle"
    assert seen == ["ann"] * (len(seen) - 1) + ["gate"]

    def approve(repo: Repository) -> None:
        answer_gate(repo, eve.session, "G1", approve=True)

    seen = kill_everywhere(project, approve, lambda: find_owner(project, repo, task))
    assert seen == ["gate"] * (len(seen) - 1) + ["ann"]

    open_task_gate(ann.repo, ann.session, task, "legal", "And this?", {})
    sessions.leave(ann.repo, ann.session)

    def reject(repo: Repository) -> None:
        answer_gate(repo, eve.session, "G2", approve=False, why="no")

    seen = kill_everywhere(project, reject, lambda: find_owner(project, repo, task))
    assert seen == ["gate"] * (len(seen) - 1) + ["queue"]

"""Asking and answering are killed at every step: a task is always in one hand, on both stores."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from landlane.gates import ask as gates
from landlane.gates import decide
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task
from tests.support.sites import Agent

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from tests.support.sites import Site

pytestmark = [pytest.mark.contract, pytest.mark.timeout(120), pytest.mark.slow]


class Dying:
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


def dies_at(site: Site, count: int, do: Callable[[Repository], object]) -> bool:
    """Do something in a process that is killed at this step; tells whether it got so far."""
    child = os.fork()
    if not child:
        try:
            repo = site.repo()
            change, steps = repo.store.change, [count]

            def dying(work: Callable[[Any], Any], **options: Any) -> Any:
                def until(tx: Any) -> Any:
                    mortal = Dying(tx, steps)
                    found = work(mortal)
                    mortal.step()  # all is done, and nothing is committed
                    return found

                return change(until, **options)

            repo.store.change = dying  # type: ignore[method-assign]
            do(repo)
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent hears of it
            print(repr(error))
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def kill_everywhere(site: Site, do: Callable[[Repository], object], look: Callable[[], str]) -> list[str]:
    """Kill it at each of its steps in turn, until it gets through; tells what was so each time."""
    seen: list[str] = []
    count = 1
    while dies_at(site, count, do):
        seen.append(look())
        count += 1
        assert count < 200
    return [*seen, look()]


def standing(site: Site, repo: Repository, task_id: str) -> str:
    """Whose a task and its claims are; anything that does not fit together fails."""
    task = get_task(repo, task_id)
    holders = {claim.agent for claim in site.claims()}
    waiting = [gate.id for gate in gates.list_gates(repo)]
    if task.state == "waiting_for_person":
        assert (task.owner, holders, len(waiting)) == ("ann", {f"gate-{waiting[0]}"}, 1)
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
def test_a_killed_question_or_answer_leaves_one_owner(live_site: Site) -> None:
    site = live_site
    ann = site.agent("ann")
    add_task(ann.repo, ann.session, NewTask(title="Say y", paths=("src/y.py", "docs")))
    picked = next_task(ann.repo, ann.session)
    assert isinstance(picked, Picked)
    task = picked.task.id
    repo = site.repo()
    eve = Agent(repo, sessions.join(repo, "eve", kind=SessionKind.PERSON))

    def ask(repo: Repository) -> None:
        gates.ask(repo, ann.session, task, "approval", "May I?", {"head": "1" * 40})

    seen = kill_everywhere(site, ask, lambda: standing(site, repo, task))
    assert len(seen) > 10, "it was killed in the middle"
    assert seen == ["ann"] * (len(seen) - 1) + ["gate"]

    def approve(repo: Repository) -> None:
        decide.answer(repo, eve.session, "G1", approve=True)

    seen = kill_everywhere(site, approve, lambda: standing(site, repo, task))
    assert seen == ["gate"] * (len(seen) - 1) + ["ann"]

    gates.ask(ann.repo, ann.session, task, "legal", "And this?", {})
    sessions.leave(ann.repo, ann.session)

    def reject(repo: Repository) -> None:
        decide.answer(repo, eve.session, "G2", approve=False, why="no")

    seen = kill_everywhere(site, reject, lambda: standing(site, repo, task))
    assert seen == ["gate"] * (len(seen) - 1) + ["queue"]

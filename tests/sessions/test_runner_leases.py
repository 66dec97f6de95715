"""What only one process may run: taking, waiting, renewing, and taking over from the dead, on both stores."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Stale
from landlane.sessions.runner_lease import (
    RunnerBusy,
    RunnerLease,
    check_runner,
    end_runner,
    renew_runner,
    take_runner,
    wait_for_runner,
)
from tests.support.project import MINUTE, SECOND, Background
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

NAME = "deploy:prod"


def taken(outcome: RunnerLease | RunnerBusy) -> RunnerLease:
    assert isinstance(outcome, RunnerLease), outcome
    return outcome


def take(agent: Agent, name: str = NAME, lease_ms: int = MINUTE) -> RunnerLease | RunnerBusy:
    return take_runner(agent.repo, agent.session, name, lease_ms)


def is_ours(agent: Agent, lease: RunnerLease) -> bool:
    try:
        agent.repo.change(lambda tx: check_runner(tx, lease))
    except Stale:
        return False
    return True


def test_only_one_runs_it_even_within_one_session(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    first = taken(take(ann))

    assert [type(take(agent)) for agent in (ann, bob)] == [RunnerBusy, RunnerBusy]
    busy = take(bob)
    assert isinstance(busy, RunnerBusy)
    assert (busy.agent, busy.until, busy.token) == ("ann", first.until, first.token)
    assert isinstance(take(bob, "queue:main"), RunnerLease)


def test_the_next_one_has_a_higher_token(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    first = taken(take(ann))

    assert end_runner(ann.repo, first)
    second = taken(take(bob))

    assert second.token > first.token
    assert not second.is_takeover
    assert not end_runner(ann.repo, first)
    assert is_ours(bob, second)
    assert not is_ours(ann, first)


def test_who_was_silent_is_overtaken(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    first = taken(take(ann))
    project.clock.advance(MINUTE - SECOND)
    assert isinstance(take(bob), RunnerBusy)
    project.clock.advance(2 * SECOND)
    assert is_ours(ann, first)

    second = taken(take(bob))

    assert second.is_takeover
    assert not is_ours(ann, first)
    with pytest.raises(Stale) as answer:
        renew_runner(ann.repo, first)
    assert answer.value.code == "RUNNER_OVERTAKEN"
    assert not end_runner(ann.repo, first)


def test_renewing_puts_the_end_off(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    lease = taken(take(ann))
    assert renew_runner(ann.repo, lease) is lease
    for _ in range(5):
        project.clock.advance(MINUTE // 2)
        lease = renew_runner(ann.repo, lease)

    assert isinstance(take(bob), RunnerBusy)
    assert is_ours(ann, lease)


def test_without_a_session_the_name_counts(project: Project) -> None:
    repo = project.repo()

    lease = taken(take_runner(repo, "queue", "queue:main", MINUTE))

    assert lease.agent == "queue"
    assert isinstance(take_runner(repo, "queue", "queue:main", MINUTE), RunnerBusy)


def test_taking_and_ending_are_entries(project: Project) -> None:
    ann = project.agent("ann")
    lease = taken(take(ann))
    end_runner(ann.repo, lease)

    answer = [(entry.kind, entry.facts()) for entry in project.entries() if entry.kind.startswith("runner.")]

    assert [kind for kind, _ in answer] == ["runner.taken", "runner.ended"]
    assert [facts["token"] for _, facts in answer] == [lease.token, lease.token]


def test_who_waits_has_it_when_it_is_ended(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    first = taken(take(ann))
    heard: list[str] = []
    waiter = Background(
        lambda: wait_for_runner(
            bob.repo, bob.session, NAME, MINUTE, MINUTE, on_wait=lambda busy: heard.append(busy.agent)
        )
    )
    wait_until(lambda: bool(heard))

    end_runner(ann.repo, first)

    assert taken(waiter.result()).token > first.token
    assert heard == ["ann"]


def test_who_waits_too_long_is_told_by_whom(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    take(ann)

    outcome = wait_for_runner(bob.repo, bob.session, NAME, MINUTE, 50)

    assert isinstance(outcome, RunnerBusy)
    assert outcome.agent == "ann"


def test_one_of_many_has_it(live_project: Project) -> None:
    agents = [live_project.agent(f"a{number}") for number in range(6)]

    results = [Background(lambda agent=agent: take(agent)) for agent in agents]

    assert [type(result.result()) for result in results].count(RunnerLease) == 1


HOLDER = """
import sys
from pathlib import Path
from landlane.sessions import runner_lease as runners, join as sessions
from landlane.testing.repositories import open_test_repository
repo = open_test_repository(Path(sys.argv[1]), sys.argv[2])
ann = sessions.join(repo, "ann").session
print(runners.take_runner(repo, ann, "deploy:prod", 3_600_000).token, flush=True)
sys.stdin.readline()
"""


def test_a_killed_process_is_taken_over_at_once(live_project: Project) -> None:
    bob = live_project.agent("bob")
    words = [sys.executable, "-c", HOLDER, str(live_project.repository), live_project.place]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        token = int(holder.stdout.readline())
        assert isinstance(take(bob), RunnerBusy)
        waiter = Background(lambda: wait_for_runner(bob.repo, bob.session, NAME, MINUTE, MINUTE))
        wait_until(lambda: live_project.listeners() > 0)

        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=30)

        lease = taken(waiter.result(15))
    assert lease.token > token
    assert lease.is_takeover

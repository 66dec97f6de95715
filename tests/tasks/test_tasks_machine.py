"""The work queue against a model: tasks are added, taken, ended, failed, blocked, dropped; agents vanish."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from landlane.errors import NotAllowed, Stale
from landlane.ids import new_uuid
from landlane.patterns.pattern import overlap, parse
from landlane.sessions import join as sessions
from landlane.settings.model import RetrySettings, SessionSettings, Settings
from landlane.tasks.add import Added, add_task
from landlane.tasks.change import block_task, drop_task, fail_task, retry_task, unblock_task
from landlane.tasks.finish import finish_without_evidence
from landlane.tasks.model import NewTask, rank_of
from landlane.tasks.pick import NothingReady, Picked, next_task
from landlane.tasks.records import list_tasks
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import make_repository, open_test_repository

pytestmark = [pytest.mark.simulation, pytest.mark.slow]

MORE = int(os.environ.get("LANDLANE_SIMULATIONS", "1"))
MINUTE = 60_000
LEASE = 30 * MINUTE
AGENTS = ("ann", "bob", "cy")
PATHS = ("", "", "src/a.py", "src/*.py", "src", "docs/x.md")


class Model:
    """One task as it should be."""

    def __init__(self, number: int, now: int, path: str, after: list[int], priority: int) -> None:
        self.number = number
        self.rank = rank_of(now, priority)
        self.path = path
        self.after = after
        self.state = "ready"
        self.owner = ""
        self.attempt = 0
        self.failures = 0
        self.is_held = False  # blocked by hand
        self.taken_at = 0


class Queue(RuleBasedStateMachine):
    """Agents on one queue; the model is a dictionary and brute force."""

    folder: Path
    place: str

    @initialize(last=st.sampled_from(["ask", "fail"]))
    def begin(self, last: str) -> None:
        self.given_up = {"ask": "waiting_for_person", "fail": "dead"}[last]
        self.clock = FakeClock()
        self.model: dict[int, Model] = {}
        self.seen: dict[str, int] = {}  # agent → last sign of life
        self.names: dict[str, int] = {}
        self.joined: dict[str, Any] = {}
        self.now = 0
        self.repo = open_test_repository(
            self.folder,
            self.place,
            clock=self.clock,
            settings=Settings(sessions=SessionSettings(lease_ms=LEASE), retries=RetrySettings(last=last)),
            repository_id=new_uuid(),
        )

    def teardown(self) -> None:
        if hasattr(self, "repo"):
            self.repo.store.close()

    # ------------------------------------------------------------------------------- the model's side

    def _open(self, task: Model) -> list[int]:
        return [before for before in task.after if self.model[before].state != "done"]

    def _settle(self) -> None:
        """Dependencies decide between ready and blocked."""
        for task in self.model.values():
            if task.state in ("ready", "blocked"):
                task.state = "blocked" if task.is_held or self._open(task) else "ready"

    def _lapse(self) -> None:
        for agent in [one for one in self.seen if self.now - self._last_renewal(one) >= LEASE]:
            self._gone(agent)

    def _last_renewal(self, agent: str) -> int:
        """Return when the last lease of an agent began: a session lives as long as one of its claims."""
        claims = [
            task.taken_at
            for task in self.model.values()
            if task.owner == agent and task.state == "active" and task.path
        ]
        return max(self.seen[agent], *claims, 0)

    def _gone(self, agent: str) -> None:
        del self.seen[agent]
        del self.joined[agent]
        for task in self.model.values():
            if task.owner == agent and task.state == "active":
                task.state, task.owner = "ready", ""
        self._settle()

    def _expected(self) -> Model | None:
        busy = [task.path for task in self.model.values() if task.state == "active" and task.path]
        ready = sorted(
            (task for task in self.model.values() if task.state == "ready"),
            key=lambda task: (task.rank, task.number),
        )
        for task in ready:
            if not task.path or not any(overlap(parse(task.path), parse(one)) for one in busy):
                return task
        return None

    def _session(self, agent: str) -> Any:
        self._lapse()
        self.joined[agent] = sessions.join(self.repo, agent).session
        # A sign of life is written down only when the last one is old enough to be worth it.
        if self.now - self.seen.get(agent, -LEASE) > LEASE // 3:
            self.seen[agent] = self.now
        return self.joined[agent]

    # ---------------------------------------------------------------------------------------- rules

    @rule(minutes=st.sampled_from([1, 5, 15, 29]))
    def time_passes(self, minutes: int) -> None:
        self.clock.advance(minutes * MINUTE)
        self.now += minutes * MINUTE

    @rule(
        agent=st.sampled_from(AGENTS),
        path=st.sampled_from(PATHS),
        priority=st.integers(-1, 2),
        data=st.data(),
    )
    def adds(self, agent: str, path: str, priority: int, data: st.DataObject) -> None:
        self._lapse()
        choices = [number for number, task in self.model.items() if task.state != "dropped"]
        after = data.draw(st.lists(st.sampled_from(choices), max_size=2, unique=True)) if choices else []
        new = NewTask(
            title=f"n{len(self.model)}",
            kind="chore",
            paths=(path,) if path else (),
            after=tuple(f"T{number}" for number in after),
            priority=priority,
            max_attempts=2,
        )
        added = add_task(self.repo, None, new, force=True)
        assert isinstance(added, Added)
        number = int(added.task.id[1:])
        assert number == len(self.model) + 1
        store_now = self.repo.store.view(lambda snapshot: snapshot.now)
        self.model[number] = Model(number, store_now, path, after, priority)
        self._settle()
        assert added.task.state == self.model[number].state

    @rule(agent=st.sampled_from(AGENTS))
    def takes(self, agent: str) -> None:
        session = self._session(agent)
        expected = self._expected()
        outcome = next_task(self.repo, session)
        if expected is None:
            assert isinstance(outcome, NothingReady), outcome
            return
        assert isinstance(outcome, Picked), (outcome, expected.number)
        assert outcome.task.id == f"T{expected.number}"
        expected.state, expected.owner, expected.taken_at = "active", agent, self.now
        expected.attempt += 1
        assert (outcome.task.attempt, outcome.task.owner) == (expected.attempt, agent)
        assert [claim.pattern for claim in outcome.claims] == ([expected.path] if expected.path else [])

    @precondition(lambda self: any(task.state == "active" for task in self.model.values()))
    @rule(data=st.data(), is_failure=st.booleans(), is_stranger=st.integers(0, 4))
    def ends(self, data: st.DataObject, is_failure: bool, is_stranger: int) -> None:
        self._lapse()
        active = [number for number, task in self.model.items() if task.state == "active"]
        if not active:
            return
        task = self.model[data.draw(st.sampled_from(active))]
        agent = task.owner if is_stranger else next(name for name in AGENTS if name != task.owner)
        session = self._session(agent)
        try:
            if is_failure:
                fail_task(self.repo, session, f"T{task.number}", "no luck")
            else:
                finish_without_evidence(self.repo, session, f"T{task.number}", "")
        except Stale:
            assert agent != task.owner
            return
        assert agent == task.owner
        task.owner = "" if is_failure else agent
        if is_failure:
            task.failures += 1
            task.state = "ready" if task.failures < 2 else self.given_up
        else:
            task.state = "done"
        self._settle()

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data(), verb=st.sampled_from(["block", "unblock", "retry", "drop"]))
    def somebody_steps_in(self, data: st.DataObject, verb: str) -> None:
        self._lapse()
        task = self.model[data.draw(st.sampled_from(sorted(self.model)))]
        dropped = [before for before in task.after if self.model[before].state == "dropped"]
        still = [before for before in self._open(task) if before not in dropped]
        allowed = {
            "block": task.state in ("ready", "blocked", "active"),
            "unblock": task.state == "blocked" and (task.is_held or not still),
            "retry": task.state == self.given_up,
            "drop": task.state not in ("done", "dropped"),
        }[verb]
        try:
            if verb in ("block", "drop"):
                call = {"block": block_task, "drop": drop_task}[verb]
                call(self.repo, None, f"T{task.number}", "because")
            else:
                other = {"unblock": unblock_task, "retry": retry_task}[verb]
                other(self.repo, None, f"T{task.number}")
        except NotAllowed:
            assert not allowed, (verb, task.state)
            return
        assert allowed, (verb, task.state)
        task.owner = ""
        if verb == "block":
            task.state, task.is_held = "blocked", True
        elif verb == "unblock":
            task.is_held = False
            task.after = [before for before in task.after if before not in dropped]
        elif verb == "retry":
            task.state, task.failures = "ready", 0
        else:
            task.state = "dropped"
        self._settle()

    @rule(agent=st.sampled_from(AGENTS))
    def leaves(self, agent: str) -> None:
        self._lapse()
        if agent in self.joined:
            sessions.leave(self.repo, self._session(agent))
            self._gone(agent)

    @invariant()
    def the_queue_is_as_the_model_says(self) -> None:
        if not hasattr(self, "repo"):
            return
        self._lapse()
        stored = {int(task.id[1:]): task for task in list_tasks(self.repo)}
        assert {number: (one.state, one.owner) for number, one in stored.items()} == {
            number: (one.state, one.owner) for number, one in self.model.items()
        }
        for number, task in stored.items():
            assert task.failures == self.model[number].failures
            assert (task.state == "blocked") == bool(task.why and task.state == "blocked")


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_the_queue_agrees_with_the_model(kind: str, request: pytest.FixtureRequest) -> None:
    base = Path(tempfile.mkdtemp(prefix="landlane-tasks-")).resolve()
    folder = make_repository(base / "repository")
    place = str(base / "store.db") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    machine = type("QueueHere", (Queue,), {"folder": folder, "place": place})
    try:
        run_machine(
            machine,
            settings=settings(
                max_examples=(25 if kind == "sqlite" else 8) * MORE, stateful_step_count=30, deadline=None
            ),
        )
    finally:
        shutil.rmtree(base, ignore_errors=True)

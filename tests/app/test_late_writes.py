"""A holder that was stopped while another session took over: no write of it becomes visible afterwards.

The rows of the table in docs/explanation/late-writes.md are the cases here. A child does the operation and
stops itself with SIGSTOP before one of its writes; its lease ends, another session takes what it held, and
the child continues. `make soak` stops it before each transaction of each operation.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.claims import check as claim_checks
from landlane.claims import held
from landlane.deploys import deploy as deploys
from landlane.deploys.records import live_at
from landlane.errors import LandlaneError, NotAllowed
from landlane.handoffs import accept as accepting
from landlane.handoffs import send as sending
from landlane.handoffs.model import Draft
from landlane.journal.read import read_entries
from landlane.landing import move_target, queue
from landlane.landing import submit as submitting
from landlane.landing.decide import eject_entry
from landlane.landing.model import LANDED
from landlane.landing.records import list_landings
from landlane.processes.passthrough import run_passthrough
from landlane.sessions import join as sessions
from landlane.state import keys, once, slots
from landlane.tasks import evidence
from landlane.tasks.model import ANYBODY
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task
from landlane.testing.repositories import git
from landlane.values import value
from landlane.workspaces import commit as committing
from tests.support.processes import fork, is_alive, is_stopped, wait_for_exit
from tests.support.project import Agent, Project, let_time_pass, opened
from tests.support.tasks import add
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository

pytestmark = pytest.mark.simulation

STOPS = int(os.environ.get("LANDLANE_STOPS", "0"))  # in `make soak`: before each of the first transactions
DAY_MS = 24 * 3600 * 1000
PATH = "src/a.py"
TASK_BRANCH, BRANCH = "landlane/T1-1/work", "topic"
SETTINGS = """\
[landing]
target = "main"
remote = "none"
resident = false
checks = [{ name = "test", run = "true" }]

[slots.database]
names = ["a"]
"""


@value
class LateWriteCase:
    """An operation of ann, how bob takes over meanwhile, and whether ann's write can be seen."""

    prepare: Callable[[Agent], Any]
    operate: Callable[[Agent, Any], object]
    stop: tuple[Any, str]  # the function of a module that is called right before the write
    take_over: Callable[[Agent], object]
    is_visible: Callable[[Repository, Path], object]
    codes: tuple[str, ...]
    is_recorded: Callable[[Repository, Path], object] | None = (
        None  # if a write may still be undone when seen
    )
    can_be_undone: bool = True


# ------------------------------------------------------------------------------------------------- the cases


def claim_path(ann: Agent) -> None:
    ann.take(PATH)
    file = Path(ann.repo.git.root) / PATH
    file.parent.mkdir(exist_ok=True)
    file.write_text("late\n", encoding="utf-8")


def commit_path(ann: Agent, _: object) -> object:
    repo = ann.repo
    request = committing.make_commit_request(repo, (PATH,), repo.git.root, message="Late")
    return committing.commit(repo, ann.session, request)


def take_task_with_commit(ann: Agent) -> None:
    add(ann, "Parse dates", kind="code", paths=[PATH], check="true")
    next_task(ann.repo, ann.session)
    commit_on_branch(ann)


def commit_on_branch(ann: Agent, branch: str = TASK_BRANCH) -> None:
    root = Path(ann.repo.git.root)
    git(root, "switch", "--quiet", "-c", branch)
    (root / PATH).parent.mkdir(exist_ok=True)
    (root / PATH).write_text("late\n", encoding="utf-8")
    git(root, "add", PATH)
    git(root, "commit", "--quiet", "-m", "Late")
    git(root, "switch", "--quiet", "main")


def take_chore(ann: Agent) -> None:
    add(ann, "Tidy up", paths=[PATH])
    next_task(ann.repo, ann.session)


def take_same_task(bob: Agent) -> None:
    assert isinstance(next_task(bob.repo, bob.session), Picked)


def claim_and_commit_branch(ann: Agent) -> None:
    ann.take(PATH)
    commit_on_branch(ann, BRANCH)


def queue_branch(ann: Agent) -> None:
    claim_and_commit_branch(ann)
    submitting.submit_branch(ann.repo, ann.session, BRANCH, "")


def run_queue(ann: Agent, _: object) -> object:
    runner = queue.start_runner(ann.repo, "runner")
    assert isinstance(runner, queue.QueueRunner), runner
    try:
        stop = queue.drain_queue(runner)
    finally:
        runner.close()
    if stop is not None:
        raise stop
    return None


def eject_or_run(bob: Agent) -> None:
    try:
        eject_entry(bob.repo, bob.session, "L1", "not wanted any more")
    except NotAllowed:  # its move is recorded: the next runner finds out whether it was made
        run_queue(bob, None)


def has_moved_late(repo: Repository, root: Path) -> bool:
    """Whether the target moved for an entry that did not land, or twice."""
    moves = git(root, "reflog", "--format=%gs", "main").splitlines().count("landlane: land L1")
    return moves != (list_landings(repo, ())[0].state == LANDED)


def deploy_to_prod(ann: Agent, _: object) -> object:
    with open(os.devnull, "wb") as null:
        out = null.fileno()
        command = ("sh", "-c", "touch ../deployed")
        return deploys.deploy(ann.repo, ann.session, "prod", command, wait_ms=0, out=out, err=out)


def start_command(on_start: Callable[[int], None], pid: int) -> None:
    on_start(pid)


def run_once(ann: Agent, _: object) -> object:
    def runner(on_start: Callable[[int], None], on_tick: Callable[[], None]) -> Any:
        return run_passthrough(
            ("touch", "../ran"),
            cwd=ann.repo.git.root,
            out=1,
            err=2,
            on_start=lambda pid: start_command(on_start, pid),
            on_tick=on_tick,
        )

    return once.run_once(ann.repo, ann.session, "migrate", ("touch",), runner)


def take_database(agent: Agent) -> Any:
    return slots.take_slot(agent.repo, agent.session, slots.make_slot_request(agent.repo, "database"))


def database_holder(repo: Repository, _: Path) -> list[str]:
    return [slot.agent for slot in slots.list_slots(repo)]


def hand_to_eve(ann: Agent, _: object) -> object:
    return sending.send_handoff(ann.repo, ann.session, Draft(task="T1", to="eve", next="write the test"))


def owner_of(repo: Repository, task: str = "T1") -> str:
    return get_task(repo, task).owner


def offer_to_all(ann: Agent) -> None:
    eve = Agent(ann.repo, sessions.join(ann.repo, "eve"))
    add(eve, "Parse dates", paths=[PATH])
    next_task(eve.repo, eve.session)
    sending.send_handoff(eve.repo, eve.session, Draft(task="T1", to=ANYBODY, next="write the test"))


CASES = {
    "commit": LateWriteCase(
        prepare=claim_path,
        operate=commit_path,
        stop=(committing, "record_commit"),
        take_over=lambda bob: bob.take(PATH),
        is_visible=lambda _, root: git(root, "rev-list", "--count", "HEAD").strip() != "2",
        codes=("LEASE_OVER", "CLAIM_HELD", "SESSION_OVER"),
        is_recorded=lambda repo, _: any(entry.kind == "commit.made" for entry in read_entries(repo)),
    ),
    "done": LateWriteCase(
        prepare=take_task_with_commit,
        operate=lambda ann, _: evidence.complete_task(ann.repo, ann.session, "T1"),
        stop=(evidence, "_record_result"),
        take_over=take_same_task,
        is_visible=lambda repo, _: get_task(repo, "T1").state in ("landing", "done"),
        codes=("TASK_NOT_YOURS", "SESSION_OVER"),
    ),
    "done without evidence": LateWriteCase(
        prepare=take_chore,
        operate=lambda ann, _: evidence.complete_task(ann.repo, ann.session, "T1"),
        stop=(evidence, "finish_without_evidence"),
        take_over=take_same_task,
        is_visible=lambda repo, _: get_task(repo, "T1").state == "done",
        codes=("TASK_NOT_YOURS", "SESSION_OVER"),
    ),
    "land: submit": LateWriteCase(
        prepare=claim_and_commit_branch,
        operate=lambda ann, _: submitting.submit_branch(ann.repo, ann.session, BRANCH, ""),
        stop=(submitting, "enqueue"),
        take_over=lambda bob: bob.take(PATH),
        is_visible=lambda repo, _: list_landings(repo, ()),
        codes=("SESSION_OVER", "CLAIM_HELD"),
    ),
    "land: move the target": LateWriteCase(
        prepare=queue_branch,
        operate=run_queue,
        stop=(move_target, "begin_move"),
        take_over=eject_or_run,
        is_visible=has_moved_late,
        codes=("RUNNER_OVERTAKEN", "done"),  # done: it was stopped before it looked at the queue
    ),
    "deploy: start": LateWriteCase(
        prepare=lambda _: None,
        operate=deploy_to_prod,
        stop=(deploys.records, "record_child"),
        take_over=lambda bob: bob.take("deploy:prod"),
        is_visible=lambda _, root: (root.parent / "deployed").exists(),
        can_be_undone=False,
        codes=("LEASE_OVER", "SESSION_OVER", "RUNNER_OVERTAKEN", "CLAIM_HELD"),
    ),
    "deploy: live": LateWriteCase(
        prepare=lambda _: None,
        operate=deploy_to_prod,
        stop=(deploys.records, "end_live"),
        take_over=lambda bob: bob.take("deploy:prod"),
        is_visible=lambda repo, _: live_at(repo, "prod"),
        codes=("LEASE_OVER", "SESSION_OVER", "RUNNER_OVERTAKEN", "CLAIM_HELD"),
    ),
    "state": LateWriteCase(
        prepare=lambda _: None,
        operate=lambda ann, _: keys.set_state(ann.repo, ann.session, "release", "1.0", is_any=True),
        stop=(keys, "state_areas"),
        take_over=lambda bob: keys.set_state(bob.repo, bob.session, "release", "2.0", is_any=True),
        is_visible=lambda repo, _: getattr(keys.get_state(repo, "release"), "value", "") == "1.0",
        codes=("SESSION_OVER",),
    ),
    "slot: free": LateWriteCase(
        prepare=take_database,
        operate=lambda ann, taken: slots.free(ann.repo, ann.session, taken.slot.id),
        stop=(slots, "free"),
        take_over=take_database,
        is_visible=lambda repo, root: database_holder(repo, root) == [],
        codes=("SESSION_OVER", "SLOT_TAKEN"),
    ),
    "slot: take": LateWriteCase(
        prepare=lambda _: None,
        operate=lambda ann, _: take_database(ann),
        stop=(slots, "take_slot"),
        take_over=take_database,
        is_visible=lambda repo, root: database_holder(repo, root) == ["ann"],
        codes=("SESSION_OVER",),
    ),
    "handoff: send": LateWriteCase(
        prepare=take_chore,
        operate=hand_to_eve,
        stop=(sending, "check_draft"),
        take_over=take_same_task,
        is_visible=lambda repo, _: owner_of(repo) == "",
        codes=("TASK_NOT_YOURS", "SESSION_OVER"),
    ),
    "handoff: accept": LateWriteCase(
        prepare=offer_to_all,
        operate=lambda ann, _: accepting.accept_handoff(ann.repo, ann.session, "T1"),
        stop=(accepting, "accept_handoff"),
        take_over=take_same_task,
        is_visible=lambda repo, _: owner_of(repo) == "ann",
        codes=("SESSION_OVER", "HANDOFF_ACCEPTED"),
    ),
    "once: start": LateWriteCase(
        prepare=lambda _: None,
        operate=run_once,
        stop=(sys.modules[__name__], "start_command"),
        take_over=lambda _: None,
        is_visible=lambda _, root: (root.parent / "ran").exists(),
        can_be_undone=False,
        codes=("SESSION_OVER",),
    ),
    "release": LateWriteCase(
        prepare=lambda ann: ann.take(PATH),
        operate=lambda ann, _: held.release(ann.repo, ann.session, (ann.pattern(PATH),)),
        stop=(held, "release"),
        take_over=lambda bob: bob.take(PATH),
        is_visible=lambda repo, _: not claim_checks.list_claims(repo),
        codes=("SESSION_OVER",),
    ),
    "renew": LateWriteCase(
        prepare=lambda ann: ann.take(PATH),
        operate=lambda ann, _: held.renew(ann.repo, ann.session, (ann.pattern(PATH),)),
        stop=(held, "renew"),
        take_over=lambda bob: bob.take(PATH),
        is_visible=lambda repo, _: [one.agent for one in claim_checks.list_claims(repo)] == ["ann"],
        codes=("SESSION_OVER",),
    ),
}


# ------------------------------------------------------------------------------------------------ the holder


class StoppedHolder:
    """A child that does the operation of a case as ann, and stops before one of its writes."""

    def __init__(self, project: Project, case: LateWriteCase, stop: int) -> None:
        self._project = project
        self._case = case
        self._outcome = project.repository.parent / "outcome"
        self.pid = fork(lambda: self._operate(stop))

    def _operate(self, stop: int) -> None:
        with opened(self._project) as repo:
            ann = Agent(repo, sessions.join(repo, "ann"))
            prepared = self._case.prepare(ann)
            if stop:
                stop_before_transaction(repo.store, stop)
            else:
                stop_before(*self._case.stop)
            code = "done"
            try:
                self._case.operate(ann, prepared)
            except LandlaneError as error:
                code = error.code
            self._outcome.write_text(code, encoding="utf-8")

    def is_over(self) -> bool:
        return self._outcome.exists()

    def finish(self) -> str:
        """Let it continue, and return the code of its error, or `done`."""
        os.kill(self.pid, signal.SIGCONT)
        pid, self.pid = self.pid, 0
        assert wait_for_exit(pid) == 0
        return self._outcome.read_text(encoding="utf-8")

    def __enter__(self) -> StoppedHolder:
        wait_until(lambda: not is_alive(self.pid) or is_stopped(self.pid) or self.is_over())
        assert is_alive(self.pid) or self.is_over()
        return self

    def __exit__(self, *_: object) -> None:
        if self.pid:  # the test has failed
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def stop_before(owner: Any, name: str) -> None:
    """Let the next call of a function stop this process first."""
    function = getattr(owner, name)

    def stopping(*arguments: Any, **options: Any) -> Any:
        setattr(owner, name, function)
        os.kill(os.getpid(), signal.SIGSTOP)
        return function(*arguments, **options)

    setattr(owner, name, stopping)


def stop_before_transaction(store: Any, number: int) -> None:
    """Stop this process before the transaction with this number."""
    change, left = store.change, number

    def stopping(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        return change(*arguments, **options)

    type(store).change = lambda _, *arguments, **options: stopping(*arguments, **options)


@pytest.mark.soak
@pytest.mark.promise(
    "late-writes.none",
    "A holder that was stopped while its lease ended and another took over changes nothing afterwards.",
)
@pytest.mark.parametrize("stop", range(STOPS + 1))
@pytest.mark.parametrize("name", CASES)
def test_a_holder_that_was_stopped_writes_nothing_late(live_project: Project, name: str, stop: int) -> None:
    case, root = CASES[name], live_project.repository
    (root / "landlane.toml").write_text(SETTINGS, encoding="utf-8")
    git(root, "add", "landlane.toml")
    git(root, "commit", "--quiet", "-m", "Settings")
    with StoppedHolder(live_project, case, stop) as holder, opened(live_project) as repo:
        if holder.is_over():  # it has fewer transactions
            assert stop
            assert holder.finish() == "done"
            return
        was_visible = case.is_visible(repo, root)
        was_recorded = (case.is_recorded or case.is_visible)(repo, root)
        let_time_pass(repo.store, DAY_MS)
        case.take_over(Agent(repo, sessions.join(repo, "bob")))
        outcome = holder.finish()
        is_visible = case.is_visible(repo, root)
    if was_recorded and outcome == "done":
        return  # it was stopped after its write
    assert outcome in case.codes
    assert not is_visible or (was_visible and not case.can_be_undone)

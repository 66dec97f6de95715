"""Handoffs with real git and processes: what is taken along, kill -9 at every step, and nothing unheard."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.claims.read import list_claims
from landlane.exec.clone import make_throwaway_clone
from landlane.handoffs.accept import Accepted, accept_handoff
from landlane.handoffs.hand_over import context_for, hand_over, observe
from landlane.handoffs.model import Draft, is_whole
from landlane.handoffs.records import list_handoffs
from landlane.hooks.briefing.compose import brief
from landlane.hooks.messages import due_messages
from landlane.hooks.session_end import leftovers
from landlane.processes.tree import ProcessTree
from landlane.protocol.hook_events import AFTER, SHELL, START, HookEvent
from landlane.rescue.restore import restore
from landlane.sessions.command_history import note_command
from landlane.sessions.sandbox_runs import begin_run
from landlane.sessions.worker_sessions import join_hands
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks.change import fail_task
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task
from tests.support.git import git
from tests.support.killing import killed_after
from tests.support.sites import Background
from tests.support.workspaces import KINDS, Yard, commit_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.tasks.model import Task

pytestmark = pytest.mark.integration

SENDING = ("observed", "sealed", "kept", "written", "sent")
ACCEPTING = ("begun", "claimed", "moved", "accepted")


@pytest.fixture
def yard(repository: Path) -> Iterator[Yard]:
    yard = Yard(repository)
    yield yard
    yard.end()


def begin(yard: Yard, kind: str = "worktree") -> Path:
    """A task in ann's hands: one commit, and something that is in none."""
    yard.task("Parse dates", paths=("src/**",))
    assert isinstance(next_task(yard.repo(), yard.session()), Picked)
    path = Path(yard.open("T1", kind=kind).workspace.path)
    commit_file(path, "src/dates.py", "half\n")
    (path / "src" / "loose.py").write_text("loose\n")
    return path


def send(yard: Yard, on_step: Callable[[str], None] = lambda _: None, to: str = "bob") -> None:
    draft = Draft(task="T1", to=to, next="write the test", context="RFC 3339 has two forms")
    hand_over(yard.site(), yard.session(), draft, on_step)


def accept(yard: Yard, on_step: Callable[[str], None] = lambda _: None, agent: str = "bob") -> Accepted:
    repo = yard.repo(agent)
    outcome = accept_handoff(repo, yard.session(agent), "T1", on_step=on_step)
    assert isinstance(outcome, Accepted)
    return outcome


def task(yard: Yard) -> Task:
    return get_task(yard.repo(), "T1")


def holders(yard: Yard) -> set[str]:
    return {claim.agent for claim in list_claims(yard.repo()) if claim.pattern == "src/**"}


def check_one_owner(yard: Yard) -> str:
    """The task is exactly one's: its owner's with its claims, or the handoff's, which keeps them."""
    now = task(yard)
    waiting = list_handoffs(yard.repo())
    (workspace,) = yard.known()
    if now.state == "active":
        assert waiting == []
        assert holders(yard) == {now.owner}
        assert workspace.agent == now.owner
        return now.owner
    assert (now.state, now.owner, now.session) == ("ready", "", "")
    (handoff,) = waiting
    assert is_whole(handoff)
    assert holders(yard) == {f"handoff-{handoff.id}"}
    assert workspace.session == handoff.holder
    return handoff.id


# ------------------------------------------------------------------------------------ what is taken


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_how_it_stands_is_taken_along_and_what_is_not_committed_can_be_had(yard: Yard, kind: str) -> None:
    path = begin(yard, kind)
    note_command(yard.repo(), yard.session().id, "pytest -q  tests\nTOKEN=abc", 1)
    send(yard)
    (handoff,) = list_handoffs(yard.repo())
    taken = handoff.taken
    assert taken["branch"] == "landlane/T1-1/work"
    assert taken["head"] == git(path, "rev-parse", "HEAD").strip()
    assert taken["changed"] == ["src/dates.py"]
    assert taken["dirty"] == ["src/loose.py"]
    assert [one["pattern"] for one in taken["claims"]] == ["src/**"]
    assert [(one["command"], one["exit"]) for one in taken["commands"]] == [("pytest -q tests TOKEN=…", 1)]
    assert "unknown" not in taken

    accept(yard)
    told = context_for(yard.site("bob"), task(yard))
    for text in ("RFC 3339 has two forms", "write the test", taken["head"][:12], "exit 1: pytest -q"):
        assert text in told
    assert yard.open("T1", agent="bob", kind=kind).workspace.path == str(path)
    assert (path / "src" / "loose.py").read_text() == "loose\n"
    saved = restore(yard.site("bob"), yard.session("bob"), taken["rescue"], "", str(yard.folder))
    assert (Path(saved.path) / "src" / "loose.py").read_text() == "loose\n"


def test_in_a_shared_checkout_only_what_is_claimed_counts_as_left(yard: Yard) -> None:
    yard.task("Parse dates", paths=("src/**",))
    next_task(yard.repo(), yard.session())
    for name in ("src/mine.py", "docs/others.md"):
        (yard.repository / name).parent.mkdir(exist_ok=True)
        (yard.repository / name).write_text("x\n")
    taken = observe(yard.site(), "T1", yard.session())
    assert taken["dirty"] == ["src/mine.py"]
    assert (taken["branch"], taken["head"]) == ("main", git(yard.repository, "rev-parse", "main").strip())
    assert taken["rescue"]


def test_nothing_is_read_where_a_worker_that_may_only_look_decides_what_lies_there(
    yard: Yard, tmp_path: Path
) -> None:
    """Its keeper saves what is in its checkout once it has ended."""
    yard.task("Parse dates", paths=("src/**",))
    repo, site = yard.repo(), yard.site()
    assert isinstance(next_task(repo, yard.session()), Picked)
    worker = join_hands(repo, yard.session(), "explore").session
    tree = ProcessTree(id="t1", root=repo.processes.current(), is_wrapped=False)
    kept = {"program": "worker", "home": site.common_dir, "user": os.geteuid(), "task": "T1"}
    begin_run(repo, yard.session(), tree, scratch=str(tmp_path), worker=worker.id, **kept)
    head = git(yard.repository, "rev-parse", "HEAD").strip()
    checkout = Path(make_throwaway_clone(site, yard.session(), str(tmp_path), head))
    (checkout / "src").mkdir(exist_ok=True)
    (checkout / "src" / "dates.py").write_text("half\n")

    hand_over(site, worker, Draft(task="T1", to="bob", next="write the test"))

    taken = accept(yard).handoff.taken
    assert not {"dirty", "rescue", "path"} & set(taken)


@pytest.mark.promise(
    "handoffs.dead-owners-leave-traces",
    "The next owner of a dead owner's task is first shown its branch, rescue, commands and lessons.",
)
def test_whoever_follows_a_dead_owner_reads_what_it_left(yard: Yard) -> None:
    path = begin(yard)
    head = git(path, "rev-parse", "HEAD").strip()
    note_command(yard.repo(), yard.session().id, "make check", 2)
    fail_task(yard.repo(), yard.session(), "T1", "the grammar is ambiguous")
    yard.leave("ann")
    picked = next_task(yard.repo("bob"), yard.session("bob"))
    assert isinstance(picked, Picked)
    yard.open("T1", agent="bob")  # saves what is in no commit
    told = context_for(yard.site("bob"), picked.task)
    for text in (
        f"landlane/T1-1/work at {head[:12]}, changes src/dates.py",
        str(path),
        "rescue restore R",
        "exit 2: make check",
    ):
        assert text in told
    assert "Attempt 1 of ann left: the grammar is ambiguous" in told
    assert brief(
        yard.site("bob"), yard.session("bob"), HookEvent(client="claude", kind=START, session="c")
    ).count("the grammar is ambiguous")


def test_a_branch_that_moved_after_it_was_sent_is_pointed_out(yard: Yard) -> None:
    path = begin(yard)
    send(yard)
    moved = commit_file(path, "src/late.py", "late\n")
    accept(yard)
    assert f"it is at {moved[:12]} now" in context_for(yard.site("bob"), task(yard))


# ------------------------------------------------------------------------------------ kill -9


@pytest.mark.promise(
    "handoffs.one-owner",
    "kill -9 at any step of sending or accepting a handoff leaves the task with exactly one owner.",
)
@pytest.mark.slow
@pytest.mark.parametrize("step", SENDING)
def test_a_sender_killed_at_any_step_leaves_one_owner(yard: Yard, step: str) -> None:
    begin(yard)
    killed_after(step, lambda die: send(Yard(yard.repository), die))
    standing = check_one_owner(yard)
    assert standing == ("H1" if step == "sent" else "ann")
    if standing == "ann":
        send(yard)
        check_one_owner(yard)
    accept(yard)
    assert check_one_owner(yard) == "bob"


@pytest.mark.slow
@pytest.mark.parametrize("step", ACCEPTING)
def test_a_receiver_killed_at_any_step_leaves_one_owner(yard: Yard, step: str) -> None:
    begin(yard)
    send(yard)
    killed_after(step, lambda die: accept(Yard(yard.repository), die))
    assert check_one_owner(yard) == ("bob" if step == "accepted" else "H1")
    accept(yard)  # its successor; again, if the killed one had it already
    assert check_one_owner(yard) == "bob"


def test_of_many_who_want_it_at_once_one_gets_it(yard: Yard) -> None:
    begin(yard)
    send(yard, to="anybody")
    names = [f"agent{number}" for number in range(4)]
    for name in names:
        yard.session(name)

    def take(name: str) -> Background[object]:
        return Background(lambda: next_task(yard.repo(name), yard.session(name)))

    outcomes = [one.result() for one in [take(name) for name in names]]
    assert len([one for one in outcomes if isinstance(one, Picked)]) == 1
    assert check_one_owner(yard) in names


@pytest.mark.parametrize("is_accepted", [False, True])
def test_rebuilt_from_the_journal_it_stands_as_it_stood(yard: Yard, is_accepted: bool) -> None:
    begin(yard)
    send(yard)
    if is_accepted:
        accept(yard)
    before = check_one_owner(yard)
    repo = yard.repo()
    repo.settle()
    yard.end()
    state = yard.repository / ".git" / "landlane"
    rebuild_store(str(state), (state / "repository").read_text().strip(), ignore_case=False)
    again = Yard(yard.repository)
    assert check_one_owner(again) == before
    accept(again)
    assert check_one_owner(again) == "bob"
    again.end()


# ------------------------------------------------------------------------------------ heard of


@pytest.mark.promise(
    "handoffs.successor-hears",
    "A handoff to an agent that goes idle and dies is delivered to its successor, once.",
)
@pytest.mark.slow
def test_sent_while_its_receiver_goes_idle_and_dies_the_successor_hears_of_it_once(yard: Yard) -> None:
    begin(yard)
    yard.session("bob")
    for _ in range(3):
        if task(yard).state == "ready":
            accept(yard, agent="bob")
            _back_to_ann(yard)
        ready, go = os.pipe()
        child = os.fork()
        if not child:
            _go_idle_and_die(yard.repository, ready)
        os.write(go, b"!")  # both at once: its last look, and the sending
        send(yard)
        os.waitpid(child, 0)
        for end in (ready, go):
            os.close(end)
        successor = yard.session("bob")
        site = yard.site("bob")
        start = brief(site, successor, HookEvent(client="claude", kind=START, session="next"))
        assert start.count("ann hands T1 to you") == 1
        assert [text for text in due_messages(site, successor) if "hands T1" in text] == []
        assert [one.task for one in list_handoffs(site)] == ["T1"]
    picked = next_task(yard.repo("bob"), yard.session("bob"))
    assert isinstance(picked, Picked)
    assert picked.task.id == "T1"


def _back_to_ann(yard: Yard) -> None:
    draft = Draft(task="T1", to="ann", next="go on")
    hand_over(yard.site("bob"), yard.session("bob"), draft)
    accept(yard, agent="ann")


def _go_idle_and_die(repository: Path, ready: int) -> None:
    """What a client does at the end of its turn; it is killed before it could read any of it."""
    try:
        yard = Yard(repository)
        site, bob = yard.site("bob"), yard.session("bob")
        os.read(ready, 1)
        due_messages(site, bob)
        leftovers(site, bob)
        os.kill(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(1)


def test_a_busy_receiver_hears_of_it_between_two_calls_and_at_its_end(yard: Yard) -> None:
    begin(yard)
    bob = yard.session("bob")
    send(yard)
    assert "handed to you by ann: T1 (H1)" in leftovers(yard.site("bob"), bob)
    (told,) = due_messages(yard.site("bob"), bob)
    assert "landlane accept T1" in told
    assert due_messages(yard.site("bob"), bob) == []
    assert due_messages(yard.site("eve"), yard.session("eve")) == []


def test_a_shell_call_leaves_its_command_and_exit_code(yard: Yard) -> None:
    from landlane.clients.exit_code import exit_code_of

    event = HookEvent(client="codex", kind=AFTER, session="c", tool=SHELL, command="make")
    assert exit_code_of(event, {"tool_response": "Exit code: 2\nWall time: 1 s"}) == 2
    assert exit_code_of(event, {"tool_response": {"metadata": {"exit_code": 0}}}) == 0
    assert exit_code_of(event, {"tool_response": "my exit code: 7"}) is None
    claude = HookEvent(client="claude", kind=AFTER, session="c", tool=SHELL, source="failed")
    assert exit_code_of(claude, {"error": "Exit code 127\nnot found"}) == 127
    assert exit_code_of(claude, {"error": "interrupted"}) == 1

"""Handoffs with real git and processes: collected state, kill -9 at every step, and notified receivers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.claims.take import list_claims
from landlane.exec.clone import make_throwaway_clone
from landlane.handoffs.accept import Accepted, accept_handoff
from landlane.handoffs.collect_state import collect_state
from landlane.handoffs.context import context_for
from landlane.handoffs.model import Draft, is_unchanged
from landlane.handoffs.records import list_handoffs
from landlane.handoffs.send import collect_and_send
from landlane.hooks.briefing.compose import brief
from landlane.hooks.messages import due_messages
from landlane.hooks.session_end import leftovers
from landlane.processes.tree import ProcessTree
from landlane.protocol.hook_events import HookEvent, HookEventKind, ToolAction
from landlane.rescue.restore import restore
from landlane.sessions.sandbox_runs import begin_run
from landlane.sessions.tool_calls import note_command
from landlane.sessions.worker_sessions import join_worker_session
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks.change import fail_task
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task
from tests.support.git import git
from tests.support.processes import kill_after
from tests.support.project import Background
from tests.support.workspaces import KINDS, WorkspaceTestbed, commit_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.tasks.model import Task

pytestmark = pytest.mark.integration

SENDING = ("observed", "sealed", "kept", "written", "sent")
ACCEPTING = ("begun", "claimed", "moved", "accepted")


@pytest.fixture
def testbed(repository: Path) -> Iterator[WorkspaceTestbed]:
    testbed = WorkspaceTestbed(repository)
    yield testbed
    testbed.end()


def begin(testbed: WorkspaceTestbed, kind: str = "worktree") -> Path:
    """Give ann a task with one commit and one uncommitted file."""
    testbed.task("Parse dates", paths=("src/**",))
    assert isinstance(next_task(testbed.repo(), testbed.session()), Picked)
    path = Path(testbed.open("T1", kind=kind).workspace.path)
    commit_file(path, "src/dates.py", "half\n")
    (path / "src" / "loose.py").write_text("loose\n")
    return path


def send(testbed: WorkspaceTestbed, on_step: Callable[[str], None] = lambda _: None, to: str = "bob") -> None:
    draft = Draft(task="T1", to=to, next="write the test", context="RFC 3339 has two forms")
    collect_and_send(testbed.prepared_repo(), testbed.session(), draft, on_step)


def accept(
    testbed: WorkspaceTestbed, on_step: Callable[[str], None] = lambda _: None, agent: str = "bob"
) -> Accepted:
    repo = testbed.repo(agent)
    outcome = accept_handoff(repo, testbed.session(agent), "T1", on_step=on_step)
    assert isinstance(outcome, Accepted)
    return outcome


def task(testbed: WorkspaceTestbed) -> Task:
    return get_task(testbed.repo(), "T1")


def holders(testbed: WorkspaceTestbed) -> set[str]:
    return {claim.agent for claim in list_claims(testbed.repo()) if claim.pattern == "src/**"}


def check_one_owner(testbed: WorkspaceTestbed) -> str:
    """Check that the task and its claims belong to one owner or to one handoff; return which."""
    now = task(testbed)
    waiting = list_handoffs(testbed.repo())
    (workspace,) = testbed.workspaces()
    if now.state == "active":
        assert waiting == []
        assert holders(testbed) == {now.owner}
        assert workspace.agent == now.owner
        return now.owner
    assert (now.state, now.owner, now.session) == ("ready", "", "")
    (handoff,) = waiting
    assert is_unchanged(handoff)
    assert holders(testbed) == {handoff.id}
    assert workspace.session == handoff.holder
    return handoff.id


# ------------------------------------------------------------------------------------ collected state


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_state_is_collected_and_uncommitted_work_can_be_restored(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    path = begin(testbed, kind)
    note_command(testbed.repo(), testbed.session().id, "pytest -q  tests\nTOKEN=abc", 1)
    send(testbed)
    (handoff,) = list_handoffs(testbed.repo())
    taken = handoff.taken
    assert taken["branch"] == "landlane/T1-1/work"
    assert taken["head"] == git(path, "rev-parse", "HEAD").strip()
    assert taken["changed"] == ["src/dates.py"]
    assert taken["dirty"] == ["src/loose.py"]
    assert [one["pattern"] for one in taken["claims"]] == ["src/**"]
    assert [(one["command"], one["exit"]) for one in taken["commands"]] == [("pytest -q tests TOKEN=…", 1)]
    assert "unknown" not in taken

    accept(testbed)
    text_shown = context_for(testbed.prepared_repo("bob"), task(testbed))
    for text in ("RFC 3339 has two forms", "write the test", taken["head"][:12], "exit 1: pytest -q"):
        assert text in text_shown
    assert testbed.open("T1", agent="bob", kind=kind).workspace.path == str(path)
    assert (path / "src" / "loose.py").read_text() == "loose\n"
    saved = restore(
        testbed.prepared_repo("bob"), testbed.session("bob"), taken["rescue"], "", str(testbed.folder)
    )
    assert (Path(saved.path) / "src" / "loose.py").read_text() == "loose\n"


def test_in_a_shared_checkout_only_claimed_paths_are_collected(testbed: WorkspaceTestbed) -> None:
    testbed.task("Parse dates", paths=("src/**",))
    next_task(testbed.repo(), testbed.session())
    for name in ("src/mine.py", "docs/others.md"):
        (testbed.repository / name).parent.mkdir(exist_ok=True)
        (testbed.repository / name).write_text("x\n")
    taken = collect_state(testbed.prepared_repo(), "T1", testbed.session())
    assert taken["dirty"] == ["src/mine.py"]
    assert (taken["branch"], taken["head"]) == ("main", git(testbed.repository, "rev-parse", "main").strip())
    assert taken["rescue"]


def test_the_checkout_of_a_read_only_worker_is_not_read(testbed: WorkspaceTestbed, tmp_path: Path) -> None:
    """Its supervisor saves what is in its checkout once it has ended."""
    testbed.task("Parse dates", paths=("src/**",))
    repo, prepared = testbed.repo(), testbed.prepared_repo()
    assert isinstance(next_task(repo, testbed.session()), Picked)
    worker = join_worker_session(repo, testbed.session(), "explore").session
    tree = ProcessTree(id="t1", root=repo.processes.current(), is_wrapped=False)
    kept = {"program": "worker", "home": prepared.common_dir, "user": os.geteuid(), "task": "T1"}
    begin_run(repo, testbed.session(), tree, scratch=str(tmp_path), worker=worker.id, **kept)
    head = git(testbed.repository, "rev-parse", "HEAD").strip()
    checkout = Path(make_throwaway_clone(prepared, testbed.session(), str(tmp_path), head))
    (checkout / "src").mkdir(exist_ok=True)
    (checkout / "src" / "dates.py").write_text("half\n")

    collect_and_send(prepared, worker, Draft(task="T1", to="bob", next="write the test"))

    taken = accept(testbed).handoff.taken
    assert not {"dirty", "rescue", "path"} & set(taken)


@pytest.mark.promise(
    "handoffs.dead-owners-leave-traces",
    "The next owner of a dead owner's task is first shown its branch, rescue, commands and lessons.",
)
def test_the_successor_of_a_dead_owner_is_shown_its_traces(testbed: WorkspaceTestbed) -> None:
    path = begin(testbed)
    head = git(path, "rev-parse", "HEAD").strip()
    note_command(testbed.repo(), testbed.session().id, "make check", 2)
    fail_task(testbed.repo(), testbed.session(), "T1", "the grammar is ambiguous")
    testbed.leave("ann")
    picked = next_task(testbed.repo("bob"), testbed.session("bob"))
    assert isinstance(picked, Picked)
    testbed.open("T1", agent="bob")  # saves uncommitted work
    text_shown = context_for(testbed.prepared_repo("bob"), picked.task)
    for text in (
        f"landlane/T1-1/work at {head[:12]}, changes src/dates.py",
        str(path),
        "rescue restore R",
        "exit 2: make check",
    ):
        assert text in text_shown
    assert "Attempt 1 of ann left: the grammar is ambiguous" in text_shown
    assert brief(
        testbed.prepared_repo("bob"),
        testbed.session("bob"),
        HookEvent(client="claude", kind=HookEventKind.START, session="c"),
    ).count("the grammar is ambiguous")


def test_a_branch_that_moved_after_it_was_sent_is_pointed_out(testbed: WorkspaceTestbed) -> None:
    path = begin(testbed)
    send(testbed)
    moved = commit_file(path, "src/late.py", "late\n")
    accept(testbed)
    assert f"it is at {moved[:12]} now" in context_for(testbed.prepared_repo("bob"), task(testbed))


# ------------------------------------------------------------------------------------ kill -9


@pytest.mark.promise(
    "handoffs.one-owner",
    "kill -9 at any step of sending or accepting a handoff leaves the task with exactly one owner.",
)
@pytest.mark.slow
@pytest.mark.parametrize("step", SENDING)
def test_a_sender_killed_at_any_step_leaves_one_owner(testbed: WorkspaceTestbed, step: str) -> None:
    begin(testbed)
    kill_after(step, lambda die: send(WorkspaceTestbed(testbed.repository), die))
    owner = check_one_owner(testbed)
    assert owner == ("H1" if step == "sent" else "ann")
    if owner == "ann":
        send(testbed)
        check_one_owner(testbed)
    accept(testbed)
    assert check_one_owner(testbed) == "bob"


@pytest.mark.slow
@pytest.mark.parametrize("step", ACCEPTING)
def test_a_receiver_killed_at_any_step_leaves_one_owner(testbed: WorkspaceTestbed, step: str) -> None:
    begin(testbed)
    send(testbed)
    kill_after(step, lambda die: accept(WorkspaceTestbed(testbed.repository), die))
    assert check_one_owner(testbed) == ("bob" if step == "accepted" else "H1")
    accept(testbed)  # its successor; again, if the killed one had it already
    assert check_one_owner(testbed) == "bob"


def test_one_of_many_concurrent_sessions_gets_the_task(testbed: WorkspaceTestbed) -> None:
    begin(testbed)
    send(testbed, to="anybody")
    names = [f"agent{number}" for number in range(4)]
    for name in names:
        testbed.session(name)

    def take(name: str) -> Background[object]:
        return Background(lambda: next_task(testbed.repo(name), testbed.session(name)))

    outcomes = [one.result() for one in [take(name) for name in names]]
    assert len([one for one in outcomes if isinstance(one, Picked)]) == 1
    assert check_one_owner(testbed) in names


@pytest.mark.parametrize("is_accepted", [False, True])
def test_a_handoff_is_rebuilt_from_the_journal(testbed: WorkspaceTestbed, is_accepted: bool) -> None:
    begin(testbed)
    send(testbed)
    if is_accepted:
        accept(testbed)
    before = check_one_owner(testbed)
    repo = testbed.repo()
    repo.settle()
    testbed.end()
    state = testbed.repository / ".git" / "landlane"
    rebuild_store(str(state), (state / "repository").read_text().strip(), ignore_case=False)
    again = WorkspaceTestbed(testbed.repository)
    assert check_one_owner(again) == before
    accept(again)
    assert check_one_owner(again) == "bob"
    again.end()


# ------------------------------------------------------------------------------------ notifications


@pytest.mark.promise(
    "handoffs.successor-hears",
    "A handoff to an agent that goes idle and dies is delivered to its successor, once.",
)
@pytest.mark.slow
def test_the_successor_of_a_receiver_killed_while_idle_is_notified_once(
    testbed: WorkspaceTestbed,
) -> None:
    begin(testbed)
    testbed.session("bob")
    for _ in range(3):
        if task(testbed).state == "ready":
            accept(testbed, agent="bob")
            _back_to_ann(testbed)
        ready, go = os.pipe()
        child = os.fork()
        if not child:
            _go_idle_and_die(testbed.repository, ready)
        os.write(go, b"!")  # its last look and the sending happen at the same time
        send(testbed)
        os.waitpid(child, 0)
        for end in (ready, go):
            os.close(end)
        successor = testbed.session("bob")
        repo = testbed.prepared_repo("bob")
        start = brief(repo, successor, HookEvent(client="claude", kind=HookEventKind.START, session="next"))
        assert start.count("ann hands T1 to you") == 1
        assert [text for text in due_messages(repo, successor) if "hands T1" in text] == []
        assert [one.task for one in list_handoffs(repo)] == ["T1"]
    picked = next_task(testbed.repo("bob"), testbed.session("bob"))
    assert isinstance(picked, Picked)
    assert picked.task.id == "T1"


def _back_to_ann(testbed: WorkspaceTestbed) -> None:
    draft = Draft(task="T1", to="ann", next="go on")
    collect_and_send(testbed.prepared_repo("bob"), testbed.session("bob"), draft)
    accept(testbed, agent="ann")


def _go_idle_and_die(repository: Path, ready: int) -> None:
    """Do what a client does at the end of its turn, and be killed before it can read the result."""
    try:
        testbed = WorkspaceTestbed(repository)
        repo, bob = testbed.prepared_repo("bob"), testbed.session("bob")
        os.read(ready, 1)
        due_messages(repo, bob)
        leftovers(repo, bob)
        os.kill(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(1)


def test_a_busy_receiver_is_notified_between_two_calls_and_at_its_end(testbed: WorkspaceTestbed) -> None:
    begin(testbed)
    bob = testbed.session("bob")
    send(testbed)
    assert "handed to you by ann: T1 (H1)" in leftovers(testbed.prepared_repo("bob"), bob)
    (text_shown,) = due_messages(testbed.prepared_repo("bob"), bob)
    assert "landlane handoff accept T1" in text_shown
    assert due_messages(testbed.prepared_repo("bob"), bob) == []
    assert due_messages(testbed.prepared_repo("eve"), testbed.session("eve")) == []


def test_the_exit_code_of_a_shell_call_is_read(testbed: WorkspaceTestbed) -> None:
    from landlane.clients.hook_format import exit_code_of

    event = HookEvent(
        client="codex", kind=HookEventKind.AFTER, session="c", tool=ToolAction.SHELL, command="make"
    )
    assert exit_code_of(event, {"tool_response": "Exit code: 2\nWall time: 1 s"}) == 2
    assert exit_code_of(event, {"tool_response": {"metadata": {"exit_code": 0}}}) == 0
    assert exit_code_of(event, {"tool_response": "my exit code: 7"}) is None
    claude = HookEvent(
        client="claude", kind=HookEventKind.AFTER, session="c", tool=ToolAction.SHELL, source="failed"
    )
    assert exit_code_of(claude, {"error": "Exit code 127\nnot found"}) == 127
    assert exit_code_of(claude, {"error": "interrupted"}) == 1

"""Closing workspaces of both kinds: all of it is saved, none of it is left, nobody else is hit."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, Malformed, NotAllowed, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git.remove_checkout import removal_path
from landlane.landing.after_landing import _close  # pyright: ignore[reportPrivateUsage]
from landlane.rescue import restore as restore_module
from landlane.rescue import restore_checkout
from landlane.rescue.refs import list_rescues
from landlane.rescue.restore import restore
from tests.support.git import git
from tests.support.processes import fork, wait_for_exit
from tests.support.workspaces import KINDS, ProcessInFolder, WorkspaceTestbed, commit_file, has_all_objects

if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)


def bring_back(testbed: WorkspaceTestbed, rescue: str) -> Path:
    """Restore a rescue into a folder of its own."""
    folder = str(testbed.repository.with_name("again"))
    return Path(restore(testbed.prepared_repo(), testbed.session(), rescue, "", folder).path)


@kinds
def test_a_clean_workspace_leaves_nothing(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace

    closed = testbed.close(workspace)

    assert (closed.rescue, closed.workspace.state) == ("", "closed")
    assert testbed.leftovers() == []


@pytest.mark.slow
@kinds
def test_dirty_and_detached_work_comes_back(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    path = Path(workspace.path)
    git(path, "checkout", "--quiet", "--detach")
    lone = commit_file(path, "lone.txt", "on no branch\n")
    (path / "loose.txt").write_text("never added\n")
    (path / "README.md").write_text("changed\n")
    git(path, "add", "README.md")
    (path / "README.md").write_text("changed again\n")

    closed = testbed.close(workspace)
    testbed.gc()

    assert not path.exists()
    again = bring_back(testbed, closed.rescue)
    assert git(again, "rev-parse", "HEAD").strip() == lone
    assert (again / "loose.txt").read_text() == "never added\n"
    assert (again / "README.md").read_text() == "changed again\n"
    assert git(again, "show", ":README.md") == "changed\n"


@kinds
def test_commits_on_the_branch_stay_on_the_branch(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    head = commit_file(workspace.path, "work.txt", "work\n")

    closed = testbed.close(workspace)
    testbed.gc()

    assert closed.notes == (f"kept {workspace.branch}: it is not merged",)
    assert git(testbed.repository, "rev-parse", workspace.branch).strip() == head
    assert git(testbed.repository, "show", f"{head}:work.txt") == "work\n"
    assert testbed.leftovers() == [f"refs/heads/{workspace.branch}"]


@pytest.mark.promise(
    "workspaces.merged-by-content",
    "A branch that was squashed or rebased onto the target is recognised as merged.",
)
@pytest.mark.slow
@kinds
@pytest.mark.parametrize("way", ["squash", "rebase", "merge", "squash, then changed again"])
def test_a_merged_branch_is_recognised_and_deleted(testbed: WorkspaceTestbed, kind: str, way: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    commit_file(workspace.path, "one.txt", "one\n")
    commit_file(workspace.path, "two.txt", "two\n")
    home = testbed.repository
    branch = workspace.branch
    if kind == "clone":
        git(home, "fetch", "--quiet", workspace.path, f"{branch}:{branch}")
    commit_file(home, "meanwhile.txt", "landed before\n")
    if way == "merge":
        git(home, "merge", "--quiet", "--no-edit", branch)
    elif way == "rebase":
        git(home, "cherry-pick", f"{workspace.base}..{branch}")
    else:
        git(home, "merge", "--quiet", "--squash", branch)
        git(home, "commit", "--quiet", "-m", "Squashed")
    if "again" in way:
        commit_file(home, "one.txt", "one, and more\n")

    closed = testbed.close(workspace)

    assert closed.is_merged
    assert closed.rescue == ""
    assert testbed.leftovers() == []


def test_a_branch_checked_out_elsewhere_is_not_deleted(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open(kind="clone").workspace
    git(testbed.repository, "branch", workspace.branch, workspace.base)
    elsewhere = testbed.repository.with_name("elsewhere")
    git(testbed.repository, "worktree", "add", "--quiet", str(elsewhere), workspace.branch)

    closed = testbed.close(workspace)

    assert closed.notes == (f"kept {workspace.branch}: another checkout is on it",)
    assert git(elsewhere, "status", "--porcelain") == ""


@kinds
def test_links_out_of_a_workspace_are_removed_and_their_targets_stay(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    target = testbed.repository.with_name("dependencies")
    for number in range(20):
        (target / f"package-{number}").mkdir(parents=True)
        (target / f"package-{number}" / "index.js").write_text("code\n")
    workspace = testbed.open(kind=kind).workspace
    path = Path(workspace.path)
    (path / ".gitignore").write_text("node_modules\ndeep/\n")
    (path / "node_modules").symlink_to(target)
    (path / "deep" / "down").mkdir(parents=True)
    (path / "deep" / "down" / "link").symlink_to(target / "package-3")
    (path / "deep" / "file").symlink_to(target / "package-4" / "index.js")
    before = sorted(str(one) for one in target.rglob("*"))

    testbed.close(workspace)

    assert not path.exists()
    assert sorted(str(one) for one in target.rglob("*")) == before
    assert (target / "package-4" / "index.js").read_text() == "code\n"


@pytest.mark.slow
@kinds
def test_a_live_process_blocks_a_close_unless_forced(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    (Path(workspace.path) / "loose.txt").write_text("loose\n")
    with ProcessInFolder(workspace.path) as squatter:
        with pytest.raises(Held) as raised:
            testbed.close(workspace)
        assert (raised.value.code, raised.value.exit_code) == ("WORKSPACE_IN_USE", 3)
        assert raised.value.facts["processes"] == [squatter.process.pid]
        assert Path(workspace.path, "loose.txt").exists()

        closed = testbed.close(workspace, force=True)

    assert closed.rescue
    assert (bring_back(testbed, closed.rescue) / "loose.txt").read_text() == "loose\n"


@pytest.mark.slow
@kinds
def test_files_that_a_live_process_writes_during_a_close_are_saved(
    testbed: WorkspaceTestbed, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = testbed.open(kind=kind).workspace
    (Path(workspace.path) / "early.txt").write_text("early\n")
    answer: list[str] = []

    def after(step: str) -> None:
        answer.append(step)
        if step == "rescued":
            (Path(workspace.path) / "late.txt").write_text("late\n")

    with ProcessInFolder(workspace.path):
        closed = testbed.close(workspace, force=True, on_step=after)

    (note,) = [note for note in closed.notes if "meanwhile" in note]
    again = bring_back(testbed, note.split()[-1])
    assert (again / "late.txt").read_text() == "late\n"


@kinds
def test_the_workspace_of_a_live_session_is_closed_only_with_force(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    workspace = testbed.open(kind=kind, agent="bob").workspace

    with pytest.raises(Held) as raised:
        testbed.close(workspace)
    assert (raised.value.code, raised.value.facts["holder"]) == ("WORKSPACE_HELD", "bob")

    assert testbed.close(workspace, force=True).workspace.state == "closed"


@pytest.mark.slow
@kinds
def test_read_only_caches_do_not_stop_it(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    cache = Path(workspace.path) / "cache" / "deep"
    cache.mkdir(parents=True)
    (Path(workspace.path) / ".git/info").mkdir(exist_ok=True) if kind == "clone" else None
    (cache / "module.bin").write_bytes(b"x")
    (cache / "link").symlink_to("module.bin")
    for one in (cache / "module.bin", cache, cache.parent):
        one.chmod(stat.S_IREAD | (stat.S_IEXEC if one.is_dir() else 0))

    testbed.close(workspace)

    assert not Path(workspace.path).exists()


def test_unreadable_files_are_not_deleted(testbed: WorkspaceTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = testbed.open().workspace
    secret = Path(workspace.path, "secret.txt")
    secret.write_text("readable by nobody\n")

    def refuse(*_: object, **__: object) -> str:
        raise RepositoryError("secret.txt cannot be read", code="UNREADABLE", hint="mend its permissions")

    monkeypatch.setattr("landlane.rescue.save.save_checkout", refuse)
    with pytest.raises(RepositoryError, match="cannot be read"):
        testbed.close(workspace)
    monkeypatch.undo()

    assert secret.exists()
    (kept,) = testbed.workspaces()
    assert (kept.state, kept.why) == ("open", "secret.txt cannot be read")
    assert testbed.close(kept).rescue


@kinds
def test_of_two_concurrent_closes_one_is_refused(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    (Path(workspace.path) / "loose.txt").write_text("loose\n")

    def second(step: str) -> None:
        if step == "closing":
            with pytest.raises(NotAllowed):
                testbed.close(workspace)

    assert testbed.close(workspace, on_step=second).rescue


@kinds
def test_a_foreign_folder_with_the_removal_name_is_not_touched(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    foreign = Path(f"{workspace.path}.closing")
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine\n")

    testbed.close(workspace)

    assert (foreign / "mine.txt").exists()
    assert not os.path.lexists(removal_path(workspace.path, workspace.id))


def test_a_worktree_whose_folder_is_gone_keeps_its_staged_and_detached_work(
    testbed: WorkspaceTestbed,
) -> None:
    workspace = testbed.open().workspace
    git(workspace.path, "checkout", "--quiet", "--detach")
    lone = commit_file(workspace.path, "lone.txt", "on no branch\n")
    Path(workspace.path, "staged.txt").write_text("staged\n")
    git(workspace.path, "add", "staged.txt")
    shutil.rmtree(workspace.path)

    closed = testbed.close(workspace)
    testbed.gc()

    assert not [note for note in closed.notes if "meanwhile" in note]
    again = bring_back(testbed, closed.rescue)
    assert git(again, "rev-parse", "HEAD").strip() == lone
    assert git(again, "show", ":staged.txt") == "staged\n"


def test_a_clean_worktree_whose_folder_is_gone_is_just_closed(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    shutil.rmtree(workspace.path)

    assert testbed.close(workspace).rescue == ""
    assert testbed.leftovers() == []


@pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="mounting needs privileges",
)
def test_something_mounted_inside_is_not_emptied(testbed: WorkspaceTestbed, tmp_path: Path) -> None:
    workspace = testbed.open().workspace
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file.txt").write_text("precious\n")
    script = f"""
mkdir '{workspace.path}/mounted' && mount --bind '{precious}' '{workspace.path}/mounted' || exit 77
exec '{Path(sys.executable).with_name("landlane")}' workspace close {workspace.id} --as ann --force --json
"""
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        cwd=testbed.repository,
        capture_output=True,
        text=True,
    )
    if done.returncode == 77:
        pytest.skip("mounting needs privileges")

    assert '"MOUNTED_INSIDE"' in done.stdout, done.stdout + done.stderr
    assert (precious / "file.txt").exists()
    assert Path(workspace.path, "README.md").exists()


@pytest.mark.promise("workspaces.gc-breaks-none", "No git prune or gc in any checkout breaks a workspace.")
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_gc_and_prune_anywhere_break_no_workspace(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()
    first = testbed.open(task, kind=kind).workspace
    commit_file(first.path, "first.txt", "first\n")
    testbed.close(first)  # its branch stays, and the next workspace begins on it
    doomed = commit_file(testbed.repository, "doomed.txt", "soon rewound\n")
    reused = testbed.open(task, kind=kind).workspace
    fresh = testbed.open(kind=kind, agent="bob").workspace
    assert fresh.base == doomed
    late = commit_file(reused.path, "late.txt", "late\n")
    staged = Path(fresh.path, "staged.txt")
    staged.write_text("staged\n")
    git(fresh.path, "add", "staged.txt")

    git(testbed.repository, "reset", "--quiet", "--hard", "HEAD~1")
    if kind == "clone":
        git(testbed.repository, "branch", "--quiet", "-D", first.branch)
    testbed.gc()
    for path in (reused.path, fresh.path):
        git(path, "gc", "--quiet", "--prune=now")
        git(path, "prune", "--expire=now")
        git(path, "worktree", "prune", "--expire=now")
    testbed.gc()

    for one in (reused, fresh):
        assert has_all_objects(one.path)
        assert git(one.path, "log", "--oneline", "--all")
    assert git(reused.path, "show", "HEAD:first.txt") == "first\n"
    assert git(fresh.path, "show", ":staged.txt") == "staged\n"
    assert testbed.close(reused).workspace.state == "closed"
    assert git(testbed.repository, "rev-parse", first.branch).strip() == late


def test_a_worktree_whose_folder_is_temporarily_missing_is_not_forgotten(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    os.rename(workspace.path, f"{workspace.path}.away")
    testbed.gc()
    os.rename(f"{workspace.path}.away", workspace.path)

    assert git(workspace.path, "status", "--porcelain") == ""


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("step", ["saved", "renamed"])
def test_files_written_into_a_clean_workspace_during_its_close_are_saved(
    testbed: WorkspaceTestbed, kind: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = testbed.open(kind=kind).workspace
    was_renamed = os.rename

    def write(folder: str) -> None:
        Path(folder, "late.txt").write_text("late\n")

    def rename(source: str, target: str) -> None:
        was_renamed(source, target)
        if step == "renamed" and source == workspace.path:
            write(target)

    monkeypatch.setattr("landlane.git.remove_checkout.os.rename", rename)
    closed = testbed.close(
        workspace, on_step=lambda done: write(workspace.path) if done == step == "saved" else None
    )

    assert closed.rescue
    assert closed.workspace.rescue == closed.rescue
    assert [note for note in closed.notes if note.endswith(f"meanwhile is saved as {closed.rescue}")]
    assert (bring_back(testbed, closed.rescue) / "late.txt").read_text() == "late\n"


def test_a_commit_in_a_clone_during_its_close_is_saved(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open(kind="clone").workspace
    late: list[str] = []

    def after(step: str) -> None:
        if step == "saved":
            late.append(commit_file(workspace.path, "late.txt", "late\n"))

    closed = testbed.close(workspace, on_step=after)
    testbed.gc()

    assert git(bring_back(testbed, closed.rescue), "rev-parse", "HEAD").strip() == late[0]


@pytest.mark.slow
@kinds
def test_a_file_with_an_old_time_moved_in_during_a_close_is_saved(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    workspace = testbed.open(kind=kind).workspace
    Path(workspace.path, "early.txt").write_text("early\n")

    def after(step: str) -> None:
        if step == "rescued":
            late = Path(workspace.path, "late.txt")
            late.write_text("late\n")
            os.utime(late, (1, 1))

    closed = testbed.close(workspace, on_step=after)

    (note,) = [note for note in closed.notes if "meanwhile" in note]
    assert (bring_back(testbed, note.split()[-1]) / "late.txt").read_text() == "late\n"


@kinds
def test_nothing_is_saved_twice_if_nothing_changed_during_a_close(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    workspace = testbed.open(kind=kind).workspace
    Path(workspace.path, "early.txt").write_text("early\n")

    closed = testbed.close(workspace)

    assert [one.id for one in list_rescues(testbed.prepared_repo().common_dir)] == [closed.rescue]
    assert not [note for note in closed.notes if "meanwhile" in note]


@pytest.mark.slow
@kinds
def test_a_failed_restore_leaves_nothing_behind(
    testbed: WorkspaceTestbed, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = testbed.open(kind=kind).workspace
    Path(workspace.path, "loose.txt").write_text("loose\n")
    closed = testbed.close(workspace)

    def fail(_: str) -> None:
        raise RepositoryError("the disk is full", code="GIT_FAILED", hint="make room")

    monkeypatch.setattr("landlane.rescue.restore.checkouts.write_files", fail)
    with pytest.raises(RepositoryError, match="the disk is full"):
        bring_back(testbed, closed.rescue)
    monkeypatch.undo()

    assert (bring_back(testbed, closed.rescue) / "loose.txt").read_text() == "loose\n"


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("step", ["entered", "written"])
def test_leftovers_of_a_killed_restore_are_replaced(testbed: WorkspaceTestbed, kind: str, step: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    Path(workspace.path, "loose.txt").write_text("loose\n")
    closed = testbed.close(workspace)
    half = leave_half_restored(testbed, closed.rescue, with_files=step == "written")

    again = bring_back(testbed, closed.rescue)

    assert again == half
    assert (again / "loose.txt").read_text() == "loose\n"
    with pytest.raises(Malformed) as raised:  # now there is work in it
        bring_back(testbed, closed.rescue)
    assert raised.value.code == "PATH_TAKEN"
    assert (again / "loose.txt").exists()


def leave_half_restored(testbed: WorkspaceTestbed, rescue_id: str, *, with_files: bool) -> Path:
    """What a process that was killed before the saved work was back leaves."""
    (rescue,) = [one for one in list_rescues(testbed.prepared_repo().common_dir) if one.id == rescue_id]
    path = testbed.repository.with_name("again") / f"rescue-{rescue_id}"
    path.mkdir(parents=True)
    home = testbed.prepared_repo().home
    if rescue.kind == "clone":
        checkouts.add_detached_clone(home, str(path), rescue.head, rescue.ref)
    else:
        checkouts.add_detached_worktree(home, str(path), rescue.head)
    if with_files:
        checkouts.write_files(str(path))
    return path


SLOW_CLOSER = """
import sys
from landlane.app.open import open_repository
from landlane.workspaces.close import close_workspace
from landlane.workspaces.records import list_workspaces

def wait_half_way(step):
    if step == "saved":
        print("half way", flush=True)
        sys.stdin.readline()

repo = open_repository(sys.argv[1])
(workspace,) = list_workspaces(repo)
close_workspace(repo.require_git(print), None, workspace, force=True, on_step=wait_half_way)
"""


@kinds
def test_cleaning_up_after_a_landing_waits_for_a_close_by_another_process(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    """Two settle at once: the second does not go away while the first is half way."""
    opened = testbed.open(kind=kind).workspace
    repo = testbed.prepared_repo()
    answer: list[str] = []
    command = [sys.executable, "-c", SLOW_CLOSER, str(testbed.repository)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.readline() == "half way\n"
        (seen,) = testbed.workspaces()
        second = threading.Thread(target=lambda: answer.append(_close(repo, seen, time.monotonic() + 20)))
        second.start()
        second.join(0.3)
        assert second.is_alive()
        first.stdin.write("\n")
        first.stdin.flush()
        second.join(20)

    assert answer == [f"{opened.id} is closed"]
    assert testbed.workspaces() == []
    assert testbed.leftovers() == []


def test_cleaning_up_after_a_landing_finishes_an_interrupted_close(testbed: WorkspaceTestbed) -> None:
    opened = testbed.open().workspace
    command = [sys.executable, "-c", SLOW_CLOSER, str(testbed.repository)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "half way\n"
        (seen,) = testbed.workspaces()
        first.kill()

    assert _close(testbed.prepared_repo(), seen, time.monotonic() + 20) == f"{opened.id} is closed"
    assert testbed.leftovers() == []


@kinds
def test_a_file_in_place_of_the_folder_is_left_alone(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    path = Path(workspace.path)
    shutil.rmtree(path)
    path.write_text("precious\n")

    closed = testbed.close(workspace)

    assert closed.workspace.state == "closed"
    assert path.read_text() == "precious\n"
    assert f"{path} is a file, not the workspace, and was left alone" in closed.notes


RESTORE_STEPS = {
    "_make_folder": restore_module,
    "_add_checkout": restore_module,
    "locate_checkout": restore_module,
    "restore_index": restore_checkout,
    "restore_files": restore_checkout,
    "_restore_refs": restore_checkout,
    "_restore_head": restore_checkout,
    "_restore_state": restore_checkout,
}


@pytest.mark.soak
@kinds
def test_a_restore_that_was_killed_at_any_step_can_be_repeated(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    (Path(workspace.path) / "new.txt").write_text("new\n")
    (Path(workspace.path) / "README.md").write_text("changed\n")
    rescue = testbed.close(workspace).rescue
    repo, session, folder = testbed.prepared_repo(), testbed.session("ann"), str(testbed.repository.parent)
    existing = testbed.repository.parent / "existing"
    git(testbed.repository, "worktree", "add", "--quiet", "--detach", str(existing))

    for name, module in RESTORE_STEPS.items():
        for into in ("", str(existing)):
            pid = fork(lambda at=(module, name, into): _restore_and_die(repo, session, rescue, folder, *at))
            is_killed = wait_for_exit(pid) == -signal.SIGKILL
            assert is_killed or into, name  # an existing checkout needs fewer steps

            again = Path(restore(repo, session, rescue, into, folder).path) if is_killed else existing

            assert (again / "new.txt").read_text() == "new\n", (name, into)
            assert (again / "README.md").read_text() == "changed\n", (name, into)
            git(again, "checkout", "--quiet", "--force", "--detach")
            git(again, "clean", "-fdq")
            if not into:
                git(
                    testbed.repository,
                    "worktree",
                    "remove",
                    "--force",
                    "--force",
                    str(again),
                    is_checked=False,
                )
                shutil.rmtree(again, ignore_errors=True)
            assert list((testbed.repository / ".git" / "landlane" / "restoring").iterdir()) == []


def _restore_and_die(
    repo: Repository, session: Session, rescue: str, folder: str, module: object, name: str, into: str
) -> None:
    original = getattr(module, name)

    def step(*words: object, **more: object) -> None:
        original(*words, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, name, step)
    restore(repo, session, rescue, into, folder)


def test_a_restore_refuses_work_of_the_user_however_often_it_is_tried(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    (Path(workspace.path) / "new.txt").write_text("new\n")
    rescue = testbed.close(workspace).rescue
    repo, session, folder = testbed.prepared_repo(), testbed.session("ann"), str(testbed.repository.parent)
    existing = testbed.repository.parent / "existing"
    git(testbed.repository, "worktree", "add", "--quiet", "--detach", str(existing))
    (existing / "new.txt").write_text("mine\n")

    for _ in range(2):
        with pytest.raises(RepositoryError) as refused:
            restore(repo, session, rescue, str(existing), folder)
        assert refused.value.code == "RESTORE_NOT_CLEAN"

    assert (existing / "new.txt").read_text() == "mine\n"

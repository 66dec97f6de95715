"""Closing workspaces of both kinds: all of it is saved, none of it is left, nobody else is hit."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from landlane.errors import Held, Malformed, NotAllowed, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git.remove_checkout import removal_path
from landlane.landing.after_landing import _close  # pyright: ignore[reportPrivateUsage]
from landlane.rescue.restore import restore
from landlane.rescue.save import saved_work
from tests.support.git import git
from tests.support.workspaces import KINDS, Squatter, Yard, commit_file, is_whole

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)


def bring_back(yard: Yard, rescue: str) -> Path:
    """Restore a rescue into a folder of its own."""
    folder = str(yard.repository.with_name("again"))
    return Path(restore(yard.site(), yard.session(), rescue, "", folder).path)


@kinds
def test_a_clean_workspace_leaves_nothing(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace

    closed = yard.close(workspace)

    assert (closed.rescue, closed.workspace.state) == ("", "closed")
    assert yard.leftovers() == []


@pytest.mark.slow
@kinds
def test_dirty_and_detached_work_comes_back(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    path = Path(workspace.path)
    git(path, "checkout", "--quiet", "--detach")
    lone = commit_file(path, "lone.txt", "on no branch\n")
    (path / "loose.txt").write_text("never added\n")
    (path / "README.md").write_text("changed\n")
    git(path, "add", "README.md")
    (path / "README.md").write_text("changed again\n")

    closed = yard.close(workspace)
    yard.gc()

    assert not path.exists()
    again = bring_back(yard, closed.rescue)
    assert git(again, "rev-parse", "HEAD").strip() == lone
    assert (again / "loose.txt").read_text() == "never added\n"
    assert (again / "README.md").read_text() == "changed again\n"
    assert git(again, "show", ":README.md") == "changed\n"


@kinds
def test_commits_on_the_branch_stay_on_the_branch(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    head = commit_file(workspace.path, "work.txt", "work\n")

    closed = yard.close(workspace)
    yard.gc()

    assert closed.notes == (f"{workspace.branch} stays: it is not merged",)
    assert git(yard.repository, "rev-parse", workspace.branch).strip() == head
    assert git(yard.repository, "show", f"{head}:work.txt") == "work\n"
    assert yard.leftovers() == [f"refs/heads/{workspace.branch}"]


@pytest.mark.promise(
    "workspaces.merged-by-content",
    "A branch that was squashed or rebased onto the target is recognised as merged.",
)
@pytest.mark.slow
@kinds
@pytest.mark.parametrize("way", ["squash", "rebase", "merge", "squash, then changed again"])
def test_a_merged_branch_is_recognised_and_deleted(yard: Yard, kind: str, way: str) -> None:
    workspace = yard.open(kind=kind).workspace
    commit_file(workspace.path, "one.txt", "one\n")
    commit_file(workspace.path, "two.txt", "two\n")
    home = yard.repository
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

    closed = yard.close(workspace)

    assert closed.is_merged
    assert closed.rescue == ""
    assert yard.leftovers() == []


def test_a_branch_that_another_checkout_stands_on_is_not_deleted(yard: Yard) -> None:
    workspace = yard.open(kind="clone").workspace
    git(yard.repository, "branch", workspace.branch, workspace.base)
    elsewhere = yard.repository.with_name("elsewhere")
    git(yard.repository, "worktree", "add", "--quiet", str(elsewhere), workspace.branch)

    closed = yard.close(workspace)

    assert closed.notes == (f"{workspace.branch} stays: another checkout stands on it",)
    assert git(elsewhere, "status", "--porcelain") == ""


@kinds
def test_links_that_leave_it_are_cut_and_their_targets_stay(yard: Yard, kind: str) -> None:
    target = yard.repository.with_name("dependencies")
    for number in range(20):
        (target / f"package-{number}").mkdir(parents=True)
        (target / f"package-{number}" / "index.js").write_text("code\n")
    workspace = yard.open(kind=kind).workspace
    path = Path(workspace.path)
    (path / ".gitignore").write_text("node_modules\ndeep/\n")
    (path / "node_modules").symlink_to(target)
    (path / "deep" / "down").mkdir(parents=True)
    (path / "deep" / "down" / "link").symlink_to(target / "package-3")
    (path / "deep" / "file").symlink_to(target / "package-4" / "index.js")
    before = sorted(str(one) for one in target.rglob("*"))

    yard.close(workspace)

    assert not path.exists()
    assert sorted(str(one) for one in target.rglob("*")) == before
    assert (target / "package-4" / "index.js").read_text() == "code\n"


@pytest.mark.slow
@kinds
def test_a_live_process_is_noticed_and_force_goes_on(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    (Path(workspace.path) / "loose.txt").write_text("loose\n")
    with Squatter(workspace.path) as squatter:
        with pytest.raises(Held) as raised:
            yard.close(workspace)
        assert (raised.value.code, raised.value.exit_code) == ("WORKSPACE_IN_USE", 3)
        assert raised.value.facts["processes"] == [squatter.process.pid]
        assert Path(workspace.path, "loose.txt").exists()

        closed = yard.close(workspace, force=True)

    assert closed.rescue
    assert (bring_back(yard, closed.rescue) / "loose.txt").read_text() == "loose\n"


@pytest.mark.slow
@kinds
def test_what_a_live_process_writes_while_it_is_closed_is_saved_too(
    yard: Yard, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = yard.open(kind=kind).workspace
    (Path(workspace.path) / "early.txt").write_text("early\n")
    told: list[str] = []

    def after(step: str) -> None:
        told.append(step)
        if step == "rescued":
            (Path(workspace.path) / "late.txt").write_text("late\n")

    with Squatter(workspace.path):
        closed = yard.close(workspace, force=True, on_step=after)

    (note,) = [note for note in closed.notes if "meanwhile" in note]
    again = bring_back(yard, note.split()[-1])
    assert (again / "late.txt").read_text() == "late\n"


@kinds
def test_anothers_live_session_is_respected_and_force_goes_on(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind, agent="bob").workspace

    with pytest.raises(Held) as raised:
        yard.close(workspace)
    assert (raised.value.code, raised.value.facts["holder"]) == ("WORKSPACE_HELD", "bob")

    assert yard.close(workspace, force=True).workspace.state == "closed"


@pytest.mark.slow
@kinds
def test_read_only_caches_do_not_stop_it(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    cache = Path(workspace.path) / "cache" / "deep"
    cache.mkdir(parents=True)
    (Path(workspace.path) / ".git/info").mkdir(exist_ok=True) if kind == "clone" else None
    (cache / "module.bin").write_bytes(b"x")
    (cache / "link").symlink_to("module.bin")
    for one in (cache / "module.bin", cache, cache.parent):
        one.chmod(stat.S_IREAD | (stat.S_IEXEC if one.is_dir() else 0))

    yard.close(workspace)

    assert not Path(workspace.path).exists()


def test_what_cannot_be_read_is_not_deleted(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = yard.open().workspace
    secret = Path(workspace.path, "secret.txt")
    secret.write_text("readable by nobody\n")

    def refuse(*_: object, **__: object) -> str:
        raise RepositoryError("secret.txt cannot be read", code="UNREADABLE", hint="mend its permissions")

    monkeypatch.setattr("landlane.rescue.save.save_checkout", refuse)
    with pytest.raises(RepositoryError, match="cannot be read"):
        yard.close(workspace)
    monkeypatch.undo()

    assert secret.exists()
    (kept,) = yard.known()
    assert (kept.state, kept.why) == ("open", "secret.txt cannot be read")
    assert yard.close(kept).rescue


@kinds
def test_two_closers_at_once_and_one_is_told(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    (Path(workspace.path) / "loose.txt").write_text("loose\n")

    def second(step: str) -> None:
        if step == "closing":
            with pytest.raises(NotAllowed):
                yard.close(workspace)

    assert yard.close(workspace, on_step=second).rescue


@kinds
def test_a_folder_of_another_that_has_the_name_for_closing_is_not_touched(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    foreign = Path(f"{workspace.path}.closing")
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine\n")

    yard.close(workspace)

    assert (foreign / "mine.txt").exists()
    assert not os.path.lexists(removal_path(workspace.path, workspace.id))


def test_a_worktree_whose_folder_is_gone_keeps_its_staged_and_detached_work(yard: Yard) -> None:
    workspace = yard.open().workspace
    git(workspace.path, "checkout", "--quiet", "--detach")
    lone = commit_file(workspace.path, "lone.txt", "on no branch\n")
    Path(workspace.path, "staged.txt").write_text("staged\n")
    git(workspace.path, "add", "staged.txt")
    shutil.rmtree(workspace.path)

    closed = yard.close(workspace)
    yard.gc()

    assert not [note for note in closed.notes if "meanwhile" in note]
    again = bring_back(yard, closed.rescue)
    assert git(again, "rev-parse", "HEAD").strip() == lone
    assert git(again, "show", ":staged.txt") == "staged\n"


def test_a_clean_worktree_whose_folder_is_gone_is_just_closed(yard: Yard) -> None:
    workspace = yard.open().workspace
    shutil.rmtree(workspace.path)

    assert yard.close(workspace).rescue == ""
    assert yard.leftovers() == []


@pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="mounting needs privileges",
)
def test_something_mounted_inside_is_not_emptied(yard: Yard, tmp_path: Path) -> None:
    workspace = yard.open().workspace
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file.txt").write_text("precious\n")
    script = f"""
mkdir '{workspace.path}/mounted' && mount --bind '{precious}' '{workspace.path}/mounted' || exit 77
exec '{Path(sys.executable).with_name("landlane")}' workspace close {workspace.id} --as ann --force --json
"""
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        cwd=yard.repository,
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
def test_gc_and_prune_anywhere_break_no_workspace(yard: Yard, kind: str) -> None:
    task = yard.task()
    first = yard.open(task, kind=kind).workspace
    commit_file(first.path, "first.txt", "first\n")
    yard.close(first)  # its branch stays, and the next workspace begins on it
    doomed = commit_file(yard.repository, "doomed.txt", "soon rewound\n")
    reused = yard.open(task, kind=kind).workspace
    fresh = yard.open(kind=kind, agent="bob").workspace
    assert fresh.base == doomed
    late = commit_file(reused.path, "late.txt", "late\n")
    staged = Path(fresh.path, "staged.txt")
    staged.write_text("staged\n")
    git(fresh.path, "add", "staged.txt")

    git(yard.repository, "reset", "--quiet", "--hard", "HEAD~1")
    if kind == "clone":
        git(yard.repository, "branch", "--quiet", "-D", first.branch)
    yard.gc()
    for path in (reused.path, fresh.path):
        git(path, "gc", "--quiet", "--prune=now")
        git(path, "prune", "--expire=now")
        git(path, "worktree", "prune", "--expire=now")
    yard.gc()

    for one in (reused, fresh):
        assert is_whole(one.path)
        assert git(one.path, "log", "--oneline", "--all")
    assert git(reused.path, "show", "HEAD:first.txt") == "first\n"
    assert git(fresh.path, "show", ":staged.txt") == "staged\n"
    assert yard.close(reused).workspace.state == "closed"
    assert git(yard.repository, "rev-parse", first.branch).strip() == late


def test_a_worktree_that_is_away_for_a_while_is_not_forgotten(yard: Yard) -> None:
    workspace = yard.open().workspace
    os.rename(workspace.path, f"{workspace.path}.away")
    yard.gc()
    os.rename(f"{workspace.path}.away", workspace.path)

    assert git(workspace.path, "status", "--porcelain") == ""


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("step", ["saved", "renamed"])
def test_what_is_written_into_a_clean_workspace_while_it_is_closed_is_saved(
    yard: Yard, kind: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = yard.open(kind=kind).workspace
    was_renamed = os.rename

    def write(folder: str) -> None:
        Path(folder, "late.txt").write_text("late\n")

    def rename(source: str, target: str) -> None:
        was_renamed(source, target)
        if step == "renamed" and source == workspace.path:
            write(target)

    monkeypatch.setattr("landlane.git.remove_checkout.os.rename", rename)
    closed = yard.close(
        workspace, on_step=lambda done: write(workspace.path) if done == step == "saved" else None
    )

    assert closed.rescue
    assert closed.workspace.rescue == closed.rescue
    assert [note for note in closed.notes if note.endswith(f"meanwhile is {closed.rescue}")]
    assert (bring_back(yard, closed.rescue) / "late.txt").read_text() == "late\n"


def test_what_is_committed_in_a_clone_while_it_is_closed_is_saved(yard: Yard) -> None:
    workspace = yard.open(kind="clone").workspace
    late: list[str] = []

    def after(step: str) -> None:
        if step == "saved":
            late.append(commit_file(workspace.path, "late.txt", "late\n"))

    closed = yard.close(workspace, on_step=after)
    yard.gc()

    assert git(bring_back(yard, closed.rescue), "rev-parse", "HEAD").strip() == late[0]


@pytest.mark.slow
@kinds
def test_what_is_moved_in_with_an_old_time_while_it_is_closed_is_saved(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    Path(workspace.path, "early.txt").write_text("early\n")

    def after(step: str) -> None:
        if step == "rescued":
            late = Path(workspace.path, "late.txt")
            late.write_text("late\n")
            os.utime(late, (1, 1))

    closed = yard.close(workspace, on_step=after)

    (note,) = [note for note in closed.notes if "meanwhile" in note]
    assert (bring_back(yard, note.split()[-1]) / "late.txt").read_text() == "late\n"


@kinds
def test_nothing_is_saved_twice_when_nothing_was_written_meanwhile(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    Path(workspace.path, "early.txt").write_text("early\n")

    closed = yard.close(workspace)

    assert [one.id for one in saved_work(yard.site())] == [closed.rescue]
    assert not [note for note in closed.notes if "meanwhile" in note]


@pytest.mark.slow
@kinds
def test_a_restoring_that_fails_leaves_nothing_in_the_way(
    yard: Yard, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = yard.open(kind=kind).workspace
    Path(workspace.path, "loose.txt").write_text("loose\n")
    closed = yard.close(workspace)

    def fail(_: str) -> None:
        raise RepositoryError("the disk is full", code="GIT_FAILED", hint="make room")

    monkeypatch.setattr("landlane.rescue.restore.checkouts.write_files", fail)
    with pytest.raises(RepositoryError, match="the disk is full"):
        bring_back(yard, closed.rescue)
    monkeypatch.undo()

    assert (bring_back(yard, closed.rescue) / "loose.txt").read_text() == "loose\n"


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("step", ["entered", "written"])
def test_what_a_killed_restoring_left_gives_way(yard: Yard, kind: str, step: str) -> None:
    workspace = yard.open(kind=kind).workspace
    Path(workspace.path, "loose.txt").write_text("loose\n")
    closed = yard.close(workspace)
    half = leave_half_restored(yard, closed.rescue, with_files=step == "written")

    again = bring_back(yard, closed.rescue)

    assert again == half
    assert (again / "loose.txt").read_text() == "loose\n"
    with pytest.raises(Malformed) as raised:  # now there is work in it
        bring_back(yard, closed.rescue)
    assert raised.value.code == "PATH_TAKEN"
    assert (again / "loose.txt").exists()


def leave_half_restored(yard: Yard, rescue_id: str, *, with_files: bool) -> Path:
    """What a process that was killed before the saved work was back leaves."""
    (rescue,) = [one for one in saved_work(yard.site()) if one.id == rescue_id]
    path = yard.repository.with_name("again") / f"rescue-{rescue_id}"
    path.mkdir(parents=True)
    home = yard.site().home
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
def test_who_settles_a_landing_sees_another_process_to_the_end_of_its_closing(yard: Yard, kind: str) -> None:
    """Two settle at once: the second does not go away while the first is half way."""
    opened = yard.open(kind=kind).workspace
    site = yard.site()
    told: list[str] = []
    command = [sys.executable, "-c", SLOW_CLOSER, str(yard.repository)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.readline() == "half way\n"
        (seen,) = yard.known()
        second = threading.Thread(target=lambda: told.append(_close(site, seen, time.monotonic() + 20)))
        second.start()
        second.join(0.3)
        assert second.is_alive()
        first.stdin.write("\n")
        first.stdin.flush()
        second.join(20)

    assert told == [f"{opened.id} is closed"]
    assert yard.known() == []
    assert yard.leftovers() == []


def test_who_settles_a_landing_goes_on_with_what_a_killed_process_left(yard: Yard) -> None:
    opened = yard.open().workspace
    command = [sys.executable, "-c", SLOW_CLOSER, str(yard.repository)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "half way\n"
        (seen,) = yard.known()
        first.kill()

    assert _close(yard.site(), seen, time.monotonic() + 20) == f"{opened.id} is closed"
    assert yard.leftovers() == []

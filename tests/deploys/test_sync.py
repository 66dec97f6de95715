"""Keeping up with the target: behind and ahead, offline, merge and rebase, conflicts that change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.app.open import open_repository
from landlane.deploys import update_checkout as updating
from landlane.deploys.sync import sync
from landlane.errors import LandlaneError
from landlane.git.discovery import HOME_POINTER
from landlane.git.lock import git_lock
from landlane.repository import Repository
from landlane.sessions import join as sessions
from landlane.settings.model import LandingCheck, LandingSettings, Settings
from landlane.store import records
from landlane.tasks.add import Added, add_task
from landlane.tasks.model import NewTask
from landlane.testing.repositories import git
from landlane.values import as_dict, replace
from landlane.workspaces.locate import find_workspace
from landlane.workspaces.model import Workspace, WorkspaceKind, WorkspaceState
from tests.support.project import Background
from tests.support.shell import Shell, fingerprint
from tests.support.snapshots import check_snapshot
from tests.support.transcripts import play
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Stand = Callable[[Path], Repository]

pytestmark = pytest.mark.integration


@pytest.fixture
def stand() -> Iterator[Stand]:
    """Opens the repository of a folder, and closes all of them in the end."""
    houses: list[Any] = []

    def open_prepared(folder: Path) -> Repository:
        houses.append(open_repository(str(folder)))
        return houses[-1].require_git()

    yield open_prepared
    for repo in houses:
        repo.close()


@pytest.fixture
def origin(repository: Path, tmp_path: Path) -> Path:
    """The remote of the repository: what somebody else pushed there has yet to be fetched."""
    bare = tmp_path / "origin.git"
    git(repository, "clone", "--quiet", "--bare", ".", str(bare))
    git(repository, "remote", "add", "origin", str(bare))
    git(repository, "fetch", "--quiet", "origin")
    git(repository, "branch", "--quiet", "--set-upstream-to=origin/main")
    git(tmp_path, "clone", "--quiet", str(bare), "other")
    return bare


def commit(folder: Path, text: str, path: str = "README.md", agent: str = "") -> str:
    (folder / path).write_text(text)
    git(folder, "add", path)
    trailer = ["-m", f"Landlane-Agent: {agent}"] if agent else []
    git(folder, "commit", "--quiet", "-m", f"Write {path}", *trailer)
    return git(folder, "rev-parse", "HEAD").strip()


def push(tmp_path: Path, text: str, path: str = "README.md") -> str:
    """Somebody else pushes a commit."""
    other = tmp_path / "other"
    git(other, "pull", "--quiet", "--rebase")
    made = commit(other, text, path, agent="bob")
    git(other, "push", "--quiet")
    return made


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD").strip()


def branch_off(repository: Path, name: str = "work") -> None:
    git(repository, "config", "init.defaultBranch", "main")
    git(repository, "switch", "--quiet", "-c", name)


def with_settings(repo: Repository, checks: tuple[LandingCheck, ...] | None = None) -> Repository:
    return replace(repo, settings=Settings(landing=LandingSettings(target="main", checks=checks)))


def update(repo: Repository, how: str, **more: Any) -> updating.Update:
    return updating.update(repo, sessions.join(repo, "ann").session, how, **more)


def refused(repo: Repository, how: str) -> LandlaneError:
    with pytest.raises(LandlaneError) as shown:
        update(repo, how)
    return shown.value


def test_without_a_remote_the_local_branch_counts(repository: Path, stand: Stand) -> None:
    branch_off(repository)
    git(repository, "worktree", "add", "--quiet", "../main", "main")
    newer = commit(repository.parent / "main", "newer\n")
    commit(repository, "mine\n", "mine.txt")

    found = sync(with_settings(stand(repository)))

    assert (found.behind, found.ahead, found.tip, found.remote) == (1, 1, newer, "")
    assert found.base == git(repository, "merge-base", "main", "work").strip()


def test_sync_fetches_from_the_remote(repository: Path, origin: Path, tmp_path: Path, stand: Stand) -> None:
    repo = stand(repository)
    assert (sync(repo).behind, sync(repo).ahead) == (0, 0)

    tip = push(tmp_path, "theirs\n")
    commit(repository, "mine\n", "mine.txt")
    found = sync(repo)

    assert (found.behind, found.ahead, found.tip, found.branch) == (1, 1, tip, "main")


@pytest.mark.slow
def test_unpushed_commits_of_the_target_count_for_other_branches(
    repository: Path, origin: Path, stand: Stand
) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "work", "../work")
    tip = commit(repository, "landed, not pushed\n")

    assert sync(stand(repository)).ahead == 1
    found = sync(stand(repository.parent / "work"))
    assert (found.behind, found.tip) == (1, tip)


def test_an_offline_sync_shows_the_last_known_position(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    repo = stand(repository)
    push(tmp_path, "theirs\n")
    git(repository, "fetch", "--quiet")
    origin.rename(tmp_path / "gone.git")

    with pytest.raises(LandlaneError) as shown:
        sync(repo)

    assert (shown.value.code, shown.value.exit_code) == ("OFFLINE", 1)
    assert (shown.value.facts["behind"], shown.value.facts["is_fresh"]) == (1, False)
    assert refused(repo, "merge").code == "OFFLINE"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_an_update_brings_in_what_is_missing(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand, how: str
) -> None:
    branch_off(repository)
    before = commit(repository, "mine\n", "mine.txt")
    tip = push(tmp_path, "theirs\n", "theirs.txt")

    done = update(with_settings(stand(repository)), how)

    assert (done.before, done.position.behind, done.position.base) == (before, 0, tip)
    assert done.position.ahead == (2 if how == "merge" else 1)
    assert (repository / "mine.txt").read_text() == "mine\n"
    assert (repository / "theirs.txt").read_text() == "theirs\n"
    assert git(repository, "status", "--porcelain") == ""
    assert update(with_settings(stand(repository)), how).before == head(repository)


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_a_conflict_changes_nothing_and_names_the_commits_of_others(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand, how: str
) -> None:
    branch_off(repository)
    commit(repository, "first\n", "first.txt")
    commit(repository, "mine\n")
    (repository / "untracked.txt").write_text("left alone\n")
    tip = push(tmp_path, "theirs\n")
    before = {**fingerprint(repository), "HEAD": head(repository)}
    before = {path: text for path, text in before.items() if not path.startswith(".git/")}

    error = refused(with_settings(stand(repository)), how)

    assert (error.code, error.exit_code) == ("CONFLICT", 1)
    (conflict,) = error.facts["conflicts"]
    assert conflict["path"] == "README.md"
    assert [(one["commit"], one["subject"], one["agent"]) for one in conflict["commits"]] == [
        (tip, "Write README.md", "bob")
    ]
    after = {**fingerprint(repository), "HEAD": head(repository)}
    assert {path: text for path, text in after.items() if not path.startswith(".git/")} == before
    assert git(repository, "status", "--porcelain") == "?? untracked.txt\n"
    assert git(repository, "symbolic-ref", "--short", "HEAD").strip() == "work"
    for name in ("MERGE_HEAD", "rebase-merge", "rebase-apply"):
        assert not (repository / ".git" / name).exists()


def test_uncommitted_work_is_not_touched(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    branch_off(repository)
    push(tmp_path, "theirs\n", "theirs.txt")
    repo = with_settings(stand(repository))
    (repository / "README.md").write_text("not committed\n")

    assert refused(repo, "merge").code == "DIRTY"
    assert sync(repo).changed == ("README.md",)
    git(repository, "add", "README.md")
    assert refused(repo, "rebase").facts["paths"] == ["README.md"]
    assert (repository / "README.md").read_text() == "not committed\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_ignored", [False, True])
@pytest.mark.parametrize("path", ["new.txt", "new.txt/below"])
def test_an_untracked_file_is_not_overwritten(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand, path: str, is_ignored: bool
) -> None:
    branch_off(repository)
    (tmp_path / "other" / path).parent.mkdir(exist_ok=True)
    push(tmp_path, "theirs\n", path)
    (repository / "new.txt").write_text("mine\n")
    if is_ignored:
        (repository / ".git" / "info" / "exclude").write_text("new.txt\n")

    error = refused(with_settings(stand(repository)), "merge")

    assert (error.code, error.facts["paths"]) == ("IN_THE_WAY", ["new.txt"])
    assert (repository / "new.txt").read_text() == "mine\n"


def test_a_folder_with_untracked_files_is_not_removed(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    branch_off(repository)
    push(tmp_path, "theirs\n", "build")
    (repository / "build").mkdir()
    (repository / "build" / "data").write_text("mine\n")
    (repository / ".git" / "info" / "exclude").write_text("build\n")

    error = refused(with_settings(stand(repository)), "merge")

    assert (error.code, error.facts["paths"]) == ("IN_THE_WAY", ["build/data"])
    assert (repository / "build" / "data").read_text() == "mine\n"


def test_an_unfinished_operation_blocks_an_update(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    branch_off(repository)
    commit(repository, "mine\n")
    push(tmp_path, "theirs\n")
    git(repository, "fetch", "--quiet")
    repo = with_settings(stand(repository))
    with pytest.raises(Exception, match="returned non-zero"):
        git(repository, "rebase", "origin/main")

    error = refused(repo, "merge")

    assert error.code == "UNFINISHED"
    assert "git rebase --abort" in error.hint
    git(repository, "rebase", "--abort")
    git(repository, "checkout", "--quiet", "--detach")
    assert refused(repo, "merge").code == "NO_BRANCH_HERE"
    assert refused(repo, "squash").code == "BAD_UPDATE"


def test_the_target_itself_only_moves_forward(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    repo = stand(repository)
    tip = push(tmp_path, "theirs\n")
    assert update(repo, "merge").position.head == tip
    push(tmp_path, "more\n")
    before = commit(repository, "mine\n", "mine.txt")

    error = refused(repo, "rebase")

    assert (error.code, error.exit_code) == ("TARGET_DIVERGED", 6)
    assert head(repository) == before


def test_a_hook_that_refuses_leaves_the_tree_as_it_was(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    branch_off(repository)
    before = commit(repository, "mine\n", "mine.txt")
    push(tmp_path, "theirs\n", "theirs.txt")
    hook = repository / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no such message >&2\nexit 1\n")
    hook.chmod(0o755)

    error = refused(with_settings(stand(repository)), "merge")

    assert error.code == "GIT_FAILED"
    assert "no such message" in error.message
    assert head(repository) == before
    assert git(repository, "status", "--porcelain") == ""
    assert not (repository / ".git" / "MERGE_HEAD").exists()


def test_a_linked_worktree_is_updated_on_its_own(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "work", "../work")
    work = repository.parent / "work"
    commit(work, "mine\n", "mine.txt")
    main = head(repository)
    tip = push(tmp_path, "theirs\n", "theirs.txt")

    done = update(stand(work), "rebase")

    assert (done.position.branch, done.position.base) == ("work", tip)
    assert head(repository) == main


def make_clone(repository: Path, folder: Path) -> None:
    git(repository, "clone", "--quiet", "--shared", "--origin", "home", str(repository), str(folder))
    (folder / ".git" / HOME_POINTER).write_text(f"{repository / '.git'}\n")
    git(folder, "switch", "--quiet", "-c", "work")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_a_clone_fetches_the_target_from_its_home(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand, how: str
) -> None:
    clone = tmp_path / "clone"
    make_clone(repository, clone)
    commit(clone, "mine\n", "mine.txt")
    tip = push(tmp_path, "theirs\n", "theirs.txt")
    repo = stand(clone)
    assert repo.home.root == str(repository)

    found = sync(repo)
    done = update(repo, how)

    assert (found.behind, found.ahead, found.tip) == (1, 1, tip)
    assert (done.position.behind, done.position.base) == (0, tip)
    assert git(clone, "rev-parse", "refs/remotes/home/main").strip() == tip
    assert (clone / "theirs.txt").exists()


def test_a_clone_without_a_remote_gets_the_branch_of_its_home(
    repository: Path, tmp_path: Path, stand: Stand
) -> None:
    clone = tmp_path / "clone"
    make_clone(repository, clone)
    tip = commit(repository, "newer\n")

    assert update(stand(clone), "merge").position.head == tip


def test_the_workspace_remembers_its_new_base(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "work", "../work")
    work = repository.parent / "work"
    repo = stand(work)
    workspace = Workspace(
        id="W1",
        task="T1",
        attempt=1,
        agent="ann",
        session="s-1",
        machine=repo.processes.machine,
        home=repo.common_dir,
        kind=WorkspaceKind.WORKTREE,
        path=str(work),
        branch="work",
        state=WorkspaceState.OPEN,
        opened_at=0,
        base=head(work),
    )
    repo.store.change(lambda tx: records.put(tx, "workspace", as_dict(workspace), "opened"))
    git(repository, "update-ref", "refs/landlane/base/W1", head(work))
    tip = push(tmp_path, "theirs\n")

    update(repo, "merge")

    assert find_workspace(repo, "W1") == replace(workspace, base=tip)
    assert git(repository, "rev-parse", "refs/landlane/base/W1").strip() == tip
    last = [entry for entry in repo.store.entries(0) if entry.kind == "workspace.synced"]
    assert [(entry.agent, entry.facts()["workspace"]["base"]) for entry in last] == [("ann", tip)]


def test_the_checks_run_again_after_an_update(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch_off(repository)
    push(tmp_path, "theirs\n", "theirs.txt")
    (repository / "out").mkdir()
    monkeypatch.setenv("LANDLANE_SESSION", "s-1234567890:secret")
    checks = (
        LandingCheck(run="cat theirs.txt", name="there"),
        LandingCheck(run="env | grep -c -e ^LANDLANE_SESSION -e ^GIT_DIR -e ^GIT_WORK", name="free"),
        LandingCheck(run="echo again >> out/tries; test $(wc -l < out/tries) = 3", name="flaky", retries=5),
        LandingCheck(run="sleep 60", name="slow", limit_ms=100),
    )

    done = update(with_settings(stand(repository), checks), "merge")

    shown = [(check["name"], check["passed"], check["exit"], check["runs"]) for check in done.checks]
    assert shown == [
        ("there", True, 0, 1),
        ("free", False, 1, 1),
        ("flaky", True, 0, 3),
        ("slow", False, -9, 1),
    ]
    assert done.checks[0]["output"] == "theirs\n"
    assert done.checks[1]["output"] == "0\n"
    assert done.checks[3]["late"]
    assert update(with_settings(stand(repository), checks), "merge").checks == ()


def test_the_check_of_the_task_replaces_those_of_the_queue(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    repo = stand(repository)
    ann = sessions.join(repo, "ann").session
    added = add_task(repo, ann, NewTask(title="Do it", check="echo of the task"))
    assert isinstance(added, Added)
    task = added.task
    branch_off(repository, f"landlane/{task.id}-1/work")
    push(tmp_path, "theirs\n", "theirs.txt")
    repo = with_settings(repo, (LandingCheck(run="exit 1", name="of the queue"),))

    done = update(repo, "merge")

    assert [(check["name"], check["output"]) for check in done.checks] == [
        ("echo of the task", "of the task\n")
    ]
    git(repository, "reset", "--quiet", "--hard", "HEAD~1")
    git(repository, "branch", "--quiet", "-m", "landlane/T99-1/work")
    assert [check["name"] for check in update(repo, "merge").checks] == ["of the queue"]
    git(repository, "reset", "--quiet", "--hard", "HEAD~1")
    assert update(repo, "merge", is_checked=False).checks == ()


def test_an_update_waits_for_gits_lock(repository: Path, stand: Stand) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "work", "../work")
    work = repository.parent / "work"
    commit(repository, "theirs\n", "theirs.txt")
    heard: list[str] = []
    repo = replace(stand(work), report=heard.append)
    session = sessions.join(repo, "ann").session
    with git_lock(repo.common_dir, "a test"):
        running = Background(lambda: updating.update(repo, session, "merge"))
        wait_until(lambda: bool(heard))
        assert not (work / "theirs.txt").exists()
    assert running.result().position.behind == 0
    assert (work / "theirs.txt").exists()


def test_the_command_ends_with_four_when_behind(repository: Path, origin: Path, tmp_path: Path) -> None:
    shell = Shell(repository)
    assert shell.run_json("sync")["is_fresh"]
    assert shell.run_text("sync") == "✓ main is up to date with origin/main\n"
    tip = push(tmp_path, "theirs\n")

    answer = shell.run_error("BEHIND", "sync", exit=4)
    said = shell.run("sync")

    assert (answer["behind"], answer["ahead"], answer["tip"], answer["dirty"]) == (1, 0, tip, False)
    assert said.exit == 4
    assert f"{tip[:8]}  Write README.md  bob  " in said.err
    assert shell.run_text("sync", "--update", "merge") == "✓ merged origin/main into main\n"
    origin.rename(tmp_path / "gone.git")
    assert not shell.run_error("OFFLINE", "sync", exit=1)["is_fresh"]


def test_what_sync_prints_names_who_landed_what_and_when(repository: Path) -> None:
    shell = Shell(repository)
    git(repository, "switch", "--quiet", "-c", "feature")
    (repository / "mine.txt").write_text("mine\n")
    git(repository, "add", "mine.txt")
    git(repository, "commit", "--quiet", "-m", "Mine")
    git(repository, "switch", "--quiet", "main")
    landed = "Parse ISO dates\n\nLandlane-Agent: claude-T11"
    for message in (landed, "Log slow queries"):
        git(repository, "commit", "--quiet", "--allow-empty", "-m", message)
    git(repository, "switch", "--quiet", "feature")

    text = play(shell, "sync --as ann", "sync --update rebase --no-check --as ann", "sync")

    check_snapshot("deploys/snapshots/sync.txt", text)


def test_a_failing_check_is_reported_and_the_update_stays(
    repository: Path, origin: Path, tmp_path: Path
) -> None:
    (repository / "landlane.toml").write_text('[landing]\nchecks = ["echo broken; exit 2"]\n')
    git(repository, "add", "landlane.toml")
    git(repository, "commit", "--quiet", "-m", "Settings")
    git(repository, "push", "--quiet")
    tip = push(tmp_path, "theirs\n")
    shell = Shell(repository)

    answer = shell.run_error("CHECK_FAILED", "sync", "--update", "rebase", exit=1)

    assert (answer["head"], answer["updated"]) == (tip, "rebase")
    assert answer["checks"][0]["output"] == "broken\n"
    assert shell.run_json("sync", "--update", "merge", "--no-check")["updated"] is None
    push(tmp_path, "again\n")
    said = shell.run("sync", "--update", "merge")
    assert (said.exit, "broken" in said.err) == (1, True)


def test_without_git_there_is_nothing_to_sync(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / ".landlane").mkdir(parents=True)

    Shell(folder).run_error("NO_GIT_HERE", "sync", exit=1)

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
from landlane.values import replace
from tests.support.shell import Shell, fingerprint
from tests.support.sites import Background
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Stand = Callable[[Path], Repository]

pytestmark = pytest.mark.integration


@pytest.fixture
def stand() -> Iterator[Stand]:
    """Opens the site of a folder, and closes all of them in the end."""
    houses: list[Any] = []

    def open_site(folder: Path) -> Repository:
        houses.append(open_repository(str(folder)))
        return houses[-1].require_git()

    yield open_site
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


def with_settings(site: Repository, checks: tuple[LandingCheck, ...] | None = None) -> Repository:
    return replace(site, settings=Settings(landing=LandingSettings(target="main", checks=checks)))


def update(site: Repository, how: str, **more: Any) -> updating.Update:
    return updating.update(site, sessions.join(site, "ann").session, how, **more)


def refused(site: Repository, how: str) -> LandlaneError:
    with pytest.raises(LandlaneError) as told:
        update(site, how)
    return told.value


def test_without_a_remote_the_branch_here_counts(repository: Path, stand: Stand) -> None:
    branch_off(repository)
    git(repository, "worktree", "add", "--quiet", "../main", "main")
    newer = commit(repository.parent / "main", "newer\n")
    commit(repository, "mine\n", "mine.txt")

    found = sync(with_settings(stand(repository)))

    assert (found.behind, found.ahead, found.tip, found.remote) == (1, 1, newer, "")
    assert found.base == git(repository, "merge-base", "main", "work").strip()


def test_the_remote_is_asked(repository: Path, origin: Path, tmp_path: Path, stand: Stand) -> None:
    site = stand(repository)
    assert (sync(site).behind, sync(site).ahead) == (0, 0)

    tip = push(tmp_path, "theirs\n")
    commit(repository, "mine\n", "mine.txt")
    found = sync(site)

    assert (found.behind, found.ahead, found.tip, found.branch) == (1, 1, tip, "main")


@pytest.mark.slow
def test_commits_that_wait_to_be_pushed_count_for_a_branch_beside(
    repository: Path, origin: Path, stand: Stand
) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "work", "../work")
    tip = commit(repository, "landed, not pushed\n")

    assert sync(stand(repository)).ahead == 1
    found = sync(stand(repository.parent / "work"))
    assert (found.behind, found.tip) == (1, tip)


def test_offline_tells_what_was_known(repository: Path, origin: Path, tmp_path: Path, stand: Stand) -> None:
    site = stand(repository)
    push(tmp_path, "theirs\n")
    git(repository, "fetch", "--quiet")
    origin.rename(tmp_path / "gone.git")

    with pytest.raises(LandlaneError) as told:
        sync(site)

    assert (told.value.code, told.value.exit_code) == ("OFFLINE", 1)
    assert (told.value.facts["behind"], told.value.facts["is_fresh"]) == (1, False)
    assert refused(site, "merge").code == "OFFLINE"


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
def test_a_conflict_changes_nothing_and_names_the_others(
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
    commits = [{"commit": tip, "subject": "Write README.md", "agent": "bob"}]
    assert error.facts["conflicts"] == [{"path": "README.md", "commits": commits}]
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
    site = with_settings(stand(repository))
    (repository / "README.md").write_text("not committed\n")

    assert refused(site, "merge").code == "DIRTY"
    assert sync(site).changed == ("README.md",)
    git(repository, "add", "README.md")
    assert refused(site, "rebase").facts["paths"] == ["README.md"]
    assert (repository / "README.md").read_text() == "not committed\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_ignored", [False, True])
@pytest.mark.parametrize("path", ["new.txt", "new.txt/below"])
def test_a_file_in_no_commit_is_not_overwritten(
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


def test_a_folder_with_files_in_no_commit_is_not_taken_away(
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


def test_what_is_unfinished_comes_first(repository: Path, origin: Path, tmp_path: Path, stand: Stand) -> None:
    branch_off(repository)
    commit(repository, "mine\n")
    push(tmp_path, "theirs\n")
    git(repository, "fetch", "--quiet")
    site = with_settings(stand(repository))
    with pytest.raises(Exception, match="returned non-zero"):
        git(repository, "rebase", "origin/main")

    error = refused(site, "merge")

    assert error.code == "UNFINISHED"
    assert "git rebase --abort" in error.hint
    git(repository, "rebase", "--abort")
    git(repository, "checkout", "--quiet", "--detach")
    assert refused(site, "merge").code == "NO_BRANCH_HERE"
    assert refused(site, "squash").code == "BAD_UPDATE"


def test_the_target_itself_only_moves_forward(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    site = stand(repository)
    tip = push(tmp_path, "theirs\n")
    assert update(site, "merge").position.head == tip
    push(tmp_path, "more\n")
    before = commit(repository, "mine\n", "mine.txt")

    error = refused(site, "rebase")

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
def test_a_clone_gets_it_from_its_home(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand, how: str
) -> None:
    clone = tmp_path / "clone"
    make_clone(repository, clone)
    commit(clone, "mine\n", "mine.txt")
    tip = push(tmp_path, "theirs\n", "theirs.txt")
    site = stand(clone)
    assert site.home.root == str(repository)

    found = sync(site)
    done = update(site, how)

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
    site = stand(work)
    record = {"id": "W1", "state": "open", "task": "T1", "path": str(work), "base": head(work)}
    site.store.change(lambda tx: records.put(tx, "workspace", record, "opened"))
    git(repository, "update-ref", "refs/landlane/base/W1", head(work))
    tip = push(tmp_path, "theirs\n")

    update(site, "merge")

    found = site.store.view(lambda snapshot: records.find(snapshot, "workspace", "W1"))
    assert found == {**record, "base": tip}
    assert git(repository, "rev-parse", "refs/landlane/base/W1").strip() == tip
    last = [entry for entry in site.store.entries(0) if entry.kind == "workspace.synced"]
    assert [(entry.agent, entry.facts()["workspace"]["base"]) for entry in last] == [("ann", tip)]


def test_the_checks_run_again_after_an_update(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch_off(repository)
    push(tmp_path, "theirs\n", "theirs.txt")
    monkeypatch.setenv("LANDLANE_SESSION", "s-1234567890:secret")
    checks = (
        LandingCheck(run="cat theirs.txt", name="there"),
        LandingCheck(run="env | grep -c -e ^LANDLANE_ -e ^GIT_", name="free"),
        LandingCheck(run="echo again >> tries; test $(wc -l < tries) = 3", name="flaky", retries=5),
        LandingCheck(run="sleep 60", name="slow", limit_ms=100),
    )

    done = update(with_settings(stand(repository), checks), "merge")

    told = [(check["name"], check["passed"], check["exit"], check["runs"]) for check in done.checks]
    assert told == [
        ("there", True, 0, 1),
        ("free", False, 1, 1),
        ("flaky", True, 0, 3),
        ("slow", False, -9, 1),
    ]
    assert done.checks[0]["output"] == "theirs\n"
    assert done.checks[1]["output"] == "0\n"
    assert done.checks[3]["late"]
    assert update(with_settings(stand(repository), checks), "merge").checks == ()


def test_the_check_of_the_task_is_the_one_that_counts(
    repository: Path, origin: Path, tmp_path: Path, stand: Stand
) -> None:
    site = stand(repository)
    ann = sessions.join(site, "ann").session
    added = add_task(site, ann, NewTask(title="Do it", check="echo of the task"))
    assert isinstance(added, Added)
    task = added.task
    branch_off(repository, f"landlane/{task.id}-1/work")
    push(tmp_path, "theirs\n", "theirs.txt")
    site = with_settings(site, (LandingCheck(run="exit 1", name="of the queue"),))

    done = update(site, "merge")

    assert [(check["name"], check["output"]) for check in done.checks] == [
        ("echo of the task", "of the task\n")
    ]
    git(repository, "reset", "--quiet", "--hard", "HEAD~1")
    git(repository, "branch", "--quiet", "-m", "landlane/T99-1/work")
    assert [check["name"] for check in update(site, "merge").checks] == ["of the queue"]
    git(repository, "reset", "--quiet", "--hard", "HEAD~1")
    assert update(site, "merge", is_checked=False).checks == ()


def test_an_update_waits_for_gits_lock(repository: Path, stand: Stand) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "work", "../work")
    work = repository.parent / "work"
    commit(repository, "theirs\n", "theirs.txt")
    heard: list[str] = []
    site = replace(stand(work), report=heard.append)
    session = sessions.join(site, "ann").session
    with git_lock(site.common_dir, "a test"):
        running = Background(lambda: updating.update(site, session, "merge"))
        wait_until(lambda: bool(heard))
        assert not (work / "theirs.txt").exists()
    assert running.result().position.behind == 0
    assert (work / "theirs.txt").exists()


def test_the_command_ends_with_four_when_behind(repository: Path, origin: Path, tmp_path: Path) -> None:
    shell = Shell(repository)
    assert shell.ask("sync")["is_fresh"]
    assert shell.tell("sync") == "main: 0 behind and 0 ahead of origin/main\n"
    tip = push(tmp_path, "theirs\n")

    answer = shell.refuse("BEHIND", "sync", exit=4)
    said = shell.run("sync")

    assert (answer["behind"], answer["ahead"], answer["tip"], answer["dirty"]) == (1, 0, tip, False)
    assert said.exit == 4
    assert f"{tip[:12]} Write README.md  (bob)" in said.err
    assert shell.tell("sync", "--update", "merge").startswith("main: 0 behind")
    origin.rename(tmp_path / "gone.git")
    assert not shell.refuse("OFFLINE", "sync", exit=1)["is_fresh"]


def test_a_failing_check_is_told_and_the_update_stays(repository: Path, origin: Path, tmp_path: Path) -> None:
    (repository / "landlane.toml").write_text('[landing]\nchecks = ["echo broken; exit 2"]\n')
    git(repository, "add", "landlane.toml")
    git(repository, "commit", "--quiet", "-m", "Settings")
    git(repository, "push", "--quiet")
    tip = push(tmp_path, "theirs\n")
    shell = Shell(repository)

    answer = shell.refuse("CHECK_FAILED", "sync", "--update", "rebase", exit=1)

    assert (answer["head"], answer["updated"]) == (tip, "rebase")
    assert answer["checks"][0]["output"] == "broken\n"
    assert shell.ask("sync", "--update", "merge", "--no-check")["updated"] is None
    push(tmp_path, "again\n")
    said = shell.run("sync", "--update", "merge")
    assert (said.exit, "broken" in said.err) == (1, True)


def test_without_git_there_is_nothing_to_sync(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / ".landlane").mkdir(parents=True)

    Shell(folder).refuse("NO_GIT_HERE", "sync", exit=1)

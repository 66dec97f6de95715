"""What all worktrees share: settings that flip, limits, entries of lost worktrees, forsaken lock files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.app.open import open_repository
from landlane.app.repair_config import prepare_git
from landlane.doctor.check import Check
from landlane.doctor.examine import examine
from landlane.git import leftovers
from landlane.git import shared_config as settings
from landlane.git.discovery import find_checkout
from landlane.git.shared_config import (
    GIT_LIMITS,
    find_config_damage,
    missing_limits,
    read_core,
    remember_config,
    set_git_limits,
)
from landlane.journal.read import read_entries
from landlane.sessions.join import join
from landlane.testing.repositories import git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.git.discovery import Checkout

pytestmark = pytest.mark.integration


@pytest.fixture
def home(repository: Path) -> Checkout:
    return find_checkout(str(repository)).home_checkout


@pytest.fixture
def worktree(repository: Path) -> Path:
    """A linked worktree beside the repository, on branch `topic`."""
    git(repository, "worktree", "add", "--quiet", "-b", "topic", "../linked")
    return repository.parent / "linked"


def mend_by_next_command(repository: Path, agent: str = "ann") -> list[str]:
    """What a command of the git family says by the way; an agent is at work."""
    answer: list[str] = []
    repo = open_repository(str(repository))
    try:
        join(repo, agent)
        prepare_git(repo, answer.append)
    finally:
        repo.close()
    return answer


def entries_of(repository: Path, kind: str) -> list[dict[str, Any]]:
    repo = open_repository(str(repository))
    try:
        return [entry.facts() for entry in read_entries(repo) if entry.kind == kind]
    finally:
        repo.close()


def setting(repository: Path, name: str) -> str:
    found = subprocess.run(
        ["git", "config", "--file", ".git/config", "--get", name],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip()


def check_of(repository: Path, name: str, *, fix: bool = False) -> Check:
    return next(check for check in examine(str(repository), fix=fix) if check.name == name)


def is_usable(folder: Path) -> bool:
    return not subprocess.run(["git", "status"], cwd=folder, capture_output=True, check=False).returncode


@contextmanager
def no_git(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody may start git meanwhile."""

    def refuse(*words: str, **_: object) -> None:
        raise AssertionError(f"git was started: {words}")

    with monkeypatch.context() as patch:
        patch.setattr(settings, "run_git", refuse)
        yield


# ---------------------------------------------------------------------------------------- core.bare


@pytest.mark.promise(
    "git.flips-are-mended",
    "A repository that became bare by accident is repaired by the next command.",
)
def test_repository_made_bare_by_git_init_is_repaired_by_the_next_command(
    repository: Path, worktree: Path
) -> None:
    mend_by_next_command(repository, "bob")
    variables = {**os.environ, "GIT_DIR": str(repository / ".git" / "worktrees" / "linked")}
    subprocess.run(["git", "init", "--quiet"], cwd=worktree, env=variables, check=True)
    assert not is_usable(repository)

    answer = mend_by_next_command(repository)

    assert is_usable(repository)
    assert is_usable(worktree)
    assert len(answer) == 1
    assert "core.bare is true" in answer[0]
    assert "live then: bob" in answer[0]
    assert [entry["reason"] for entry in entries_of(repository, "git.mended")] == [
        "core.bare is true: git refuses to work in the main checkout; it is false again"
    ]


@pytest.mark.parametrize("written", ["bare = true", "bare", "BARE = Yes ; really", 'bare = "on"'])
def test_every_way_to_write_it_is_noticed(repository: Path, home: Checkout, written: str) -> None:
    config = repository / ".git" / "config"
    config.write_text(config.read_text().replace("bare = false", written))

    assert [flip.key for flip in find_config_damage(home)] == ["bare"]
    mend_by_next_command(repository)
    assert is_usable(repository)


def test_git_command_and_doctor_repair_it(repository: Path) -> None:
    git(repository, "config", "core.bare", "true")

    check = check_of(repository, "git settings")

    assert check.is_ok
    assert "core.bare is true" in check.found
    assert is_usable(repository)


def test_a_repository_that_is_meant_to_be_bare_stays_so(repository: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(project / ".git"))
    git(project / ".git", "worktree", "add", "--quiet", "../main", "main")

    assert mend_by_next_command(project / "main") == []
    assert check_of(project / "main", "git settings").is_ok
    assert setting(project, "core.bare") == "true"


def test_a_look_at_settings_in_order_starts_no_process(
    repository: Path, home: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_config(home)

    with no_git(monkeypatch):
        assert mend_by_next_command(repository) == []


def test_only_the_core_section_counts_and_the_last_value_wins() -> None:
    text = (
        '[core]\n\tbare = true\n[other "x"]\n\tbare = true\n[core] bare = false\n\tworktree = "../a b" # c\n'
    )

    assert read_core(text) == {"bare": "false", "worktree": "../a b"}
    assert read_core('[other "core"]\n\tbare = true\n') == {}


# ------------------------------------------------------------------------- core.worktree, core.hooksPath


def test_a_working_tree_elsewhere_is_taken_back(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "core.worktree", str(tmp_path / "elsewhere"))

    answer = mend_by_next_command(repository)

    assert "core.worktree" in answer[0]
    assert setting(repository, "core.worktree") == ""
    assert is_usable(repository)


def test_a_working_tree_that_leads_back_is_meant(repository: Path, home: Checkout) -> None:
    git(repository, "config", "core.worktree", str(repository))

    assert find_config_damage(home) == []


def test_hooks_from_a_folder_that_is_gone_are_taken_back(repository: Path, home: Checkout) -> None:
    remember_config(home)
    git(repository, "config", "core.hooksPath", "/nowhere/hooks")

    answer = mend_by_next_command(repository)

    assert "no hook runs" in answer[0]
    assert setting(repository, "core.hooksPath") == ""


def test_hooks_from_one_worktree_are_taken_back(repository: Path, home: Checkout, worktree: Path) -> None:
    (repository / ".husky").mkdir()
    git(repository, "config", "core.hooksPath", ".husky")
    remember_config(home)
    (worktree / "hooks").mkdir()
    git(repository, "config", "core.hooksPath", str(worktree / "hooks"))

    mend_by_next_command(repository)

    assert setting(repository, "core.hooksPath") == ".husky"


def test_hooks_in_the_repository_are_the_users_choice(repository: Path, home: Checkout) -> None:
    remember_config(home)
    (repository / ".husky").mkdir()
    git(repository, "config", "core.hooksPath", ".husky")

    assert mend_by_next_command(repository) == []
    assert check_of(repository, "git settings").is_ok


def test_hooks_from_outside_are_reported_and_reset_only_on_request(
    repository: Path, home: Checkout, tmp_path: Path
) -> None:
    remember_config(home)
    mend_by_next_command(repository)
    outside = tmp_path / "outside"
    outside.mkdir()
    git(repository, "config", "core.hooksPath", str(outside))

    assert mend_by_next_command(repository) == []
    before = check_of(repository, "git settings")
    assert not before.is_ok
    assert "live then: ann" in before.found

    after = check_of(repository, "git settings", fix=True)
    assert after.is_ok
    assert "core.hooksPath" in after.found
    assert setting(repository, "core.hooksPath") == ""


# --------------------------------------------------------------------------------------------- limits


def test_limits_are_set_once_and_settings_of_the_user_are_kept(
    repository: Path, home: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "config", "core.packedRefsTimeout", "5")

    made = set_git_limits(home)

    # gc.auto stands in the user's own settings here.
    assert made == ["core.filesRefLockTimeout=2000", "maintenance.auto=false"]
    assert setting(repository, "core.packedRefsTimeout") == "5"
    assert missing_limits(home) == []
    with no_git(monkeypatch):
        assert set_git_limits(home) == []


def test_many_may_set_limits_at_once(repository: Path, home: Checkout, sealed_home: Path) -> None:
    (sealed_home / ".gitconfig").write_text("")
    threads = [threading.Thread(target=set_git_limits, args=(home,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert {name: setting(repository, name) for name in GIT_LIMITS} == GIT_LIMITS
    remembered = json.loads((repository / ".git" / "landlane" / "git-limits.json").read_text())
    assert remembered["set"] == list(GIT_LIMITS)


def test_doctor_reports_missing_limits_and_sets_them(repository: Path) -> None:
    before = check_of(repository, "git settings")
    fixed = check_of(repository, "git settings", fix=True)
    after = check_of(repository, "git settings")

    assert (before.is_ok, before.is_enforced) == (True, False)
    assert "core.filesRefLockTimeout=2000" in before.found
    assert "core.filesRefLockTimeout=2000 set" in fixed.found
    assert after.found == "as they should be"


# ------------------------------------------------------------------------------------------ worktrees


def test_an_entry_without_its_folder_is_removed_and_its_commits_kept(
    repository: Path, worktree: Path
) -> None:
    git(worktree, "switch", "--quiet", "--detach")
    git(worktree, "commit", "--quiet", "--allow-empty", "-m", "On no branch")
    commit = git(worktree, "rev-parse", "HEAD").strip()
    shutil.rmtree(worktree)

    before = check_of(repository, "worktrees")
    fixed = check_of(repository, "worktrees", fix=True)
    after = check_of(repository, "worktrees")

    assert not before.is_ok
    assert str(worktree) in before.found
    assert fixed.is_ok
    assert git(repository, "rev-parse", "refs/landlane/rescue/orphan-linked").strip() == commit
    assert after.found == "every entry has its folder"
    assert "linked" not in git(repository, "worktree", "list")


def test_staged_files_of_a_lost_worktree_are_kept(repository: Path, worktree: Path) -> None:
    (worktree / "new.py").write_text("staged\n")
    git(worktree, "add", "new.py")
    shutil.rmtree(worktree)

    check_of(repository, "worktrees", fix=True)

    assert git(repository, "show", "refs/landlane/rescue/orphan-linked:new.py") == "staged\n"


def test_an_entry_whose_work_is_on_a_branch_needs_no_rescue(repository: Path, worktree: Path) -> None:
    shutil.rmtree(worktree)

    fixed = check_of(repository, "worktrees", fix=True)

    assert "it had no unsaved work" in fixed.found
    assert git(repository, "for-each-ref", "refs/landlane/rescue") == ""


def test_a_locked_entry_and_one_on_a_drive_that_is_away_stay(repository: Path, worktree: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "other", "../other")
    git(repository, "worktree", "lock", "../linked")
    shutil.rmtree(worktree)
    shutil.rmtree(repository.parent / "other")
    (repository / ".git" / "worktrees" / "other" / "gitdir").write_text("/media/stick/other/.git\n")

    fixed = check_of(repository, "worktrees", fix=True)

    assert fixed.is_ok
    assert "it is locked" in fixed.found
    assert "its drive may be away" in fixed.found
    assert sorted(os.listdir(repository / ".git" / "worktrees")) == ["linked", "other"]


# ----------------------------------------------------------------------------------------- lock files


def make_lock(repository: Path, name: str, *, age_seconds: float = 3600) -> Path:
    path = repository / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("half an index")
    at = time.time() - age_seconds
    os.utime(path, (at, at))
    return path


LOCKS = (
    "index.lock",
    "config.lock",
    "HEAD.lock",
    "packed-refs.lock",
    "shallow.lock",
    "refs/heads/main.lock",
    "worktrees/linked/index.lock",
)


def test_forsaken_lock_files_are_put_aside(repository: Path, worktree: Path) -> None:
    paths = [make_lock(repository, name) for name in LOCKS]

    before = check_of(repository, "lock files")
    fixed = check_of(repository, "lock files", fix=True)

    assert not before.is_ok
    assert all(f"{name}: abandoned" in before.found for name in LOCKS)
    assert fixed.is_ok
    assert not any(path.exists() for path in paths)
    kept = repository / ".git" / "landlane" / "leftovers"
    assert len(list(kept.iterdir())) == len(LOCKS)
    assert all(path.read_text() == "half an index" for path in kept.iterdir())
    assert check_of(repository, "lock files").found == "none"


def test_lock_file_names_the_sessions_active_when_it_was_made(repository: Path) -> None:
    mend_by_next_command(repository, "bob")
    make_lock(repository, "index.lock", age_seconds=-1)

    assert "live then: bob; the last to act before: bob" in check_of(repository, "lock files").found


def test_a_young_lock_file_stays(repository: Path) -> None:
    path = make_lock(repository, "index.lock", age_seconds=1)

    fixed = check_of(repository, "lock files", fix=True)

    assert path.exists()
    assert fixed.is_ok
    assert "seconds old" in fixed.found


def test_a_lock_file_that_somebody_has_open_stays(repository: Path) -> None:
    path = make_lock(repository, "index.lock")

    with path.open():
        fixed = check_of(repository, "lock files", fix=True)

    assert path.exists()
    assert f"process {os.getpid()}" in fixed.found


def test_lock_files_stay_while_a_git_works_here(repository: Path) -> None:
    path = make_lock(repository, "index.lock")
    with subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"HEAD\n")
        running.stdin.flush()
        running.stdout.readline()  # now it is up and at work

        fixed = check_of(repository, "lock files", fix=True)
        running.stdin.close()

    assert path.exists()
    assert f"process {running.pid} (git) works on this repository" in fixed.found


def test_new_lock_file_is_not_mistaken_for_the_old_one(repository: Path) -> None:
    path = make_lock(repository, "index.lock")
    (found,) = leftovers.find_lock_files(str(repository / ".git"))
    path.unlink()
    make_lock(repository, "index.lock", age_seconds=0)

    assert leftovers.set_lock_aside(str(repository / ".git"), found) == ""
    assert path.exists()

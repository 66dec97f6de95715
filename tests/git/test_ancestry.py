"""Facts about commits that are asked of git once, and what must not be believed for longer than it holds."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from landlane.git import commits, target
from landlane.git.commits import is_ancestor, is_merged, merge_base
from landlane.git.discovery import find_checkout
from landlane.git.target import commit_at, find_target, git_settings
from landlane.settings.model import Settings
from landlane.values import replace
from landlane.workspaces.recent_changes import has_newer, read_clocks
from tests.support.git import git

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.git.discovery import Checkout

pytestmark = pytest.mark.integration


@pytest.fixture
def home(repository: Path) -> Checkout:
    for known in (commits._relations, commits._merged, target._settings):  # pyright: ignore[reportPrivateUsage]
        known.clear()
    return find_checkout(str(repository))


def commit(repository: Path, name: str, text: str) -> str:
    (repository / name).write_text(text)
    git(repository, "add", name)
    git(repository, "commit", "--quiet", "-m", f"{name}: {text}")
    return git(repository, "rev-parse", "HEAD").strip()


def test_ancestors_are_recognised(home: Checkout, repository: Path) -> None:
    base = commit(repository, "a", "1")
    git(repository, "switch", "--quiet", "-c", "topic")
    topic = commit(repository, "b", "1")
    git(repository, "switch", "--quiet", "main")
    main = commit(repository, "a", "2")

    for _ in range(2):  # once from git, once remembered
        assert is_ancestor(home, base, main)
        assert is_ancestor(home, main, main)
        assert not is_ancestor(home, topic, main)
        assert merge_base(home, main, topic) == base
    assert not is_ancestor(home, "f" * 40, main)
    assert merge_base(home, "f" * 40, main) == ""


def test_a_name_is_asked_for_again_each_time(home: Checkout, repository: Path) -> None:
    first = commit(repository, "a", "1")
    git(repository, "branch", "moving", first)
    second = commit(repository, "a", "2")
    assert not is_ancestor(home, second, "moving")

    git(repository, "branch", "--force", "moving", second)

    assert is_ancestor(home, second, "moving")


def test_an_object_that_comes_later_is_found_then(home: Checkout, repository: Path, tmp_path: Path) -> None:
    here = commit(repository, "a", "1")
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(repository), str(other))
    there = commit(other, "a", "2")
    assert not is_ancestor(home, here, there)

    git(repository, "fetch", "--quiet", str(other))

    assert is_ancestor(home, here, there)


class TestMerged:
    """Whether the work of a branch is in another, with what happened there beside it."""

    def topic(self, repository: Path) -> str:
        commit(repository, "a", "1")
        git(repository, "switch", "--quiet", "-c", "topic")
        head = commit(repository, "mine", "work\n")
        git(repository, "switch", "--quiet", "main")
        return head

    def test_not_when_nothing_came_since(self, home: Checkout, repository: Path) -> None:
        head = self.topic(repository)

        assert not is_merged(home, head, git(repository, "rev-parse", "main").strip())

    def test_changes_of_other_paths_do_not_make_a_branch_merged(
        self, home: Checkout, repository: Path
    ) -> None:
        head = self.topic(repository)

        assert not is_merged(home, head, commit(repository, "theirs", "other\n"))

    def test_not_by_another_change_of_the_same_path(self, home: Checkout, repository: Path) -> None:
        head = self.topic(repository)

        assert not is_merged(home, head, commit(repository, "mine", "something else\n"))

    def test_as_one_commit(self, home: Checkout, repository: Path) -> None:
        head = self.topic(repository)
        git(repository, "merge", "--quiet", "--squash", "topic")
        git(repository, "commit", "--quiet", "-m", "squashed")

        assert is_merged(home, head, commit(repository, "theirs", "later\n"))

    def test_also_when_it_was_changed_again_or_taken_back_later(
        self, home: Checkout, repository: Path
    ) -> None:
        head = self.topic(repository)
        git(repository, "cherry-pick", "topic")
        assert is_merged(home, head, commit(repository, "mine", "work, and more\n"))
        git(repository, "revert", "--no-edit", "HEAD~1..HEAD")
        git(repository, "rm", "--quiet", "mine")
        git(repository, "commit", "--quiet", "-m", "gone again")

        assert is_merged(home, head, git(repository, "rev-parse", "main").strip())

    def test_by_a_side_branch_that_was_merged(self, home: Checkout, repository: Path) -> None:
        head = self.topic(repository)
        git(repository, "switch", "--quiet", "-c", "side")
        git(repository, "cherry-pick", "topic")
        git(repository, "switch", "--quiet", "main")
        commit(repository, "theirs", "meanwhile\n")
        git(repository, "merge", "--quiet", "--no-edit", "side")

        assert is_merged(home, head, git(repository, "rev-parse", "main").strip())

    def test_a_path_with_the_signs_of_a_pattern_is_a_path(self, home: Checkout, repository: Path) -> None:
        commit(repository, "a", "1")
        git(repository, "switch", "--quiet", "-c", "topic")
        head = commit(repository, "*[a]:(top)", "work\n")
        git(repository, "switch", "--quiet", "main")
        git(repository, "cherry-pick", "topic")

        assert is_merged(home, head, commit(repository, "theirs", "later\n"))


def test_changed_settings_of_git_are_seen_at_once(home: Checkout, repository: Path, tmp_path: Path) -> None:
    commit(repository, "a", "1")
    assert find_target(home, Settings()).remote == ""

    git(repository, "remote", "add", "origin", str(tmp_path))
    assert find_target(home, Settings()).remote == "origin"
    git(repository, "remote", "remove", "origin")
    assert find_target(home, Settings()).remote == ""
    with open(os.path.join(home.common_dir, "config"), "a", encoding="utf-8") as file:
        file.write("[some]\n\tthing = one\n")
    assert git_settings(home)["some.thing"] == "one"


class TestNewer:
    """What was changed in a checkout since a moment."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        root = tmp_path / "tree"
        for name in (".git/refs/heads/x", ".git/objects/y", "below/z", "a"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("before")
        return root

    def settle(self) -> None:
        """Let the clock of files pass what counts as one moment."""
        time.sleep(0.05)

    def test_nothing_but_its_name(self, tree: Path) -> None:
        self.settle()
        since = read_clocks(str(tree.parent), str(tree.parent))
        assert since.has_file_times
        moved = tree.rename(tree.with_name("moved"))

        assert not has_newer(str(moved), str(moved / ".git"), since)

    @pytest.mark.parametrize(("late", "seconds"), [("os.fstat", (0.05,)), ("time.time_ns", (0, 0.05))])
    def test_process_that_was_paused_reads_again(
        self, tree: Path, monkeypatch: pytest.MonkeyPatch, late: str, seconds: tuple[float, ...]
    ) -> None:
        self.settle()
        module, _, name = late.partition(".")
        original = getattr({"os": os, "time": time}[module], name)
        pauses = iter(seconds)  # after each call

        def call(*words: object) -> object:
            answer = original(*words)
            time.sleep(next(pauses, 0))
            return answer

        with monkeypatch.context() as patched:
            patched.setattr(f"landlane.workspaces.recent_changes.{late}", call)
            since = read_clocks(str(tree.parent))

        assert next(pauses, None) is None
        assert since.has_file_times
        moved = tree.rename(tree.with_name("moved"))
        assert not has_newer(str(moved), str(moved / ".git"), since)

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda tree: (tree / "below" / "z").write_text("after"), id="written"),
            pytest.param(lambda tree: (tree / "new").write_text(""), id="created"),
            pytest.param(lambda tree: (tree / "a").unlink(), id="deleted at the top"),
            pytest.param(lambda tree: (tree / "below" / "z").unlink(), id="deleted below"),
            pytest.param(lambda tree: (tree / "a").chmod(0o755), id="mode"),
            pytest.param(lambda tree: (tree / ".git/refs/heads/y").write_text("1"), id="a ref"),
            pytest.param(lambda tree: (tree / "link").symlink_to("a"), id="a link"),
            pytest.param(lambda tree: os.utime(tree / "a", (1, 1)), id="set back in time"),
        ],
    )
    def test_a_change(self, tree: Path, change: object) -> None:
        self.settle()
        since = read_clocks(str(tree.parent))
        self.settle()

        change(tree)  # type: ignore[operator]

        assert has_newer(str(tree), str(tree / ".git"), since)

    def test_clock_that_was_set_means_that_files_may_be_newer(self, tree: Path) -> None:
        self.settle()
        since = read_clocks(str(tree))
        ahead = replace(since, wall_ns=since.wall_ns + 3_600_000_000_000)

        assert has_newer(str(tree), str(tree / ".git"), ahead)

    def test_where_times_tell_nothing_all_may_be_new(self, tree: Path) -> None:
        self.settle()

        nowhere = read_clocks(str(tree.parent / "missing"))

        assert not nowhere.has_file_times
        assert has_newer(str(tree), str(tree / ".git"), nowhere)
        assert [path.name for path in tree.parent.iterdir()] == ["tree"]  # nothing is left of the probe

    def test_with_times_in_full_seconds_files_may_be_newer(
        self, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As on a file system that keeps no more: what is written now bears the beginning of its second."""
        stat = os.fstat

        class Coarse:
            def __init__(self, file: int) -> None:
                self.st_ctime_ns = stat(file).st_ctime_ns // 10**9 * 10**9

        while not 10**8 <= time.time_ns() % 10**9 < 8 * 10**8:
            time.sleep(0.01)
        with monkeypatch.context() as patched:
            patched.setattr("landlane.workspaces.recent_changes.os.fstat", Coarse)
            since = read_clocks(str(tree))

        assert not since.has_file_times


@pytest.mark.parametrize(
    "name", ["./main", "../heads/main", "main/", "a//b", "../../ORIG_HEAD", ".x", "x.lock"]
)
def test_only_what_can_be_a_branch_is_read_as_one(home: Checkout, repository: Path, name: str) -> None:
    head = commit(repository, "a", "1")
    (repository / ".git" / "ORIG_HEAD").write_text(head + "\n")
    assert commit_at(home, "refs/heads/main") == head

    assert commit_at(home, f"refs/heads/{name}") == ""


def test_a_git_that_failed_is_asked_again(home: Checkout, repository: Path) -> None:
    commit(repository, "a", "1")
    config = repository / ".git" / "config"
    whole = config.read_text()
    config.write_text("[broken")
    assert git_settings(home) == {}
    config.write_text(whole)

    assert "core.bare" in git_settings(home)

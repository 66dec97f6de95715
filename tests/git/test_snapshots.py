"""Pictures of a working tree: complete, by raw bytes, and nothing of the user's is run for them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from landlane.errors import RepositoryError
from landlane.git import snapshot as snapshots
from landlane.git import snapshot_dir
from landlane.git.snapshot import (
    changes_between,
    keep_changes,
    last_snapshot,
    read_kept,
    store_files,
    take_snapshot,
)
from landlane.git.tree_diff import TreeChangeKind
from landlane.git.untrusted_checkout import CLONE, MAIN, WORKTREE, UntrustedCheckout
from landlane.testing.repositories import git, make_repository

pytestmark = pytest.mark.integration

FILES = {"a.txt": "a\n", "src/b.txt": "b\n", "src/c.txt": "c\n", ".gitignore": "*.log\n"}


class SnapshotTestbed:
    """A repository that is pictured again and again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = str(root / ".git")
        self.place = UntrustedCheckout(root=str(root), git_dir=self.home, kind=MAIN, home=self.home)

    def take(self, *named: str) -> str:
        return take_snapshot(self.place, named)

    def changes(self, before: str, after: str) -> dict[str, str]:
        return {one.path: one.kind for one in changes_between(self.place, before, after)}

    def since(self, before: str, *named: str) -> dict[str, str]:
        return self.changes(before, self.take(*named))

    def before(self, before: str, path: str) -> bytes:
        """What a path held in a picture that was taken before the newest."""
        found = changes_between(self.place, before, self.take())
        commit = keep_changes(self.place, "refs/landlane/breaches/T", found, "test")
        return read_kept(self.home, commit)[0][path].data


@pytest.fixture
def scene(tmp_path: Path) -> SnapshotTestbed:
    return SnapshotTestbed(make_repository(tmp_path.resolve() / "repository", files=FILES))


def test_two_pictures_of_the_same_are_the_same(scene: SnapshotTestbed) -> None:
    assert scene.take() == scene.take() == last_snapshot(scene.place)


def test_changes_are_returned_by_kind(scene: SnapshotTestbed) -> None:
    (scene.root / "untracked").write_text("u\n")
    before = scene.take()

    (scene.root / "a.txt").write_text("A\n")
    (scene.root / "untracked").write_text("U\n")
    (scene.root / "src/b.txt").unlink()
    (scene.root / "src/c.txt").rename(scene.root / "src/d.txt")
    (scene.root / ".gitignore").chmod(0o755)
    (scene.root / "link").symlink_to("nowhere")
    (scene.root / "x.log").write_text("ignored\n")

    assert scene.since(before) == {
        "a.txt": TreeChangeKind.CHANGED,
        "untracked": TreeChangeKind.CHANGED,
        "src/b.txt": TreeChangeKind.DELETED,
        "src/c.txt": TreeChangeKind.DELETED,
        "src/d.txt": TreeChangeKind.ADDED,
        ".gitignore": TreeChangeKind.MODE,
        "link": TreeChangeKind.ADDED,
    }


def test_a_touched_file_is_as_it_was(scene: SnapshotTestbed) -> None:
    before = scene.take()

    os.utime(scene.root / "a.txt", ns=(1, 1))
    (scene.root / "src/b.txt").write_text("b\n")

    assert scene.since(before) == {}


def test_a_write_of_the_same_length_with_its_time_put_back_is_seen(scene: SnapshotTestbed) -> None:
    before = scene.take()
    was = (scene.root / "a.txt").stat()

    (scene.root / "a.txt").write_text("b\n")
    os.utime(scene.root / "a.txt", ns=(was.st_atime_ns, was.st_mtime_ns))

    assert scene.since(before) == {"a.txt": TreeChangeKind.CHANGED}


def test_a_folder_in_place_of_a_file_and_back(scene: SnapshotTestbed) -> None:
    before = scene.take()
    (scene.root / "a.txt").unlink()
    (scene.root / "a.txt").mkdir()
    (scene.root / "a.txt/in").write_text("x\n")
    middle = scene.take()
    (scene.root / "a.txt/in").unlink()
    (scene.root / "a.txt").rmdir()
    (scene.root / "a.txt").write_text("a\n")

    assert scene.changes(before, middle) == {
        "a.txt": TreeChangeKind.DELETED,
        "a.txt/in": TreeChangeKind.ADDED,
    }
    assert scene.take() == before


def test_names_may_be_any_bytes(scene: SnapshotTestbed) -> None:
    before = scene.take()
    names = [b"\xff\xfe", b"line\nend", b"'\"`$ \\", b"tab\tin", " ü".encode(), b"-rf"]
    for name in names:
        with open(os.fsencode(scene.root) + b"/" + name, "wb") as file:
            file.write(name)

    assert set(scene.since(before)) == {os.fsdecode(name) for name in names}


def test_the_users_index_and_settings_are_left_alone(scene: SnapshotTestbed) -> None:
    (scene.root / "a.txt").write_text("staged\n")
    git(scene.root, "add", "a.txt")
    (scene.root / "a.txt").write_text("and changed\n")
    index = (scene.root / ".git/index").read_bytes()
    config = (scene.root / ".git/config").read_bytes()
    refs = git(scene.root, "for-each-ref")

    scene.take()

    assert (scene.root / ".git/index").read_bytes() == index
    assert (scene.root / ".git/config").read_bytes() == config
    assert git(scene.root, "for-each-ref") == refs


def test_nothing_of_the_users_is_run(scene: SnapshotTestbed, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    program.chmod(0o755)
    for key in (
        "filter.lfs.clean",
        "filter.lfs.process",
        "core.fsmonitor",
        "core.hooksPath",
        "diff.external",
    ):
        git(scene.root, "config", key, str(program))
    git(scene.root, "config", "filter.lfs.required", "true")
    (scene.root / ".gitattributes").write_text("*.txt filter=lfs diff=lfs\n")
    for name in ("post-index-change", "pre-commit"):
        hook = scene.root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_bytes(program.read_bytes())
        hook.chmod(0o755)

    before = scene.take()
    (scene.root / "a.txt").write_text("big\n")

    assert scene.since(before) == {"a.txt": TreeChangeKind.CHANGED}
    assert not trap.exists()


def test_filtered_files_are_kept_as_they_lie_on_the_disk(scene: SnapshotTestbed) -> None:
    git(scene.root, "config", "filter.rot.clean", "tr a-z n-za-m")
    git(scene.root, "config", "filter.rot.smudge", "tr a-z n-za-m")
    (scene.root / ".gitattributes").write_text("*.rot filter=rot\n*.crlf text eol=crlf\n")
    (scene.root / "x.rot").write_bytes(b"hello\n")
    (scene.root / "y.crlf").write_bytes(b"one\r\ntwo\r\n")
    git(scene.root, "add", "--all")
    git(scene.root, "commit", "--quiet", "-m", "Filtered")
    before = scene.take()

    (scene.root / "x.rot").write_bytes(b"other\n")
    (scene.root / "y.crlf").write_bytes(b"x\n")

    assert scene.before(before, "x.rot") == b"hello\n"
    assert scene.before(before, "y.crlf") == b"one\r\ntwo\r\n"


def test_touching_a_filtered_file_changes_nothing(scene: SnapshotTestbed) -> None:
    (scene.root / ".gitattributes").write_text("*.crlf text eol=crlf\n")
    (scene.root / "y.crlf").write_bytes(b"one\r\n")
    git(scene.root, "add", "--all")
    git(scene.root, "commit", "--quiet", "-m", "Filtered")
    before = scene.take()

    (scene.root / "y.crlf").write_bytes(b"one\r\n")

    assert scene.since(before) == {}


def test_files_hidden_from_git_are_in_the_snapshot(scene: SnapshotTestbed) -> None:
    git(scene.root, "update-index", "--assume-unchanged", "a.txt")
    git(scene.root, "update-index", "--skip-worktree", "src/b.txt")
    before = scene.take()

    (scene.root / "a.txt").write_text("A\n")
    (scene.root / "src/b.txt").write_text("B\n")

    assert scene.since(before) == {"a.txt": TreeChangeKind.CHANGED, "src/b.txt": TreeChangeKind.CHANGED}


def test_named_file_is_in_the_snapshot_though_ignored(scene: SnapshotTestbed) -> None:
    (scene.root / "x.log").write_text("1\n")
    before = scene.take("x.log", "missing.log", "src")

    (scene.root / "x.log").write_text("2\n")

    assert scene.since(before) == {"x.log": TreeChangeKind.CHANGED}
    assert scene.before(before, "x.log") == b"1\n"


def test_tracked_file_is_in_the_snapshot_though_ignored(scene: SnapshotTestbed) -> None:
    scene.take()
    (scene.root / "forced.log").write_text("1\n")
    git(scene.root, "add", "--force", "forced.log")
    before = scene.take()

    (scene.root / "forced.log").write_text("2\n")

    assert scene.since(before) == {"forced.log": TreeChangeKind.CHANGED}


def test_a_large_file_is_known_by_its_stamp(scene: SnapshotTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_MOST_BYTES", 10)
    (scene.root / "big").write_bytes(b"x" * 11)
    before = scene.take()
    assert scene.since(before) == {}

    (scene.root / "big").write_bytes(b"y" * 11)

    assert scene.since(before) == {"big": TreeChangeKind.CHANGED}
    assert scene.before(before, "big").startswith(snapshots.NOT_KEPT)


def test_other_repositories_inside_are_not_looked_into(scene: SnapshotTestbed) -> None:
    before = scene.take()

    make_repository(scene.root / "nested")
    git(scene.root, "worktree", "add", "--quiet", "--detach", str(scene.root / "inner"))

    assert scene.since(before) == {}


def test_a_half_done_merge_is_pictured_as_it_lies_there(scene: SnapshotTestbed) -> None:
    git(scene.root, "switch", "--quiet", "-c", "one")
    (scene.root / "a.txt").write_text("one\n")
    git(scene.root, "commit", "--quiet", "-am", "One")
    git(scene.root, "switch", "--quiet", "main")
    (scene.root / "a.txt").write_text("two\n")
    git(scene.root, "commit", "--quiet", "-am", "Two")
    with pytest.raises(subprocess.CalledProcessError):
        git(scene.root, "merge", "one")

    before = scene.take()
    (scene.root / "a.txt").write_text("merged\n")

    assert scene.since(before) == {"a.txt": TreeChangeKind.CHANGED}
    assert b"<<<<<<<" in scene.before(before, "a.txt")


def test_worktrees_and_unborn_branches_are_pictured(tmp_path: Path, scene: SnapshotTestbed) -> None:
    other = tmp_path.resolve() / "worktree"
    git(scene.root, "worktree", "add", "--quiet", "--detach", str(other))
    place = UntrustedCheckout(
        root=str(other), git_dir=f"{scene.home}/worktrees/worktree", kind=WORKTREE, home=scene.home
    )
    before = take_snapshot(place)
    (other / "new").write_text("x\n")
    assert [one.path for one in changes_between(place, before, take_snapshot(place))] == ["new"]

    empty = tmp_path.resolve() / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet")
    fresh = SnapshotTestbed(empty)
    before = fresh.take()
    (empty / "first").write_text("x\n")
    assert fresh.since(before) == {"first": TreeChangeKind.ADDED}


def test_a_clone_is_pictured_with_its_own_commits(tmp_path: Path, scene: SnapshotTestbed) -> None:
    other = tmp_path.resolve() / "clone"
    git(scene.root, "clone", "--quiet", "--shared", ".", str(other))
    (other / "a.txt").write_text("committed in the clone\n")
    git(other, "commit", "--quiet", "-am", "Own")
    place = UntrustedCheckout(root=str(other), git_dir=f"{other}/.git", kind=CLONE, home=scene.home)
    before = take_snapshot(place)
    (other / "a.txt").write_text("changed\n")
    changes = changes_between(place, before, take_snapshot(place))

    commit = keep_changes(place, "refs/landlane/breaches/T", changes, "test")

    assert [one.path for one in changes] == ["a.txt"]
    assert read_kept(scene.home, commit)[0]["a.txt"].data == b"committed in the clone\n"


def test_sha256_repository_has_snapshots(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "long"
    root.mkdir()
    git(root, "init", "--quiet", "--object-format=sha256")
    (root / "a").write_text("a\n")
    found = SnapshotTestbed(root)
    before = found.take()
    (root / "a").write_text("b\n")

    assert len(before) == 64
    assert found.since(before) == {"a": TreeChangeKind.CHANGED}
    assert found.before(before, "a") == b"a\n"


def test_missing_objects_and_a_broken_index_are_rebuilt(scene: SnapshotTestbed) -> None:
    (scene.root / "a.txt").write_text("only staged once\n")
    git(scene.root, "add", "a.txt")
    before = scene.take()
    git(scene.root, "reset", "--quiet")
    git(scene.root, "gc", "--quiet", "--prune=now")
    (scene.root / "src/b.txt").write_text("B\n")
    assert scene.take() != before

    (folder,) = (scene.root / ".git/landlane/lenses").iterdir()
    (folder / "index").write_bytes(b"DIRC nonsense")
    (folder / "index.lock").write_bytes(b"")
    first = scene.take()
    (scene.root / "a.txt").write_text("again\n")
    assert scene.since(first) == {"a.txt": TreeChangeKind.CHANGED}


def test_old_objects_are_swept_away_and_pictures_go_on(
    scene: SnapshotTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scene.root / "a.txt").write_text("old\n")
    old = scene.take()
    (scene.root / "a.txt").write_text("new\n")
    scene.take()
    (folder,) = (scene.root / ".git/landlane/lenses").iterdir()
    for file in (folder / "objects").rglob("*"):
        os.utime(file, (1, 1))
    monkeypatch.setattr(snapshot_dir, "_MOST_STAGED_FILES", 0)

    now = scene.take()

    with pytest.raises(RepositoryError):
        scene.changes(old, now)
    monkeypatch.undo()
    (scene.root / "a.txt").write_text("newest\n")
    assert scene.since(now) == {"a.txt": TreeChangeKind.CHANGED}


def test_many_at_once_do_each_other_no_harm(scene: SnapshotTestbed) -> None:
    script = (
        "import sys\n"
        "from landlane.git.untrusted_checkout import UntrustedCheckout\n"
        "from landlane.git.snapshot import take_snapshot\n"
        "home = sys.argv[1] + '/.git'\n"
        "place = UntrustedCheckout(root=sys.argv[1], git_dir=home, kind='main', home=home)\n"
        "for number in range(5):\n"
        "    open(f'{sys.argv[1]}/{sys.argv[2]}', 'w').write(str(number))\n"
        "    print(take_snapshot(place))\n"
    )
    found: list[subprocess.CompletedProcess[str]] = []

    def run(name: str) -> None:
        words = [sys.executable, "-c", script, str(scene.root), name]
        found.append(subprocess.run(words, capture_output=True, text=True, timeout=120))

    threads = [threading.Thread(target=run, args=(f"f{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [one.stderr for one in found] == [""] * 4
    last = scene.take()
    assert scene.take() == last
    listed = subprocess.run(
        [
            "git",
            "--git-dir",
            str(next((scene.root / ".git/landlane/lenses").iterdir())),
            "ls-tree",
            "-r",
            last,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert {f"f{number}" for number in range(4)} <= {line.partition("\t")[2] for line in listed.splitlines()}


@pytest.mark.slow
def test_some_thousand_files(tmp_path: Path) -> None:
    files = {f"d{number % 50}/f{number}.txt": f"{number}\n" for number in range(4000)}
    found = SnapshotTestbed(make_repository(tmp_path.resolve() / "large", files=files))
    before = found.take()
    (found.root / "d7/f7.txt").write_text("changed\n")
    (found.root / "d8/new.txt").write_text("new\n")

    assert found.since(before) == {"d7/f7.txt": TreeChangeKind.CHANGED, "d8/new.txt": TreeChangeKind.ADDED}


def test_single_files_elsewhere_are_kept_by_their_stamp(scene: SnapshotTestbed, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere"
    file.write_text("1\n")
    first = store_files(scene.place, [str(file), str(tmp_path / "missing")])
    again = store_files(scene.place, [str(file)])
    file.write_text("2\n")
    changed = store_files(scene.place, [str(file)])

    assert list(first) == [str(file)]
    assert again == first
    assert changed[str(file)].oid != first[str(file)].oid


def test_snapshot_directories_of_checkouts_that_are_gone_are_removed(
    scene: SnapshotTestbed, tmp_path: Path
) -> None:
    other = tmp_path.resolve() / "worktree"
    git(scene.root, "worktree", "add", "--quiet", "--detach", str(other))
    git_dir = f"{scene.home}/worktrees/worktree"
    take_snapshot(UntrustedCheckout(root=str(other), git_dir=git_dir, kind=WORKTREE, home=scene.home))
    scene.take()
    git(scene.root, "worktree", "remove", "--force", str(other))

    assert snapshot_dir.remove_orphaned_dirs(scene.home) == 1
    assert len(list((scene.root / ".git/landlane/lenses").iterdir())) == 1

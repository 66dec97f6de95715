"""Looking workspaces over, and giving room when the disk is short."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest

from landlane.claims import take as claims
from landlane.claims.model import Taken
from landlane.workspaces import disk_space
from landlane.workspaces import survey as surveying
from tests.support.git import git
from tests.support.workspaces import KINDS, ProcessInFolder, WorkspaceTestbed, commit_file

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)
Usage = namedtuple("Usage", "total used free")

CACHES = """
[workspace]
caches = ["target", "build/cache"]
disk_floor = "1GB"
"""


def claim(testbed: WorkspaceTestbed, pattern: str, agent: str = "ann") -> None:
    repo = testbed.repo(agent)
    request = claims.make_request(repo, (repo.git.pattern_of(pattern, "glob"),))
    assert isinstance(claims.take(repo, testbed.session(agent), request), Taken)


@kinds
def test_a_survey_shows_size_age_state_holder_and_base(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    Path(workspace.path, "big.bin").write_bytes(os.urandom(300_000))

    (found,) = surveying.survey(testbed.prepared_repo())

    assert found.workspace.id == workspace.id
    assert found.is_there
    assert found.is_held
    assert 300_000 <= found.size < 2_000_000
    assert 0 <= found.age_ms < 60_000
    assert (found.behind, found.is_stale) == (0, False)


@kinds
def test_a_base_is_stale_when_landed_commits_touch_claimed_paths(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    testbed.open(kind=kind)
    testbed.open(kind=kind, agent="bob")
    claim(testbed, "src/**")
    claim(testbed, "docs/**", "bob")
    commit_file(testbed.repository, "src/api.py", "landed\n")
    commit_file(testbed.repository, "other.txt", "landed\n")

    ann, bob = surveying.survey(testbed.prepared_repo())

    assert (ann.behind, ann.is_stale) == (2, True)
    assert (bob.behind, bob.is_stale) == (2, False)


def test_ended_holders_and_missing_folders_are_shown(testbed: WorkspaceTestbed) -> None:
    first = testbed.open(agent="bob").workspace
    testbed.leave("bob")
    second = testbed.open().workspace
    shutil.rmtree(second.path)

    seen = {found.workspace.id: found for found in surveying.survey(testbed.prepared_repo())}

    assert (seen[first.id].is_held, seen[first.id].is_there) == (False, True)
    assert (seen[second.id].is_held, seen[second.id].is_there) == (True, False)


def test_closed_ones_are_shown_only_if_asked_for(testbed: WorkspaceTestbed) -> None:
    testbed.close(testbed.open().workspace)

    assert surveying.survey(testbed.prepared_repo()) == []
    (found,) = surveying.survey(testbed.prepared_repo(), with_closed=True)
    assert (found.workspace.state, found.size) == ("closed", 0)


def test_a_survey_runs_git_a_few_times_for_any_number_of_workspaces(
    testbed: WorkspaceTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(12):
        testbed.open()
    commit_file(testbed.repository, "landed.txt", "landed\n")
    asked: list[object] = []
    real = subprocess.run

    def count(words: list[str], **more: object) -> object:
        asked.append(words)
        return real(words, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", count)
    found = surveying.survey(testbed.prepared_repo())

    assert [one.behind for one in found] == [1] * 12
    assert len(asked) <= 6, asked


def make_cache(testbed: WorkspaceTestbed, path: str, name: str, used_at: int) -> Path:
    cache = Path(path, name)
    cache.mkdir(parents=True)
    (cache / "object.o").write_bytes(b"x" * 10_000)
    for one in (cache / "object.o", cache):
        os.utime(one, (used_at, used_at))
    return cache


def test_least_recently_used_caches_are_removed_until_enough_space_is_free(
    testbed: WorkspaceTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (testbed.repository / ".gitignore").write_text("target\nbuild\n")
    git(testbed.repository, "add", ".gitignore")
    testbed.write_settings(CACHES)
    made = [testbed.open(agent=f"a{number}").workspace for number in range(4)]
    old = make_cache(testbed, made[0].path, "target", 1_000)
    older = make_cache(testbed, made[1].path, "build/cache", 500)
    fresh = make_cache(testbed, made[2].path, "target", 2_000)
    live = make_cache(testbed, made[3].path, "target", 100)
    undeclared = make_cache(testbed, made[0].path, "build/other", 1)
    for number in range(3):
        testbed.leave(f"a{number}")
    # Every evicted cache makes six tenths of a gigabyte free.
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda _: Usage(
            10**10, 0, 6 * 10**8 * ((not old.exists()) + (not older.exists()) + (not fresh.exists()))
        ),
    )

    evicted = disk_space.evict_caches(testbed.prepared_repo())

    assert [path for path, _ in evicted] == [str(older), str(old)]
    assert all(size >= 10_000 for _, size in evicted)
    assert fresh.exists()
    assert live.exists()
    assert undeclared.exists()


def test_a_cache_in_use_by_a_process_is_kept(
    testbed: WorkspaceTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (testbed.repository / ".gitignore").write_text("target\n")
    git(testbed.repository, "add", ".gitignore")
    testbed.write_settings(CACHES)
    workspace = testbed.open(agent="bob").workspace
    cache = make_cache(testbed, workspace.path, "target", 1)
    testbed.leave("bob")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 10**10, 0))

    with ProcessInFolder(workspace.path):
        assert disk_space.evict_caches(testbed.prepared_repo()) == []
    assert [path for path, _ in disk_space.evict_caches(testbed.prepared_repo())] == [str(cache)]


@pytest.mark.parametrize("what", ["tracked", "untracked but not ignored", "a link", "outside"])
def test_folders_with_tracked_files_are_never_evicted(
    testbed: WorkspaceTestbed, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "../../precious" if what == "outside" else "target"
    testbed.write_settings(f'[workspace]\ncaches = ["{name}"]\ndisk_floor = "1GB"\n')
    if what == "tracked":
        commit_file(testbed.repository, "target/source.py", "tracked\n")
    workspace = testbed.open(agent="bob").workspace
    place = Path(workspace.path, "target")
    precious = testbed.repository.with_name("precious")
    precious.mkdir()
    (precious / "file").write_text("precious\n")
    if what == "untracked but not ignored":
        place.mkdir()
        (place / "work.py").write_text("not committed yet\n")
    elif what == "a link":
        place.symlink_to(precious)
    testbed.leave("bob")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 10**10, 0))

    assert disk_space.evict_caches(testbed.prepared_repo()) == []
    assert (precious / "file").exists()


def test_with_enough_space_nothing_is_evicted(testbed: WorkspaceTestbed) -> None:
    (testbed.repository / ".gitignore").write_text("target\n")
    git(testbed.repository, "add", ".gitignore")
    testbed.write_settings(CACHES.replace("1GB", "1MB"))
    workspace = testbed.open(agent="bob").workspace
    make_cache(testbed, workspace.path, "target", 1)
    testbed.leave("bob")

    assert disk_space.evict_caches(testbed.prepared_repo()) == []

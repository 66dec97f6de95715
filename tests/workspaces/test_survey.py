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
from tests.support.workspaces import KINDS, Squatter, Yard, commit_file

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)
Usage = namedtuple("Usage", "total used free")

CACHES = """
[workspace]
caches = ["target", "build/cache"]
disk_floor = "1GB"
"""


def claim(yard: Yard, pattern: str, agent: str = "ann") -> None:
    repo = yard.repo(agent)
    request = claims.make_request(repo, (repo.git.pattern_of(pattern, "glob"),))
    assert isinstance(claims.take(repo, yard.session(agent), request), Taken)


@kinds
def test_a_survey_tells_size_age_state_holder_and_base(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    Path(workspace.path, "big.bin").write_bytes(os.urandom(300_000))

    (found,) = surveying.survey(yard.site())

    assert found.workspace.id == workspace.id
    assert found.is_there
    assert found.is_held
    assert 300_000 <= found.size < 2_000_000
    assert 0 <= found.age_ms < 60_000
    assert (found.behind, found.is_stale) == (0, False)


@kinds
def test_a_base_is_stale_when_what_landed_touches_claimed_paths(yard: Yard, kind: str) -> None:
    yard.open(kind=kind)
    yard.open(kind=kind, agent="bob")
    claim(yard, "src/**")
    claim(yard, "docs/**", "bob")
    commit_file(yard.repository, "src/api.py", "landed\n")
    commit_file(yard.repository, "other.txt", "landed\n")

    ann, bob = surveying.survey(yard.site())

    assert (ann.behind, ann.is_stale) == (2, True)
    assert (bob.behind, bob.is_stale) == (2, False)


def test_holders_that_left_and_folders_that_are_gone_are_seen(yard: Yard) -> None:
    first = yard.open(agent="bob").workspace
    yard.leave("bob")
    second = yard.open().workspace
    shutil.rmtree(second.path)

    seen = {found.workspace.id: found for found in surveying.survey(yard.site())}

    assert (seen[first.id].is_held, seen[first.id].is_there) == (False, True)
    assert (seen[second.id].is_held, seen[second.id].is_there) == (True, False)


def test_closed_ones_are_shown_only_if_asked_for(yard: Yard) -> None:
    yard.close(yard.open().workspace)

    assert surveying.survey(yard.site()) == []
    (found,) = surveying.survey(yard.site(), with_closed=True)
    assert (found.workspace.state, found.size) == ("closed", 0)


def test_git_is_asked_a_few_times_however_many_there_are(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(12):
        yard.open()
    commit_file(yard.repository, "landed.txt", "landed\n")
    asked: list[object] = []
    real = subprocess.run

    def count(words: list[str], **more: object) -> object:
        asked.append(words)
        return real(words, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", count)
    found = surveying.survey(yard.site())

    assert [one.behind for one in found] == [1] * 12
    assert len(asked) <= 6, asked


def make_cache(yard: Yard, path: str, name: str, used_at: int) -> Path:
    cache = Path(path, name)
    cache.mkdir(parents=True)
    (cache / "object.o").write_bytes(b"x" * 10_000)
    for one in (cache / "object.o", cache):
        os.utime(one, (used_at, used_at))
    return cache


def test_below_the_floor_the_least_recently_used_caches_go_until_there_is_room(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    (yard.repository / ".gitignore").write_text("target\nbuild\n")
    git(yard.repository, "add", ".gitignore")
    yard.settings(CACHES)
    made = [yard.open(agent=f"a{number}").workspace for number in range(4)]
    old = make_cache(yard, made[0].path, "target", 1_000)
    older = make_cache(yard, made[1].path, "build/cache", 500)
    fresh = make_cache(yard, made[2].path, "target", 2_000)
    live = make_cache(yard, made[3].path, "target", 100)
    undeclared = make_cache(yard, made[0].path, "build/other", 1)
    for number in range(3):
        yard.leave(f"a{number}")
    # Every evicted cache makes six tenths of a gigabyte free.
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda _: Usage(
            10**10, 0, 6 * 10**8 * ((not old.exists()) + (not older.exists()) + (not fresh.exists()))
        ),
    )

    evicted = disk_space.evict_caches(yard.site())

    assert [path for path, _ in evicted] == [str(older), str(old)]
    assert all(size >= 10_000 for _, size in evicted)
    assert fresh.exists()
    assert live.exists()
    assert undeclared.exists()


def test_a_cache_in_which_a_process_lives_stays(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    (yard.repository / ".gitignore").write_text("target\n")
    git(yard.repository, "add", ".gitignore")
    yard.settings(CACHES)
    workspace = yard.open(agent="bob").workspace
    cache = make_cache(yard, workspace.path, "target", 1)
    yard.leave("bob")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 10**10, 0))

    with Squatter(workspace.path):
        assert disk_space.evict_caches(yard.site()) == []
    assert [path for path, _ in disk_space.evict_caches(yard.site())] == [str(cache)]


@pytest.mark.parametrize("what", ["tracked", "untracked but not ignored", "a link", "outside"])
def test_what_is_no_cache_is_never_evicted(yard: Yard, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "../../precious" if what == "outside" else "target"
    yard.settings(f'[workspace]\ncaches = ["{name}"]\ndisk_floor = "1GB"\n')
    if what == "tracked":
        commit_file(yard.repository, "target/source.py", "tracked\n")
    workspace = yard.open(agent="bob").workspace
    place = Path(workspace.path, "target")
    precious = yard.repository.with_name("precious")
    precious.mkdir()
    (precious / "file").write_text("precious\n")
    if what == "untracked but not ignored":
        place.mkdir()
        (place / "work.py").write_text("not committed yet\n")
    elif what == "a link":
        place.symlink_to(precious)
    yard.leave("bob")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 10**10, 0))

    assert disk_space.evict_caches(yard.site()) == []
    assert (precious / "file").exists()


def test_with_room_enough_nothing_goes(yard: Yard) -> None:
    (yard.repository / ".gitignore").write_text("target\n")
    git(yard.repository, "add", ".gitignore")
    yard.settings(CACHES.replace("1GB", "1MB"))
    workspace = yard.open(agent="bob").workspace
    make_cache(yard, workspace.path, "target", 1)
    yard.leave("bob")

    assert disk_space.evict_caches(yard.site()) == []

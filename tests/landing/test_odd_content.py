"""Odd things that land, or say clearly why not: names, modes, links, submodules, big files, full disks."""

from __future__ import annotations

import os
import resource
import subprocess
from typing import TYPE_CHECKING

import pytest

from landlane.claims import take as claims
from landlane.errors import NotAllowed
from landlane.tasks.records import get_task
from landlane.testing.repositories import git, make_repository
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def tree(folder: Path, commit: str = "main") -> bytes:
    done = subprocess.run(["git", "ls-tree", "-r", "-z", commit], cwd=folder, capture_output=True, check=True)
    return done.stdout


ODD = ("a b", "new\nline", " lead", "trail ", "ta\tb", 'quo"te', "back\\slash", "é", "[x]*?", "-dash")


def test_odd_names_land(testbed: LandingTestbed) -> None:
    testbed.configure('["true"]')
    testbed.branch("one", {name: "x" for odd in ODD for name in (odd, f"d/{odd}")})

    entry = testbed.land("one")

    assert entry.state == "landed", entry
    for name in ODD:
        assert os.fsencode(name) + b"\0" in tree(testbed.folder)
        assert (testbed.folder / name).read_text() == "x"
    assert testbed.holders() == {}


def test_file_name_that_is_not_valid_text_needs_a_wider_claim(testbed: LandingTestbed) -> None:
    name = "d/\udcff\udcfe"
    testbed.configure("[]", files={name: "old\n"})
    testbed.branch("one", {name: "one\n"})
    testbed.branch("two", {name: "two\n"})
    with pytest.raises(NotAllowed) as answer:
        testbed.submit_with_held_claims("one")
    assert answer.value.hint.startswith("landlane claim 'd/**'")
    repo = testbed.repo
    wide = claims.make_request(repo, (repo.git.pattern_of("d/**", "glob"),))
    claims.take(repo, testbed.agent("ann"), wide)
    first, second = testbed.submit_with_held_claims("one"), testbed.submit_with_held_claims("two")

    assert testbed.run() is None

    assert (testbed.reload(first).state, testbed.reload(second).state) == ("landed", "bounced")
    assert (testbed.folder / name).read_text() == "one\n"
    assert get_task(repo, testbed.reload(second).bounce_task).state == "ready"


def test_odd_names_that_conflict_are_named(testbed: LandingTestbed) -> None:
    names = ("new\nline", " lead", "trail\n")
    testbed.configure("[]", files=dict.fromkeys(names, "old\n"))
    testbed.branch("one", dict.fromkeys(names, "one\n"))
    testbed.branch("two", dict.fromkeys(names, "two\n"))
    testbed.submit("one")
    entry = testbed.submit("two")

    assert testbed.run() is None

    loser = testbed.reload(entry)
    assert (loser.state, loser.code) == ("bounced", "CONFLICT")
    assert all(name in loser.reason for name in names)


def test_a_rename_that_changes_only_the_case_lands(testbed: LandingTestbed) -> None:
    testbed.configure("[]", files={"Name.txt": "x"})
    testbed.branch("one", {"Name.txt": None, "name.txt": "x"})

    assert testbed.land("one").state == "landed"
    assert b"name.txt" in tree(testbed.folder)
    assert b"Name.txt" not in tree(testbed.folder)


def test_deleted_files_modes_and_links_land(testbed: LandingTestbed) -> None:
    testbed.configure('["true"]', files={"gone": "x", "run": "x", "d/a": "x"})
    folder = testbed.folder.parent / "work"
    git(testbed.folder, "worktree", "add", "--quiet", "-b", "one", str(folder))
    (folder / "gone").unlink()
    (folder / "run").chmod(0o755)
    (folder / "d" / "a").unlink()
    (folder / "d").rmdir()
    (folder / "d").symlink_to("/nowhere/at/all")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "Change modes")

    assert testbed.land("one").state == "landed"

    assert (testbed.folder / "d").is_symlink()
    assert os.access(testbed.folder / "run", os.X_OK)
    assert not (testbed.folder / "gone").exists()
    assert git(testbed.folder, "status", "--porcelain") == ""


def test_one_deletes_what_the_other_changes(testbed: LandingTestbed) -> None:
    testbed.configure("[]", files={"a": "x\n"})
    testbed.branch("one", {"a": None})
    testbed.branch("two", {"a": "y\n"})
    testbed.submit("one")
    testbed.submit("two")

    assert testbed.run() is None

    assert testbed.states() == {"one": "landed", "two": "bounced"}


@pytest.mark.slow
def test_a_big_binary_lands_unchanged(testbed: LandingTestbed) -> None:
    testbed.configure('["true"]')
    content = os.urandom(1 << 20) * 30
    testbed.branch("one", {"big.bin": content})

    assert testbed.land("one").state == "landed"
    assert (testbed.folder / "big.bin").read_bytes() == content


def test_two_binaries_that_differ_are_a_conflict(testbed: LandingTestbed) -> None:
    testbed.configure("[]", files={"a.bin": "x"})
    testbed.branch("one", {"a.bin": b"\0\1"})
    testbed.branch("two", {"a.bin": b"\0\2"})
    testbed.submit("one")
    entry = testbed.submit("two")

    assert testbed.run() is None
    assert testbed.reload(entry).code == "CONFLICT"


def test_pointers_of_large_files_land_as_they_are(testbed: LandingTestbed) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 12345\n"
    testbed.configure('["true"]', files={".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    testbed.branch("one", {"a.bin": pointer})

    assert testbed.land("one").state == "landed"
    assert testbed.read_file("a.bin") == pointer


def test_a_filter_that_is_missing_is_a_clear_answer(testbed: LandingTestbed) -> None:
    testbed.configure('["true"]', files={".gitattributes": "*.bin filter=lfs\n"})
    testbed.branch("one", {"a.bin": "x"})
    entry = testbed.submit("one")
    for key, text in (("smudge", "no-such-filter"), ("required", "true")):
        git(testbed.folder, "config", f"filter.lfs.{key}", text)

    stop = testbed.run()

    assert stop is not None
    assert stop.code == "CHECKOUT_FAILED"
    assert "no-such-filter" in stop.message or "filter" in stop.message
    assert testbed.reload(entry).state == "queued"


def test_a_new_state_of_a_submodule_lands(testbed: LandingTestbed) -> None:
    other = make_repository(testbed.folder.parent / "library")
    testbed.configure('["true"]')
    folder = testbed.folder.parent / "work"
    git(testbed.folder, "worktree", "add", "--quiet", "-b", "one", str(folder))
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "library")
    git(folder, "commit", "--quiet", "-m", "Use the library")

    assert testbed.land("one").state == "landed"
    assert b"160000 commit" in tree(testbed.folder)


@pytest.mark.slow
def test_checks_see_the_state_of_a_submodule_that_will_land(testbed: LandingTestbed) -> None:
    other = make_repository(testbed.folder.parent / "library", files={"x": "old\n"})
    allow = ("-c", "protocol.file.allow=always")
    git(testbed.folder, *allow, "submodule", "--quiet", "add", str(other), "library")
    testbed.configure('["cat library/x >> ../seen"]')
    testbed.branch("zero", {"a": "x"})
    assert testbed.land("zero").state == "landed"
    (other / "x").write_text("new\n")
    git(other, "commit", "--quiet", "--all", "-m", "New")
    folder = testbed.folder.parent / "work"
    git(testbed.folder, "worktree", "add", "--quiet", "-b", "one", str(folder))
    head = git(other, "rev-parse", "HEAD").strip()
    git(folder, "update-index", "--cacheinfo", f"160000,{head},library")
    git(folder, "commit", "--quiet", "-m", "Use the new library")

    assert testbed.land("one").state == "landed"
    seen = next(path for path in testbed.folder.parent.rglob("seen"))
    assert seen.read_text() == "old\nnew\n"


def test_two_states_of_a_submodule_are_a_conflict(testbed: LandingTestbed) -> None:
    states = [
        git(testbed.folder, "commit-tree", "-m", name, "HEAD^{tree}").strip()
        for name in ("base", "one", "two")
    ]
    git(testbed.folder, "update-index", "--add", "--cacheinfo", f"160000,{states[0]},library")
    git(testbed.folder, "commit", "--quiet", "-m", "A library")
    (testbed.folder / "library").mkdir()
    testbed.configure("[]")
    for name, state in (("one", states[1]), ("two", states[2])):
        git(testbed.folder, "update-index", "--cacheinfo", f"160000,{state},library")
        made = git(testbed.folder, "write-tree").strip()
        git(
            testbed.folder,
            "branch",
            name,
            git(testbed.folder, "commit-tree", "-p", "main", "-m", name, made).strip(),
        )
    git(testbed.folder, "reset", "--quiet", "--hard")
    testbed.submit("one")
    entry = testbed.submit("two")

    assert testbed.run() is None

    assert testbed.reload(entry).code == "CONFLICT"
    assert "library" in testbed.reload(entry).reason


def test_a_full_disk_under_the_checks_is_a_clear_answer_and_loses_nothing(
    testbed: LandingTestbed, tmp_path: Path
) -> None:
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no right to mount a tiny disk")
    try:
        testbed.configure('["true"]', f'[workspace]\nfolder = "{place}"\n')
        testbed.branch("one", {"big.bin": os.urandom(1 << 20)})
        entry = testbed.submit("one")

        stop = testbed.run()

        assert stop is not None
        assert stop.exit_code == 1
        assert (stop.code, "0 MB are free" in stop.hint) == ("CHECKOUT_FAILED", True)
        assert testbed.reload(entry).state == "queued"
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.slow
def test_a_limit_on_file_sizes_is_a_clear_answer(testbed: LandingTestbed) -> None:
    testbed.configure('["true"]')
    testbed.branch("one", {"big.bin": os.urandom(1 << 22)})
    entry = testbed.submit("one")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, before[1]))
    try:
        stop = testbed.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert stop is not None
    assert testbed.reload(entry).state == "queued"
    assert testbed.run() is None
    assert testbed.reload(entry).state == "landed"

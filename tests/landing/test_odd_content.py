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
from tests.support.landing import Yard

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def tree(folder: Path, commit: str = "main") -> bytes:
    done = subprocess.run(["git", "ls-tree", "-r", "-z", commit], cwd=folder, capture_output=True, check=True)
    return done.stdout


ODD = ("a b", "new\nline", " lead", "trail ", "ta\tb", 'quo"te', "back\\slash", "é", "[x]*?", "-dash")


def test_odd_names_land(yard: Yard) -> None:
    yard.configure('["true"]')
    yard.branch("one", {name: "x" for odd in ODD for name in (odd, f"d/{odd}")})

    entry = yard.land("one")

    assert entry.state == "landed", entry
    for name in ODD:
        assert os.fsencode(name) + b"\0" in tree(yard.folder)
        assert (yard.folder / name).read_text() == "x"
    assert yard.holders() == {}


def test_a_name_that_is_no_text_needs_a_wider_claim(yard: Yard) -> None:
    name = "d/\udcff\udcfe"
    yard.configure("[]", files={name: "old\n"})
    yard.branch("one", {name: "one\n"})
    yard.branch("two", {name: "two\n"})
    with pytest.raises(NotAllowed) as told:
        yard.enter("one")
    assert told.value.hint.startswith("landlane claim 'd/**'")
    repo = yard.repo
    wide = claims.make_request(repo, (repo.git.pattern_of("d/**", "glob"),))
    claims.take(repo, yard.agent("ann"), wide)
    first, second = yard.enter("one"), yard.enter("two")

    assert yard.run() is None

    assert (yard.look(first).state, yard.look(second).state) == ("landed", "bounced")
    assert (yard.folder / name).read_text() == "one\n"
    assert get_task(repo, yard.look(second).bounce_task).state == "ready"


def test_odd_names_that_conflict_are_named(yard: Yard) -> None:
    names = ("new\nline", " lead", "trail\n")
    yard.configure("[]", files=dict.fromkeys(names, "old\n"))
    yard.branch("one", dict.fromkeys(names, "one\n"))
    yard.branch("two", dict.fromkeys(names, "two\n"))
    yard.submit("one")
    entry = yard.submit("two")

    assert yard.run() is None

    loser = yard.look(entry)
    assert (loser.state, loser.code) == ("bounced", "CONFLICT")
    assert all(name in loser.reason for name in names)


def test_a_rename_that_changes_only_the_case_lands(yard: Yard) -> None:
    yard.configure("[]", files={"Name.txt": "x"})
    yard.branch("one", {"Name.txt": None, "name.txt": "x"})

    assert yard.land("one").state == "landed"
    assert b"name.txt" in tree(yard.folder)
    assert b"Name.txt" not in tree(yard.folder)


def test_deleted_files_modes_and_links_land(yard: Yard) -> None:
    yard.configure('["true"]', files={"gone": "x", "run": "x", "d/a": "x"})
    folder = yard.folder.parent / "work"
    git(yard.folder, "worktree", "add", "--quiet", "-b", "one", str(folder))
    (folder / "gone").unlink()
    (folder / "run").chmod(0o755)
    (folder / "d" / "a").unlink()
    (folder / "d").rmdir()
    (folder / "d").symlink_to("/nowhere/at/all")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "Change modes")

    assert yard.land("one").state == "landed"

    assert (yard.folder / "d").is_symlink()
    assert os.access(yard.folder / "run", os.X_OK)
    assert not (yard.folder / "gone").exists()
    assert git(yard.folder, "status", "--porcelain") == ""


def test_one_deletes_what_the_other_changes(yard: Yard) -> None:
    yard.configure("[]", files={"a": "x\n"})
    yard.branch("one", {"a": None})
    yard.branch("two", {"a": "y\n"})
    yard.submit("one")
    yard.submit("two")

    assert yard.run() is None

    assert yard.states() == {"one": "landed", "two": "bounced"}


@pytest.mark.slow
def test_a_big_binary_lands_unchanged(yard: Yard) -> None:
    yard.configure('["true"]')
    content = os.urandom(1 << 20) * 30
    yard.branch("one", {"big.bin": content})

    assert yard.land("one").state == "landed"
    assert (yard.folder / "big.bin").read_bytes() == content


def test_two_binaries_that_differ_are_a_conflict(yard: Yard) -> None:
    yard.configure("[]", files={"a.bin": "x"})
    yard.branch("one", {"a.bin": b"\0\1"})
    yard.branch("two", {"a.bin": b"\0\2"})
    yard.submit("one")
    entry = yard.submit("two")

    assert yard.run() is None
    assert yard.look(entry).code == "CONFLICT"


def test_pointers_of_large_files_land_as_they_are(yard: Yard) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 12345\n"
    yard.configure('["true"]', files={".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    yard.branch("one", {"a.bin": pointer})

    assert yard.land("one").state == "landed"
    assert yard.at("a.bin") == pointer


def test_a_filter_that_is_missing_is_a_clear_answer(yard: Yard) -> None:
    yard.configure('["true"]', files={".gitattributes": "*.bin filter=lfs\n"})
    yard.branch("one", {"a.bin": "x"})
    entry = yard.submit("one")
    for key, text in (("smudge", "no-such-filter"), ("required", "true")):
        git(yard.folder, "config", f"filter.lfs.{key}", text)

    stop = yard.run()

    assert stop is not None
    assert stop.code == "CHECKOUT_FAILED"
    assert "no-such-filter" in stop.message or "filter" in stop.message
    assert yard.look(entry).state == "queued"


def test_a_new_state_of_a_submodule_lands(yard: Yard) -> None:
    other = make_repository(yard.folder.parent / "library")
    yard.configure('["true"]')
    folder = yard.folder.parent / "work"
    git(yard.folder, "worktree", "add", "--quiet", "-b", "one", str(folder))
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "library")
    git(folder, "commit", "--quiet", "-m", "Use the library")

    assert yard.land("one").state == "landed"
    assert b"160000 commit" in tree(yard.folder)


@pytest.mark.slow
def test_checks_see_the_state_of_a_submodule_that_will_land(yard: Yard) -> None:
    other = make_repository(yard.folder.parent / "library", files={"x": "old\n"})
    allow = ("-c", "protocol.file.allow=always")
    git(yard.folder, *allow, "submodule", "--quiet", "add", str(other), "library")
    yard.configure('["cat library/x >> ../seen"]')
    yard.branch("zero", {"a": "x"})
    assert yard.land("zero").state == "landed"
    (other / "x").write_text("new\n")
    git(other, "commit", "--quiet", "--all", "-m", "New")
    folder = yard.folder.parent / "work"
    git(yard.folder, "worktree", "add", "--quiet", "-b", "one", str(folder))
    head = git(other, "rev-parse", "HEAD").strip()
    git(folder, "update-index", "--cacheinfo", f"160000,{head},library")
    git(folder, "commit", "--quiet", "-m", "Use the new library")

    assert yard.land("one").state == "landed"
    seen = next(path for path in yard.folder.parent.rglob("seen"))
    assert seen.read_text() == "old\nnew\n"


def test_two_states_of_a_submodule_are_a_conflict(yard: Yard) -> None:
    states = [
        git(yard.folder, "commit-tree", "-m", name, "HEAD^{tree}").strip() for name in ("base", "one", "two")
    ]
    git(yard.folder, "update-index", "--add", "--cacheinfo", f"160000,{states[0]},library")
    git(yard.folder, "commit", "--quiet", "-m", "A library")
    (yard.folder / "library").mkdir()
    yard.configure("[]")
    for name, state in (("one", states[1]), ("two", states[2])):
        git(yard.folder, "update-index", "--cacheinfo", f"160000,{state},library")
        made = git(yard.folder, "write-tree").strip()
        git(
            yard.folder,
            "branch",
            name,
            git(yard.folder, "commit-tree", "-p", "main", "-m", name, made).strip(),
        )
    git(yard.folder, "reset", "--quiet", "--hard")
    yard.submit("one")
    entry = yard.submit("two")

    assert yard.run() is None

    assert yard.look(entry).code == "CONFLICT"
    assert "library" in yard.look(entry).reason


def test_a_full_disk_under_the_checks_is_a_clear_answer_and_loses_nothing(yard: Yard, tmp_path: Path) -> None:
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no right to mount a tiny disk")
    try:
        yard.configure('["true"]', f'[workspace]\nfolder = "{place}"\n')
        yard.branch("one", {"big.bin": os.urandom(1 << 20)})
        entry = yard.submit("one")

        stop = yard.run()

        assert stop is not None
        assert stop.exit_code == 1
        assert (stop.code, "0 MB are free" in stop.hint) == ("CHECKOUT_FAILED", True)
        assert yard.look(entry).state == "queued"
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.slow
def test_a_limit_on_file_sizes_is_a_clear_answer(yard: Yard) -> None:
    yard.configure('["true"]')
    yard.branch("one", {"big.bin": os.urandom(1 << 22)})
    entry = yard.submit("one")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, before[1]))
    try:
        stop = yard.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert stop is not None
    assert yard.look(entry).state == "queued"
    assert yard.run() is None
    assert yard.look(entry).state == "landed"

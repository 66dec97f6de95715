"""Generated checkouts, changed in many ways, are rescued, removed, collected and restored as they were."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from landlane.git.untrusted_checkout import CLONE, WORKTREE
from landlane.rescue.write_rescue import take_rescue
from tests.support.git import git
from tests.support.rescue import RescueTestbed, read_checkout_state

if TYPE_CHECKING:
    from landlane.git.untrusted_checkout import UntrustedCheckout

pytestmark = [pytest.mark.simulation, pytest.mark.slow]

EXAMPLES = int(os.environ.get("LANDLANE_EXAMPLES", "6"))
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

ODD = [
    b"new\nline",
    b'"quoted"',
    b"-f",
    b"\xff\xc3",
    "ü☃".encode(),
    b"a b",
    b"\\t",
    b"x.ignored",
    b"ignored",
    b"#",
    b"!n",
]
NAMES = st.one_of(
    st.sampled_from([b"a.txt", b"sub", b"b.txt", b"way", b"run.sh", b"c", b"d"]), st.sampled_from(ODD)
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
CONTENTS = st.one_of(
    st.sampled_from([b"", b"one\ntwo\nthree\n", b"one\r\ntwo\r\n", b"\0\xff", b"one\nours\nthree\n"]),
    st.binary(max_size=40),
    st.integers(1, 3).map(lambda size: bytes(range(256)) * 4096 * 3 * size),
)
TARGETS = st.sampled_from([b"a.txt", b"/nowhere", b"..", b"../../../etc/passwd", b"sub", b"\xff\n", b"."])
MODES = st.sampled_from([0o644, 0o755, 0o600, 0o400, 0o777, 0o4755, 0o640])
STEPS = st.one_of(
    st.tuples(st.just("write"), PATHS, CONTENTS, MODES),
    st.tuples(st.just("write"), PATHS, CONTENTS, MODES),
    st.tuples(st.just("link"), PATHS, TARGETS),
    st.tuples(st.just("delete"), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("chmod"), PATHS, MODES),
    st.tuples(st.just("folder"), PATHS),
    st.tuples(st.just("nest"), PATHS),
    st.tuples(st.just("add"), PATHS),
    st.tuples(st.just("add-all")),
    st.tuples(
        st.just("git"), st.sampled_from(["rm -q --cached a.txt", "add -N c", "update-index --refresh"])
    ),
    st.tuples(
        st.just("git"), st.sampled_from(["update-index --assume-unchanged a.txt", "stash -q", "reset -q"])
    ),
    st.tuples(
        st.just("git"), st.sampled_from(["update-index --skip-worktree a.txt", "add --chmod=+x a.txt"])
    ),
    st.tuples(
        st.just("git"), st.sampled_from(["commit -q -m more", "checkout -q -b side", "checkout -q --detach"])
    ),
    st.tuples(st.just("conflict"), st.sampled_from(["merge", "rebase", "cherry-pick"])),
)


def apply_step(place: UntrustedCheckout, step: tuple[Any, ...]) -> None:
    """Do one thing; what cannot be done here is not done."""
    verb, *rest = step
    with contextlib.suppress(OSError):
        if rest and isinstance(rest[0], bytes):
            full = os.path.join(os.fsencode(place.root), rest[0])
            if not leaves(place, full):
                change_file(place, verb, full, rest)
        elif verb == "conflict":
            conflict(place, rest[0])
        else:
            git(place.root, *(rest[0].split() if verb == "git" else ("add", "--all")), is_checked=False)


def change_file(place: UntrustedCheckout, verb: str, full: bytes, rest: list[Any]) -> None:
    if verb in {"write", "link", "folder", "nest"}:
        os.makedirs(os.path.dirname(full) if verb != "folder" else full, exist_ok=True)
    is_folder = os.path.isdir(full) and not os.path.islink(full)
    match verb:
        case "write":
            with open(os.open(full, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW), "wb") as file:
                file.write(rest[1])
                os.fchmod(file.fileno(), rest[2])
        case "link":
            os.symlink(rest[1], full)
        case "delete":
            shutil.rmtree(full) if is_folder else os.unlink(full)
        case "rename":
            other = os.path.join(os.fsencode(place.root), rest[1])
            os.rename(full, full if leaves(place, other) else other)
        case "chmod":
            os.chmod(full, rest[1] | (0o700 if is_folder else 0))
        case "nest":
            os.mkdir(full)
            git(os.fsdecode(full), "init", "--quiet")
            Path(os.fsdecode(full), "inner").write_text("inner\n")
        case "add":
            git(place.root, "add", "--", os.fsdecode(rest[0]), is_checked=False)


def leaves(place: UntrustedCheckout, full: bytes) -> bool:
    """Whether a path leads out of the checkout through a link, or into its git directory."""
    root = os.fsencode(os.path.realpath(place.root))
    return not (os.path.realpath(os.path.dirname(full)) + b"/").startswith(root + b"/")


def conflict(place: UntrustedCheckout, how: str) -> None:
    git(place.root, "commit", "--quiet", "--all", "--allow-empty", "-m", "before", is_checked=False)
    git(place.root, how, "other", is_checked=False)
    event(
        f"{how} stopped"
        if "UU" in git(place.root, "status", "--porcelain", is_checked=False)
        else f"{how} done"
    )


@pytest.mark.promise(
    "rescues.byte-for-byte",
    "All content of a checkout can be restored byte for byte after the checkout was removed and git gc has "
    "run.",
)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(kind=st.sampled_from([WORKTREE, CLONE]), steps=st.lists(STEPS, min_size=3, max_size=14))
def test_any_checkout_comes_back_as_it_was(kind: str, steps: list[tuple[Any, ...]]) -> None:
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    try:
        scene = RescueTestbed(folder / "scene")
        git(scene.repository, "checkout", "--quiet", "-b", "other")
        (scene.repository / "a.txt").write_text("one\ntheirs\nthree\n")
        scene.commit(scene.repository, "other")
        git(scene.repository, "checkout", "--quiet", "main")
        place = scene.open(kind)
        if kind == CLONE:
            git(place.root, "branch", "other", "origin/other")
        for step in steps:
            apply_step(place, step)
        before = read_checkout_state(place)
        stash = git(place.root, "stash", "list") if kind == CLONE else ""
        taken = take_rescue(place, "r1", {})
        event("at stake" if taken else "nothing at stake")
        if taken is None:
            # Then a fresh checkout must have all of it, but for empty folders and permissions.
            take_rescue(place, "r1", {}, force=True)
        assert read_checkout_state(place) == before
        scene.close(place)
        scene.gc()
        fresh, _ = scene.restore(kind)
        after = read_checkout_state(fresh)
        assert after.tree == before.tree
        assert after.index == before.index
        assert after == before
        assert (git(fresh.root, "stash", "list") if kind == CLONE else "") == stash
    finally:
        shutil.rmtree(folder, ignore_errors=True)

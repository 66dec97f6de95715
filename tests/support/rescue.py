"""A repository with worktrees and clones, and the full state of a checkout; shared by tests of rescues."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from landlane.git.untrusted_checkout import CLONE, WORKTREE, UntrustedCheckout
from landlane.rescue.restore import RestoredFiles, restore_rescue
from landlane.rescue.write_rescue import take_rescue
from landlane.values import value
from tests.support.git import git

if TYPE_CHECKING:
    from landlane.rescue.refs import Rescue

IGNORED = "*.ignored\nignored/\n"
STATE = ("MERGE_HEAD", "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "ORIG_HEAD", "BISECT_LOG", "logs/HEAD")


@value
class CheckoutState:
    """Everything about a checkout that a rescue and its restoration must keep."""

    tree: dict[bytes, tuple[str, int, bytes]]
    index: str
    status: str
    head: str
    branch: str
    state: dict[str, bytes]


def read_checkout_state(place: UntrustedCheckout) -> CheckoutState:
    git_dir = Path(place.git_dir)
    states = {name: (git_dir / name).read_bytes() for name in STATE if (git_dir / name).is_file()}
    for folder in ("rebase-merge", "rebase-apply", "sequencer"):
        for path in sorted((git_dir / folder).rglob("*")):
            if path.is_file():
                states[str(path.relative_to(git_dir))] = path.read_bytes()
    return CheckoutState(
        tree=read_tree(place.root),
        index=git(place.root, "ls-files", "--stage", "-v", "-z"),
        status=git(place.root, "status", "--porcelain=v2", "-z"),
        head=git(place.root, "rev-parse", "--verify", "--quiet", "HEAD", is_checked=False),
        branch=git(place.root, "symbolic-ref", "--quiet", "HEAD", is_checked=False),
        state=states,
    )


def read_tree(root: str) -> dict[bytes, tuple[str, int, bytes]]:
    """Return all files, links and empty folders, except ignored ones and the outermost `.git`."""
    found: dict[bytes, tuple[str, int, bytes]] = {}
    top = os.fsencode(root)

    def visit(folder: bytes, prefix: bytes) -> None:
        for name in sorted(os.listdir(folder)):
            path, full = prefix + name, os.path.join(folder, name)
            if path == b".git" or name.endswith(b".ignored") or name == b"ignored":
                continue
            seen = os.lstat(full)
            if stat.S_ISLNK(seen.st_mode):
                found[path] = ("link", 0, os.readlink(full))
            elif stat.S_ISDIR(seen.st_mode):
                if is_submodule(full):
                    visit_submodule(full, path)
                    continue
                if not os.listdir(full):
                    found[path] = ("folder", stat.S_IMODE(seen.st_mode), b"")
                visit(full, path + b"/")
            elif stat.S_ISREG(seen.st_mode):
                with open(full, "rb") as file:
                    found[path] = ("file", stat.S_IMODE(seen.st_mode), file.read())

    def is_submodule(full: bytes) -> bool:
        return os.path.isfile(os.path.join(full, b".git"))

    def visit_submodule(full: bytes, path: bytes) -> None:
        for inner, entry in read_tree(os.fsdecode(full)).items():
            found[path + b"/" + inner] = entry

    visit(top, b"")
    return found


class RescueTestbed:
    """A home repository in which checkouts are opened, rescued, removed and restored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = folder / "home"
        self.home = str(self.repository / ".git")
        self._count = 0
        self.repository.mkdir(parents=True)
        git(self.repository, "init", "--quiet")
        (self.repository / ".gitignore").write_text(IGNORED)
        (self.repository / "a.txt").write_text("one\ntwo\nthree\n")
        (self.repository / "sub").mkdir()
        (self.repository / "sub/b.txt").write_text("b\n")
        (self.repository / "run.sh").write_text("#!/bin/sh\n")
        (self.repository / "run.sh").chmod(0o755)
        (self.repository / "way").symlink_to("a.txt")
        self.commit(self.repository, "Begin")

    def commit(self, where: Path | str, message: str) -> str:
        git(where, "add", "--all")
        git(where, "commit", "--quiet", "--allow-empty", "-m", message)
        return git(where, "rev-parse", "HEAD").strip()

    def open(self, kind: str, at: str = "main") -> UntrustedCheckout:
        self._count += 1
        root = self.folder / f"{kind}{self._count}"
        if kind == WORKTREE:
            git(self.repository, "worktree", "add", "--quiet", "--detach", str(root), at)
            return UntrustedCheckout(
                root=str(root), git_dir=f"{self.home}/worktrees/{root.name}", kind=WORKTREE, home=self.home
            )
        git(self.folder, "clone", "--quiet", "--shared", str(self.repository), str(root))
        return UntrustedCheckout(root=str(root), git_dir=str(root / ".git"), kind=CLONE, home=self.home)

    def close(self, place: UntrustedCheckout) -> None:
        if place.kind == WORKTREE:
            git(self.repository, "worktree", "remove", "--force", "--force", place.root, is_checked=False)
        shutil.rmtree(place.root, ignore_errors=True)
        git(self.repository, "worktree", "prune")

    def gc(self, *how: str) -> None:
        git(self.repository, "reflog", "expire", "--expire=now", "--all")
        git(self.repository, "gc", "--quiet", "--prune=now", *how)

    def rescue(self, place: UntrustedCheckout, rescue_id: str = "r1", *, force: bool = False) -> Rescue:
        taken = take_rescue(place, rescue_id, {"reason": "test"}, force=force)
        assert taken is not None
        return taken

    def restore(self, kind: str, rescue_id: str = "r1") -> tuple[UntrustedCheckout, RestoredFiles]:
        place = self.open(kind)
        return place, restore_rescue(rescue_id, place)

    def check_round_trip(
        self, place: UntrustedCheckout, *how: str
    ) -> tuple[UntrustedCheckout, RestoredFiles]:
        """Rescue, remove, collect garbage and restore; fail if anything differs."""
        before = read_checkout_state(place)
        self.rescue(place)
        assert read_checkout_state(place) == before  # a rescue changes nothing
        self.close(place)
        self.gc(*how)
        fresh, restored = self.restore(place.kind)
        after = read_checkout_state(fresh)
        assert after.tree == before.tree
        assert after.index == before.index
        assert after == before
        return fresh, restored

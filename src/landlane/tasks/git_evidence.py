"""Sees commits, changes and outputs for itself, and runs checks in a fresh clone of exactly one commit."""

from __future__ import annotations

import os
import shutil
import tempfile

from landlane.errors import RepositoryError
from landlane.git.ancestry import is_ancestor, merge_base
from landlane.git.run import LOCATION_VARIABLES, run_git
from landlane.ids import digest, short_id
from landlane.processes.child import Child
from landlane.processes.tree import CHECK_MARK, kill_marked
from landlane.tasks.evidence_model import Checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.repository import Repository

    Tick = Callable[[], None]


_USUAL = ("main", "master", "trunk")
_HEX = frozenset("0123456789abcdef")


class GitWitness:
    """Finds the evidence of tasks in the main checkout of a repository."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._settings = repo.settings
        self._checkout = repo.home
        self._root = repo.home.root

    @property
    def is_in_git(self) -> bool:
        """Whether there are commits at all."""
        return bool(self._checkout.common_dir)

    def start(self) -> str:
        """The newest commit of the branch that work lands on; empty when there is none."""
        if not self.is_in_git:
            return ""
        return self._read_head() or self.target()

    def _read_head(self) -> str:
        """The same out of git's files, where that is easy: `next` should not have to start git."""
        ref = _first_line(os.path.join(self._checkout.common_dir, "HEAD")).removeprefix("ref: ")
        usual = (self._settings.landing.target,) if self._settings.landing.target else _USUAL
        has_remotes = os.path.isdir(os.path.join(self._checkout.common_dir, "refs", "remotes"))
        if has_remotes or ref.removeprefix("refs/heads/") not in usual:
            return ""
        commit = _first_line(os.path.join(self._checkout.common_dir, ref))
        return commit if len(commit) in (40, 64) and _HEX.issuperset(commit) else ""

    def tip(self, branch: str) -> str:
        """The newest commit of a branch; empty when there is no such branch."""
        return self._commit(f"refs/heads/{branch}") if self.is_in_git else ""

    def target(self) -> str:
        """The newest commit of the branch that work lands on, the remote's where that counts; or nothing.

        The branch here may be far behind: others land on the remote's, and work begins from there.
        """
        from landlane.git.target import find_target, target_tip  # noqa: PLC0415 - mostly the quick way is enough

        try:
            return target_tip(self._checkout, find_target(self._checkout, self._settings))
        except RepositoryError:
            return ""

    def base(self, commit: str, start: str) -> str:
        """Where a commit's own changes begin; empty when that cannot be told.

        Beside the target branch that is where the two parted. Once it has landed they have not: then it is
        where the target stood when the work began.
        """
        parted = merge_base(self._checkout, self.target() or start or commit, commit)
        if parted != commit or not start:
            return parted
        return merge_base(self._checkout, start, commit)

    def has_own_commits(self, branch: str, commit: str, start: str) -> bool:
        """Whether the tip of a branch brings work of its own, beyond what others have landed."""
        if start and self._is_in(commit, start):
            return False
        return not self.is_landed(commit) or self._was_worked_on(branch)

    def _was_worked_on(self, branch: str) -> bool:
        """Whether a branch that the target has caught up with was ever more than pointed at what was there.

        That is what its reflog tells. One that has none came from elsewhere, where it was worked on.
        """
        ways = self._ask("reflog", "show", "--format=%gs", f"refs/heads/{branch}").splitlines()
        return not ways or any(not way.startswith("branch: ") for way in ways)

    def changed_paths(self, base: str, commit: str) -> list[str]:
        """Every path that differs between two commits, both ends of a rename."""
        start = base or self._ask("hash-object", "-t", "tree", "/dev/null")
        found = run_git("diff", "--name-only", "-z", "--no-renames", start, commit, cwd=self._root)
        if found.exit_code:
            raise _failed(f"git diff failed: {found.stderr[:200]}")
        return [path for path in found.stdout.split("\0") if path]

    def change(self, base: str, commit: str) -> str:
        """By what the change between two commits is known again, whenever it was made; empty for none."""
        start = base or self._ask("hash-object", "-t", "tree", "/dev/null")
        changed = self._ask("diff-tree", "-r", start, commit) if commit else ""
        return digest(changed) if changed else ""

    def is_landed(self, commit: str) -> bool:
        """Whether the target branch has this commit, or by content all that it brings."""
        target = self.target()
        if not target:
            return False
        from landlane.git.ancestry import is_merged  # noqa: PLC0415 - only those that ask for it need it

        return is_merged(self._checkout, commit, target)

    def share(self, commit: str, on_tick: Tick) -> None:
        """Let other machines fetch a commit from the remote; what it does not take is only to be had here."""
        from landlane.git.target import find_target  # noqa: PLC0415 - mostly the quick way is enough
        from landlane.git.temporary_refs import share_verified  # noqa: PLC0415 - only what is proved needs it

        try:
            target = find_target(self._checkout, self._settings)
            if target.remote and self._repo.store.is_shared:
                share_verified(self._checkout, target, commit, on_tick)
        except RepositoryError:
            return

    def _is_in(self, commit: str, other: str) -> bool:
        return is_ancestor(self._checkout, commit, other)

    def branches_among(self, names: Sequence[str]) -> list[str]:
        """Which of these branches are there."""
        refs = [f"refs/heads/{name}" for name in names]
        if not refs or not self.is_in_git:
            return []
        found = self._ask("for-each-ref", "--format=%(refname)", *refs).splitlines()
        return [name for name, ref in zip(names, refs, strict=True) if ref in found]

    def output_size(self, path: str) -> int:
        """The size of a file, or how much is in a folder; -1 when it is not there."""
        place = os.path.join(self._root, path)
        try:
            return len(os.listdir(place)) if os.path.isdir(place) else os.path.getsize(place)
        except (OSError, ValueError):
            return -1

    def run_check(self, command: str, commit: str, limit_seconds: float, on_tick: Tick) -> Checked:
        """Run a command in a fresh clone of exactly this commit (or here, without one)."""
        if not commit:
            return _run_check(command, self._root, limit_seconds, on_tick)
        folder = tempfile.mkdtemp(prefix="landlane-check-")
        on_tick()
        try:
            clone = os.path.join(folder, os.path.basename(self._root) or "tree")
            # Shared: the objects are only read. No template: its hooks are the user's, not the work's.
            made = run_git(
                *(
                    "clone",
                    "--quiet",
                    "--shared",
                    "--no-checkout",
                    "--no-tags",
                    "--template=",
                    self._root,
                    clone,
                ),
                cwd=folder,
            )
            if not made.exit_code:
                made = run_git("checkout", "--quiet", "--detach", commit, cwd=clone)
            if made.exit_code:
                raise _failed(f"{commit[:12]} cannot be checked out: {made.stderr[:200]}")
            on_tick()
            return _run_check(command, clone, limit_seconds, on_tick)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _commit(self, ref: str) -> str:
        from landlane.git.target import commit_at  # noqa: PLC0415 - mostly the quick way is enough

        return commit_at(self._checkout, ref)

    def _ask(self, *words: str) -> str:
        found = run_git(*words, cwd=self._root)
        return "" if found.exit_code else found.stdout.strip()


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _failed(message: str) -> RepositoryError:
    return RepositoryError(message, code="GIT_FAILED", hint="run git fsck")


def _run_check(command: str, folder: str, limit_seconds: float, on_tick: Callable[[], None]) -> Checked:
    # A check acts for no session, and on no repository but the one it runs in.
    without = (*LOCATION_VARIABLES, "LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE")
    mark = {CHECK_MARK: short_id("check")}
    child = Child(["/bin/sh", "-c", command], cwd=folder, without=without, environment=mark)
    try:
        ended = child.wait(limit_seconds, on_tick)
    finally:
        kill_marked(CHECK_MARK, mark[CHECK_MARK])  # also what left the process group
    output = ended.stdout + ended.stderr
    return Checked(exit_code=ended.exit_code, output=output, is_late=ended.has_timed_out)

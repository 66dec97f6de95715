"""Find the evidence of tasks in git, and run checks in a fresh clone of exactly one commit."""

from __future__ import annotations

import os
import shutil
import tempfile

from landlane.errors import RepositoryError
from landlane.git.commits import is_ancestor, is_merged, merge_base
from landlane.git.run import foreign_variables, run_git, try_git_output
from landlane.git.target import commit_at, find_target, share_verified, target_tip
from landlane.ids import digest, short_id
from landlane.processes.tree import CHECK_MARK, kill_marked
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.repository import Repository

    Tick = Callable[[], None]


_DEFAULT_TARGETS = ("main", "master", "trunk")
_HEX = frozenset("0123456789abcdef")


@value
class CheckRun:
    """The result of running a check."""

    exit_code: int
    output: str
    is_late: bool = False


class GitEvidence:
    """Reads the commits, changes and outputs of tasks in the main checkout of a repository."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._settings = repo.settings
        self._checkout = repo.home
        self._root = repo.home.root

    @property
    def is_in_git(self) -> bool:
        return bool(self._checkout.common_dir)

    def start(self) -> str:
        """Return the newest commit of the target branch; empty when there is none."""
        if not self.is_in_git:
            return ""
        return self._read_target_file() or self.target()

    def _read_target_file(self) -> str:
        """Read the target's commit from git's files where that is easy, so that `next` need not start git."""
        ref = _first_line(os.path.join(self._checkout.common_dir, "HEAD")).removeprefix("ref: ")
        targets = (self._settings.landing.target,) if self._settings.landing.target else _DEFAULT_TARGETS
        has_remotes = os.path.isdir(os.path.join(self._checkout.common_dir, "refs", "remotes"))
        if has_remotes or ref.removeprefix("refs/heads/") not in targets:
            return ""
        commit = _first_line(os.path.join(self._checkout.common_dir, ref))
        return commit if len(commit) in (40, 64) and _HEX.issuperset(commit) else ""

    def tip(self, branch: str) -> str:
        """Return the newest commit of a branch; empty when there is no such branch."""
        return commit_at(self._checkout, f"refs/heads/{branch}") if self.is_in_git else ""

    def target(self) -> str:
        """Return the newest commit of the target branch, or of its remote branch if there is one.

        The local branch may be far behind: others land on the remote's, and work begins from there.
        """
        try:
            return target_tip(self._checkout, find_target(self._checkout, self._settings))
        except RepositoryError:
            return ""

    def base(self, commit: str, start: str) -> str:
        """Return the commit at which a commit's own changes begin; empty when it is unknown.

        Before landing, that is its merge base with the target. After landing it is the merge base with
        `start`, the commit that the target had when the work began.
        """
        fork_point = merge_base(self._checkout, self.target() or start or commit, commit)
        if fork_point != commit or not start:
            return fork_point
        return merge_base(self._checkout, start, commit)

    def has_own_commits(self, branch: str, commit: str, start: str) -> bool:
        """Return whether the tip of a branch has work of its own, beyond what others have landed."""
        if start and is_ancestor(self._checkout, commit, start):
            return False
        return not self.is_landed(commit) or self._was_committed_to(branch)

    def _was_committed_to(self, branch: str) -> bool:
        """Return whether the reflog of a branch has more than branch creations and resets.

        A branch without a reflog was fetched from elsewhere, so it was committed to there.
        """
        entries = self._git("reflog", "show", "--format=%gs", f"refs/heads/{branch}").splitlines()
        return not entries or any(not entry.startswith("branch: ") for entry in entries)

    def changed_paths(self, base: str, commit: str) -> list[str]:
        """Return every path that differs between two commits, with both ends of a rename."""
        start = base or self._empty_tree()
        diff = run_git("diff", "--name-only", "-z", "--no-renames", start, commit, cwd=self._root)
        if diff.exit_code:
            raise _failed(f"git diff failed: {diff.stderr[:200]}")
        return [path for path in diff.stdout.split("\0") if path]

    def change_digest(self, base: str, commit: str) -> str:
        """Return a digest of the change between two commits; empty when there is none."""
        changed = self._git("diff-tree", "-r", base or self._empty_tree(), commit) if commit else ""
        return digest(changed) if changed else ""

    def _empty_tree(self) -> str:
        return self._git("hash-object", "-t", "tree", "/dev/null")

    def is_landed(self, commit: str) -> bool:
        """Return whether the target branch has this commit, or the content of all its changes."""
        target = self.target()
        return bool(target) and is_merged(self._checkout, commit, target)

    def share(self, commit: str, on_tick: Tick) -> None:
        """Push a commit so that other machines can fetch it; if the remote refuses it, it stays here."""
        try:
            target = find_target(self._checkout, self._settings)
            if target.remote and self._repo.store.is_shared:
                share_verified(self._checkout, target, commit, on_tick)
        except RepositoryError:
            return

    def branches_among(self, names: Sequence[str]) -> list[str]:
        """Return those of these branches that exist."""
        refs = [f"refs/heads/{name}" for name in names]
        if not refs or not self.is_in_git:
            return []
        existing = self._git("for-each-ref", "--format=%(refname)", *refs).splitlines()
        return [name for name, ref in zip(names, refs, strict=True) if ref in existing]

    def output_size(self, path: str) -> int:
        """Return the size of a file, or the number of entries of a folder; -1 when it does not exist."""
        full_path = os.path.join(self._root, path)
        try:
            return len(os.listdir(full_path)) if os.path.isdir(full_path) else os.path.getsize(full_path)
        except (OSError, ValueError):
            return -1

    def run_check(self, command: str, commit: str, limit_seconds: float, on_tick: Tick) -> CheckRun:
        """Run a command in a fresh clone of exactly this commit, or in the checkout without one.

        It runs in a sandbox: the commit may have changed what the command does.
        """
        if not commit:
            return self._run(command, self._root, limit_seconds, on_tick)
        folder = tempfile.mkdtemp(prefix="landlane-check-")
        on_tick()
        try:
            clone = os.path.join(folder, os.path.basename(self._root) or "tree")
            # Shared: the objects are only read. No template: its hooks are the user's, not the work's.
            options = ("--quiet", "--shared", "--no-checkout", "--no-tags", "--template=")
            result = run_git("clone", *options, self._root, clone, cwd=folder)
            if not result.exit_code:
                result = run_git("checkout", "--quiet", "--detach", commit, cwd=clone)
            if result.exit_code:
                raise _failed(f"{commit[:12]} cannot be checked out: {result.stderr[:200]}")
            on_tick()
            return self._run(command, clone, limit_seconds, on_tick)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, command: str, folder: str, limit_seconds: float, on_tick: Tick) -> CheckRun:
        from landlane.sandbox.sandboxed_check import CheckCommand, CheckPlaces, run_sandboxed_check  # noqa: PLC0415 - only when a check runs

        # A check acts for no session, and only on the repository that it runs in.
        without = (*foreign_variables(), "LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE")
        mark = {CHECK_MARK: short_id("check")}
        words = ["/bin/sh", "-c", command]
        check = CheckCommand(
            words=words,
            path=folder,
            environment=mark,
            limit_seconds=limit_seconds,
            without=without,
            is_read_only=folder == self._root,
        )
        places = CheckPlaces(
            root=self._root, common_dir=self._repo.common_dir, state_folder=self._repo.state_folder
        )
        try:
            ended = run_sandboxed_check(self._settings, places, check, on_tick)
        finally:
            kill_marked(CHECK_MARK, mark[CHECK_MARK])  # in case that it has killed its reaper
        output = ended.stdout + ended.stderr
        return CheckRun(exit_code=ended.exit_code, output=output, is_late=ended.has_timed_out)

    def _git(self, *arguments: str) -> str:
        return try_git_output(self._checkout, *arguments)


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _failed(message: str) -> RepositoryError:
    return RepositoryError(message, code="GIT_FAILED", hint="run git fsck")

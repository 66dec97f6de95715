"""Sees commits, changes and outputs for itself, and runs checks in a fresh clone of exactly one commit."""

from __future__ import annotations

import os
import shutil
import tempfile

from interlock.errors import RepositoryError
from interlock.git.run import run_git
from interlock.ports.evidence import Checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.git.layout import Checkout

    Run = Callable[[str, str, float], Checked]


class GitWitness:
    """A witness in one checkout; `run` starts a shell command in a folder with a limit in seconds."""

    def __init__(self, checkout: Checkout, run: Run) -> None:
        self._checkout = checkout
        self._root = checkout.root
        self._run = run

    @property
    def is_in_git(self) -> bool:
        """Whether there are commits at all."""
        return bool(self._checkout.common_dir)

    def tip(self, branch: str) -> str:
        """The newest commit of a branch; empty when there is no such branch."""
        if not self.is_in_git:
            return ""
        return self._ask("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")

    def target(self) -> str:
        """The branch that work lands on: the one that the main checkout is on, else main or master."""
        main = self._ask("--git-dir", self._checkout.common_dir, "symbolic-ref", "--quiet", "HEAD")
        for ref in (main, "refs/heads/main", "refs/heads/master"):
            if (
                ref
                and not ref.startswith("refs/heads/interlock/")
                and self._ask("rev-parse", "--verify", "--quiet", ref)
            ):
                return ref
        return "HEAD"

    def base(self, commit: str) -> str:
        """Where a commit's line left the target branch; empty when they have nothing in common."""
        return self._ask("merge-base", self.target(), commit)

    def changed_paths(self, base: str, commit: str) -> list[str]:
        """Every path that differs between two commits, both ends of a rename."""
        start = base or self._ask("hash-object", "-t", "tree", "/dev/null")
        found = run_git("diff", "--name-only", "-z", "--no-renames", start, commit, cwd=self._root)
        if found.exit_code:
            raise RepositoryError(
                f"git diff failed: {found.trouble[:200]}", code="GIT_FAILED", hint="run git fsck"
            )
        return [path for path in found.text.split("\0") if path]

    def is_landed(self, commit: str) -> bool:
        """Whether the target branch has this commit."""
        return not run_git("merge-base", "--is-ancestor", commit, self.target(), cwd=self._root).exit_code

    def output_size(self, path: str) -> int:
        """The size of a file of the checkout; -1 when it is not there."""
        try:
            return os.path.getsize(os.path.join(self._root, path))
        except OSError:
            return -1

    def run_check(self, command: str, commit: str, limit_seconds: float) -> Checked:
        """Run a command in a fresh clone of exactly this commit (or here, without one)."""
        if not commit:
            return self._run(command, self._root, limit_seconds)
        folder = tempfile.mkdtemp(prefix="interlock-check-")
        try:
            clone = os.path.join(folder, "tree")
            made = run_git("clone", "--quiet", "--shared", "--no-checkout", self._root, clone, cwd=folder)
            if not made.exit_code:
                made = run_git("checkout", "--quiet", "--detach", commit, cwd=clone)
            if made.exit_code:
                raise RepositoryError(
                    f"{commit[:12]} cannot be checked out: {made.trouble[:200]}",
                    code="GIT_FAILED",
                    hint="run git fsck",
                )
            return self._run(command, clone, limit_seconds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _ask(self, *words: str) -> str:
        found = run_git(*words, cwd=self._root)
        return "" if found.exit_code else found.text.strip()

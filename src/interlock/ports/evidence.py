"""What judging evidence needs from outside: commits, files, and commands run where nobody can meddle."""

from __future__ import annotations

from typing import Protocol

from interlock.values import value


@value
class Checked:
    """How a check ended."""

    exit_code: int
    output: str


class Witness(Protocol):
    """Sees for itself."""

    @property
    def is_in_git(self) -> bool:
        """Whether there are commits at all."""
        ...

    def tip(self, branch: str) -> str:
        """The newest commit of a branch; empty when there is no such branch."""
        ...

    def base(self, commit: str) -> str:
        """Where a commit's line left the target branch; empty when they have nothing in common."""
        ...

    def changed_paths(self, base: str, commit: str) -> list[str]:
        """Every path that differs between two commits, both ends of a rename."""
        ...

    def is_landed(self, commit: str) -> bool:
        """Whether the target branch has this commit."""
        ...

    def output_size(self, path: str) -> int:
        """The size of a file of the checkout; -1 when it is not there."""
        ...

    def run_check(self, command: str, commit: str, limit_seconds: float) -> Checked:
        """Run a command in a fresh checkout of exactly this commit (or here, without one)."""
        ...

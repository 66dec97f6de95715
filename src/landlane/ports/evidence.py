"""What judging evidence needs from outside: commits, files, and commands run where nobody can meddle."""

from __future__ import annotations

from typing import Protocol

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


@value
class Checked:
    """How a check ended, and the last it said."""

    exit_code: int
    output: str
    is_late: bool = False


class Witness(Protocol):
    """Sees for itself."""

    @property
    def is_in_git(self) -> bool:
        """Whether there are commits at all."""
        ...

    def start(self) -> str:
        """The newest commit of the branch that work lands on; empty when there is none."""
        ...

    def tip(self, branch: str) -> str:
        """The newest commit of a branch; empty when there is no such branch."""
        ...

    def base(self, commit: str, start: str) -> str:
        """Where a commit's own changes begin; empty when that cannot be told.

        `start` is where the target branch stood when the work began, if anybody knows.
        """
        ...

    def has_own_commits(self, branch: str, commit: str, start: str) -> bool:
        """Whether the tip of a branch brings work of its own, beyond what others have landed."""
        ...

    def changed_paths(self, base: str, commit: str) -> list[str]:
        """Every path that differs between two commits, both ends of a rename."""
        ...

    def change(self, base: str, commit: str) -> str:
        """By what the change between two commits is known again, whenever it was made; empty for none."""
        ...

    def is_landed(self, commit: str) -> bool:
        """Whether the target branch has this commit."""
        ...

    def share(self, commit: str, on_tick: Callable[[], None]) -> None:
        """Let other machines that work on the same tasks have a commit, where there are any.

        What cannot be shared now is only to be had here.
        """
        ...

    def output_size(self, path: str) -> int:
        """The size of a file, or how much is in a folder; -1 when it is not there."""
        ...

    def run_check(
        self, command: str, commit: str, limit_seconds: float, on_tick: Callable[[], None]
    ) -> Checked:
        """Run a command in a fresh checkout of exactly this commit (or here, without one).

        `on_tick` is called now and then while it runs.
        """
        ...

"""Kinds of evidence that a task is done, and what verifying needs from outside."""

from __future__ import annotations

from typing import Protocol

from landlane.errors import SettingsError
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COMMIT = "commit"  # a commit on the task's branch
PATHS = "paths"  # what it changed lies inside the task's claims and declared paths
CHECK = "check"  # its check, run by us on exactly that commit, passes
OUTPUT = "output"  # the file it names is there and not empty
VERDICT = "verdict"  # the reviewer has said what it thinks

ALL = (COMMIT, PATHS, CHECK, OUTPUT, VERDICT)
BUILT_IN: dict[str, tuple[str, ...]] = {
    "code": (COMMIT, PATHS, CHECK),
    "output": (OUTPUT, CHECK),
    "chore": (CHECK,),
    "review": (VERDICT,),
}


@value
class Proof:
    """One piece of evidence, seen or missed."""

    name: str
    is_seen: bool
    found: str
    hint: str = ""


def kind_of(kind: str, *, has_output: bool, is_in_git: bool) -> str:
    """The kind of a task that does not say: by its output, else code where there is git."""
    return kind or ("output" if has_output else "code" if is_in_git else "chore")


def needed(kind: str, kinds: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What a task of this kind must show.

    Raises:
        SettingsError: nobody has said what this kind must show.
    """
    known = {**BUILT_IN, **kinds}
    if kind not in known:
        raise SettingsError(
            f"{kind!r} is no kind of task",
            code="UNKNOWN_KIND",
            hint=f"known: {', '.join(sorted(known))}; or name it under [tasks.evidence] in landlane.toml",
        )
    return known[kind]


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

"""The kinds of evidence that a task is done, and which kinds of task need which."""

from __future__ import annotations

from landlane.errors import SettingsError
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

COMMIT = "commit"  # a commit on the task's branch
PATHS = "paths"  # the changed paths are inside the task's claims and declared paths
CHECK = "check"  # the task's check passes on exactly that commit
OUTPUT = "output"  # the task's output file exists and is not empty
VERDICT = "verdict"  # the reviewer has given a verdict

ALL = (COMMIT, PATHS, CHECK, OUTPUT, VERDICT)
BUILT_IN: dict[str, tuple[str, ...]] = {
    "code": (COMMIT, PATHS, CHECK),
    "output": (OUTPUT, CHECK),
    "chore": (CHECK,),
    "review": (VERDICT,),
}


@value
class Evidence:
    """One piece of evidence, present or missing."""

    name: str
    is_seen: bool
    found: str
    hint: str = ""


@value
class CheckRun:
    """The result of running a check."""

    exit_code: int
    output: str
    is_late: bool = False


def effective_kind(kind: str, *, has_output: bool, is_in_git: bool) -> str:
    """Return the kind of a task; the default depends on its output and on whether there is git."""
    return kind or ("output" if has_output else "code" if is_in_git else "chore")


def required_evidence(kind: str, kinds: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the evidence that a task of this kind needs; `kinds` are those of the settings.

    Raises:
        SettingsError: the kind is not defined.
    """
    known = {**BUILT_IN, **kinds}
    if kind not in known:
        raise SettingsError(
            f"{kind!r} is no kind of task",
            code="UNKNOWN_KIND",
            hint=f"known: {', '.join(sorted(known))}; or name it under [tasks.evidence] in landlane.toml",
        )
    return known[kind]

"""Evidence: what must be seen before a task is believed to be done, by the kind of task."""

from __future__ import annotations

from landlane.errors import SettingsError
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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

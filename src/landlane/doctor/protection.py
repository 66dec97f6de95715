"""Protection: which of the seven guards held when the doctor tried them; kept for the page."""

from __future__ import annotations

import json
import os

from landlane.files import read_regular, write_atomically
from landlane.setup.install_git_hooks import COMMITS, PUSHES, TARGET
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.doctor.check import Check

_FILE = "doctor.json"
_MOST_BYTES = 100_000
_EDITS, _SHELL, _SUBAGENTS = "edits", "shell writes", "subagents"
_WAYS = {"edits": _EDITS, "shell": _SHELL, "subagents": _SUBAGENTS}
_GIT: Mapping[str, str] = {COMMITS: "commits", PUSHES: "pushes", TARGET: "target branch"}
GUARDS = (_EDITS, _SUBAGENTS, _SHELL, *_GIT.values(), "sandbox")
_REFUSED = "was refused"


@value
class Protection:
    """Each guard, and whether it held; `at` is when they were tried, in wall-clock milliseconds."""

    guards: tuple[tuple[str, bool], ...]
    at: int

    @property
    def held(self) -> int:
        """Return how many held."""
        return sum(has_held for _, has_held in self.guards)

    @property
    def tried(self) -> int:
        """Return how many there are."""
        return len(self.guards)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return those that did not hold."""
        return tuple(name for name, has_held in self.guards if not has_held)


def find_protection(checks: Sequence[Check], at: int) -> Protection:
    """Return which guards held: those of clients only if they held for every client that is set up."""
    held: dict[str, list[bool]] = {}
    for check in checks:
        way = check.name.partition(": ")[2]
        if check.name in _GIT:
            held.setdefault(_GIT[check.name], []).append(_REFUSED in check.found)
        elif way in _WAYS:
            held.setdefault(_WAYS[way], []).append(check.is_enforced)
        elif check.name == "sandbox":
            held.setdefault("sandbox", []).append(check.is_ok)
    return Protection(
        guards=tuple((name, bool(held.get(name)) and all(held[name])) for name in GUARDS), at=at
    )


def record_protection(state_folder: str, protection: Protection) -> None:
    """Keep the result; without a place for it the next run tries again."""
    text = json.dumps({"guards": protection.guards, "at": protection.at})
    try:
        write_atomically(os.path.join(state_folder, _FILE), text)
    except OSError:
        return


def read_protection(state_folder: str) -> Protection | None:
    """Return the last result; None if the doctor has not run."""
    try:
        found = json.loads(read_regular(os.path.join(state_folder, _FILE), _MOST_BYTES))
        guards = tuple((str(name), bool(has_held)) for name, has_held in found["guards"])
        return Protection(guards=guards, at=int(found["at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None

"""Breaches: writes through a shell to what was not the writer's to change, until they are put right."""

from __future__ import annotations

from landlane.values import value

OPEN = "open"
UNDONE = "undone"
MOVED = "moved"
ACCEPTED = "accepted"
CLEARED = "cleared"

HELD = "held"  # another session holds the path
STRAY = "stray"  # it lies outside of the writer's workspace
ROLE = "role"  # the writer's role may not change it


@value
class Breach:
    """One write to what was another's. `commit` keeps what was there before, and after.

    `paths` are as they can be shown: bytes that are no text are escaped. With `is_blocking`, they cannot be
    committed or landed by the writer while it is open.
    """

    id: str
    state: str
    kind: str
    session: str
    agent: str
    root: str
    paths: tuple[str, ...]
    commit: str
    at: int
    holder: str = ""
    holder_session: str = ""
    task: str = ""
    is_blocking: bool = True
    by: str = ""

    @property
    def ref(self) -> str:
        """The ref that keeps its commit."""
        return ref_of(self.id)


def ref_of(breach_id: str) -> str:
    """The ref of a breach."""
    return f"refs/landlane/breaches/{breach_id}"

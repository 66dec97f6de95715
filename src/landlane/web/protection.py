"""What `doctor` found when it last tried the guards: which of them held."""

from __future__ import annotations

import json
import os

from landlane.files import read_regular
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository

FILE = "doctor.json"
_MOST_BYTES = 200_000


@value
class Protection:
    """The guards that were tried, and those that did not hold; nothing is known before the first trial."""

    held: int
    tried: int
    missing: tuple[str, ...]
    at: int


def read_protection(repo: Repository) -> Protection | None:
    """Return the result of the last trial; None if there was none."""
    try:
        found = json.loads(read_regular(os.path.join(repo.state_folder, FILE), _MOST_BYTES))
        return Protection(
            held=int(found["held"]),
            tried=int(found["tried"]),
            missing=tuple(found["missing"]),
            at=int(found["at"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None

"""Landings whose process was killed: any session can take them over, and the resident does at once."""

from __future__ import annotations

from landlane.landing.model import QUEUED, TESTING, queue_lease_name
from landlane.landing.records import list_landings
from landlane.sessions.runner_lease import is_runner_lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.landing.model import Landing
    from landlane.repository import Repository


def list_unattended(repo: Repository) -> list[Landing]:
    """Return the entries that wait for a process that has ended without finishing them."""
    waiting = list_landings(repo, (QUEUED, TESTING))
    targets = {landing.target for landing in waiting}
    lost = {target for target in targets if is_runner_lost(repo, queue_lease_name(target))}
    return [landing for landing in waiting if landing.target in lost]

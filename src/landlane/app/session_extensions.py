"""What roles and tasks add to sessions."""

from __future__ import annotations

from landlane.roles.model import find_role
from landlane.tasks.return_lapsed import return_tasks, waits_for_person
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.store.interface import Transaction


@value
class Sessions:
    """Implements `sessions.extensions.SessionExtensions` with roles and tasks."""

    def check_role(self, settings: Settings, name: str) -> None:
        find_role(settings, name)

    def keeps_lease(self, tx: Transaction, session_id: str) -> bool:
        return waits_for_person(tx, session_id)

    def on_end(self, tx: Transaction, session: Session, *, is_own_will: bool) -> None:
        return_tasks(tx, session, is_own_will=is_own_will)

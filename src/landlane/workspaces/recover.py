"""Continue openings and closings whose process has ended."""

from __future__ import annotations

from landlane.errors import LandlaneError
from landlane.workspaces import records as operations
from landlane.workspaces.close import finish_or_leave, give_up, process_ended, processes_inside
from landlane.workspaces.model import CLOSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session

    Step = Callable[[str], None]


def mend(repo: Repository, session: Session | None = None) -> list[str]:
    """Go on with what processes that have ended left half way; tells what was done, or why it was not."""
    done: list[str] = []
    for one in operations.list_interrupted(repo):
        is_here = operations.is_here(repo, one, repo.common_dir)
        # A child of the process that died, such as git or an installer, may still be at work in it.
        if not is_here or operations.is_own(repo, one) or processes_inside(one):
            continue
        taken = operations.take_over(repo, one, one.state)
        if taken is None:
            continue
        try:
            if taken.state == CLOSING:
                finish_or_leave(repo, session, taken, lambda _: None)
                done.append(f"{taken.id} was half closed, and is closed now")
            elif give_up(repo, session, taken, process_ended()):
                done.append(f"{taken.id} was half opened, and is taken back")
        except (LandlaneError, OSError) as error:
            done.append(f"{taken.id} was half {'closed' if taken.state == CLOSING else 'opened'}: {error}")
    return done

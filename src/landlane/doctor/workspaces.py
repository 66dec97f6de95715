"""Misplaced changes."""

from __future__ import annotations

from landlane.doctor.finding import Finding
from landlane.workspaces.misplaced import STRAY, find_misplaced
from landlane.workspaces.other_sessions import open_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository


_MOST_NAMED = 5


def look_at_strays(repo: Repository, is_fixing: bool) -> Finding:
    """Check for changes in the wrong checkout; moving them would change a workspace in use."""
    if not open_workspaces(repo):
        return Finding(is_ok=True, found="no workspace is open here")
    strays = [stray for stray in find_misplaced(repo) if stray.state == STRAY]
    if not strays:
        return Finding(is_ok=True, found="none")
    named = ", ".join(f"{one.path} of {one.agent}" for one in strays[:_MOST_NAMED])
    more = f" and {len(strays) - _MOST_NAMED} more" if len(strays) > _MOST_NAMED else ""
    places = sorted({stray.root for stray in strays})
    hint = "`landlane stray list` shows them, `landlane stray move` moves them to their workspace"
    return Finding(is_ok=False, found=f"in {', '.join(places)}: {named}{more}", hint=hint)

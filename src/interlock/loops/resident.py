"""The resident: a process that starts by itself where nobody waits, does what is left, and ends itself."""

from __future__ import annotations

import os
import sys

from interlock.git.run import PLACES
from interlock.runners.process import start_detached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.flows.site import Site

_LOG = "resident.log"
_MOST_LOG = 1_000_000
_OURS = "INTERLOCK_"
_STORE = "INTERLOCK_STORE"


def start_resident(site: Site) -> str:
    """Let the queue be run in the background; tells why not, or nothing.

    Several at once do no harm, one of them gets the lease. It acts for nobody: what it needs to know of a
    session it reads in the store.
    """
    log = os.path.join(site.common_dir, "interlock", _LOG)
    # -P: what lies in the repository's root must not be taken for a module of Python's.
    words = ("queue", "run", "--drain", "--as", "resident", "--json")
    command = [sys.executable, "-P", "-m", "interlock", *words]
    acts_for = [name for name in os.environ if name.startswith(_OURS) and name != _STORE]
    try:
        _keep_short(log)
        start_detached(command, cwd=site.home.root, log=log, without=(*PLACES, *acts_for))
    except (OSError, ValueError) as error:
        return f"nothing runs the queue in the background: {error}"
    return ""


def _keep_short(log: str) -> None:
    """Begin the log anew when it is long; whoever writes to it now goes on at its new end."""
    try:
        if os.path.getsize(log) > _MOST_LOG:
            os.truncate(log, 0)
    except FileNotFoundError:
        return

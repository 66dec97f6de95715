"""The resident: a small process that starts by itself where nobody waits, does what is left, and ends itself."""

from __future__ import annotations

import os
import sys

from interlock.runners.process import start_detached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.flows.site import Site

_LOG = "resident.log"


def start_resident(site: Site) -> int:
    """Let the queue be run in the background; several at once do no harm, one of them gets the lease.

    It acts for nobody: what it needs to know of a session it reads in the store.
    """
    log = os.path.join(site.common_dir, "interlock", _LOG)
    command = [sys.executable, "-m", "interlock", "queue", "run", "--drain", "--as", "resident", "--json"]
    without = ("INTERLOCK_SESSION", "INTERLOCK_AGENT", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    return start_detached(command, cwd=site.home.root, log=log, without=without)

"""Look for the evidence of a task in the repository: run its checks, read its branches."""

from __future__ import annotations

from landlane.git.run import LOCATION_VARIABLES
from landlane.ids import short_id
from landlane.processes.child import Child
from landlane.processes.orphans import CHECK_MARK, kill_marked
from landlane.tasks.evidence_model import Checked
from landlane.tasks.git_evidence import GitWitness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.discovery import Checkout
    from landlane.settings.model import Settings


def make_witness(home: Checkout, settings: Settings, is_store_shared: Callable[[], bool]) -> GitWitness:
    """Return what looks for the evidence of a task."""
    return GitWitness(home, _run_check, settings, is_store_shared)


def _run_check(command: str, folder: str, limit_seconds: float, on_tick: Callable[[], None]) -> Checked:
    # A check acts for no session, and on no repository but the one it runs in.
    without = (*LOCATION_VARIABLES, "LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE")
    mark = {CHECK_MARK: short_id("check")}
    child = Child(["/bin/sh", "-c", command], cwd=folder, without=without, environment=mark)
    try:
        ended = child.wait(limit_seconds, on_tick)
    finally:
        kill_marked(CHECK_MARK, mark[CHECK_MARK])  # also what left the process group
    output = ended.stdout + ended.stderr
    return Checked(exit_code=ended.exit_code, output=output, is_late=ended.has_timed_out)

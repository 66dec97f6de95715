"""A check of what a sandboxed caller made, in a sandbox of its own: it writes only in its checkout."""

from __future__ import annotations

import shutil
import tempfile

from landlane.sandbox.model import Sandbox
from landlane.sandbox.start import SandboxedChild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.processes.child import ChildResult
    from landlane.repository import Repository


def run_sandboxed_check(
    repo: Repository,
    command: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    without: Sequence[str],
    limit_seconds: float,
    on_tick: Callable[[], None],
) -> ChildResult:
    """Run a check as `landlane exec` would run it: the state is hidden, home and temporary files are private.

    Everything that it started ends with it. The main checkout is read-only, also if it is `cwd`.

    Raises:
        NotAllowed: this machine cannot enforce what the settings require.
    """
    scratch = tempfile.mkdtemp(prefix="landlane-check-")
    try:
        sandbox = Sandbox(
            writable=() if cwd == repo.home.root else (cwd,),
            scratch=scratch,
            readable=(repo.home.root, repo.common_dir, cwd),
            hidden=(repo.state_folder,),
            environment=tuple(environment.items()),
            without=tuple(without),
        )
        child = SandboxedChild(command, sandbox, cwd=cwd, required=repo.settings.sandbox.required)
        return child.wait(limit_seconds, on_tick)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

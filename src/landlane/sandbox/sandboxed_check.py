"""A check of what a sandboxed caller made, in a sandbox of its own: it writes only in its checkout."""

from __future__ import annotations

import shutil
import tempfile

from landlane.sandbox.start import SandboxedChild
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.processes.child import ChildResult
    from landlane.sandbox.model import Sandbox


def run_sandboxed_check(
    command: Sequence[str],
    sandbox: Sandbox,
    *,
    cwd: str,
    required: Sequence[str],
    environment: Mapping[str, str],
    without: Sequence[str],
    limit_seconds: float,
    on_tick: Callable[[], None],
) -> ChildResult:
    """Run a check as `landlane exec` would run it, with a private home and private temporary files.

    Everything that it started ends with it.

    Raises:
        NotAllowed: this machine cannot enforce what the settings require.
    """
    scratch = tempfile.mkdtemp(prefix="landlane-check-")
    try:
        sandbox = replace(
            sandbox, scratch=scratch, environment=tuple(environment.items()), without=tuple(without)
        )
        child = SandboxedChild(command, sandbox, cwd=cwd, required=required)
        return child.wait(limit_seconds, on_tick)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

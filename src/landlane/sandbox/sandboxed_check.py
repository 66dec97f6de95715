"""The sandbox of every command that runs a branch's code: checks, preparation, generated files.

Such a command writes only in its checkout and a scratch folder. It reads neither the state, nor other
workspaces, nor the files of the main checkout, nor the home of the user, and it gets no secret from the
environment. `[landing.sandbox]` opens more.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile

from landlane.errors import NotAllowed
from landlane.processes.check_child import CheckChild, Reaper
from landlane.sandbox.environment import secret_variables
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import BackendKind, GuaranteeState, Sandbox
from landlane.sandbox.private_home import link_into_home
from landlane.sandbox.refusals import describe_refusals
from landlane.sandbox.start import SandboxedChild, choose_backend
from landlane.sandbox.visible_paths import (
    borrowed_objects,
    ccache_folder,
    private_places,
    program_folders,
    tool_folders,
    user_home,
    workspace_folders,
)
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.processes.child import ChildResult
    from landlane.sandbox.model import Backend
    from landlane.settings.model import Settings


_SECTION = "landing.sandbox"
_OURS = "LANDLANE_"


@value
class CheckPlaces:
    """The places of a repository that a check must not change; of these it reads only the git directory."""

    root: str  # of the main checkout
    common_dir: str
    state_folder: str


@value
class CheckCommand:
    """A command that runs a branch's code in a checkout, which it may change unless `is_read_only`."""

    words: Sequence[str]
    path: str
    environment: Mapping[str, str]
    limit_seconds: float
    without: Sequence[str] = ()
    is_read_only: bool = False
    is_preparing: bool = False  # it installs dependencies, so it has the network


def describe_check_sandbox(
    settings: Settings, places: CheckPlaces, command: CheckCommand, scratch: str
) -> Sandbox:
    """Return the sandbox of such a command, as the settings of the target branch say."""
    opened = settings.landing.sandbox
    root, common_dir = os.path.realpath(places.root), os.path.realpath(places.common_dir or places.root)
    hidden = [*private_places(), root, places.state_folder, *workspace_folders(settings, root)]
    hidden = [path for path in dict.fromkeys(map(os.path.realpath, hidden)) if path != "/"]
    linked = [os.path.realpath(os.path.join(root, name)) for name in settings.workspace.link]
    tools = tool_folders()
    ccache = ccache_folder()
    search_path = command.environment.get("PATH") or os.environ.get("PATH", os.defpath)
    readable: list[str] = [
        *(common_dir, command.path, scratch, *borrowed_objects(common_dir), *linked, *tools, ccache),
        *program_folders(search_path, hidden),
    ]
    written = [os.path.realpath(os.path.join(root, os.path.expanduser(name))) for name in opened.write]
    written = [path for path in written if os.path.isdir(path)]
    seen = {command.path, *written}
    kept = {name: text for name, text in command.environment.items() if name.startswith(_OURS)}
    environment = {**dict(command.environment), **_cache_variables(ccache, scratch), **kept}
    own = [name for name in os.environ if name.startswith(_OURS) and name not in environment]
    return Sandbox(
        writable=(*(() if command.is_read_only else _own_folders(command.path, common_dir)), *written),
        scratch=scratch,
        readable=tuple(path for path in (*readable, *written) if path and os.path.exists(path)),
        hidden=tuple(path for path in hidden if os.path.lexists(path) and path not in seen),
        unix_sockets=opened.unix_sockets,
        sockets_visible=tuple(map(os.path.expanduser, opened.sockets)),
        network=opened.network or command.is_preparing,
        environment=tuple(environment.items()),
        without=(*command.without, *own, *secret_variables(os.environ)),
    )


def run_sandboxed_check(
    settings: Settings, places: CheckPlaces, command: CheckCommand, on_tick: Callable[[], None]
) -> ChildResult:
    """Run a command and end everything that it started; if it failed, its output says what was refused.

    Where no sandbox works, or the settings switch it off, the command runs without one.

    Raises:
        NotAllowed: the settings require more than this machine enforces.
    """
    backend = choose_backend()
    if settings.landing.sandbox.off or backend.name == BackendKind.NONE:
        _refuse_if_required(settings, backend)
        child = CheckChild(
            command.words, cwd=command.path, environment=command.environment, without=command.without
        )
        return child.wait(command.limit_seconds, on_tick)
    scratch = tempfile.mkdtemp(prefix="landlane-check-")
    try:
        sandbox = describe_check_sandbox(settings, places, command, scratch)
        link_into_home(scratch, user_home(), (*tool_folders(), *sandbox.writable))
        ended = _run(command, sandbox, backend, settings.sandbox.required, on_tick)
        if ended.exit_code == 0:
            return ended
        closed = tuple(map(os.path.realpath, (places.root, places.common_dir, places.state_folder)))
        lines = describe_refusals(sandbox, f"{ended.stdout}\n{ended.stderr}", _SECTION, closed)
        return replace(ended, stderr="\n".join([ended.stderr.rstrip("\n"), *lines, ""])) if lines else ended
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(
    command: CheckCommand,
    sandbox: Sandbox,
    backend: Backend,
    required: Sequence[str],
    on_tick: Callable[[], None],
) -> ChildResult:
    """Run it under a reaper, which ends its processes even if this one is killed; bubblewrap does so, too."""
    if backend.bwrap:
        child = SandboxedChild(command.words, sandbox, cwd=command.path, backend=backend, required=required)
        return child.wait(command.limit_seconds, on_tick)
    sandbox = replace(sandbox, readable=(*sandbox.readable, Reaper.program_folder))
    return _ReapedChild(command, sandbox, backend, required).wait(command.limit_seconds, on_tick)


class _ReapedChild(SandboxedChild):
    """A sandboxed command under a reaper."""

    def __init__(
        self, command: CheckCommand, sandbox: Sandbox, backend: Backend, required: Sequence[str]
    ) -> None:
        self._reaper = Reaper()
        try:
            super().__init__(
                self._reaper.wrap(command.words),
                sandbox,
                cwd=command.path,
                backend=backend,
                required=required,
                inherited_files=(self._reaper.gate,),
            )
        except BaseException:
            self._reaper.end()
            raise
        finally:
            self._reaper.close_gate()

    def signal(self, number: int) -> None:
        """Send a signal to the tree; before it is killed, the reaper gets time to end everything."""
        if number == signal.SIGKILL:
            self._reaper.end(self.end_event())
        super().signal(number)


def describe_confinement(settings: Settings, backend: Backend | None = None) -> str:
    """Return in a few words what confines checks on this machine, and what the settings open."""
    backend = backend or choose_backend()
    opened = settings.landing.sandbox
    if opened.off:
        return "none: switched off by landing.sandbox.off"
    if backend.name == BackendKind.NONE:
        return "none: this machine has no sandbox"
    names = ["network"] if opened.network else []
    names += ["unix sockets"] if opened.unix_sockets else []
    names += [f"socket {path}" for path in opened.sockets] + [f"writing {path}" for path in opened.write]
    return f"{backend.name}; opened: {', '.join(names)}" if names else str(backend.name)


def open_promises(settings: Settings, backend: Backend) -> list[str]:
    """Return what is not enforced for checks on this machine, apart from what the settings open."""
    opened = settings.landing.sandbox
    sandbox = Sandbox(
        writable=(),
        scratch="/nowhere/scratch",
        hidden=("/nowhere/state",),
        unix_sockets=opened.unix_sockets,
        sockets_visible=opened.sockets,
        network=opened.network,
    )
    return [one.promise for one in list_guarantees(backend, sandbox) if one.state == GuaranteeState.OPEN]


def _refuse_if_required(settings: Settings, backend: Backend) -> None:
    if settings.sandbox.required:
        is_off = settings.landing.sandbox.off
        raise NotAllowed(
            "checks run without a sandbox, and the settings require one"
            if is_off
            else "this machine has no sandbox for checks, and the settings require one",
            code="SANDBOX_MISSING",
            hint="remove landing.sandbox.off, or sandbox.required"
            if is_off
            else " ".join((*backend.reasons, "Or remove sandbox.required.")),
            missing=list(settings.sandbox.required),
            backend=backend.name,
        )


def _own_folders(path: str, common_dir: str) -> list[str]:
    """Return what a command may change in its checkout: not the shared git directory, if that is in it."""
    if os.path.realpath(os.path.join(path, ".git")) != common_dir:
        return [path]
    folders = [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
    return [folder for folder in folders if os.path.basename(folder) != ".git"]


def _cache_variables(ccache: str, scratch: str) -> dict[str, str]:
    """Return what makes ccache read its cache and change nothing in it."""
    if not ccache:
        return {}
    temporary = os.path.join(scratch, "tmp")
    return {"CCACHE_DIR": ccache, "CCACHE_READONLY": "1", "CCACHE_TEMPDIR": temporary}

"""Start a command in its sandbox, as far as this machine can enforce it."""

from __future__ import annotations

import os
import signal

from landlane.errors import Malformed, NotAllowed
from landlane.ids import new_uuid
from landlane.platform.process import can_see_processes
from landlane.processes.child import Child, ChildResult
from landlane.processes.tree import TREE_MARK, ProcessTree, end_tree, record_tree, signal_tree
from landlane.sandbox.bubblewrap import BWRAP_VARIABLE, find_bubblewrap, trial_command, wrap_command
from landlane.sandbox.capabilities import drop_capabilities
from landlane.sandbox.confined_thread import SandboxThread
from landlane.sandbox.guarantees import (
    ABI_LEAST,
    ABI_SCOPE,
    has_private_network,
    list_guarantees,
    refuses_new_unix_sockets,
)
from landlane.sandbox.landlock import LandlockRules, kernel_abi, make_ruleset, restrict_thread
from landlane.sandbox.model import Backend, BackendKind, Sandbox, require_guarantees
from landlane.sandbox.private_home import prepare_home
from landlane.sandbox.seccomp import SeccompFilter, can_filter, filter_thread
from landlane.sandbox.subreaper import Subreaper
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_TRIAL_SECONDS = 10.0
_GRACE_SECONDS = 5.0
_NO_FILES = Sandbox(writable=(), scratch="")

_chosen: dict[str, Backend] = {}


def choose_backend() -> Backend:
    """Return what can enforce a sandbox on this machine; each bubblewrap is tried once per process."""
    bwrap = find_bubblewrap()
    if bwrap not in _chosen:
        _chosen[bwrap] = _choose(bwrap)
    return _chosen[bwrap]


def _choose(bwrap: str) -> Backend:
    abi, has_filter = kernel_abi(), can_filter()
    reasons: list[str] = []
    has_network = bool(bwrap) and not _try_bubblewrap(bwrap, abi, has_private_network=True)
    trouble = _try_bubblewrap(bwrap, abi, has_private_network=False) if bwrap and not has_network else ""
    if bwrap and not trouble:
        name = BackendKind.BUBBLEWRAP_LANDLOCK if abi >= ABI_LEAST else BackendKind.BUBBLEWRAP
        return Backend(
            name=name,
            bwrap=bwrap,
            landlock_abi=abi,
            has_filter=has_filter,
            has_private_network=has_network,
        )
    if bwrap:
        reasons.append(f"{bwrap} does not work here: {trouble}.")
    else:
        reasons.append(
            f"bubblewrap is not installed (the program `bwrap`, on PATH or named by {BWRAP_VARIABLE})."
        )
    if abi >= ABI_LEAST:
        return Backend(
            name=BackendKind.LANDLOCK, landlock_abi=abi, has_filter=has_filter, reasons=tuple(reasons)
        )
    has = f"version {abi}" if abi else "none"
    reasons.append(f"The kernel must have Landlock version {ABI_LEAST} or newer, and has {has}.")
    return Backend(name=BackendKind.NONE, landlock_abi=abi, has_filter=has_filter, reasons=tuple(reasons))


def _try_bubblewrap(bwrap: str, abi: int, *, has_private_network: bool) -> str:
    """Return why bubblewrap does not work here; empty when it does."""
    words = trial_command(bwrap, has_private_network=has_private_network)
    trial = Backend(name=BackendKind.BUBBLEWRAP, bwrap=bwrap, landlock_abi=abi, has_filter=can_filter())
    try:
        thread = SandboxThread(_confinement(trial, _NO_FILES), scopes_signals=False)
        try:
            result = Child(words, cwd="/", within=thread.call).wait(_TRIAL_SECONDS)
        finally:
            thread.close()
    except OSError as error:
        return str(error)
    message = " ".join(result.stderr.split()) or f"exit code {result.exit_code}"
    return "" if result.exit_code == 0 else message[:200]


class SandboxedChild(Child):
    """A running child that can do only what its sandbox allows, as far as this machine can enforce that.

    `guarantees` says what is enforced, and `tree` is the child with everything it starts.
    """

    def __init__(
        self,
        command: Sequence[str],
        sandbox: Sandbox,
        *,
        cwd: str,
        backend: Backend | None = None,
        required: Sequence[str] = (),
        streams: tuple[int, int, int] | None = None,
        has_terminal: bool = False,
        tree_id: str = "",
        inherited_files: Sequence[int] = (),
    ) -> None:
        """Start it. `tree_id` marks its process tree, for a caller that has recorded it already.

        Raises:
            NotAllowed: a required promise cannot be kept here.
            Malformed: a folder of the sandbox does not exist.
        """
        self.backend = backend = backend or choose_backend()
        self.guarantees = list_guarantees(backend, sandbox)
        require_guarantees(self.guarantees, required, backend)
        sandbox, cwd, tree_id = _resolve(sandbox), os.path.realpath(cwd), tree_id or new_uuid()
        variables = {**prepare_home(sandbox.scratch), **dict(sandbox.environment), TREE_MARK: tree_id}
        words = list(command)
        if backend.bwrap:
            words = wrap_command(
                backend.bwrap,
                sandbox,
                words,
                cwd,
                has_private_network=has_private_network(backend, sandbox),
                has_terminal=has_terminal,
            )
        try:
            self._thread = SandboxThread(
                _confinement(backend, sandbox), scopes_signals=backend.landlock_abi >= ABI_SCOPE
            )
        except OSError as error:
            raise NotAllowed(
                f"the kernel refused the sandbox: {error}", code="SANDBOX_MISSING", hint="nothing was started"
            ) from error
        # Where the kernel cannot tell which processes are in the sandbox, orphans must come to us.
        self._subreaper = None if self._thread.is_exact or backend.bwrap else Subreaper()
        try:
            super().__init__(
                words,
                cwd=cwd,
                environment=variables,
                without=sandbox.without,
                streams=streams,
                has_terminal=has_terminal,
                within=self._thread.call,
                inherited_files=inherited_files,
            )
        except BaseException:
            self._close()
            raise
        self.tree: ProcessTree = record_tree(tree_id, self.pid, is_wrapped=bool(backend.bwrap))

    def signal(self, number: int) -> None:
        """Send a signal to the tree; SIGKILL also ends processes that left it."""
        if not can_see_processes():
            if number == signal.SIGKILL:
                self._thread.kill_all()
            super().signal(number)
        elif number == signal.SIGKILL:
            self.end(grace_seconds=0)
        else:
            signal_tree(self.tree, number, self._thread.members)

    def end(self, *, grace_seconds: float = _GRACE_SECONDS) -> int:
        """End the command and everything it started; return how many processes there were."""
        return end_tree(
            self.tree,
            grace_seconds=grace_seconds,
            is_inside=self._thread.members,
            kill_all=self._kill_all,
        )

    def _kill_all(self) -> None:
        if not self._thread.kill_all() and self._subreaper is not None:
            self._subreaper.kill_all(self.tree)

    def wait(self, limit_seconds: float, on_tick: Callable[[], None] = lambda: None) -> ChildResult:
        """Wait for the end, and end what is left of the tree."""

        def tick() -> None:
            if self._subreaper is not None:
                self._subreaper.reap(self.pid)
            on_tick()

        try:
            return super().wait(limit_seconds, tick)
        finally:
            self._close()

    def _close(self) -> None:
        self._thread.close()
        if self._subreaper is not None:
            self._subreaper.close()
            self._subreaper = None

    def poll(self) -> int | None:
        """Return its exit code once it has ended, else None."""
        return self._process.poll()


def _confinement(backend: Backend, sandbox: Sandbox) -> Callable[[], None]:
    """Return the function by which a thread confines itself; it raises OSError if the kernel refuses."""
    limits_files = not backend.bwrap  # else mounts do, and Landlock would forbid bubblewrap to make them
    is_apart = has_private_network(backend, sandbox)  # then every port is its own
    rules = LandlockRules(
        limits_files=limits_files,
        writable=sandbox.writable_roots() if limits_files else (),
        hidden=sandbox.hidden,
        shown=sandbox.readable,
        sockets=None if sandbox.unix_sockets else sandbox.sockets_visible,
        connect=None if is_apart else sandbox.tcp_connect,
        bind=None if is_apart else sandbox.tcp_bind,
    )
    refused = SeccompFilter(
        unix_sockets=refuses_new_unix_sockets(backend, sandbox),
        shared_memory=refuses_new_unix_sockets(backend, sandbox),
        other_protocols=sandbox.refuses_udp() and not is_apart,
        around_tcp=sandbox.limits_tcp() and not is_apart,
        all_tcp=sandbox.refuses_tcp() and not is_apart,
        modes=not sandbox.modes and limits_files,
    )

    def confine() -> None:
        if backend.name == BackendKind.NONE:
            return
        if limits_files:
            drop_capabilities()
        ruleset = make_ruleset(rules, backend.landlock_abi)
        if ruleset is not None:
            restrict_thread(ruleset)
        if backend.has_filter:
            filter_thread(refused)

    return confine


def _resolve(sandbox: Sandbox) -> Sandbox:
    """Return the sandbox with all links in its paths resolved.

    Raises:
        Malformed: a folder that it may write in does not exist.
    """
    for path in (sandbox.scratch, *sandbox.writable):
        if not os.path.isdir(path):
            raise Malformed(
                f"there is no folder {path} to work in", code="SANDBOX_PLACE", hint="make it before starting"
            )
    resolved = {
        name: tuple(map(os.path.realpath, getattr(sandbox, name)))
        for name in ("writable", "readable", "hidden", "sockets_visible")
    }
    return replace(sandbox, scratch=os.path.realpath(sandbox.scratch), **resolved)

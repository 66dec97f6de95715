"""Start a command inside its sandbox, with what this machine can enforce."""

from __future__ import annotations

import os
import signal
import stat

from landlane.errors import Malformed, NotAllowed
from landlane.platform.proc import can_see_processes
from landlane.processes.child import Child, ChildResult
from landlane.processes.tree import TREE_MARK, ProcessTree, end_tree, new_tree_id, record_tree, signal_tree
from landlane.sandbox.bubblewrap import BWRAP_VARIABLE, find_bubblewrap, trial_command, wrap_command
from landlane.sandbox.capabilities import drop_capabilities
from landlane.sandbox.confined_thread import SandboxThread
from landlane.sandbox.guarantees import ABI_LEAST, ABI_SCOPE, list_guarantees
from landlane.sandbox.landlock import LandlockRules, kernel_abi, make_ruleset, restrict_thread
from landlane.sandbox.model import (
    BUBBLEWRAP,
    BUBBLEWRAP_LANDLOCK,
    LANDLOCK,
    NONE,
    Backend,
    Guarantee,
    Sandbox,
    is_within,
    require_guarantees,
)
from landlane.sandbox.seccomp import SeccompFilter, can_filter, filter_thread
from landlane.sandbox.subreaper import Subreaper
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_TRIAL_SECONDS = 10.0
_GRACE_SECONDS = 5.0
_NO_FILES = Sandbox(writable=(), scratch="")

# Folders of scratch, and the variables that lead programs there.
_PRIVATE = {
    "tmp": ("TMPDIR", "TMP", "TEMP"),
    "home/.config": ("XDG_CONFIG_HOME",),
    "home/.cache": ("XDG_CACHE_HOME",),
    "home/.local/share": ("XDG_DATA_HOME",),
    "home/.local/state": ("XDG_STATE_HOME",),
    "run": ("XDG_RUNTIME_DIR",),
    "clients/claude": ("CLAUDE_CONFIG_DIR",),
    "clients/codex": ("CODEX_HOME",),
}
# What a person has set in the home that is hidden behind the private one, for programs to read.
_SETTINGS = {
    "GIT_CONFIG_GLOBAL": (".gitconfig", ".config/git/config"),
    "PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"),
    "NPM_CONFIG_USERCONFIG": (".npmrc",),
}

_chosen: dict[str, Backend] = {}


def choose_backend() -> Backend:
    """What can enforce a sandbox on this machine; tried once for each process and bubblewrap."""
    bwrap = find_bubblewrap()
    if bwrap not in _chosen:
        _chosen[bwrap] = _choose(bwrap)
    return _chosen[bwrap]


def _choose(bwrap: str) -> Backend:
    abi, has_filter = kernel_abi(), can_filter()
    reasons: list[str] = []
    trouble = _try_bubblewrap(bwrap, abi) if bwrap else ""
    if bwrap and not trouble:
        name = BUBBLEWRAP_LANDLOCK if abi >= ABI_LEAST else BUBBLEWRAP
        return Backend(name=name, bwrap=bwrap, landlock_abi=abi, has_filter=has_filter)
    if bwrap:
        reasons.append(f"{bwrap} does not work here: {trouble}.")
    else:
        reasons.append(
            f"bubblewrap is not installed (the program `bwrap`, on PATH or named by {BWRAP_VARIABLE})."
        )
    if abi >= ABI_LEAST:
        return Backend(name=LANDLOCK, landlock_abi=abi, has_filter=has_filter, reasons=tuple(reasons))
    has = f"version {abi}" if abi else "none"
    reasons.append(f"The kernel must have Landlock version {ABI_LEAST} or newer, and has {has}.")
    return Backend(name=NONE, landlock_abi=abi, has_filter=has_filter, reasons=tuple(reasons))


def _try_bubblewrap(bwrap: str, abi: int) -> str:
    """Why it does not work here; empty when it does."""
    trial = Backend(name=BUBBLEWRAP, bwrap=bwrap, landlock_abi=abi, has_filter=can_filter())
    try:
        thread = SandboxThread(_confinement(trial, _NO_FILES), scopes_signals=False)
        try:
            ended = Child(trial_command(bwrap), cwd="/", within=thread.call).wait(_TRIAL_SECONDS)
        finally:
            thread.close()
    except OSError as error:
        return str(error)
    said = " ".join(ended.stderr.split()) or f"exit code {ended.exit_code}"
    return "" if ended.exit_code == 0 else said[:200]


def start_sandboxed(
    command: Sequence[str],
    sandbox: Sandbox,
    *,
    cwd: str,
    backend: Backend | None = None,
    required: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    has_stdin: bool = False,
    streams: tuple[int, int, int] | None = None,
    has_terminal: bool = False,
    tree_id: str = "",
) -> SandboxedChild:
    """Start a command that can do no more than its sandbox says, as far as that is held here.

    What is not held stands in `held` of the child, for the caller to say. `tree_id` is the mark of its tree,
    for a caller that has written it down before.

    Raises:
        NotAllowed: a required promise cannot be held here.
        Malformed: a folder of the sandbox is not there.
    """
    backend = backend or choose_backend()
    held = list_guarantees(backend, sandbox)
    require_guarantees(held, required, backend)
    sandbox = _resolve(sandbox)
    private = prepare_scratch(sandbox)
    tree_id = tree_id or new_tree_id()
    variables = {**private, **(environment or {}), **dict(sandbox.environment), TREE_MARK: tree_id}
    words = list(command)
    if backend.bwrap:
        words = wrap_command(backend.bwrap, sandbox, words, os.path.realpath(cwd), has_terminal=has_terminal)
    try:
        thread = SandboxThread(
            _confinement(backend, sandbox), scopes_signals=backend.landlock_abi >= ABI_SCOPE
        )
    except OSError as error:
        raise NotAllowed(
            f"the kernel refused the sandbox: {error}", code="SANDBOX_MISSING", hint="nothing was started"
        ) from error
    try:
        return SandboxedChild(
            words,
            cwd=os.path.realpath(cwd),
            environment=variables,
            without=sandbox.without,
            has_stdin=has_stdin,
            streams=streams,
            has_terminal=has_terminal,
            thread=thread,
            tree_id=tree_id,
            backend=backend,
            held=held,
        )
    except BaseException:
        thread.close()
        raise


class SandboxedChild(Child):
    """A running child in its sandbox, together with everything it starts."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str],
        without: Sequence[str],
        has_stdin: bool,
        streams: tuple[int, int, int] | None,
        has_terminal: bool,
        thread: SandboxThread,
        tree_id: str,
        backend: Backend,
        held: tuple[Guarantee, ...],
    ) -> None:
        # Where the kernel does not tell who is in the sandbox, what loses its parents comes to us.
        self._adopting = None if thread.is_exact or backend.bwrap else Subreaper()
        try:
            super().__init__(
                command,
                cwd=cwd,
                environment=environment,
                without=without,
                has_stdin=has_stdin,
                streams=streams,
                has_terminal=has_terminal,
                within=thread.call,
            )
        except BaseException:
            self._adopt_no_more()
            raise
        self._thread = thread
        self.backend = backend
        self.held = held
        self.tree: ProcessTree = record_tree(tree_id, self.pid, is_wrapped=bool(backend.bwrap))

    def signal(self, number: int) -> None:
        """Send a signal to all of the tree; the one that kills also takes whoever left it."""
        if not can_see_processes():
            if number == signal.SIGKILL:
                self._thread.kill_all()
            super().signal(number)
        elif number == signal.SIGKILL:
            self.end(grace_seconds=0)
        else:
            signal_tree(self.tree, number, self._thread.members)

    def end(self, *, grace_seconds: float = _GRACE_SECONDS) -> int:
        """End the command and everything it started; tells how many processes there were."""
        return end_tree(
            self.tree,
            grace_seconds=grace_seconds,
            is_inside=self._thread.members,
            kill_all=self._kill_all,
        )

    def _kill_all(self) -> None:
        if not self._thread.kill_all() and self._adopting is not None:
            self._adopting.kill_all(self.tree)

    def wait(self, limit_seconds: float, on_tick: Callable[[], None] = lambda: None) -> ChildResult:
        """Wait for the end, and end what is left of the tree."""

        def tick() -> None:
            if self._adopting is not None:
                self._adopting.bury(self.pid)
            on_tick()

        try:
            return super().wait(limit_seconds, tick)
        finally:
            self._thread.close()
            self._adopt_no_more()

    def _adopt_no_more(self) -> None:
        if self._adopting is not None:
            self._adopting.close()
            self._adopting = None

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.poll()


def prepare_scratch(sandbox: Sandbox) -> dict[str, str]:
    """Make the private folders, and tell the variables that lead there.

    Raises:
        Malformed: scratch holds something else there, such as a link that wants to be followed.
    """
    variables: dict[str, str] = {}
    for folder, names in _PRIVATE.items():
        path = sandbox.scratch
        for part in folder.split("/"):
            path = os.path.join(path, part)
            _make_private(path)
        variables |= dict.fromkeys(names, path)
    if sandbox.private_home:
        variables |= _settings_of(os.environ.get("HOME", ""))
        variables["HOME"] = os.path.join(sandbox.scratch, "home")
    return variables


def _settings_of(home: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, places in _SETTINGS.items():
        there = [path for place in places if home and os.path.isfile(path := os.path.join(home, place))]
        if name not in os.environ and there:
            found[name] = there[0]
    return found


def _make_private(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise Malformed(
                f"{path} is not a folder",
                code="SANDBOX_PLACE",
                hint="remove it: it stands where a private folder must be",
            ) from None


def _confinement(backend: Backend, sandbox: Sandbox) -> Callable[[], None]:
    """What a thread does to confine itself for this sandbox; what the kernel refuses is an error there."""
    holds_files = not backend.bwrap  # else the mounts do, and Landlock would forbid bubblewrap to make them
    rules = LandlockRules(
        holds_files=holds_files,
        writable=sandbox.may_change() if holds_files else (),
        hidden=sandbox.hidden,
        shown=tuple(
            path for path in sandbox.readable if any(is_within(path, hidden) for hidden in sandbox.hidden)
        ),
        sockets=None if sandbox.unix_sockets else sandbox.sockets_visible,
        connect=sandbox.tcp_connect,
        bind=sandbox.tcp_bind,
        shared_memory=sandbox.shared_memory,
    )
    refused = SeccompFilter(
        unix_sockets=sandbox.refuses_unix_sockets(),
        other_protocols=not sandbox.udp,
        around_tcp=sandbox.limits_tcp(),
        all_tcp=sandbox.refuses_tcp(),
        modes=not sandbox.modes and holds_files,
    )

    def confine() -> None:
        if backend.name == NONE:
            return
        if holds_files:
            drop_capabilities()
        ruleset = make_ruleset(rules, backend.landlock_abi)
        if ruleset is not None:
            restrict_thread(ruleset)
        if backend.has_filter:
            filter_thread(refused)

    return confine


def _resolve(sandbox: Sandbox) -> Sandbox:
    """The same sandbox with every path as the kernel sees it.

    Raises:
        Malformed: it may write in a place that is not there.
    """
    for path in (sandbox.scratch, *sandbox.writable):
        if not os.path.isdir(path):
            raise Malformed(
                f"there is no folder {path} to work in", code="SANDBOX_PLACE", hint="make it before starting"
            )
    many = {
        name: tuple(map(os.path.realpath, getattr(sandbox, name)))
        for name in ("writable", "readable", "hidden", "sockets_visible")
    }
    return replace(sandbox, scratch=os.path.realpath(sandbox.scratch), **many)

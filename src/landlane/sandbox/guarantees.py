"""Which promises of a sandbox a backend holds, by what, and why not where it does not."""

from __future__ import annotations

from landlane.sandbox.model import (
    ABSTRACT_SOCKETS,
    CHMOD,
    DESCRIPTORS,
    ENVIRONMENT,
    FILES,
    FREE,
    HELD,
    LIMITS,
    NONE,
    OPEN,
    PROMISES,
    READING,
    SIGNALS,
    SOCKETS,
    TCP,
    TRACE,
    TREE,
    UDP,
    Backend,
    Guarantee,
    Sandbox,
    is_within,
)

# What each version of Landlock brought.
ABI_LEAST = 3  # truncation; below it a file outside can be emptied
ABI_TCP = 4
ABI_SCOPE = 6  # signals and abstract sockets
ABI_UNIX = 9  # unix sockets by path

_MOUNTS = "bubblewrap (read-only mounts)"
_PIDS = "bubblewrap (pid namespace)"
_LANDLOCK = "landlock"
_FILTER = "seccomp"
_NO_FILTER = "no seccomp filter for this machine"
_NO_SANDBOX = "no sandbox works on this machine"


def list_guarantees(backend: Backend, sandbox: Sandbox) -> tuple[Guarantee, ...]:
    """Every promise, as this backend holds it for this sandbox."""
    if backend.name == NONE:
        return tuple(
            _by("closing them at the start", name) if name == DESCRIPTORS else _open(name, _NO_SANDBOX)
            for name in PROMISES
        )
    is_wrapped = bool(backend.bwrap)
    return (
        _files(sandbox, is_wrapped=is_wrapped),
        _reading(sandbox, is_wrapped=is_wrapped),
        _chmod(backend, sandbox, is_wrapped=is_wrapped),
        _signals(backend),
        _limits(backend),
        _by(_PIDS if is_wrapped else _LANDLOCK, TRACE),
        _by(_PIDS if is_wrapped else _LANDLOCK, ENVIRONMENT),
        _tree(backend),
        _sockets(backend, sandbox, is_wrapped=is_wrapped),
        _abstract(backend, sandbox),
        _tcp(backend, sandbox),
        _udp(backend, sandbox),
        _by("closing them at the start", DESCRIPTORS),
    )


def _by(by: str, promise: str, why: str = "") -> Guarantee:
    return Guarantee(promise=promise, state=HELD, by=by, why=why)


def _open(promise: str, why: str) -> Guarantee:
    return Guarantee(promise=promise, state=OPEN, why=why)


def _free(promise: str, why: str) -> Guarantee:
    return Guarantee(promise=promise, state=FREE, why=why)


def _files(sandbox: Sandbox, *, is_wrapped: bool) -> Guarantee:
    if is_wrapped:
        return _by(_MOUNTS, FILES)
    shared = ", and /dev/shm is shared with others" if sandbox.shared_memory else ""
    return _by(_LANDLOCK, FILES, f"terminals in /dev/pts can be written to{shared}")


def _reading(sandbox: Sandbox, *, is_wrapped: bool) -> Guarantee:
    if not sandbox.hidden:
        return _free(READING, "nothing is hidden from it")
    if is_wrapped:
        return _by(_MOUNTS, READING)
    if any(
        path == place or is_within(path, place) for path in sandbox.hidden for place in sandbox.may_change()
    ):
        return _open(
            READING, "what is hidden lies in a place it may write in, and Landlock takes nothing back"
        )
    late = "names can be listed; files made later beside a hidden place are hidden too"
    return _by(_LANDLOCK, READING, late)


def _chmod(backend: Backend, sandbox: Sandbox, *, is_wrapped: bool) -> Guarantee:
    if is_wrapped:
        return _by(_MOUNTS, CHMOD)
    if not sandbox.modes and backend.has_filter:
        return _by(_FILTER, CHMOD, "refused everywhere, its own files too")
    return _open(CHMOD, "Landlock knows no right for it; bubblewrap would hold it")


def _signals(backend: Backend) -> Guarantee:
    if backend.bwrap:
        return _by(_PIDS, SIGNALS)
    if backend.landlock_abi >= ABI_SCOPE:
        return _by(_LANDLOCK, SIGNALS)
    return _open(SIGNALS, _too_old(backend, ABI_SCOPE))


def _limits(backend: Backend) -> Guarantee:
    if backend.bwrap:
        return _by(_PIDS, LIMITS)
    return _by(_FILTER, LIMITS) if backend.has_filter else _open(LIMITS, _NO_FILTER)


def _tree(backend: Backend) -> Guarantee:
    if backend.bwrap:
        return _by(_PIDS, TREE)
    if backend.landlock_abi >= ABI_SCOPE:
        return _by(_LANDLOCK, TREE, "after its starter was killed, by a mark in its environment alone")
    return _open(TREE, "what drops its environment and its parents is not found again")


def _sockets(backend: Backend, sandbox: Sandbox, *, is_wrapped: bool) -> Guarantee:
    if sandbox.refuses_unix_sockets() and backend.has_filter:
        return _by(_FILTER, SOCKETS)
    if is_wrapped:
        late = "one that appears later outside of /run and temporary folders is within reach"
        return _by("bubblewrap (covered by mounts)", SOCKETS, late)
    if backend.landlock_abi >= ABI_UNIX:
        return _by(_LANDLOCK, SOCKETS)
    if sandbox.unix_sockets:
        return _free(SOCKETS, "its role may use unix sockets")
    if not backend.has_filter:
        return _open(SOCKETS, f"{_NO_FILTER}; {_too_old(backend, ABI_UNIX)}")
    return _open(SOCKETS, f"one socket must stay within reach; {_too_old(backend, ABI_UNIX)}")


def _abstract(backend: Backend, sandbox: Sandbox) -> Guarantee:
    if sandbox.refuses_unix_sockets() and backend.has_filter:
        return _by(_FILTER, ABSTRACT_SOCKETS)
    if backend.landlock_abi >= ABI_SCOPE:
        return _by(_LANDLOCK, ABSTRACT_SOCKETS)
    return _open(ABSTRACT_SOCKETS, _too_old(backend, ABI_SCOPE))


def _tcp(backend: Backend, sandbox: Sandbox) -> Guarantee:
    if not sandbox.limits_tcp():
        return _free(TCP, "its role may use any port")
    if sandbox.refuses_tcp() and backend.has_filter:
        return _by(_FILTER, TCP)
    if backend.landlock_abi < ABI_TCP:
        return _open(TCP, _too_old(backend, ABI_TCP))
    if not backend.has_filter:
        return _open(TCP, "without seccomp, MPTCP and TCP Fast Open pass Landlock by")
    return _by(f"{_LANDLOCK} and {_FILTER}", TCP)


def _udp(backend: Backend, sandbox: Sandbox) -> Guarantee:
    if sandbox.udp:
        return _free(UDP, "its role may use UDP")
    if not backend.has_filter:
        return _open(UDP, _NO_FILTER)
    return _by(_FILTER, UDP)


def _too_old(backend: Backend, needed: int) -> str:
    has = f"version {backend.landlock_abi}" if backend.landlock_abi else "none"
    return f"it takes Landlock version {needed}, and this kernel has {has}"

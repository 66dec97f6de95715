"""Which promises of a sandbox a backend keeps, by what means, and why it cannot keep the others."""

from __future__ import annotations

from landlane.sandbox.model import (
    Backend,
    BackendKind,
    Guarantee,
    GuaranteeState,
    Promise,
    Sandbox,
    is_within,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Finding = tuple[GuaranteeState, str, str]  # the state, what keeps the promise, and a remark

# The version of Landlock that each right needs.
ABI_LEAST = 3  # truncation; with an older one, files outside can be emptied
ABI_TCP = 4
ABI_SCOPE = 6  # signals and abstract sockets
ABI_UNIX = 9  # unix sockets by path

_MOUNTS = "bubblewrap (read-only mounts)"
_PIDS = "bubblewrap (pid namespace)"
_IPC = "bubblewrap (ipc namespace, private /dev/shm)"
_NETWORK = "bubblewrap (network namespace)"
_LANDLOCK = "landlock"
_FILTER = "seccomp"
_NO_FILTER = "no seccomp filter for this machine"
_NO_SANDBOX = "no sandbox works on this machine"
# What bubblewrap keeps in every sandbox.
_BUBBLEWRAP = {
    Promise.FILES: _MOUNTS,
    Promise.CHMOD: _MOUNTS,
    Promise.SIGNALS: _PIDS,
    Promise.LIMITS: _PIDS,
    Promise.TRACE: _PIDS,
    Promise.SHARED_MEMORY: _IPC,
    Promise.SYSTEM_V: _IPC,
    Promise.ENVIRONMENT: _PIDS,
    Promise.TREE: _PIDS,
}


def list_guarantees(backend: Backend, sandbox: Sandbox) -> tuple[Guarantee, ...]:
    """Return every promise with its state under this backend for this sandbox."""
    found = {promise: _judge(promise, backend, sandbox) for promise in Promise}
    return tuple(
        Guarantee(promise=promise, state=state, by=by, why=why) for promise, (state, by, why) in found.items()
    )


def _judge(promise: Promise, backend: Backend, sandbox: Sandbox) -> Finding:
    if promise == Promise.DESCRIPTORS:
        return _held("closing them at the start")
    if backend.name == BackendKind.NONE:
        return _open(_NO_SANDBOX)
    if backend.bwrap and promise in _BUBBLEWRAP:
        return _held(_BUBBLEWRAP[promise])
    return _RULES[promise](backend, sandbox)


def _held(by: str, why: str = "") -> Finding:
    return GuaranteeState.HELD, by, why


def _open(why: str) -> Finding:
    return GuaranteeState.OPEN, "", why


def _free(why: str) -> Finding:
    return GuaranteeState.FREE, "", why


def _files(_: Backend, __: Sandbox) -> Finding:
    return _held(_LANDLOCK, "terminals in /dev/pts can be written to, and /dev/shm is shared with others")


def _reading(backend: Backend, sandbox: Sandbox) -> Finding:
    if not sandbox.hidden:
        return _free("nothing is hidden from it")
    if backend.bwrap:
        return _held(_MOUNTS)
    writable = sandbox.writable_roots()
    if any(path == folder or is_within(path, folder) for path in sandbox.hidden for folder in writable):
        return _open("what is hidden lies in a place it may write in, and Landlock takes nothing back")
    return _held(_LANDLOCK, "names can be listed; files made later beside a hidden place are hidden too")


def _chmod(backend: Backend, sandbox: Sandbox) -> Finding:
    if not sandbox.modes and backend.has_filter:
        return _held(_FILTER, "refused everywhere, its own files too")
    return _open("Landlock knows no right for it; bubblewrap would hold it")


def _signals(backend: Backend, _: Sandbox) -> Finding:
    return _held(_LANDLOCK) if backend.landlock_abi >= ABI_SCOPE else _too_old(backend, ABI_SCOPE)


def _limits(backend: Backend, _: Sandbox) -> Finding:
    return _held(_FILTER) if backend.has_filter else _open(_NO_FILTER)


def _tracing(_: Backend, __: Sandbox) -> Finding:
    return _held(_LANDLOCK)


def _tree(backend: Backend, _: Sandbox) -> Finding:
    if backend.landlock_abi >= ABI_SCOPE:
        return _held(_LANDLOCK, "after its starter was killed, by a mark in its environment alone")
    return _open("what drops its environment and its parents is not found again")


def refuses_new_unix_sockets(backend: Backend, sandbox: Sandbox) -> bool:
    """Return whether the filter refuses new unix sockets, because nothing else keeps it from those of others.

    Pairs of connected sockets are not refused.
    """
    if not sandbox.refuses_unix_sockets() or not backend.has_filter:
        return False
    return backend.landlock_abi < (ABI_SCOPE if backend.bwrap else ABI_UNIX)


def has_private_network(backend: Backend, sandbox: Sandbox) -> bool:
    """Return whether it gets a network of its own, in which there is only its loopback."""
    return not sandbox.network and bool(backend.bwrap) and backend.has_private_network


def _shared_memory(_: Backend, __: Sandbox) -> Finding:
    return _open("Landlock has no /dev/shm of its own; bubblewrap would make one")


def _system_v(backend: Backend, sandbox: Sandbox) -> Finding:
    if refuses_new_unix_sockets(backend, sandbox):
        return _held(_FILTER)
    return _open("Landlock has no right for it; bubblewrap would separate it")


def _sockets(backend: Backend, sandbox: Sandbox) -> Finding:
    if refuses_new_unix_sockets(backend, sandbox):
        return _held(_FILTER)
    if backend.bwrap:
        late = "one that appears later outside of home, /run and temporary folders is within reach"
        return _held("bubblewrap (covered by mounts)", late)
    if backend.landlock_abi >= ABI_UNIX and not sandbox.unix_sockets:
        return _held(_LANDLOCK)
    if sandbox.unix_sockets:
        return _free("the settings open unix sockets")
    return _too_old(
        backend, ABI_UNIX, "one socket must stay within reach" if backend.has_filter else _NO_FILTER
    )


def _abstract_sockets(backend: Backend, sandbox: Sandbox) -> Finding:
    if refuses_new_unix_sockets(backend, sandbox):
        return _held(_FILTER)
    if has_private_network(backend, sandbox):
        return _held(_NETWORK)
    return _signals(backend, sandbox)  # the same right of Landlock


def _tcp(backend: Backend, sandbox: Sandbox) -> Finding:
    if not sandbox.limits_tcp():
        return _free("it may use any port")
    if has_private_network(backend, sandbox):
        return _held(_NETWORK)
    if sandbox.refuses_tcp() and backend.has_filter:
        return _held(_FILTER)
    if backend.landlock_abi < ABI_TCP:
        return _too_old(backend, ABI_TCP)
    if not backend.has_filter:
        return _open("without seccomp, MPTCP and TCP Fast Open pass Landlock by")
    return _held(f"{_LANDLOCK} and {_FILTER}")


def _udp(backend: Backend, sandbox: Sandbox) -> Finding:
    if not sandbox.refuses_udp():
        return _free("it may use UDP")
    return _held(_NETWORK) if has_private_network(backend, sandbox) else _limits(backend, sandbox)


def _too_old(backend: Backend, needed: int, first: str = "") -> Finding:
    has = f"version {backend.landlock_abi}" if backend.landlock_abi else "none"
    why = f"it takes Landlock version {needed}, and this kernel has {has}"
    return _open(f"{first}; {why}" if first else why)


_RULES: dict[Promise, Callable[[Backend, Sandbox], Finding]] = {
    Promise.FILES: _files,
    Promise.READING: _reading,
    Promise.CHMOD: _chmod,
    Promise.SIGNALS: _signals,
    Promise.LIMITS: _limits,
    Promise.TRACE: _tracing,
    Promise.SHARED_MEMORY: _shared_memory,
    Promise.SYSTEM_V: _system_v,
    Promise.ENVIRONMENT: _tracing,
    Promise.TREE: _tree,
    Promise.SOCKETS: _sockets,
    Promise.ABSTRACT_SOCKETS: _abstract_sockets,
    Promise.TCP: _tcp,
    Promise.UDP: _udp,
}

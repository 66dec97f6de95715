"""The sandbox as values: what a command may do, what enforces it here, and which promises are kept."""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed, NotAllowed
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Promise(StrEnum):
    """What a sandbox can promise; `[sandbox] required` names some of them."""

    FILES = "files"
    READING = "reading"
    CHMOD = "chmod"
    SIGNALS = "signals"
    LIMITS = "limits"
    TRACE = "trace"
    SHARED_MEMORY = "shared memory"
    SYSTEM_V = "system v"
    ENVIRONMENT = "environment"
    TREE = "tree"
    SOCKETS = "sockets"
    ABSTRACT_SOCKETS = "abstract sockets"
    TCP = "tcp"
    UDP = "udp"
    DESCRIPTORS = "descriptors"


# What each promise says about a sandboxed command.
PROMISES = {
    Promise.FILES: "changes files in its workspace and scratch alone",
    Promise.READING: "reads nothing that is hidden from it",
    Promise.CHMOD: "changes no mode, owner or time of files elsewhere",
    Promise.SIGNALS: "signals only what it started itself",
    Promise.LIMITS: "changes no limits and priorities of others",
    Promise.TRACE: "traces only what it started itself, and writes in no other memory",
    Promise.SHARED_MEMORY: "sees no file of others in /dev/shm",
    Promise.SYSTEM_V: "shares no System V memory, semaphores or message queues with others",
    Promise.ENVIRONMENT: "does not read the environment of others",
    Promise.TREE: "ends with everything it started, also what left its process group",
    Promise.SOCKETS: "reaches no program that listens on a unix socket",
    Promise.ABSTRACT_SOCKETS: "reaches no program that listens on an abstract unix socket",
    Promise.TCP: "reaches and opens only the TCP ports it is given",
    Promise.UDP: "sends nothing by UDP, nor by any other protocol than TCP",
    Promise.DESCRIPTORS: "is handed no open file but its three streams",
}


class BackendKind(StrEnum):
    """The programs and kernel features that enforce a sandbox."""

    BUBBLEWRAP_LANDLOCK = "bubblewrap+landlock"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


class GuaranteeState(StrEnum):
    """Whether a promise is kept."""

    HELD = "held"
    OPEN = "open"  # this machine cannot keep it
    FREE = "free"  # the sandbox does not need it


@value
class Sandbox:
    """What a command may do; by default it has the network and writes only in its own folders."""

    writable: tuple[str, ...]
    scratch: str  # its private folder: temporary files, home, settings of clients
    readable: tuple[str, ...] = ()  # stays readable although it is in a temporary folder, or hidden
    hidden: tuple[str, ...] = ()  # may be inside of what is readable, and the other way round
    unix_sockets: bool = False
    sockets_visible: tuple[str, ...] = ()  # reachable even without `unix_sockets`, such as the resident's
    tcp_connect: tuple[int, ...] | None = None  # None: every port
    tcp_bind: tuple[int, ...] | None = None
    udp: bool = True
    network: bool = True  # without it, bubblewrap leaves a loopback of its own, and Landlock nothing
    modes: bool = True  # may use chmod, chown and the like at all; most builds must
    environment: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()  # variables that it does not inherit

    def writable_roots(self) -> tuple[str, ...]:
        """Return the folders it may write in, without those inside of another one."""
        folders = sorted({self.scratch, *self.writable})
        return tuple(folder for folder in folders if not any(is_within(folder, other) for other in folders))

    def limits_tcp(self) -> bool:
        """Return whether any TCP port is closed to it."""
        return not self.network or self.tcp_connect is not None or self.tcp_bind is not None

    def refuses_tcp(self) -> bool:
        """Return whether every TCP port is closed to it."""
        return not self.network or (self.tcp_connect == () and self.tcp_bind == ())

    def refuses_udp(self) -> bool:
        """Return whether all protocols but TCP are closed to it."""
        return not self.network or not self.udp

    def refuses_unix_sockets(self) -> bool:
        """Return whether it needs no unix socket of any other program."""
        return not self.unix_sockets and not self.sockets_visible


@value
class Backend:
    """What enforces sandboxes on this machine, as found by trying."""

    name: BackendKind
    bwrap: str = ""
    landlock_abi: int = 0
    has_filter: bool = False  # seccomp
    has_private_network: bool = False  # bubblewrap can make a network of its own, with a loopback only
    reasons: tuple[str, ...] = ()  # why there is nothing better


@value
class Guarantee:
    """One promise and its state: `by` says what keeps it, `why` what is missing or left open."""

    promise: Promise
    state: GuaranteeState
    by: str = ""
    why: str = ""

    def text(self) -> str:
        """Return it as one line for people."""
        state = f"{self.state} by {self.by}" if self.by else self.state
        return ": ".join(part for part in (self.promise, state, self.why) if part)


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is inside a folder; a folder is not inside itself."""
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def check_promises(names: Iterable[str]) -> tuple[Promise, ...]:
    """Return the promises of these names.

    Raises:
        Malformed: there is no such promise.
    """
    return tuple(_find_promise(name) for name in names)


def _find_promise(name: str) -> Promise:
    try:
        return Promise(name)
    except ValueError:
        raise Malformed(
            f"{name[:40]!r} is not a promise of the sandbox",
            code="UNKNOWN_PROMISE",
            hint=f"there are: {', '.join(PROMISES)}",
        ) from None


def require_guarantees(guarantees: Sequence[Guarantee], required: Iterable[str], backend: Backend) -> None:
    """Refuse to continue when a required promise is not held, be it by the machine or by the role.

    Raises:
        NotAllowed: one of them is not held.
    """
    promises = check_promises(required)
    missing = [
        found for found in guarantees if found.promise in promises and found.state != GuaranteeState.HELD
    ]
    if missing:
        raise NotAllowed(
            "the sandbox does not hold what is required: "
            + "; ".join(f"{found.promise} ({found.why})" for found in missing),
            code="SANDBOX_MISSING",
            hint=" ".join((*backend.reasons, "Or take them out of [sandbox] required.")),
            missing=[found.promise for found in missing],
            backend=backend.name,
        )

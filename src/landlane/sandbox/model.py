"""The sandbox as values: what a command may do, how it can be enforced here, and the result."""

from __future__ import annotations

from landlane.errors import Malformed, NotAllowed
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


FILES = "files"
READING = "reading"
CHMOD = "chmod"
SIGNALS = "signals"
LIMITS = "limits"
TRACE = "trace"
ENVIRONMENT = "environment"
TREE = "tree"
SOCKETS = "sockets"
ABSTRACT_SOCKETS = "abstract sockets"
TCP = "tcp"
UDP = "udp"
DESCRIPTORS = "descriptors"

# What `[sandbox] required` may name, and what each of them says of a sandboxed command.
PROMISES = {
    FILES: "changes files in its workspace and scratch alone",
    READING: "reads nothing that is hidden from it",
    CHMOD: "changes no mode, owner or time of files elsewhere",
    SIGNALS: "signals only what it started itself",
    LIMITS: "changes no limits and priorities of others",
    TRACE: "traces only what it started itself, and writes in no other memory",
    ENVIRONMENT: "does not read the environment of others",
    TREE: "ends with everything it started, also what left its process group",
    SOCKETS: "reaches no program that listens on a unix socket",
    ABSTRACT_SOCKETS: "reaches no program that listens on an abstract unix socket",
    TCP: "reaches and opens only the TCP ports it is given",
    UDP: "sends nothing by UDP, nor by any other protocol than TCP",
    DESCRIPTORS: "is handed no open file but its three streams",
}

BUBBLEWRAP_LANDLOCK = "bubblewrap+landlock"
BUBBLEWRAP = "bubblewrap"
LANDLOCK = "landlock"
NONE = "none"

HELD = "held"
OPEN = "open"
FREE = "free"  # nobody asked for it to be held


@value
class Sandbox:
    """What a command may do; the defaults give a worker its network and nothing else beside its places."""

    writable: tuple[str, ...]
    scratch: str  # its private place: temporary files, home, settings of clients
    readable: tuple[str, ...] = ()  # stays readable although it lies in a temporary folder, or is hidden
    hidden: tuple[str, ...] = ()
    unix_sockets: bool = False
    sockets_visible: tuple[str, ...] = ()  # reachable all the same, such as the resident's
    tcp_connect: tuple[int, ...] | None = None  # nothing: free
    tcp_bind: tuple[int, ...] | None = None
    udp: bool = True
    modes: bool = True  # may use chmod, chown and the like at all; most builds must
    shared_memory: bool = True
    private_home: bool = True
    environment: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()  # variables that are not handed down

    def may_change(self) -> tuple[str, ...]:
        """The outermost places it may write in: what lies within another needs no word of its own."""
        places = sorted({self.scratch, *self.writable})
        return tuple(one for one in places if not any(is_within(one, other) for other in places))

    def limits_tcp(self) -> bool:
        """Whether any TCP port is closed to it."""
        return self.tcp_connect is not None or self.tcp_bind is not None

    def refuses_tcp(self) -> bool:
        """Whether every TCP port is closed to it."""
        return self.tcp_connect == () and self.tcp_bind == ()

    def refuses_unix_sockets(self) -> bool:
        """Whether it can be refused every unix socket: not when one of them must stay within reach."""
        return not self.unix_sockets and not self.sockets_visible


@value
class Backend:
    """What this machine enforces a sandbox with, as found by trying."""

    name: str
    bwrap: str = ""
    landlock_abi: int = 0
    has_filter: bool = False  # seccomp
    reasons: tuple[str, ...] = ()  # why there is nothing better


@value
class Guarantee:
    """One promise: held and by what, open and why, or free because the sandbox does not ask for it."""

    promise: str
    state: str
    by: str = ""
    why: str = ""  # of a promise that is held: what little is left open

    def text(self) -> str:
        """As one line for people."""
        state = f"{self.state} by {self.by}" if self.by else self.state
        return ": ".join(part for part in (self.promise, state, self.why) if part)


def is_within(path: str, folder: str) -> bool:
    """Whether a path lies below a folder, and is not the folder itself."""
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def check_promises(names: Iterable[str]) -> tuple[str, ...]:
    """The names themselves when each is a promise.

    Raises:
        Malformed: one is not.
    """
    for name in (asked := tuple(names)):
        if name not in PROMISES:
            raise Malformed(
                f"{name[:40]!r} is not a promise of the sandbox",
                code="UNKNOWN_PROMISE",
                hint=f"there are: {', '.join(PROMISES)}",
            )
    return asked


def require_guarantees(held: Sequence[Guarantee], required: Iterable[str], backend: Backend) -> None:
    """Refuse to go on without a required promise.

    Raises:
        NotAllowed: one of them is open here; what the sandbox itself leaves free is no breach.
    """
    names = check_promises(required)
    missing = [one for one in held if one.promise in names and one.state == OPEN]
    if missing:
        raise NotAllowed(
            "this machine cannot hold what is required: "
            + "; ".join(f"{one.promise} ({one.why})" for one in missing),
            code="SANDBOX_MISSING",
            hint=" ".join((*backend.reasons, "Or take them out of [sandbox] required.")),
            missing=[one.promise for one in missing],
            backend=backend.name,
        )

"""Find in the output of a failed command what its sandbox refused, and name the setting that allows it.

The kernel reports no refusals, so they are recognised by the messages of common programs. A path is reported
only if the sandbox does refuse it.
"""

from __future__ import annotations

import os
import re

from landlane.sandbox.model import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.sandbox.model import Sandbox

_MOST_LINES = 400
_MOST_NAMED = 4
_NEAR = 8  # lines above a message in which the call may be named
_REFUSED = re.compile(
    r"permission denied|EACCES|EPERM|operation not permitted|read-only file system|EROFS", re.IGNORECASE
)
_ABSENT = re.compile(r"no such file or directory|ENOENT|not found", re.IGNORECASE)
_NO_NETWORK = re.compile(
    r"temporary failure in name resolution|could not resolve host|name or service not known|EAI_AGAIN"
    r"|ENOTFOUND|network is unreachable|ENETUNREACH|failed to lookup address|getaddrinfo"
    r"|could not connect to server|could not create.{1,20}TCP/IP",
    re.IGNORECASE,
)
_NO_MEMORY = re.compile(
    r"(?:shared memory|semaphores?|message queue).{0,40}function not implemented", re.IGNORECASE
)
_SOCKET = re.compile(
    r"socket|multiprocessing|forkserver|listen(?:ing)? (?:on|EACCES)|connect EACCES", re.IGNORECASE
)
_UNIX = re.compile(
    r"unix|\.sock\b|PGSQL|forkserver|multiprocessing|semaphore|shared memory|shmget", re.IGNORECASE
)
_PATH = re.compile(r"/[^\s'\"`:,;)\]}<>]+")


def describe_refusals(sandbox: Sandbox, output: str, section: str, closed: tuple[str, ...] = ()) -> list[str]:
    """Return one line for each thing that was refused, with the setting of a section that allows it.

    For what is in the `closed` folders, no setting is named.
    """
    found: dict[str, None] = {}
    lines = output.splitlines()[-_MOST_LINES:]
    for number, line in enumerate(lines):
        for text in _judge(
            sandbox, line, "\n".join(lines[max(number - _NEAR, 0) : number + 1]), section, closed
        ):
            found[text] = None
    return list(found)[:_MOST_NAMED]


def _judge(sandbox: Sandbox, line: str, near: str, section: str, closed: tuple[str, ...]) -> Iterator[str]:
    is_refused, is_absent = bool(_REFUSED.search(line)), bool(_ABSENT.search(line))
    # The last path is the one that was tried; those before it name the program.
    paths = _PATH.findall(line)[-1:] if is_refused or is_absent else ()
    refused = [path for path in paths if _is_refused(sandbox, path, is_read=is_absent)]
    for path in refused:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        what = "reading" if is_absent or _is_hidden(sandbox, path) else "writing"
        is_closed = any(
            os.path.realpath(path) == one or is_within(os.path.realpath(path), one) for one in closed
        )
        allowed = "" if is_closed else f'; {section}.write = ["{folder}"] allows it'
        yield f"the sandbox refused {what} {path}{allowed}"
    if sandbox.refuses_unix_sockets() and _NO_MEMORY.search(line):
        yield f"the sandbox refused shared memory; {section}.unix_sockets = true allows it"
    if not sandbox.network and _NO_NETWORK.search(line):
        yield f"the sandbox refused the network; {section}.network = true allows it"
    elif is_refused and not refused and _SOCKET.search(near):
        if sandbox.refuses_unix_sockets() and (_UNIX.search(near) or sandbox.network):
            yield f"the sandbox refused a unix socket; {section}.unix_sockets = true allows it"
        elif not sandbox.network:
            yield f"the sandbox refused the network; {section}.network = true allows it"


def _is_refused(sandbox: Sandbox, path: str, *, is_read: bool) -> bool:
    real = os.path.realpath(path)
    if any(real == root or is_within(real, root) for root in sandbox.writable_roots()):
        return False
    if is_read:
        return os.path.lexists(path) and _is_hidden(sandbox, path)
    return os.path.isdir(os.path.dirname(real))


def _is_hidden(sandbox: Sandbox, path: str) -> bool:
    """Return whether the innermost rule about a path hides it."""
    real = os.path.realpath(path)

    def depth(rules: tuple[str, ...]) -> int:
        return max((len(rule) for rule in rules if real == rule or is_within(real, rule)), default=-1)

    return depth(sandbox.hidden) > depth(sandbox.readable)

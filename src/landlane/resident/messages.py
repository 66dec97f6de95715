"""The messages between the resident and its callers: requests and answers, as bytes with lengths.

A request is `ILK1`, the length of the rest, and fields: a verb, the working folder, words, variables of the
environment, and standard input. An answer is a row of frames, each a letter and a length: `b` it was begun,
`o` and `e` text for stdout and stderr, `x` the exit code, `!` why the request was refused. The last one is
`x` or `!`.

A hook has a few milliseconds for everything, so only C modules are imported.
"""

from _socket import AF_INET, AF_UNIX, SOCK_STREAM
from _socket import socket as make_socket
from posix import close as close_file
from posix import fstat, getuid
from posix import open as open_file
from posix import read as read_file
from posix import stat as stat_of
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Request = tuple[bytes, bytes, list[bytes], dict[bytes, bytes], bytes]
    OnOutput = Callable[[bytes, bytes], None]

MAGIC = b"ILK1"
# Comes before a request that was passed on for a sandboxed caller, whom the resident does not see itself.
GUEST = b"ILKG"
LOOPBACK = "127.0.0.1"
TOKEN_LENGTH = 64
_PORT = "port:"  # an address of the form `port:NUMBER:TOKEN`, where unix sockets are refused
HEAD = 8
MOST_BYTES = 64 * 1024 * 1024
MOST_FIELDS = 10_000
BEGUN, OUT, ERR, EXIT, REFUSED = b"b", b"o", b"e", b"x", b"!"
# In a folder of its own, which can be mounted into a sandbox: the socket in it may be replaced.
SOCKET = "door/resident.sock"
POINTER = "resident"  # where the socket is when its path in the state folder would be too long
LONGEST_PATH = 107  # the kernel's 108 bytes, with the zero at the end

# The variables of a caller that are sent: who it is, and how it wants to be answered.
_SENT = (b"LANDLANE_", b"CLAUDE", b"GEMINI_", b"COPILOT_", b"CODEX_", b"QWEN_", b"OPENCODE", b"CURSOR_")
_SENT_NAMES = (b"TERM", b"NO_COLOR", b"COLUMNS")
_SECRET = (b"KEY", b"TOKEN", b"PASSWORD", b"CREDENTIAL")
# The resident's own settings, whatever its callers have set.
_NOT_SENT = (b"LANDLANE_RESIDENT", b"LANDLANE_STORE", b"LANDLANE_GIT_LOCK")


class AnswerLost(Exception):
    """The request was taken and no full answer came, so it may have been carried out or not."""


class BadMessage(Exception):
    """These bytes are not a valid request or answer."""


def pack_request(
    verb: bytes, cwd: bytes, words: "Iterable[bytes]", environment: "Mapping[bytes, bytes]", stdin: bytes
) -> bytes:
    """Return a request as bytes."""
    words = list(words)
    pairs = [part for pair in environment.items() for part in pair]
    fields = [verb, cwd, b"%d" % len(words), *words, b"%d" % (len(pairs) // 2), *pairs, stdin]
    body = b"".join([len(field).to_bytes(4, "big") + field for field in fields])
    if len(body) > MOST_BYTES:
        raise BadMessage("more than can be sent at once")
    return MAGIC + len(body).to_bytes(4, "big") + body


def body_length(head: bytes) -> int:
    """Return how many bytes follow the head of a request."""
    length = int.from_bytes(head[4:HEAD], "big")
    if head[:4] != MAGIC or length > MOST_BYTES:
        raise BadMessage("this is not a request of this version")
    return length


def unpack_request(body: bytes) -> "Request":
    """Return the parts of a request, from the bytes after its head."""
    fields: list[bytes] = []
    at = 0
    while at < len(body) and len(fields) < MOST_FIELDS:
        end = at + 4 + int.from_bytes(body[at : at + 4], "big")
        if end > len(body) or at + 4 > len(body):
            raise BadMessage("a field is cut off")
        fields.append(body[at + 4 : end])
        at = end
    if at != len(body) or len(fields) < 5:
        raise BadMessage("fields are missing, or there are too many")
    words, rest = _counted(fields[2:], 1)
    pairs, rest = _counted(rest, 2)
    if len(rest) != 1:
        raise BadMessage("fields are missing, or there are too many")
    return fields[0], fields[1], words, dict(zip(pairs[::2], pairs[1::2], strict=True)), rest[0]


def _counted(fields: list[bytes], each: int) -> tuple[list[bytes], list[bytes]]:
    """Return as many fields as the first one says, and those after them."""
    if not fields or not fields[0].isdigit() or len(fields[0]) > 5:
        raise BadMessage("a count is missing")
    end = 1 + each * int(fields[0])
    if end > len(fields):
        raise BadMessage("a count is too large")
    return fields[1:end], fields[end:]


def shared_environment(environment: "Mapping[bytes, bytes]") -> dict[bytes, bytes]:
    """Return the variables that are sent to the resident: no keys, no passwords, none of other programs."""
    return {
        name: text
        for name, text in environment.items()
        if (name.startswith(_SENT) or name in _SENT_NAMES)
        and name not in _NOT_SENT
        and (name.startswith(b"LANDLANE_") or not any(word in name for word in _SECRET))
    }


def frame(kind: bytes, content: bytes) -> bytes:
    """Return one frame of an answer."""
    return kind + len(content).to_bytes(4, "big") + content


def find_socket(folder: str) -> str:
    """Return where the resident of a state folder listens, running or not; empty when that is unknown."""
    path = f"{folder}/{SOCKET}"
    if len(path.encode("utf-8", "surrogateescape")) <= LONGEST_PATH:
        return path
    try:
        file = open_file(f"{folder}/{POINTER}", 0)
    except OSError:
        return ""
    try:
        if fstat(file).st_uid not in (getuid(), 0):
            return ""
        path = read_file(file, 4096).decode("utf-8", "surrogateescape").strip()
    finally:
        close_file(file)
    return path if path and is_private(path.rpartition("/")[0]) else ""


def is_private(folder: str) -> bool:
    """Return whether only this user can write into a folder."""
    try:
        found = stat_of(folder, follow_symlinks=False)
    except OSError:
        return False
    return found.st_uid == getuid() and found.st_mode & 0o170077 == 0o040000


def send_request(path: str, request: bytes, timeout_seconds: float) -> tuple[int, bytes, bytes] | None:
    """Return the exit code, stdout and stderr of a request; None when no resident took it.

    Raises:
        AnswerLost: it was taken, and no full answer came in time.
        BadMessage: the request was refused, or the answer cannot be understood.
    """
    texts: dict[bytes, list[bytes]] = {OUT: [], ERR: []}
    size = 0

    def keep(kind: bytes, content: bytes) -> None:
        nonlocal size
        size += len(content)
        if size > MOST_BYTES:
            raise BadMessage("the answer is too long")
        texts[kind].append(content)

    code = stream_request(path, request, timeout_seconds, keep, is_strict=True)
    return None if code is None else (code, b"".join(texts[OUT]), b"".join(texts[ERR]))


def stream_request(
    path: str, request: bytes, timeout_seconds: float, on_output: "OnOutput", *, is_strict: bool = False
) -> int | None:
    """Return the exit code, and pass output to `on_output` as it comes. Otherwise like `send_request`.

    `timeout_seconds` counts until the request was begun; the work itself may take any time.
    """
    _, is_port, named = path.partition(_PORT)
    connection = make_socket(AF_INET if is_port else AF_UNIX, SOCK_STREAM)
    try:
        deadline = monotonic() + timeout_seconds
        try:
            connection.settimeout(timeout_seconds)
            if is_port:
                port, _, token = named.partition(":")
                connection.connect((LOOPBACK, int(port)))
                request = token.encode() + request
            else:
                _connect(connection, path, deadline)
            connection.sendall(request)
        except OSError:  # there is no resident, or it ended before it had the full request
            return None
        return _read_answer(connection, deadline, on_output, is_strict)
    finally:
        connection.close()


def _connect(connection: make_socket, path: str, deadline: float) -> None:
    """Connect; while the kernel's queue of connections is full, try again."""
    while True:
        try:
            connection.connect(path)
            return
        except BlockingIOError:
            if monotonic() > deadline:
                raise
            sleep(0.01)


def _read_answer(
    connection: make_socket, deadline: float, on_output: "OnOutput", is_strict: bool
) -> int | None:
    received = bytearray()
    is_begun = False
    while True:
        while len(received) >= 5:
            end = 5 + int.from_bytes(received[1:5], "big")
            if end > MOST_BYTES:
                raise BadMessage("a frame is too long")
            if len(received) < end:
                break
            kind, content = bytes(received[:1]), bytes(received[5:end])
            del received[:end]
            if kind == EXIT and len(content) == 1:
                return content[0]
            if kind in (OUT, ERR):
                on_output(kind, content)
            elif kind != BEGUN:
                raise BadMessage(content.decode("utf-8", "replace") or "refused")
            is_begun = True
        try:
            is_limited = is_strict or not is_begun
            connection.settimeout(max(deadline - monotonic(), 0.001) if is_limited else None)
            data = connection.recv(65_536)
        except TimeoutError as late:
            raise AnswerLost("no answer in time") from late
        except OSError:
            data = b""
        if not data:
            if is_begun or received:
                raise AnswerLost("the answer was cut off")
            return None
        received += data


def port_address(port: int, token: str) -> str:
    """Return the address of a port that passes requests on to the resident."""
    return f"{_PORT}{port}:{token}"


def shown_address(path: str) -> str:
    """Return an address for messages: without the token."""
    return f"port {path[len(_PORT) :].partition(':')[0]}" if path.startswith(_PORT) else path


def hold_resident(path: str) -> make_socket | None:
    """Return a connection that keeps the resident running while it is open, for sandboxed workers."""
    connection = make_socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(5.0)
        connection.connect(path)
        connection.sendall(pack_request(b"hold", b"", (), {}, b""))
        if connection.recv(5)[:1] == BEGUN:
            return connection
    except OSError:
        pass
    connection.close()
    return None

"""Answer a coding client's hook; for the most common call this takes little longer than to start Python.

Run as `python -I -S client_hook.py CLIENT [EVENT]` with the client's JSON on its input. The most common call
edits a path that the session holds, in a file that is as the session last saw it; one indexed read tells.
Everything else (the first edit of a file, a shell call, the start and end of a session, anything unusual)
takes the full path, in this same process. The fast path only ever allows, so the rules are in one place.

Nothing is imported at first but C modules: `json`, `re`, `os` and even `sqlite3` take longer than the answer.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

import sys
from _functools import _lru_cache_wrapper
from _thread import start_new_thread
from posix import O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY, _exit, environ, fstat, lstat, stat
from posix import close as close_file
from posix import open as open_file
from posix import read as read_file
from posix import write as write_file
from time import CLOCK_BOOTTIME, clock_gettime_ns, monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

_LIMIT_SECONDS = 20.0  # below the hook timeout in every client's settings
_RESIDENT_SECONDS = 10.0  # of the limit; then the hook answers without the resident
_MOST_BYTES = 64 * 1024 * 1024
_unclosed = []  # connections to other stores: closing one could checkpoint its log
_KIND_OF_FILE, _LINK, _REGULAR, _FOLDER = 0o170000, 0o120000, 0o100000, 0o040000
_LATE = "Landlane's hook took too long, so this is refused. Try again, or find out why: landlane doctor\n"

# Written by scripts/client_tools.py: begin
# From store/sqlite/database.py, store/schema_version.py and sessions/signs_of_life.py.
APPLICATION_ID = 0x4C4E444C
SCHEMA_VERSION = 4
_RECORD_BYTES = 240
# From clients/*/hook.py.
_CLIENTS: "dict[str, Json]" = {
    "claude": {
        "keys": ("session_id", "agent_id", "hook_event_name", "tool_name", "tool_input"),
        "events": {"PreToolUse": 1, "PostToolUse": 2},
        "edits": {
            "Edit": "file_path",
            "Write": "file_path",
            "MultiEdit": "file_path",
            "NotebookEdit": "notebook_path",
        },
        "patches": {},
        "reads": {"Read": "file_path", "NotebookRead": "notebook_path"},
        "harmless": (
            "WebFetch",
            "WebSearch",
            "Glob",
            "Grep",
            "LS",
            "Skill",
            "TaskCreate",
            "TaskList",
            "TaskUpdate",
            "TodoWrite",
            "ToolSearch",
            "Agent",
            "Task",
        ),
    },
    "codex": {
        "keys": ("session_id", "agent_id", "hook_event_name", "tool_name", "tool_input"),
        "events": {"PreToolUse": 1, "PostToolUse": 2},
        "edits": {},
        "patches": {"apply_patch": "command"},
        "reads": {},
        "harmless": ("update_plan", "view_image"),
    },
    "gemini": {
        "keys": ("session_id", "agent_id", "hook_event_name", "tool_name", "tool_input"),
        "events": {"BeforeTool": 1, "AfterTool": 2},
        "edits": {"replace": "file_path", "write_file": "file_path"},
        "patches": {},
        "reads": {"read_file": "file_path"},
        "harmless": (
            "web_fetch",
            "google_web_search",
            "list_directory",
            "search_file_content",
            "grep_search",
            "glob",
        ),
    },
    "qwen": {
        "keys": ("session_id", "agent_id", "hook_event_name", "tool_name", "tool_input"),
        "events": {"PreToolUse": 1, "PostToolUse": 2},
        "edits": {"edit": "file_path", "write_file": "file_path", "notebook_edit": "notebook_path"},
        "patches": {},
        "reads": {"read_file": "file_path"},
        "harmless": (
            "web_fetch",
            "web_search",
            "list_directory",
            "search_file_content",
            "grep_search",
            "glob",
            "todo_write",
        ),
    },
    "copilot": {
        "keys": ("sessionId", "agentId", "", "toolName", "toolArgs"),
        "events": {"preToolUse": 1, "postToolUse": 2},
        "edits": {"edit": "path", "create": "path"},
        "patches": {},
        "reads": {"view": "path"},
        "harmless": ("rg", "grep", "glob"),
    },
    "opencode": {
        "keys": ("session_id", "agent_id", "hook_event_name", "tool_name", "tool_input"),
        "events": {"tool.execute.before": 1, "tool.execute.after": 2},
        "edits": {"edit": "filePath", "write": "filePath", "multiedit": "filePath"},
        "patches": {},
        "reads": {"read": "filePath"},
        "harmless": ("webfetch", "websearch", "grep", "glob"),
    },
}
# end of what scripts/client_tools.py writes
_UPDATED = "*** Update File: "
_PATCHED = ("*** Add File: ", _UPDATED, "*** Delete File: ", "*** Move to: ")
_BEFORE, _AFTER = 1, 2


class Unsure(Exception):
    """The fast path cannot decide; the full path must."""


class _OnlyCache:
    """`_sqlite3` needs only lru_cache of functools; the real module takes as long to load as all the rest."""

    @staticmethod
    def lru_cache(maxsize: int = 128, typed: bool = False) -> object:
        """Return the C implementation behind functools.lru_cache."""
        return lambda function: _lru_cache_wrapper(function, maxsize, typed, tuple)


class _JsonDefaults:
    """Options for `_json`: the defaults of the json module, without importing it."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def read_json(payload: bytes) -> "Json":
    """Return the JSON object in a payload."""
    from _json import make_scanner  # noqa: PLC0415 - git hooks seldom need it

    text = payload.decode().strip()
    document, end = make_scanner(_JsonDefaults)(text, 0)
    if end != len(text) or document.__class__ is not dict:
        raise Unsure
    return document


def connect(path: str, mode: str) -> "Any":
    """Open a SQLite store; SQLite would wait for a named pipe."""
    if stat(path).st_mode & _KIND_OF_FILE != _REGULAR:
        raise Unsure
    sys.modules["functools"] = _OnlyCache
    try:
        from _sqlite3 import connect  # noqa: PLC0415 - needs the replacement above
    finally:
        del sys.modules["functools"]
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return connect(f"file:{quoted}?mode={mode}", uri=True, timeout=1.0, isolation_level=None)


def check_store(db: "Any") -> "Json":
    """Return the clock of the store; the full path refuses a store of another program or version."""
    meta = dict(
        db.execute(
            "SELECT key, value FROM meta WHERE key IN ('base', 'boot_id', 'schema')"
            " UNION ALL SELECT 'application_id', application_id FROM pragma_application_id"
            " UNION ALL SELECT 'user_version', user_version FROM pragma_user_version"
        ).fetchall()
    )
    found = meta["application_id"], meta["user_version"], meta["schema"]
    if found != (APPLICATION_ID, SCHEMA_VERSION, str(SCHEMA_VERSION)):
        _unclosed.append(db)
        raise Unsure
    return meta


def _now(db: "Any") -> int:
    """Return the store's time; after a restart of the machine the full path must set it first."""
    clock = check_store(db)
    if clock["boot_id"] != read_text("/proc/sys/kernel/random/boot_id"):
        raise Unsure
    return int(clock["base"]) + clock_gettime_ns(CLOCK_BOOTTIME) // 1_000_000


def read_text(path: str) -> str:
    """Return the text of a small file."""
    descriptor = open_file(path, O_RDONLY | O_NONBLOCK)
    try:
        return read_file(descriptor, 65536).decode().strip()
    finally:
        close_file(descriptor)


def _stamp(found: "Any") -> str:
    return f"{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_size}:{found.st_ino}"


def stamp_at(path: str) -> str:
    """Return the stamp of a file, as `files.py` makes it; `-` when it does not exist."""
    try:
        return _stamp(stat(path))
    except OSError:
        return "-"


def _read_cache(folder: str) -> list[str]:
    """Return what the full path has cached for the checkout around a folder, if it is still valid."""
    while True:
        marker = f"{folder}/.git"
        try:
            kind = lstat(marker).st_mode & _KIND_OF_FILE
            break
        except OSError:
            if "/" not in folder[1:]:
                raise Unsure from None
            folder = folder[: folder.rindex("/")]
    git_dir = marker
    if kind != _FOLDER:
        line = read_text(marker)
        if not line.startswith("gitdir: /"):
            raise Unsure
        git_dir = line[8:]
    cache = read_text(f"{git_dir}/landlane-hook").split("\n")
    if len(cache) < 8 or cache[0] != "4" or cache[1] != folder:
        raise Unsure
    check_state(*cache[5:8])
    check_files(cache[8:])
    return cache


def check_files(watched: list[str]) -> None:
    """Check files against their stamps: they decide where the target branch is, which has the settings."""
    for path, stamp in zip(watched[::2], watched[1::2], strict=True):
        if stamp_at(path) != stamp:
            raise Unsure


def check_state(folder: str, pointer: str, repository_id: str) -> None:
    """Check that the state folder names the same store and the same repository as when it was cached."""
    if stamp_at(f"{folder}/store-url") != pointer or stamp_at(f"{folder}/repository") != repository_id:
        raise Unsure


def _relative_path(path: str, root: str) -> str:
    """Return the path relative to the root, if it has no links and nothing unusual."""
    if not path.startswith(root + "/"):
        raise Unsure
    at = len(root)
    while True:
        end = path.find("/", at + 1)
        part = path[at + 1 : end if end > 0 else None]
        if part in ("", ".", "..", ".git"):
            raise Unsure
        kind = lstat(path[:end] if end > 0 else path).st_mode & _KIND_OF_FILE
        if kind == _LINK:
            raise Unsure
        if end < 0:
            return path[len(root) + 1 :]
        if kind == _FOLDER:
            try:
                lstat(f"{path[:end]}/.git")
            except OSError:
                at = end
                continue
        raise Unsure  # a nested repository


def _version_of(path: str) -> tuple[str, str]:
    """Return the digest and the stamp of a file, as files.py computes them."""
    from _blake2 import blake2b  # noqa: PLC0415 - only edits and reads need it

    descriptor = open_file(path, O_RDONLY | O_NONBLOCK)
    try:
        found = fstat(descriptor)
        if found.st_size > _MOST_BYTES:
            raise Unsure
        content = blake2b(digest_size=16)
        while block := read_file(descriptor, 1 << 20):
            content.update(block)
        return content.hexdigest(), _stamp(found)
    finally:
        close_file(descriptor)


def _session(
    db: "Any", repository: str, client: str, names: tuple[str, str], now: int
) -> tuple[str, str, str]:
    """Return the live session of a client, if it was seen recently enough to need no renewal."""
    row = db.execute(
        "SELECT s.id, s.seen_at, s.shortest_ms, s.lapses_at, s.agent, c.parent FROM client_sessions c"
        " JOIN sessions s ON s.id = c.session WHERE c.repository = ? AND c.client = ?"
        " AND c.client_session = ? AND c.client_agent = ? AND s.ended_at IS NULL AND s.role = ''",
        (repository, client, *names),
    ).fetchone()
    if row is None:
        raise Unsure
    session, seen_at, shortest_ms, lapses_at, agent, parent = row
    if lapses_at <= now or now - seen_at > shortest_ms // 3:
        raise Unsure
    return session, agent, parent


def claim_keys(path: str) -> list[str]:
    """Return the keys of all claims that can cover a path: its own, and those of the folders above it."""
    keys = ["", path]
    at = path.find("/")
    while at >= 0:
        keys.append(path[:at])
        at = path.find("/", at + 1)
    return keys


def _check_held(db: "Any", repository: str, session: str, path: str, now: int) -> None:
    """Check with one indexed read that this session holds the path or a folder above it."""
    keys = claim_keys(path)
    marks = ",".join("?" * len(keys))
    rows = db.execute(
        "SELECT c.rest, max(c.granted_at, s.seen_at) + c.ttl_ms"
        " FROM claims c JOIN sessions s ON s.id = c.session"
        f" WHERE c.repository = ? AND c.key IN ({marks}) AND c.session = ? AND s.ended_at IS NULL",
        (repository, *keys, session),
    ).fetchall()
    if not any(rest is None and until > now for rest, until in rows):
        raise Unsure


def _check_workspace(db: "Any", repository: str, root: str, agent: str, parent: str) -> None:
    """Check that this is not another's workspace, and that the session has no workspace elsewhere."""
    from _json import encode_basestring_ascii as quoted  # noqa: PLC0415 - git hooks do not need it

    owner = agent.rpartition(".")[0] if parent else agent  # a subagent works where its parent does
    rows = db.execute(
        "SELECT instr(data, ?) > 0, instr(data, ?) > 0 OR instr(data, ?) > 0 FROM records"
        " WHERE repository = ? AND noun = 'workspace' AND state = 'open'",
        (f'"path":{quoted(root)}', f'"agent":{quoted(owner)}', f'"agent":{quoted(agent)}', repository),
    ).fetchall()
    if rows and (1, 1) not in rows and any(1 in row for row in rows):
        raise Unsure


def _check_unchanged(db: "Any", session: str, path: str) -> None:
    """Check that a file is as the session last saw it."""
    rows = db.execute("SELECT stamp FROM reads WHERE session = ? AND path = ?", (session, path)).fetchall()
    if rows != [(_stamp(stat(path)),)]:
        raise Unsure


def _check_no_messages(db: "Any", repository: str, session: str) -> None:
    """Check that no messages are waiting for the session."""
    row = db.execute(
        "SELECT 1 FROM records WHERE repository = ? AND noun = 'notice' AND key = ? AND state = ? LIMIT 1",
        (repository, session, "new"),
    ).fetchone()
    if row is not None:
        raise Unsure


def _remember(db: "Any", repository: str, session: str, paths: list[str]) -> None:
    """Record the versions of files that the session has seen now."""
    # A power cut may lose this write, like a renewal, but never what others wrote before it.
    db.execute("PRAGMA synchronous=NORMAL")
    for path in paths:
        db.execute(
            "INSERT INTO reads (repository, session, path, digest, stamp) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (session, path) DO UPDATE SET digest = excluded.digest, stamp = excluded.stamp",
            (repository, session, path, *_version_of(path)),
        )


def _paths_of(tools: "Json", tool: str, arguments: "Json", cwd: str) -> list[str]:
    """Return the absolute paths that a call of a tool names."""
    key = tools["edits"].get(tool) or tools["reads"].get(tool)
    if key is None:
        key = tools["patches"][tool]
        headers = [line for line in arguments[key].split("\n") if line.strip().startswith(_PATCHED)]
        # Codex ignores blanks around a header, but not the same ones as Python: the full path reads these.
        if any(not line.startswith(_UPDATED) or line != line.strip() for line in headers):
            raise Unsure
        paths = [line[len(_UPDATED) :] for line in headers]
    else:
        paths = [arguments[key]]
    if not paths or any(not path or path.__class__ is not str or path.startswith("~") for path in paths):
        raise Unsure
    return [path if path.startswith("/") else f"{cwd}/{path}" for path in paths]


def _event_kind(client: str, event_name: str, document: "Json") -> int | None:
    """Return whether this is an event before or after a tool call, or None for any other."""
    key = _CLIENTS[client]["keys"][2]  # empty if only the hook's command names the event
    return _CLIENTS[client]["events"].get(document.get(key) if key else event_name)


def decide(client: str, event_name: str, document: "Json", cache: list[str]) -> None:
    """Return if the call is allowed and there is nothing to report; otherwise raise."""
    tools = _CLIENTS[client]
    session_key, agent_key, _, tool_key, arguments_key = tools["keys"]
    kind = _event_kind(client, event_name, document)
    tool = document[tool_key]
    _, root, repository, store, *_ = cache
    if not store or kind is None:
        raise Unsure
    is_edit, is_read = tool in tools["edits"] or tool in tools["patches"], tool in tools["reads"]
    if is_edit or is_read:
        paths = _paths_of(tools, tool, document[arguments_key], document["cwd"])
    elif kind == _AFTER and tool in tools["harmless"]:
        paths = []  # such a tool changes no file
    else:
        raise Unsure
    relative_paths = [_relative_path(path, root) for path in paths]
    db = connect(store, "ro" if kind == _BEFORE and is_edit else "rw")
    now = _now(db)
    names = (document[session_key], document.get(agent_key) or "")
    session, agent, parent = _session(db, repository, client, names, now)
    if kind == _AFTER:
        _check_no_messages(db, repository, session)
        if is_edit:
            _remember(db, repository, session, paths)
    elif is_read:
        _remember(db, repository, session, paths)
    else:
        _check_workspace(db, repository, root, agent, parent)
        for relative_path, path in zip(relative_paths, paths, strict=True):
            _check_held(db, repository, session, relative_path, now)
            _check_unchanged(db, session, path)
    verb = "editing" if is_edit else "reading" if is_read else "using"
    _show_life(store, session, verb, relative_paths or [tool])


def _show_life(store: str, session: str, verb: str, names: list[str]) -> None:
    """Mark the session's file: its time is the last sign of life, its content the action."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    action = f"{verb} {names[0]}{more}".encode("utf-8", "replace")[:_RECORD_BYTES].ljust(_RECORD_BYTES)
    try:
        file = open_file(f"{store[: store.rindex('/')]}/activity/{session}", O_WRONLY | O_NOFOLLOW)
    except OSError:
        return  # the full path makes it
    try:
        write_file(file, action)
    except OSError:
        pass  # the disk is full: the answer counts
    finally:
        close_file(file)


def _ask_resident(
    client: str, event_name: str, cwd: str, payload: bytes, *, path: str = "", folder: str = ""
) -> None:
    """Let the resident answer if it runs, found by its socket or by its state folder."""
    find_package()
    from landlane.resident import messages  # noqa: PLC0415 - not on the fast path

    words = [client.encode(), event_name.encode()]
    environment = messages.shared_environment(environ)
    request = messages.pack_request(b"hook", cwd.encode(), words, environment, payload)
    reply = messages.send_request(path or messages.find_socket(folder), request, _RESIDENT_SECONDS)
    if reply is not None:
        write_all(1, reply[1])
        write_all(2, reply[2])
        _exit(reply[0])


def find_package() -> None:
    """Make `landlane` importable: a hook starts without it on its path."""
    package = __file__[: __file__.rindex("/landlane/hook_entry/")]
    if package not in sys.path:
        sys.path.insert(0, package)


def read_input() -> bytes:
    """Return everything on standard input."""
    blocks = []
    while block := read_file(0, 1 << 20):
        blocks.append(block)
    return b"".join(blocks)


def limit_time(seconds: float, message: str, exit_code: int) -> None:
    """End this process after a time limit, while the full path runs."""

    def watch() -> None:
        sleep(seconds)
        write_all(2, message.encode())
        _exit(exit_code)

    start_new_thread(watch, ())


def _full_path(client: str, event_name: str, payload: bytes) -> None:
    """Take the full path in this process."""
    find_package()
    from landlane.hook_entry.client_full_path import answer  # noqa: PLC0415 - not on the fast path

    variables = {
        name.decode("utf-8", "surrogateescape"): text.decode("utf-8", "surrogateescape")
        for name, text in environ.items()
    }
    output = answer(client, event_name, payload, variables)
    write_all(1, output.stdout.encode("utf-8", "replace"))
    write_all(2, output.stderr.encode("utf-8", "replace"))
    _exit(output.exit_code)


def write_all(descriptor: int, left: bytes) -> None:
    """Write all bytes: a pipe may accept fewer at a time."""
    while left:
        left = left[write_file(descriptor, left) :]


def main() -> None:
    """Answer the hook, then exit without interpreter shutdown."""
    client, event_name = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    began = monotonic()
    exit_code = 2  # unreadable input is refused
    payload = b""
    try:
        payload = read_input()
        document = read_json(payload)
        if client in _CLIENTS:
            exit_code = 2 if _event_kind(client, event_name, document) == _BEFORE else 0
        socket = environ.get(b"LANDLANE_RESIDENT", b"").decode()
        if socket:  # in a sandbox only the resident can answer
            _ask_resident(client, event_name, document.get("cwd") or "", payload, path=socket)
        cwd = document["cwd"]
        cache = _read_cache(cwd) if b"LANDLANE_STORE" not in environ and not cwd.endswith("/") else []
        if cache and cache[4] and not socket:
            _ask_resident(client, event_name, cwd, payload, folder=cache[4])
        decide(client, event_name, document, cache)
        _exit(0)
    except Exception:  # noqa: BLE001 - the full path reports the cause
        pass
    try:
        limit_time(max(_LIMIT_SECONDS - (monotonic() - began), 1.0), _LATE, exit_code)
        _full_path(client, event_name, payload)
    except BaseException as error:  # noqa: BLE001 - an internal error is a refusal
        message = f"Landlane's hook failed ({error.__class__.__name__}: {error}), so this is refused.\n"
        write_all(2, message.encode("utf-8", "replace"))
        _exit(exit_code)


if __name__ == "__main__":
    main()

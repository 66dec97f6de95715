"""Answer a git hook; for the most common commit this takes little longer than to start Python.

Run as `python -I -S git_hook.py HOOK PID [ARGUMENT…]` by the scripts of git/hooks/scripts.py, with the paths
or branches on its input; PID is that of the calling git. The most common commit needs no claim, no other
session holds one of its paths or a folder above them, and nothing else forbids it. Everything else takes the
full path. The fast path only ever allows, so the rules are in one place.

Exit codes: 0 allows, 1 refuses with the reason on stderr. Any other code is a failure and refuses as well.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import sys
from posix import (
    O_CREAT,
    O_TRUNC,
    O_WRONLY,
    _exit,  # pyright: ignore[reportPrivateUsage]
    environ,
    getcwd,
    getppid,
    readlink,
)
from posix import close as close_file
from posix import open as open_file

import client_fast_path as fast_path
from client_fast_path import Unsure, read_text, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LIMIT_SECONDS = 30.0
_LATE = "landlane: refused: the check took too long\nhint: try again, or see what is slow: landlane doctor\n"
_MOST_PATHS = 200
_MOST_PARENTS = 64
_CACHE = "landlane-githook"
_JUDGED = "landlane-judged"
_BEFORE, _COMMIT = "pre-commit", "commit"  # the second is asked when the branch is about to move
_HEADS = "ref: refs/heads/"
_FULL_PATH_VARIABLES = (b"LANDLANE_OVERRIDE", b"LANDLANE_STORE", b"LANDLANE_RESIDENT", b"LANDLANE_CANARY")


def _fast_path(hook: str, pid: str, payload: bytes) -> None:
    """Return if this commit is certainly allowed; otherwise raise."""
    if any(name in environ for name in _FULL_PATH_VARIABLES):
        raise Unsure
    git_dir = environ.get(b"GIT_DIR", b".git").decode()
    cache = read_text(f"{git_dir}/{_CACHE}").split("\n")
    form, root, repository, store, target, folder, pointer, repository_id, *watched = cache
    if form != "3" or root != getcwd():
        raise Unsure
    fast_path.check_state(folder, pointer, repository_id)
    fast_path.check_files(watched)
    *paths, code = payload.decode().split("\0")
    head = read_text(f"{git_dir}/HEAD")
    branch = head[len(_HEADS) :] if head.startswith(_HEADS) else ""
    if code.strip() != "0" or len(paths) > _MOST_PATHS or not branch or branch == target:
        raise Unsure
    db = fast_path.connect(store, "ro")
    fast_path.check_store(db)
    session_id = _session(db, repository)
    _check_workspace(db, repository, root, session_id)
    _check_no_obstacle(db, repository, session_id)
    keys = {"", *(key for path in paths for key in fast_path.claim_keys(path))}
    marks = ",".join("?" * len(keys))
    rows = db.execute(
        f"SELECT DISTINCT session FROM claims WHERE repository = ? AND key IN ({marks})",  # noqa: S608 - marks
        (repository, *keys),
    ).fetchall()
    if any(session != session_id for (session,) in rows):
        raise Unsure
    if hook == _BEFORE:
        _note_judged(git_dir, pid, branch)


def _session(db: "Any", repository: str) -> str:
    """Return the live session of the nearest registered parent process, or an empty string."""
    chain: list[tuple[int, int]] = []
    pid = getppid()
    while pid > 0 and len(chain) < _MOST_PARENTS:
        fields = read_text(f"/proc/{pid}/stat").rpartition(") ")[2].split(" ")
        chain.append((pid, int(fields[19])))
        pid = int(fields[1])
    boot_id = read_text("/proc/sys/kernel/random/boot_id")
    rows = db.execute(
        "SELECT p.pid, p.started, p.session, s.ended_at, s.role FROM processes p"
        " JOIN sessions s ON s.id = p.session WHERE p.repository = ? AND p.boot_id = ? AND p.namespace = ?",
        (repository, boot_id, readlink("/proc/self/ns/pid")),
    ).fetchall()
    known = {(pid, started): (session, ended_at, role) for pid, started, session, ended_at, role in rows}
    for process in chain:
        if process in known:
            session, ended_at, role = known[process]
            if ended_at is not None or role:
                raise Unsure
            return session
    return ""


def _check_workspace(db: "Any", repository: str, root: str, session_id: str) -> None:
    """Check that the caller owns the workspace, if this is one."""
    rows = db.execute(
        "SELECT data FROM records WHERE repository = ? AND noun = 'workspace' AND state = 'open'",
        (repository,),
    ).fetchall()
    for (data,) in rows:
        if root in data:
            workspace = fast_path.read_json(data.encode())
            if workspace["path"] == root and workspace["session"] != session_id:
                raise Unsure


def _check_no_obstacle(db: "Any", repository: str, session_id: str) -> None:
    """Check that no violation is open, the store was not moved, and the caller cannot have a role."""
    queries = [
        "SELECT 1 FROM records WHERE repository = ? AND noun = 'breach' AND state = 'open' LIMIT 1",
        "SELECT 1 FROM meta WHERE key = 'moved_to/' || ? LIMIT 1",
    ]
    if not session_id:
        queries.append(
            "SELECT 1 FROM sessions WHERE repository = ? AND ended_at IS NULL AND role <> '' LIMIT 1"
        )
    for query in queries:
        if db.execute(query, (repository,)).fetchone() is not None:
            raise Unsure


def _note_judged(git_dir: str, pid: str, branch: str) -> None:
    """Record which git process makes a commit: the branch hook checks it again when the branch moves."""
    started = read_text(f"/proc/{pid}/stat").rpartition(") ")[2].split(" ")[19]
    file = open_file(f"{git_dir}/{_JUDGED}", O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    try:
        write_all(file, f"{pid} {started} refs/heads/{branch}\n".encode())
    finally:
        close_file(file)


def _full_path(hook: str, pid: str, arguments: list[str], payload: bytes) -> None:
    """Take the full path in this process, with a time limit, since git waits for the hook."""
    fast_path.limit_time(_LIMIT_SECONDS, _LATE, 1)
    fast_path.find_package()
    from landlane.hook_entry.git_full_path import answer_here  # noqa: PLC0415 - not on the fast path

    code, message = answer_here(hook, pid, arguments, payload)
    write_all(2, message.encode("utf-8", "replace"))
    _exit(code)


def main() -> None:
    """Answer the hook, then exit without interpreter shutdown."""
    try:
        hook, pid, *arguments = sys.argv[1:]
        payload = fast_path.read_input()
        if hook in (_BEFORE, _COMMIT):
            try:
                _fast_path(hook, pid, payload)
                _exit(0)
            except Exception:  # noqa: BLE001 - the full path reports the cause
                pass
        _full_path(hook, pid, arguments, payload)
    except BaseException as error:  # noqa: BLE001 - an internal error is a refusal
        message = f"landlane: refused: the check failed ({error.__class__.__name__}: {error})\n"
        message += "hint: find out why: landlane doctor; set up the hooks again: landlane init\n"
        write_all(2, message.encode("utf-8", "replace"))
        _exit(1)

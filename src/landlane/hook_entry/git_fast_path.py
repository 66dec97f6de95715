"""Answer a git hook, the common commit for little more than an interpreter's start.

Run as `python -I -S git_hook.py HOOK PID [WORD…]` by the scripts of git/hooks/scripts.py, with what concerns
the hook on its input; PID is that of the calling git. The common commit: no other session holds anything on
the way to the paths, no claim is needed, and nothing else forbids it. Everything else takes the full path.
The fast path only ever allows, so the rules are in one place.

Exit codes: 0 allows, 1 refuses with the reason on stderr. Any other code is a failure and refuses as well.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import sys
from _thread import start_new_thread
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
from time import sleep

import client_fast_path as fast_path
from client_fast_path import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LIMIT_SECONDS = 30.0
_LATE = "landlane: refused: the check took too long\nhint: try again; `landlane doctor` tells what is slow\n"
_MOST_PATHS = 200
_MOST_PARENTS = 64
_FACTS = "landlane-githook"
_JUDGED = "landlane-judged"
_HEADS = "ref: refs/heads/"
_FULL_PATH_VARIABLES = (b"LANDLANE_OVERRIDE", b"LANDLANE_STORE", b"LANDLANE_RESIDENT", b"LANDLANE_CANARY")


class _Unsure(Exception):
    """The fast path cannot decide; the full path must."""


def _fast_path(pid: str, payload: bytes) -> None:
    """Return if this commit is certainly allowed; otherwise raise."""
    if any(name in environ for name in _FULL_PATH_VARIABLES):
        raise _Unsure
    git_dir = environ.get(b"GIT_DIR", b".git").decode()
    facts = fast_path._text_of(f"{git_dir}/{_FACTS}").split("\n")  # pyright: ignore[reportPrivateUsage]
    form, root, settings, stamp, at_home, stamp_at_home, repository, store, target = facts
    stamp_at = fast_path._stamp_at  # pyright: ignore[reportPrivateUsage]
    if form != "1" or root != getcwd() or stamp_at(settings) != stamp or stamp_at(at_home) != stamp_at_home:
        raise _Unsure
    *paths, code = payload.decode().split("\0")
    head = fast_path._text_of(f"{git_dir}/HEAD")  # pyright: ignore[reportPrivateUsage]
    branch = head[len(_HEADS) :] if head.startswith(_HEADS) else ""
    if code.strip() != "0" or len(paths) > _MOST_PATHS or not branch or branch == target:
        raise _Unsure
    db = fast_path._connect(store, "ro")  # pyright: ignore[reportPrivateUsage]
    fast_path.store_facts(db)
    session_id = _session(db, repository)
    _check_workspace(db, repository, root, session_id)
    _check_no_obstacle(db, repository, session_id)
    keys = {""}
    for path in paths:
        keys.add(path)
        at = path.find("/")
        while at >= 0:
            keys.add(path[:at])
            at = path.find("/", at + 1)
    marks = ",".join("?" * len(keys))
    rows = db.execute(
        f"SELECT DISTINCT session FROM claims WHERE repository = ? AND key IN ({marks})",  # noqa: S608 - marks
        (repository, *keys),
    ).fetchall()
    if any(session != session_id for (session,) in rows):
        raise _Unsure
    note_judged(git_dir, pid, branch)


def _session(db: "Any", repository: str) -> str:
    """Return the live session of the nearest registered parent process, or an empty string."""
    chain: list[tuple[int, int]] = []
    pid = getppid()
    while pid > 0 and len(chain) < _MOST_PARENTS:
        facts = fast_path._text_of(f"/proc/{pid}/stat").rpartition(") ")[2].split(" ")  # pyright: ignore[reportPrivateUsage]
        chain.append((pid, int(facts[19])))
        pid = int(facts[1])
    boot_id = fast_path._text_of("/proc/sys/kernel/random/boot_id")  # pyright: ignore[reportPrivateUsage]
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
                raise _Unsure
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
            workspace = fast_path._read_json(data.encode())  # pyright: ignore[reportPrivateUsage]
            if workspace["path"] == root and workspace["session"] != session_id:
                raise _Unsure


def _check_no_obstacle(db: "Any", repository: str, session_id: str) -> None:
    """Check that no violation is open, the store was not moved, and the caller cannot have a role."""
    questions = [
        "SELECT 1 FROM records WHERE repository = ? AND noun = 'breach' AND state = 'open' LIMIT 1",
        "SELECT 1 FROM meta WHERE key = 'moved_to/' || ? LIMIT 1",
    ]
    if not session_id:
        questions.append(
            "SELECT 1 FROM sessions WHERE repository = ? AND ended_at IS NULL AND role <> '' LIMIT 1"
        )
    for question in questions:
        if db.execute(question, (repository,)).fetchone() is not None:
            raise _Unsure


def note_judged(git_dir: str, pid: str, branch: str) -> None:
    """Record for the later branch hook that this commit was checked, and which git process makes it."""
    started = fast_path._text_of(f"/proc/{pid}/stat").rpartition(") ")[2].split(" ")[19]  # pyright: ignore[reportPrivateUsage]
    file = open_file(f"{git_dir}/{_JUDGED}", O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    try:
        write_all(file, f"{pid} {started} refs/heads/{branch}\n".encode())
    finally:
        close_file(file)


def _full_path(hook: str, pid: str, words: list[str], payload: bytes) -> None:
    """Take the full path in this process, with a time limit, since git waits for the hook."""

    def watch() -> None:
        sleep(_LIMIT_SECONDS)
        write_all(2, _LATE.encode())
        _exit(1)

    start_new_thread(watch, ())
    fast_path._find_package()  # pyright: ignore[reportPrivateUsage]
    from landlane.hook_entry.git_full_path import answer_here  # noqa: PLC0415 - not on the fast path

    code, message = answer_here(hook, pid, words, payload)
    write_all(2, message.encode("utf-8", "replace"))
    _exit(code)


def main() -> None:
    """Answer the hook, then exit without interpreter shutdown."""
    try:
        hook, pid, *words = sys.argv[1:]
        payload = fast_path._read_input()  # pyright: ignore[reportPrivateUsage]
        if hook == "pre-commit":
            try:
                _fast_path(pid, payload)
                _exit(0)
            except Exception:  # noqa: BLE001 - the full path reports the cause
                pass
        _full_path(hook, pid, words, payload)
    except BaseException as error:  # noqa: BLE001 - an internal error is a refusal
        message = f"landlane: refused: the check failed ({error.__class__.__name__}: {error})\n"
        message += "hint: `landlane doctor` tells more; `landlane init` sets the hooks up anew\n"
        write_all(2, message.encode("utf-8", "replace"))
        _exit(1)

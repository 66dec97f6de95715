"""Does this session hold this path now? Answered in a fresh interpreter for little more than its start.

Run as `python -I -S lean.py STORE REPOSITORY SESSION PATH`, with the path as claims store it: from the root
of the repository. Exit 0: it holds it. Exit 3: it does not. Exit 75: not sure, take the ordinary road (a glob
has to be judged, the machine was restarted, or anything at all went wrong).

Nothing is imported but C modules: `json`, `re`, `os` and even `sqlite3` cost more than the question.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false

import sys
from _functools import _lru_cache_wrapper
from posix import O_RDONLY, _exit
from posix import open as open_file
from posix import read as read_file
from time import CLOCK_BOOTTIME, clock_gettime_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HELD, _NOT_HELD, _UNSURE = 0, 3, 75


class _OnlyCache:
    """`_sqlite3` asks functools for lru_cache alone; the real module costs as much as the rest of this."""

    @staticmethod
    def lru_cache(maxsize: int = 128, typed: bool = False) -> object:
        """The C implementation behind functools.lru_cache."""
        return lambda function: _lru_cache_wrapper(function, maxsize, typed, tuple)


def _connect(path: str) -> "Any":
    sys.modules["functools"] = _OnlyCache
    try:
        from _sqlite3 import connect
    finally:
        del sys.modules["functools"]
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return connect(f"file:{quoted}?mode=ro", uri=True, timeout=1.0, isolation_level=None)


def _now(db: "Any") -> int | None:
    """The store's time; nothing when the machine was restarted since."""
    facts = dict(
        db.execute("SELECT key, value FROM meta WHERE key IN ('base', 'boot_id', 'readable_by')").fetchall()
    )
    boot = read_file(open_file("/proc/sys/kernel/random/boot_id", O_RDONLY), 64).decode().strip()
    if facts["boot_id"] != boot or facts["readable_by"] != "1":
        return None
    return int(facts["base"]) + clock_gettime_ns(CLOCK_BOOTTIME) // 1_000_000


def decide(store: str, repository: str, session: str, path: str) -> int:
    """One indexed read of what this session holds on the way from the root to the path."""
    db = _connect(store)
    now = _now(db)
    if now is None:
        return _UNSURE
    keys = ["", path]
    at = path.find("/")
    while at >= 0:
        keys.append(path[:at])
        at = path.find("/", at + 1)
    marks = ",".join("?" * len(keys))
    rows = db.execute(
        "SELECT c.rest, max(c.granted_at, s.seen_at) + c.ttl_ms"
        " FROM claims c JOIN sessions s ON s.id = c.session"
        f" WHERE c.repository = ? AND c.key IN ({marks}) AND c.session = ? AND s.ended_at IS NULL",
        (repository, *keys, session),
    ).fetchall()
    live = [rest for rest, until in rows if until > now]
    if None in live:
        return _HELD
    return _UNSURE if live else _NOT_HELD


if __name__ == "__main__":
    try:
        _exit(decide(*sys.argv[1:5]))
    except Exception:  # noqa: BLE001 - whatever it was, the ordinary road will tell
        _exit(_UNSURE)

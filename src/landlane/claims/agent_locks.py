"""Lock files as others make them: `FILE.agent-lock` in the tree counts as a claim of somebody on FILE.

They are only looked at, never written or removed. A lock file is no part of a transaction: who made it does
not take part in the store, so a file that appears at the same moment as a claim is seen by the next one.
"""

from __future__ import annotations

import os
import shlex
import stat

from landlane.claims.model import Holding, Refusal
from landlane.errors import PatternError
from landlane.patterns.pattern import LITERAL, NAME
from landlane.sessions.model import Claim, ClaimMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot

SOMEBODY = "somebody"  # the holder, since a lock file need not say who made it
SUFFIX = ".agent-lock"
_MOST_ENTRIES = 20_000  # of a folder or glob; locks behind them are not found
_SKIPPED = frozenset((".git", "node_modules", ".venv", "__pycache__"))


def find_agent_locks(
    repo: Repository, patterns: Sequence[Pattern], snapshot: Snapshot | None = None
) -> list[Claim]:
    """Return a claim of somebody for each lock file on a path of these patterns, the oldest first.

    A caller inside a transaction passes its snapshot.
    """
    if not repo.settings.claims.agent_locks or not repo.git.root:
        return []
    found: dict[str, Claim] = {}
    in_tree = [pattern for pattern in patterns if pattern.kind is not NAME]
    for root in dict.fromkeys((repo.git.root, repo.home.root)):
        for pattern in in_tree:
            for path, locked_at in _list_locks(root, pattern):
                claim = _as_claim(repo, path, locked_at, snapshot)
                if claim is not None and claim.overlaps(pattern):
                    found.setdefault(path, claim)
    return sorted(found.values(), key=lambda claim: claim.granted_at)


def _list_locks(root: str, pattern: Pattern) -> Iterator[tuple[str, float]]:
    """Yield the locked paths that a pattern may cover, each with the time of its lock file."""
    if not root:
        return
    text = pattern.text.removeprefix("./")
    is_literal = pattern.kind is LITERAL
    if is_literal and not os.path.isdir(os.path.join(root, text)):
        locked_at = _time_of(os.path.join(root, text + SUFFIX))
        if locked_at is not None:
            yield text, locked_at
        return
    folder = text if is_literal else _fixed_folder(text)
    seen = 0
    for here, folders, names in os.walk(os.path.join(root, folder)):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        seen += len(names)
        for name in names:
            if name.endswith(SUFFIX) and name != SUFFIX:
                path = os.path.join(here, name)
                locked_at = _time_of(path)
                if locked_at is not None:
                    yield os.path.relpath(path, root).removesuffix(SUFFIX).replace(os.sep, "/"), locked_at
        if seen > _MOST_ENTRIES:
            return


def _fixed_folder(glob: str) -> str:
    """Return the folder that all paths of a glob are in."""
    parts = glob.split("/")
    special = (at for at, part in enumerate(parts) if any(mark in part for mark in "*?[{"))
    return "/".join(parts[: next(special, len(parts) - 1)])


def _time_of(path: str) -> float | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) else None


def _as_claim(repo: Repository, path: str, locked_at: float, snapshot: Snapshot | None) -> Claim | None:
    try:
        pattern = repo.git.pattern_of(path, LITERAL)
    except PatternError:
        return None
    now = snapshot.now if snapshot is not None else repo.store.view(lambda look: look.now)
    age = max(repo.store.wall_of(now) - round(locked_at * 1000), 0)
    return Claim(
        token=0,
        pattern=pattern.text,
        kind=pattern.kind,
        mode=ClaimMode.EXCLUSIVE,
        session="",
        agent=SOMEBODY,
        task="",
        note=f"{path}{SUFFIX}",
        ttl_ms=0,
        granted_at=now - age,
        until=now + repo.settings.claims.ttl_ms,  # until it is removed
        alternatives=pattern.alternatives,
    )


def refuse_locked(pattern: Pattern, locks: Sequence[Claim]) -> Refusal | None:
    """Return the refusal of a pattern that lock files stand in the way of; None if there are none."""
    locked = [claim for claim in locks if claim.overlaps(pattern)]
    if not locked:
        return None
    first = locked[0]
    return Refusal(
        pattern=pattern.text,
        holder=first.agent,
        session=first.session,
        held=first.pattern,
        mode=first.mode,
        task="",
        note=first.note,
        since=first.granted_at,
        until=first.until,
        is_waiting=False,
        hint=lock_hint(first),
        holders=tuple(Holding(claim=claim) for claim in locked),
    )


def lock_hint(lock: Claim) -> str:
    """Return what to do about a lock file."""
    return (
        f"if it is out of date: rm {shlex.quote(lock.note)}; to ignore such files: "
        "landlane config set claims.agent_locks false"
    )

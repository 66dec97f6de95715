"""Repair damaged shared git config before a command changes git state."""

from __future__ import annotations

import os
import time

from landlane.git.shared_config import find_config_damage, remember_config, repair_config
from landlane.journal.read import last_position, read_entries
from landlane.sessions.join import live_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.store.interface import Transaction


_LOOK_BACK = 5000

_SESSION_ENDS = ("session.left", "session.lapsed", "session.gone")


def describe_active(repo: Repository, at_ms: int) -> str:
    """Return which sessions were live at a calendar time, as far as the newest journal entries show."""
    last = ""
    ended_since: set[str] = set()
    for entry in read_entries(repo, max(0, last_position(repo) - _LOOK_BACK)):
        if entry.at <= at_ms:
            last = f"{entry.agent} ({entry.session})" if entry.session else last
        elif entry.kind in _SESSION_ENDS:
            ended_since.add(entry.agent)
    live = {one.agent for one in live_sessions(repo) if repo.store.wall_of(one.started_at) <= at_ms}
    named = ", ".join(sorted(live | ended_since)) or "no session"
    return f"live then: {named}" + (f"; the last to act before: {last}" if last else "")


def prepare_git(repo: Repository, report: Callable[[str], None] | None = None) -> Repository:
    """Return the repository for a command that changes git state, after repairing damaged shared git config.

    Raises:
        RepositoryError: the folder is not in a git repository.
    """
    repo = repo.require_git(report)
    if not remember_config(repo.home):
        repair_and_record(repo)
    return repo


def repair_and_record(repo: Repository, *, is_thorough: bool = False) -> list[str]:
    """Repair damaged shared git config; report and record what was repaired, and which sessions were live."""
    if not find_config_damage(repo.home):
        return []
    active = describe_active(repo, changed_at(os.path.join(repo.common_dir, "config")))
    repaired = repair_config(repo.home, is_thorough=is_thorough)

    def record(tx: Transaction) -> None:
        tx.record("git.mended", "", "", {"reason": "; ".join(repaired), "active": active})

    # Damage that cannot be repaired is reported by every command, but recorded only after a repair.
    if repaired and not any(flip.is_certain or is_thorough for flip in find_config_damage(repo.home)):
        repo.store.change(record)
    lines = [f"{line} ({active})" for line in repaired]
    for line in lines:
        repo.report(line)
    return lines


def changed_at(path: str) -> int:
    """Return when a file was last changed; now, if it cannot be read."""
    try:
        return int(os.stat(path).st_mtime * 1000)
    except OSError:
        return int(time.time() * 1000)

"""Repair flipped git config when a repository is opened."""

from __future__ import annotations

import os
import time

from landlane.git.shared_config import find_config_damage, remember_config, repair_config
from landlane.journal.read import last_position, read_entries
from landlane.sessions.join import live_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Context, Site
    from landlane.store.interface import Change


_LOOK_BACK = 5000

_OVER = ("session.left", "session.lapsed", "session.gone")


def describe_active(context: Context, at_ms: int) -> str:
    """Who was at work at an instant of the calendar, as far as the newest stretch of the journal tells."""
    last = ""
    since: set[str] = set()
    for entry in read_entries(context, max(0, last_position(context) - _LOOK_BACK)):
        if entry.at <= at_ms:
            last = f"{entry.agent} ({entry.session})" if entry.session else last
        elif entry.kind in _OVER:
            since.add(entry.agent)
    live = {one.agent for one in live_sessions(context) if context.store.wall_of(one.started_at) <= at_ms}
    named = ", ".join(sorted(live | since)) or "nobody"
    return f"live then: {named}" + (f"; the last to act before: {last}" if last else "")


def remember_or_repair(site: Site) -> None:
    """Remember git's shared settings, or repair them where they cannot be meant."""
    if not remember_config(site.home):
        repair_and_record(site)


def repair_and_record(site: Site, *, is_thorough: bool = False) -> list[str]:
    """Put right shared settings that cannot be meant; says and records which, and who was active."""
    flips = find_config_damage(site.home)
    if not flips:
        return []
    active = describe_active(site.context, changed_at(os.path.join(site.common_dir, "config")))
    mended = repair_config(site.home, is_thorough=is_thorough)

    def record(tx: Change) -> None:
        tx.record("git.mended", "", "", {"reason": "; ".join(mended), "active": active})

    # What could not be mended comes again with every command: told each time, written down only when done.
    if mended and not any(flip.is_certain or is_thorough for flip in find_config_damage(site.home)):
        site.context.store.change(record)
    told = [f"{line} ({active})" for line in mended]
    for line in told:
        site.tell(line)
    return told


def changed_at(path: str) -> int:
    """Return when a file was last changed; now, if it cannot be read."""
    try:
        return int(os.stat(path).st_mtime * 1000)
    except OSError:
        return int(time.time() * 1000)

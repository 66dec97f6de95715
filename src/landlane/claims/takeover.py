"""Save the unfinished work of a former holder when a path is claimed after its lease expired.

It lies in the main checkout, which several share; a workspace of its own is saved when it is closed. Which
lost claims were looked at already is remembered in a file: it is about this checkout, not the repository.
"""

from __future__ import annotations

import json
import os

from landlane.errors import LandlaneError
from landlane.files import write_whole
from landlane.git.run import run_in
from landlane.patterns.pattern import alternatives_overlap
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.context import Site
    from landlane.patterns.pattern import Alternative
    from landlane.sessions.model import Session
    from landlane.store.interface import Row

_SEEN = "takeovers.json"


@value
class TakenOver:
    """The rescue of what a former holder left on paths that are somebody else's now; or why there is none."""

    rescue: str
    note: str


def save_former_work(site: Site, session: Session, granted: Sequence[Claim]) -> TakenOver | None:
    """Save what others left on paths that their leases ran out on and this session was just granted."""
    lost = site.context.store.view(lambda reading: reading.all("lapsed_of_others", agent=session.agent))
    seen = _read_seen(site)
    fresh = [row for row in lost if row[3] not in seen and _overlaps(site, row, granted)]
    if not fresh or os.path.basename(site.common_dir) != ".git":
        return None
    dirty = _dirty_branches(site)
    left = [row for row in fresh if _touches(site, row, dirty)]
    taken = _save(site, session, left) if left else None
    if taken is None or taken.rescue:
        _note_seen(site, (seen & {row[3] for row in lost}) | {row[3] for row in fresh})
    return taken


def _save(site: Site, session: Session, left: Sequence[Row]) -> TakenOver:
    from landlane.rescue.save import save_checkout

    what = ", ".join(f"{row[1]} from {row[0]}" for row in left[:5])
    try:
        rescue = save_checkout(site, session, site.home.root, f"takeover of {what}", former=left[0][0])
    except LandlaneError as error:
        return TakenOver(rescue="", note=f"{what}: it could not be saved: {error.message}")
    note = f"{left[0][0]} left changes on {left[0][1]}: saved as {rescue} (landlane rescue restore {rescue})"
    return TakenOver(rescue=rescue, note=note)


def _overlaps(site: Site, row: Row, granted: Sequence[Claim]) -> bool:
    pattern_of = site.context.repository.pattern_of
    lost = pattern_of(row[1], row[2]).alternatives
    mine = [branch for claim in granted for branch in pattern_of(claim.pattern, claim.kind).alternatives]
    return any(alternatives_overlap(one, other) for one in lost for other in mine)


def _dirty_branches(site: Site) -> list[Alternative]:
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    found = run_in(site.home, *words)
    names = [item[3:] for item in found.stdout.split("\0") if item]
    return [site.context.repository.pattern_of(name, "literal").alternatives[0] for name in names]


def _touches(site: Site, row: Row, dirty: Sequence[Alternative]) -> bool:
    lost = site.context.repository.pattern_of(row[1], row[2]).alternatives
    return any(alternatives_overlap(one, path) for one in lost for path in dirty)


def _seen_file(site: Site) -> str:
    return os.path.join(site.common_dir, "landlane", _SEEN)


def _read_seen(site: Site) -> set[int]:
    try:
        with open(_seen_file(site), encoding="ascii") as file:
            return set(json.load(file))
    except (OSError, ValueError, TypeError):
        return set()


def _note_seen(site: Site, tokens: set[int]) -> None:
    write_whole(_seen_file(site), json.dumps(sorted(tokens)))

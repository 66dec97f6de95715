"""Save the unfinished work of a former holder when a path is claimed after its lease expired.

It lies in the main checkout, which several share; a workspace of its own is saved when it is closed. Which
lost claims were looked at already is remembered in a file: it is about this checkout, not the repository.
"""

from __future__ import annotations

import json
import os

from landlane.claims.model import LostClaim
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

_SEEN = "takeovers.json"


@value
class TakenOver:
    """The rescue of what a former holder left on paths that are somebody else's now; or why there is none."""

    rescue: str
    note: str


def save_former_work(site: Site, session: Session, granted: Sequence[Claim]) -> TakenOver | None:
    """Save what others left on paths that their leases ran out on and this session was just granted."""
    rows = site.context.store.view(lambda reading: reading.all("lapsed_of_others", agent=session.agent))
    lost = [LostClaim.from_row(row) for row in rows]
    seen = _read_seen(site)
    fresh = [claim for claim in lost if claim.token not in seen and _overlaps(site, claim, granted)]
    if not fresh or os.path.basename(site.common_dir) != ".git":
        return None
    dirty = _dirty_branches(site)
    left = [claim for claim in fresh if _touches(site, claim, dirty)]
    taken = _save(site, session, left) if left else None
    if taken is None or taken.rescue:
        _note_seen(site, (seen & {claim.token for claim in lost}) | {claim.token for claim in fresh})
    return taken


def _save(site: Site, session: Session, left: Sequence[LostClaim]) -> TakenOver:
    from landlane.rescue.save import save_checkout

    what = ", ".join(f"{claim.pattern} from {claim.agent}" for claim in left[:5])
    try:
        rescue = save_checkout(site, session, site.home.root, f"takeover of {what}", former=left[0].agent)
    except LandlaneError as error:
        return TakenOver(rescue="", note=f"{what}: it could not be saved: {error.message}")
    first = f"{left[0].agent} left changes on {left[0].pattern}"
    note = f"{first}: saved as {rescue} (landlane rescue restore {rescue})"
    return TakenOver(rescue=rescue, note=note)


def _overlaps(site: Site, lost: LostClaim, granted: Sequence[Claim]) -> bool:
    pattern = site.context.repository.pattern_of(lost.pattern, lost.kind)
    return any(claim.overlaps(pattern) for claim in granted)


def _dirty_branches(site: Site) -> list[Alternative]:
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    found = run_in(site.home, *words)
    names = [item[3:] for item in found.stdout.split("\0") if item]
    return [site.context.repository.pattern_of(name, "literal").alternatives[0] for name in names]


def _touches(site: Site, lost: LostClaim, dirty: Sequence[Alternative]) -> bool:
    branches = site.context.repository.pattern_of(lost.pattern, lost.kind).alternatives
    return any(alternatives_overlap(branch, path) for branch in branches for path in dirty)


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

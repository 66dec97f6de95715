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
    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_SEEN = "takeovers.json"


@value
class TakenOver:
    """The rescue of what a former holder left on paths that are somebody else's now; or why there is none."""

    rescue: str
    note: str


def save_former_work(repo: Repository, session: Session, granted: Sequence[Claim]) -> TakenOver | None:
    """Save what others left on paths that their leases ran out on and this session was just granted."""
    rows = repo.store.view(lambda snapshot: snapshot.all("lapsed_of_others", agent=session.agent))
    lost = [LostClaim.from_row(row) for row in rows]
    seen = _read_seen(repo)
    fresh = [claim for claim in lost if claim.token not in seen and _overlaps(repo, claim, granted)]
    if not fresh or os.path.basename(repo.common_dir) != ".git":
        return None
    dirty = _dirty_branches(repo)
    left = [claim for claim in fresh if _touches(repo, claim, dirty)]
    taken = _save(repo, session, left) if left else None
    if taken is None or taken.rescue:
        _note_seen(repo, (seen & {claim.token for claim in lost}) | {claim.token for claim in fresh})
    return taken


def _save(repo: Repository, session: Session, left: Sequence[LostClaim]) -> TakenOver:
    from landlane.rescue.save import save_checkout  # noqa: PLC0415 - few leases run out

    what = ", ".join(f"{claim.pattern} from {claim.agent}" for claim in left[:5])
    try:
        rescue = save_checkout(repo, session, repo.home.root, f"takeover of {what}", former=left[0].agent)
    except LandlaneError as error:
        return TakenOver(rescue="", note=f"{what}: it could not be saved: {error.message}")
    first = f"{left[0].agent} left changes on {left[0].pattern}"
    note = f"{first}: saved as {rescue} (landlane rescue restore {rescue})"
    return TakenOver(rescue=rescue, note=note)


def _overlaps(repo: Repository, lost: LostClaim, granted: Sequence[Claim]) -> bool:
    pattern = repo.git.pattern_of(lost.pattern, lost.kind)
    return any(claim.overlaps(pattern) for claim in granted)


def _dirty_branches(repo: Repository) -> list[Alternative]:
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    found = run_in(repo.home, *words)
    names = [item[3:] for item in found.stdout.split("\0") if item]
    return [repo.git.pattern_of(name, "literal").alternatives[0] for name in names]


def _touches(repo: Repository, lost: LostClaim, dirty: Sequence[Alternative]) -> bool:
    branches = repo.git.pattern_of(lost.pattern, lost.kind).alternatives
    return any(alternatives_overlap(branch, path) for branch in branches for path in dirty)


def _seen_file(repo: Repository) -> str:
    return os.path.join(repo.common_dir, "landlane", _SEEN)


def _read_seen(repo: Repository) -> set[int]:
    try:
        with open(_seen_file(repo), encoding="ascii") as file:
            return set(json.load(file))
    except (OSError, ValueError, TypeError):
        return set()


def _note_seen(repo: Repository, tokens: set[int]) -> None:
    write_whole(_seen_file(repo), json.dumps(sorted(tokens)))

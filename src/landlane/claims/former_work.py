"""Save the unfinished work of a former holder when a path is claimed after its lease expired.

Only the main checkout is searched, because several sessions share it; a workspace is saved when it is closed.
A file beside the store lists the lost claims that were handled: it is about this checkout only.
"""

from __future__ import annotations

import json
import os

from landlane.claims.check import pattern_of
from landlane.claims.model import SavedWork
from landlane.errors import LandlaneError
from landlane.files import write_atomically
from landlane.git.run import run_in
from landlane.patterns.pattern import alternatives_overlap
from landlane.rescue.save import save_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim, LostClaim
    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_SEEN = "takeovers.json"


def save_changes(
    repo: Repository, session: Session, granted: Sequence[Claim], lost: Sequence[LostClaim]
) -> SavedWork | None:
    """Save the changes in the main checkout on lost paths that this session was just granted."""
    seen = _read_seen(repo)
    new = [claim for claim in lost if claim.token not in seen and _overlaps(repo, claim, granted)]
    if not new or os.path.basename(repo.common_dir) != ".git":
        return None
    changed = _changed_paths(repo)
    left = [claim for claim in new if _touches(repo, claim, changed)]
    saved = _save(repo, session, left) if left else None
    if saved is None or saved.rescue:
        _write_seen(repo, (seen & {claim.token for claim in lost}) | {claim.token for claim in new})
    return saved


def _save(repo: Repository, session: Session, left: Sequence[LostClaim]) -> SavedWork:
    what = ", ".join(f"{claim.pattern} from {claim.agent}" for claim in left[:5])
    try:
        rescue = save_checkout(repo, session, repo.home.root, f"takeover of {what}", former=left[0].agent)
    except LandlaneError as error:
        return SavedWork(rescue="", note=f"{what}: it could not be saved: {error.message}")
    first = f"{left[0].agent} left changes on {left[0].pattern}"
    return SavedWork(rescue=rescue, note=f"{first}: saved as {rescue} (landlane rescue restore {rescue})")


def _overlaps(repo: Repository, lost: LostClaim, granted: Sequence[Claim]) -> bool:
    pattern = repo.git.pattern_of(lost.pattern, lost.kind)
    return any(claim.overlaps(pattern) for claim in granted)


def _changed_paths(repo: Repository) -> list[Alternative]:
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    names = [item[3:] for item in run_in(repo.home, *words).stdout.split("\0") if item]
    return [pattern_of(repo, name).alternatives[0] for name in names]


def _touches(repo: Repository, lost: LostClaim, changed: Sequence[Alternative]) -> bool:
    alternatives = repo.git.pattern_of(lost.pattern, lost.kind).alternatives
    return any(alternatives_overlap(alternative, path) for alternative in alternatives for path in changed)


def _seen_file(repo: Repository) -> str:
    return os.path.join(repo.common_dir, "landlane", _SEEN)


def _read_seen(repo: Repository) -> set[int]:
    try:
        with open(_seen_file(repo), encoding="ascii") as file:
            return set(json.load(file))
    except (OSError, ValueError, TypeError):
        return set()


def _write_seen(repo: Repository, tokens: set[int]) -> None:
    write_atomically(_seen_file(repo), json.dumps(sorted(tokens)))

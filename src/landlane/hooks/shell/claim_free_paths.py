"""Claim or report unclaimed paths that a shell call changed, depending on the policy."""

from __future__ import annotations

from landlane.claims.take import make_request, take
from landlane.git.private_git_dir import read_head
from landlane.git.snapshot import differing_from_head, path_text
from landlane.hooks.edit import task_of
from landlane.hooks.shell.changes import place_at
from landlane.hooks.shell.ownership import mode_for
from landlane.hooks.shell.report import GUARD, first_of, for_task, names_of
from landlane.protocol.hook_events import STRICT, WATCH
from landlane.rules.violations import CLAIM_FIRST, record_violation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import ClaimMode, Refusal
    from landlane.hooks.shell.ownership import Effect
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_MOST_TAKEN = 400  # paths that one call claims; beyond that a folder should be claimed


def settle_unclaimed(repo: Repository, session: Session, effects: Sequence[Effect]) -> list[str]:
    """Claim unclaimed paths for the session, or report them, depending on the policy."""
    policy = repo.settings.hooks.policy
    if not effects or policy == WATCH:
        return []
    effects = _uncommitted(repo, effects)
    if not effects:
        return []
    names = names_of(effects)
    if policy == STRICT:
        record_violation(
            repo,
            session,
            rule=CLAIM_FIRST,
            guard=GUARD,
            what="changed through the shell without a claim",
            paths=tuple(path_text(one.path) for one in effects),
        )
        text = (
            f"Your shell command changed {names}, which you have not claimed, and this repository wants a "
            f"claim before a change. Claim it now (`landlane claim {first_of(effects)}`), or take the "
            "change back; unclaimed changes are not committed."
        )
        return [text]
    if len(effects) > _MOST_TAKEN:
        text = (
            f"Your shell command changed {len(effects):,} files that nobody holds: {names}. They were not "
            "claimed one by one. If you go on with them, claim their folder: `landlane claim FOLDER/`."
        )
        return [text]
    return _take(repo, session, effects)


def _uncommitted(repo: Repository, effects: Sequence[Effect]) -> list[Effect]:
    """Drop files that match HEAD: after a pull or an undo there is nothing to claim."""
    found: list[Effect] = []
    for root in dict.fromkeys(one.root for one in effects):
        here = [one for one in effects if one.root == root]
        place = place_at(repo, root)
        head = read_head(place)[1]
        if head and here[0].tree:
            dirty = differing_from_head(place, here[0].tree, head)
            here = [one for one in here if one.path in dirty]
        found += here
    return found


def _take(repo: Repository, session: Session, effects: Sequence[Effect]) -> list[str]:
    by_mode: dict[ClaimMode, list[Effect]] = {}
    for one in effects:
        if one.pattern is None or not one.is_claimable:
            continue
        by_mode.setdefault(mode_for(repo, one.pattern), []).append(one)
    refused: list[Refusal] = []
    for mode, some in by_mode.items():
        patterns = tuple(one.pattern for one in some if one.pattern is not None)
        request = make_request(
            repo,
            patterns,
            mode=mode,
            task=task_of(repo, session),
            note="changed through the shell",
            is_partial=True,
        )
        refused += take(repo, session, request).refused
    return [
        f"Your shell command changed {one.pattern}, which {one.holder} "
        f"{'has been waiting for' if one.is_waiting else 'holds'}{for_task(one.task)}. "
        f"Do not go on with it: {one.hint}."
        for one in refused
    ]

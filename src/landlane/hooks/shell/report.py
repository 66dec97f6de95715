"""Record and describe what a shell call changed without permission, and claim the free paths it changed."""

from __future__ import annotations

import shlex

from landlane.claims.take import make_request, take
from landlane.clock import duration_text, rfc3339
from landlane.git.private_git_dir import read_head
from landlane.git.snapshot import differing_from_head, keep_changes
from landlane.hooks.edit import claim_mode, task_of
from landlane.hooks.shell.changes import locate_checkout_at
from landlane.hooks.shell.ownership import ChangeOwner
from landlane.protocol.hook_events import HookPolicy
from landlane.rules.violations import CLAIM_FIRST, STAY_IN_ROLE, record_violation
from landlane.text import list_some, path_text
from landlane.workspaces.unauthorized_writes import (
    OPEN,
    Breach,
    BreachKind,
    begin_breach,
    list_breaches,
    next_breach_id,
    ref_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import ClaimMode, Refusal
    from landlane.hooks.shell.changes import SessionContext
    from landlane.hooks.shell.ownership import OwnedChange
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session

GUARD = "shell check"
_MOST_NAMED = 8
_MOST_TAKEN = 400  # paths that one call claims; beyond that a folder should be claimed
_MOST_KEPT = 5000  # paths in a record; the commit has them all
_WHAT = {
    ChangeOwner.HELD: "wrote through the shell to what another holds",
    ChangeOwner.STRAY: "wrote through the shell outside of its workspace",
    ChangeOwner.ROLE: "wrote through the shell what its role may not change",
}


def report_breaches(repo: Repository, context: SessionContext, effects: Sequence[OwnedChange]) -> list[str]:
    """Record the affected paths, once per checkout and holder, and describe them for the model."""
    mine = [breach for breach in list_breaches(repo) if breach.agent == context.session.agent]
    known = {(breach.root, path) for breach in mine for path in breach.paths}
    groups: dict[tuple[str, str, str, bool], list[OwnedChange]] = {}
    for effect in effects:
        key = (effect.root, effect.kind, effect.holder_session or effect.reason, effect.is_sure)
        groups.setdefault(key, []).append(effect)
    texts: list[str] = []
    for group in groups.values():
        breach = _record(repo, context, group)
        is_again = any((effect.root, path_text(effect.path)) in known for effect in group)
        texts.append(_describe(repo, context, group, breach, is_again=is_again))
    return texts


def _record(repo: Repository, context: SessionContext, group: Sequence[OwnedChange]) -> Breach:
    """Save both versions, record the breach, and notify the holder."""
    first, session = group[0], context.session
    breach_id = next_breach_id(repo)
    # Single files of other checkouts are in the private git directory of the call's checkout.
    checkout = locate_checkout_at(repo, first.root if first.tree else repo.checkout.root)
    what = f"{session.agent} changed {_names_of(group)} in {first.root}"
    commit = keep_changes(checkout, ref_of(breach_id), [effect.change for effect in group], what)
    breach = Breach(
        id=breach_id,
        state=OPEN,
        kind=BreachKind(first.kind),
        session=session.id,
        agent=session.agent,
        root=first.root,
        paths=tuple(path_text(effect.path) for effect in group[:_MOST_KEPT]),
        commit=commit,
        at=repo.wall_ms(),
        holder=first.holder,
        holder_session=first.holder_session,
        task=first.claim.task if first.claim is not None else "",
        is_blocking=first.is_sure and repo.settings.hooks.policy != HookPolicy.WATCH,
    )
    notice = ""
    if first.is_sure and first.kind == ChangeOwner.HELD:
        notice = (
            f"{what} through a shell, though you hold it. "
            f"`landlane misplaced undo {breach_id}` puts back what was there; `landlane misplaced accept "
            f"{breach_id}` lets the change stand."
        )
    begin_breach(repo, session, breach, notice)
    if first.is_sure:
        record_violation(
            repo,
            session,
            rule=STAY_IN_ROLE if first.kind == ChangeOwner.ROLE else CLAIM_FIRST,
            guard=GUARD,
            what=_WHAT[first.kind],
            paths=tuple(path_text(effect.path) for effect in group),
        )
    return breach


def _describe(
    repo: Repository, context: SessionContext, group: Sequence[OwnedChange], breach: Breach, *, is_again: bool
) -> str:
    first, names = group[0], _names_of(group)
    undo = f"`landlane misplaced undo {breach.id}`"
    whose = _whose(repo, first)
    if not first.is_sure:
        others = "it is not known what was there when your command began"
        if first.suspects:
            others = f"{' and '.join(first.suspects)} had a command running there at the same time"
        return (
            f"{names} in {first.root}{whose} changed while your command ran; {others}, so it may not have "
            f"been you. If it was you, take it back: {undo}. If it was not, leave it alone."
        )
    if repo.settings.hooks.policy == HookPolicy.WATCH:
        return _watch_text(first, names, whose, undo)
    own = context.own
    move = f"`landlane misplaced move {breach.id} --to {own[-1].id}`" if own else ""
    if first.kind == ChangeOwner.STRAY and own:
        where = f"in the workspace of {first.owner}" if first.owner else f"in {first.root}"
        return (
            f"Your shell command changed {names} {where}, outside of your own workspace {own[-1].path}. "
            f"It cannot be committed there. Move the change to where you work: {move}; or take it back: "
            f"{undo}. Use paths below {own[-1].path} from now on."
        )
    if first.kind == ChangeOwner.STRAY:
        return (
            f"Your shell command changed {names} in the workspace of {first.owner} at {first.root}. Nothing "
            f"there is yours to change, and it cannot be committed by you. Take it back now: {undo}."
        )
    if first.kind == ChangeOwner.ROLE:
        return (
            f"Your shell command changed {names}, which your role may not: {first.reason}. It cannot be "
            f"committed or landed by you. Take it back now: {undo}."
        )
    keep = ""
    if move and all(workspace.path != first.root for workspace in own):
        keep = f" To keep your change for your own workspace instead: {move}."
    where = f" It lies in {first.root}." if first.root != repo.checkout.root else ""
    again = " This is not the first time: stop writing to it." if is_again else ""
    return (
        f"Your shell command changed {names}{whose}.{where} It is not yours to change, and you cannot commit "
        f"or land it.{again} Take it back now: {undo}; that restores every byte that was there, also what "
        f"was not committed.{keep} Then work on something else, or wait for it: "
        f"`landlane claim {_first_of(group)} --wait 10m`."
    )


def _watch_text(first: OwnedChange, names: str, whose: str, undo: str) -> str:
    """Return the text for the policy `watch`, which refuses nothing."""
    what = {
        ChangeOwner.STRAY: f" in {first.root}, outside of where you work",
        ChangeOwner.ROLE: f", which your role may not: {first.reason}",
    }.get(first.kind, whose)
    return (
        f"Your shell command changed {names}{what}. It was let pass and only noted, because the policy of "
        f"Landlane here is to watch. If you did not mean to, {undo} puts back what was there."
    )


def _whose(repo: Repository, effect: OwnedChange) -> str:
    claim = effect.claim
    if claim is None:
        return f", the workspace of {effect.owner}," if effect.owner else ""
    now = repo.store.view(lambda snapshot: snapshot.now)
    until = rfc3339(repo.store.wall_of(claim.until))
    left = duration_text(max(claim.until - now, 0) // 1000 * 1000)
    return f", held by {claim.agent}{_for_task(claim.task)} until {until} ({left} from now)"


def _for_task(task: str) -> str:
    return f" for task {task}" if task else ""


def _names_of(effects: Sequence[OwnedChange]) -> str:
    return list_some([path_text(effect.path) for effect in effects], _MOST_NAMED)


def _first_of(effects: Sequence[OwnedChange]) -> str:
    """Return the first path, quoted for a shell."""
    return shlex.quote(path_text(effects[0].path))


def claim_or_report(repo: Repository, session: Session, effects: Sequence[OwnedChange]) -> list[str]:
    """Claim unclaimed paths for the session, or report them, depending on the policy."""
    policy = repo.settings.hooks.policy
    if not effects or policy == HookPolicy.WATCH:
        return []
    effects = _uncommitted(repo, effects)
    if not effects:
        return []
    names = _names_of(effects)
    if policy == HookPolicy.STRICT:
        record_violation(
            repo,
            session,
            rule=CLAIM_FIRST,
            guard=GUARD,
            what="changed through the shell without a claim",
            paths=tuple(path_text(effect.path) for effect in effects),
        )
        text = (
            f"Your shell command changed {names}, which you have not claimed, and this repository wants a "
            f"claim before a change. Claim it now (`landlane claim {_first_of(effects)}`), or take the "
            "change back; unclaimed changes are not committed."
        )
        return [text]
    if len(effects) > _MOST_TAKEN:
        text = (
            f"Your shell command changed {len(effects):,} files that no session has claimed: {names}. They "
            "were not claimed one by one. If you continue, claim their folder: `landlane claim FOLDER/`."
        )
        return [text]
    return _claim(repo, session, effects)


def _uncommitted(repo: Repository, effects: Sequence[OwnedChange]) -> list[OwnedChange]:
    """Drop files that match HEAD: after a pull or an undo there is nothing to claim."""
    found: list[OwnedChange] = []
    for root in dict.fromkeys(effect.root for effect in effects):
        here = [effect for effect in effects if effect.root == root]
        checkout = locate_checkout_at(repo, root)
        head = read_head(checkout)[1]
        if head and here[0].tree:
            dirty = differing_from_head(checkout, here[0].tree, head)
            here = [effect for effect in here if effect.path in dirty]
        found += here
    return found


def _claim(repo: Repository, session: Session, effects: Sequence[OwnedChange]) -> list[str]:
    by_mode: dict[ClaimMode, list[Pattern]] = {}
    for effect in effects:
        if effect.is_claimable:
            by_mode.setdefault(claim_mode(repo, effect.pattern), []).append(effect.pattern)
    refused: list[Refusal] = []
    for mode, patterns in by_mode.items():
        request = make_request(
            repo,
            tuple(patterns),
            mode=mode,
            task=task_of(repo, session),
            note="changed through the shell",
            is_partial=True,
        )
        # The command has changed these files already: it is too late to save what a former holder left.
        refused += take(repo, session, request).refused
    return [
        f"Your shell command changed {refusal.pattern}, which {refusal.holder} "
        f"{'has been waiting for' if refusal.is_waiting else 'holds'}{_for_task(refusal.task)}. "
        f"Do not go on with it: {refusal.hint}."
        for refusal in refused
    ]

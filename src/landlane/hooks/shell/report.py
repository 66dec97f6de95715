"""Record and describe what a shell call changed without permission."""

from __future__ import annotations

import shlex

from landlane.clock import duration_text, rfc3339
from landlane.git.snapshot import keep_changes, path_text
from landlane.hooks.shell.changes import place_at
from landlane.protocol.hook_events import WATCH
from landlane.rules.violations import CLAIM_FIRST, STAY_IN_ROLE, record_violation
from landlane.workspaces.unauthorized_writes import (
    HELD,
    OPEN,
    ROLE,
    STRAY,
    Breach,
    begin_breach,
    list_breaches,
    next_breach_id,
    ref_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.hooks.shell.changes import Scene
    from landlane.hooks.shell.ownership import Effect
    from landlane.repository import Repository

GUARD = "shell check"
_MOST_NAMED = 8
_MOST_KEPT = 5000  # paths in a record; the commit has them all
_WHAT = {
    HELD: "wrote through the shell to what another holds",
    STRAY: "wrote through the shell outside of its workspace",
    ROLE: "wrote through the shell what its role may not change",
}


def report_breaches(repo: Repository, scene: Scene, effects: Sequence[Effect]) -> list[str]:
    """Record the affected paths, once per checkout and holder, and describe them for the model."""
    mine = [one for one in list_breaches(repo) if one.agent == scene.session.agent]
    known = {(one.root, path) for one in mine for path in one.paths}
    groups: dict[tuple[str, str, str, bool], list[Effect]] = {}
    for one in effects:
        key = (one.root, one.kind, one.holder_session or one.reason, one.is_sure)
        groups.setdefault(key, []).append(one)
    texts: list[str] = []
    for group in groups.values():
        breach = _keep(repo, scene, group)
        again = any((one.root, path_text(one.path)) in known for one in group)
        texts.append(_told(repo, scene, group, breach, is_again=again))
    return texts


def _keep(repo: Repository, scene: Scene, group: Sequence[Effect]) -> Breach:
    """Save both versions, record the breach, and notify the holder."""
    first, session = group[0], scene.session
    breach_id = next_breach_id(repo)
    # Single files of other checkouts are in the private git directory of the call's checkout.
    place = place_at(repo, first.root if first.tree else repo.checkout.root)
    what = f"{session.agent} changed {names_of(group)} in {first.root}"
    commit = keep_changes(place, ref_of(breach_id), [one.change for one in group], what)
    breach = Breach(
        id=breach_id,
        state=OPEN,
        kind=first.kind,
        session=session.id,
        agent=session.agent,
        root=first.root,
        paths=tuple(path_text(one.path) for one in group[:_MOST_KEPT]),
        commit=commit,
        at=repo.wall_ms(),
        holder=first.holder,
        holder_session=first.holder_session,
        task=first.claim.task if first.claim is not None else "",
        is_blocking=first.is_sure and repo.settings.hooks.policy != WATCH,
    )
    notice = ""
    if first.is_sure and first.kind == HELD:
        notice = (
            f"{session.agent} changed {names_of(group)} in {first.root} through a shell, though you hold it. "
            f"`landlane stray undo {breach_id}` puts back what was there; `landlane stray accept "
            f"{breach_id}` lets the change stand."
        )
    begin_breach(repo, session, breach, notice)
    if first.is_sure:
        record_violation(
            repo,
            session,
            rule=STAY_IN_ROLE if first.kind == ROLE else CLAIM_FIRST,
            guard=GUARD,
            what=_WHAT[first.kind],
            paths=tuple(path_text(one.path) for one in group),
        )
    return breach


def _told(repo: Repository, scene: Scene, group: Sequence[Effect], breach: Breach, *, is_again: bool) -> str:
    first, names = group[0], names_of(group)
    undo = f"`landlane stray undo {breach.id}`"
    whose = _whose(repo, first)
    if not first.is_sure:
        others = "it is not known what was there when your command began"
        if first.suspects:
            others = f"{' and '.join(first.suspects)} had a command running there at the same time"
        return (
            f"{names} in {first.root}{whose} changed while your command ran; {others}, so it may not have "
            f"been you. If it was you, take it back: {undo}. If it was not, leave it alone."
        )
    if repo.settings.hooks.policy == WATCH:
        return _noted(first, names, whose, undo)
    own = scene.own
    move = f"`landlane stray move {breach.id} --to {own[-1]['id']}`" if own else ""
    if first.kind == STRAY and own:
        where = f"in the workspace of {first.owner}" if first.owner else f"in {first.root}"
        return (
            f"Your shell command changed {names} {where}, outside of your own workspace {own[-1]['path']}. "
            f"It cannot be committed there. Move the change to where you work: {move}; or take it back: "
            f"{undo}. Use paths below {own[-1]['path']} from now on."
        )
    if first.kind == STRAY:
        return (
            f"Your shell command changed {names} in the workspace of {first.owner} at {first.root}. Nothing "
            f"there is yours to change, and it cannot be committed by you. Take it back now: {undo}."
        )
    if first.kind == ROLE:
        return (
            f"Your shell command changed {names}, which your role may not: {first.reason}. It cannot be "
            f"committed or landed by you. Take it back now: {undo}."
        )
    keep = ""
    if move and all(one["path"] != first.root for one in own):
        keep = f" To keep your change for your own workspace instead: {move}."
    where = f" It lies in {first.root}." if first.root != repo.checkout.root else ""
    again = " This is not the first time: stop writing to it." if is_again else ""
    return (
        f"Your shell command changed {names}{whose}.{where} It is not yours to change, and you cannot commit "
        f"or land it.{again} Take it back now: {undo}; that restores every byte that was there, also what "
        f"was not committed.{keep} Then work on something else, or wait for it: "
        f"`landlane claim {first_of(group)} --wait 10m`."
    )


def _noted(first: Effect, names: str, whose: str, undo: str) -> str:
    """Return the text for the policy `watch`, which refuses and holds nothing."""
    what = {
        STRAY: f" in {first.root}, outside of where you work",
        ROLE: f", which your role may not: {first.reason}",
    }.get(first.kind, whose)
    return (
        f"Your shell command changed {names}{what}. It was let pass and only noted, because the policy of "
        f"Landlane here is to watch. If you did not mean to, {undo} puts back what was there."
    )


def _whose(repo: Repository, effect: Effect) -> str:
    claim = effect.claim
    if claim is None:
        return f", the workspace of {effect.owner}," if effect.owner else ""
    now = repo.store.view(lambda snapshot: snapshot.now)
    until = rfc3339(repo.store.wall_of(claim.until))
    left = duration_text(max(claim.until - now, 0) // 1000 * 1000)
    return f", held by {claim.agent}{for_task(claim.task)} until {until} ({left} from now)"


def for_task(task: str) -> str:
    """Return a task as part of a sentence; empty without one."""
    return f" for task {task}" if task else ""


def names_of(effects: Sequence[Effect]) -> str:
    """Return the first few paths and the number of others."""
    shown = ", ".join(path_text(one.path) for one in effects[:_MOST_NAMED])
    more = len(effects) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def first_of(effects: Sequence[Effect]) -> str:
    """Return the first path, quoted for a shell."""
    return shlex.quote(path_text(effects[0].path))

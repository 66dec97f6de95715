"""Decide who owns the paths that a shell call changed, and whether this call changed them.

A path belongs to the holder of its claim or to the owner of its checkout. Whether the holder made the change
is known from its recorded file versions (`reads`); its hook may be a moment late, so we wait for it. Changes
that came with a commit, or that undo an unauthorized write, do not count.
"""

from __future__ import annotations

import os
import time
from enum import StrEnum

from landlane.claims.check import PathState, claim_need, pattern_of
from landlane.claims.model import ClaimMode
from landlane.claims.take import list_claims
from landlane.errors import PatternError
from landlane.files import read_file_version
from landlane.git.private_git_dir import read_head
from landlane.git.snapshot import differing_from_head, read_file_now, read_kept
from landlane.hooks.shell.changes import locate_checkout_at
from landlane.roles.enforce import may_write
from landlane.sessions.client_sessions import is_client_session
from landlane.sessions.tool_calls import find_read, list_calls_since
from landlane.tasks.worker_paths import why_outside_task
from landlane.text import path_text
from landlane.values import replace, value
from landlane.workspaces.unauthorized_writes import CLEARED, MOVED, UNDONE, end_breach, list_breaches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.git.tree_diff import TreeChange
    from landlane.hooks.shell.changes import CallSnapshot, CheckoutChange, SessionContext
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.tool_calls import ToolCall


_WAIT_SECONDS = 0.7  # for the holder's own hook to record its write
_TICK_SECONDS = 0.05
_MOST_AT_ONCE = 200  # paths whose claims are read one by one
_MOST_ENDED = 20  # recently ended breaches that a change may come from


class ChangeOwner(StrEnum):
    """Whether the session may change a path."""

    OWN = "own"  # it holds the path
    FREE = "free"  # the path needs no claim
    UNCLAIMED = "unclaimed"
    HELD = "held"  # by another session
    STRAY = "stray"  # it lies outside of the session's workspace
    ROLE = "role"  # the session's role may not change it


UNAUTHORIZED = (ChangeOwner.HELD, ChangeOwner.STRAY, ChangeOwner.ROLE)


@value
class OwnedChange:
    """A changed path and its owner. `is_sure`: no other session is known to have worked there."""

    root: str
    change: TreeChange
    tree: str
    kind: ChangeOwner
    pattern: Pattern
    claim: Claim | None = None
    owner: str = ""
    owner_session: str = ""
    reason: str = ""
    is_sure: bool = True
    suspects: tuple[str, ...] = ()
    is_claimable: bool = True

    @property
    def path(self) -> str:
        """The path relative to the root of its checkout."""
        return self.change.path

    @property
    def full_path(self) -> str:
        """The absolute path."""
        return os.path.join(self.root, self.change.path)

    @property
    def holder(self) -> str:
        """The agent that owns it, if known."""
        return self.claim.agent if self.claim is not None else self.owner

    @property
    def holder_session(self) -> str:
        """The session that owns it."""
        return self.claim.session if self.claim is not None else self.owner_session


def judge_changes(
    repo: Repository, context: SessionContext, changes: Sequence[CheckoutChange]
) -> list[OwnedChange]:
    """Return the effect of each change, before deciding who made it."""
    patterns = [pattern_of(repo, changed.change.path) for changed in changes]
    near = list_claims(repo, patterns if len(patterns) <= _MOST_AT_ONCE else ())
    claims = {claim.token: claim for claim in near}
    return [
        _judge_change(
            repo, context, changed, pattern, [claim for claim in claims.values() if claim.covers(pattern)]
        )
        for changed, pattern in zip(changes, patterns, strict=True)
    ]


def _judge_change(
    repo: Repository,
    context: SessionContext,
    changed: CheckoutChange,
    pattern: Pattern,
    covering: Sequence[Claim],
) -> OwnedChange:
    path = changed.change.path
    others = [
        claim
        for claim in covering
        if not context.is_ours(claim.session) and claim.mode == ClaimMode.EXCLUSIVE
    ]
    effect = OwnedChange(
        root=changed.root,
        change=changed.change,
        tree=changed.tree,
        pattern=pattern,
        kind=ChangeOwner.UNCLAIMED,
        is_claimable=_is_claimable(repo, path),
    )
    if others:
        return replace(effect, kind=ChangeOwner.HELD, claim=others[0])
    if reason := may_write(repo, context.session, path) or why_outside_task(repo, context.session, path):
        return replace(effect, kind=ChangeOwner.ROLE, reason=reason)
    if context.is_outside(changed.root):
        stray = replace(effect, kind=ChangeOwner.STRAY)
        owner = context.workspace_at(changed.root)
        return stray if owner is None else replace(stray, owner=owner.agent, owner_session=owner.session)
    if any(context.is_ours(claim.session) for claim in covering):
        return replace(effect, kind=ChangeOwner.OWN)
    is_free = claim_need(repo, repo.settings.claims, pattern) == PathState.FREE
    return replace(effect, kind=ChangeOwner.FREE) if is_free else effect


def _is_claimable(repo: Repository, path: str) -> bool:
    """Return whether a path can be claimed by name; otherwise only its folder can."""
    try:
        repo.git.pattern_of(path, "literal")
    except PatternError:
        return False
    return True


def remembered_as(effect: OwnedChange) -> str:
    """Return the name of a file in the recorded versions; empty for a name that is not text."""
    path = os.path.realpath(effect.full_path)
    return path if path == path.encode("utf-8", "replace").decode() else ""


def without_holders_writes(repo: Repository, effects: Sequence[OwnedChange]) -> list[OwnedChange]:
    """Drop what the holder wrote itself; its hook gets a moment to record it.

    Only sessions of coding clients have hooks, so there is no wait for any other holder.
    """
    give_up_at = time.monotonic() + _WAIT_SECONDS
    left = [effect for effect in effects if not _is_holders_write(repo, effect)]
    reporting = {effect.holder_session for effect in left if _has_hooks(repo, effect.holder_session)}
    while time.monotonic() < give_up_at and any(effect.holder_session in reporting for effect in left):
        _pause()
        left = [effect for effect in left if not _is_holders_write(repo, effect)]
    return left


def _has_hooks(repo: Repository, session: str) -> bool:
    """Return whether a coding client is bound to the session; its hooks record what it writes."""
    return bool(session) and repo.store.view(lambda snapshot: is_client_session(snapshot, session))


def _pause() -> None:
    time.sleep(_TICK_SECONDS)


def _is_holders_write(repo: Repository, effect: OwnedChange) -> bool:
    path = remembered_as(effect)
    if not effect.holder_session or not path:
        return False
    seen = find_read(repo, effect.holder_session, path)
    return seen is not None and seen[0] == read_file_version(effect.full_path)[0]


def with_suspects(
    repo: Repository, context: SessionContext, effects: Sequence[OwnedChange], command: str, since: int | None
) -> list[OwnedChange]:
    """Mark each effect as certain or not, by the other commands that ran there at the same time.

    A command of the holder always raises doubt. Any other one does, unless this command names the file. When
    the start is unknown (`since` is None), nothing is certain.
    """
    if since is None:
        return [replace(effect, is_sure=False) for effect in effects]
    calls = _calls_of_others(repo, context, effects, since)
    found: list[OwnedChange] = []
    for effect in effects:
        is_named = names_file(command, effect.path)
        suspects = dict.fromkeys(
            call.agent for call in calls[effect.root] if call.session == effect.holder_session or not is_named
        )
        found.append(replace(effect, is_sure=False, suspects=tuple(suspects)) if suspects else effect)
    return found


def certain_effects(
    repo: Repository, context: SessionContext, effects: Sequence[OwnedChange], command: str, since: int | None
) -> list[OwnedChange]:
    """Return the effects of this call: it names the file, or no other session ran a command there."""
    calls = _calls_of_others(repo, context, effects, since) if since is not None else {}
    return [
        effect
        for effect in effects
        if names_file(command, effect.path) or (since is not None and not calls[effect.root])
    ]


def _calls_of_others(
    repo: Repository, context: SessionContext, effects: Sequence[OwnedChange], since: int
) -> dict[str, list[ToolCall]]:
    """Return the calls of other sessions since an instant, by checkout."""
    return {
        root: [call for call in list_calls_since(repo, root, since) if not context.is_ours(call.session)]
        for root in {effect.root for effect in effects}
    }


def names_file(command: str, path: str) -> bool:
    """Return whether a command's text contains a file name, not only as part of another name."""
    name = os.path.basename(path)
    at = command.find(name)
    while at >= 0:
        around = command[at - 1 : at] + command[at + len(name) : at + len(name) + 1]
        if not any(letter.isalnum() or letter in "_-" for letter in around):
            return True
        at = command.find(name, at + 1)
    return False


def without_committed(
    repo: Repository, effects: Sequence[OwnedChange], snapshot: CallSnapshot
) -> list[OwnedChange]:
    """Drop files that matched HEAD before and match it now: they came with a commit, as in a sync."""
    found = [effect for effect in effects if not effect.tree]
    for root in dict.fromkeys(effect.root for effect in effects if effect.tree):
        here = [effect for effect in effects if effect.root == root and effect.tree]
        checkout = locate_checkout_at(repo, root)
        old, new = snapshot.heads.get(root, ""), read_head(checkout)[1]
        if old and new and old != new:
            dirty = differing_from_head(checkout, snapshot.trees[root], old)
            dirty |= differing_from_head(checkout, here[0].tree, new)
            here = [effect for effect in here if effect.path in dirty]
        found += here
    return found


def without_repairs(
    repo: Repository, context: SessionContext, effects: Sequence[OwnedChange]
) -> list[OwnedChange]:
    """Drop changes made by undoing or moving an unauthorized write, or by restoring it by hand."""
    effects = _without_restored(repo, context, effects)
    ended = [breach for breach in list_breaches(repo, with_ended=True) if breach.state in (UNDONE, MOVED)]
    own = {workspace.path for workspace in context.own}
    found = list(effects)
    for breach in ended[-_MOST_ENDED:]:
        paths = set(breach.paths)
        hit = [
            effect
            for effect in found
            if path_text(effect.path) in paths and effect.root in (breach.root, *own)
        ]
        if not hit:
            continue
        before, _ = read_kept(repo.common_dir, breach.commit)
        repaired = [
            effect
            for effect in hit
            if (
                effect.root == breach.root
                and read_file_now(effect.root, effect.path) == before.get(effect.path)
            )
            or (breach.state == MOVED and effect.root in own and effect.root != breach.root)
        ]
        found = [effect for effect in found if effect not in repaired]
    return found


def _without_restored(
    repo: Repository, context: SessionContext, effects: Sequence[OwnedChange]
) -> list[OwnedChange]:
    """Drop files restored to their state before an unauthorized write of the same agent, and close it."""
    found = list(effects)
    for breach in reversed(list_breaches(repo)):  # newest first: each goes back one step
        paths = set(breach.paths)
        hit = [effect for effect in found if path_text(effect.path) in paths and effect.root == breach.root]
        if not hit or breach.agent != context.session.agent:
            continue
        before, after = read_kept(repo.common_dir, breach.commit)
        restored = [
            effect for effect in hit if read_file_now(effect.root, effect.path) == before.get(effect.path)
        ]
        found = [effect for effect in found if effect not in restored]
        if all(read_file_now(breach.root, path) == before.get(path) for path in before.keys() | after.keys()):
            end_breach(repo, context.session, breach.id, CLEARED)
    return found

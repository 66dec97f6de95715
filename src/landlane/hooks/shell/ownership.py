"""Decide who owns the paths that a shell call changed, and whether this call changed them.

A path belongs to the holder of its claim or to the owner of its checkout. Whether the holder made the change
is known from its recorded file versions (`reads`); its hook may be a moment late, so we wait for it.
"""

from __future__ import annotations

import os
import time

from landlane.claims.check import pattern_of
from landlane.claims.model import ClaimMode
from landlane.claims.read import list_claims
from landlane.errors import PatternError
from landlane.files import look_at
from landlane.patterns.pattern import covers_alternative
from landlane.sessions.client_sessions import is_client_session
from landlane.sessions.file_versions import last_seen
from landlane.sessions.tool_calls import calls_during
from landlane.values import replace, value
from landlane.workspaces.unauthorized_writes import HELD, ROLE, STRAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.claims.model import Claim
    from landlane.git.tree_diff import TreeChange
    from landlane.hooks.shell.changes import Scene
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.tool_calls import ToolCall


OWN = "own"
FREE = "free"
UNCLAIMED = "unclaimed"

_WAIT_SECONDS = 0.7  # for the holder's own hook to record its write
_TICK_SECONDS = 0.05
_MOST_AT_ONCE = 200  # paths whose claims are read one by one


@value
class Effect:
    """A changed path and its owner. `is_sure`: no other session is known to have worked there."""

    root: str
    change: TreeChange
    tree: str
    kind: str
    pattern: Pattern | None = None
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
    repo: Repository,
    scene: Scene,
    changes: Sequence[tuple[str, TreeChange, str]],
    may_write: Callable[[Repository, Session, str], str],
) -> list[Effect]:
    """Return the effect of each change, before deciding who made it."""
    patterns = [pattern_of(repo, change.path) for _, change, _ in changes]
    claims = _claims_near(repo, patterns)
    return [
        _judge(repo, scene, changed, pattern, claims, may_write)
        for changed, pattern in zip(changes, patterns, strict=True)
    ]


def _judge(
    repo: Repository,
    scene: Scene,
    changed: tuple[str, TreeChange, str],
    pattern: Pattern,
    claims: Sequence[tuple[Claim, Pattern]],
    may_write: Callable[[Repository, Session, str], str],
) -> Effect:
    root, change, tree = changed
    covering = [claim for claim, held in claims if _covers(held, pattern)]
    others = [
        claim
        for claim in covering
        if claim.session != scene.session.id
        and claim.session not in scene.kin
        and claim.mode == ClaimMode.EXCLUSIVE
    ]
    is_mine = any(claim.session == scene.session.id or claim.session in scene.kin for claim in covering)
    plain = Effect(
        root=root,
        change=change,
        tree=tree,
        pattern=pattern,
        kind=UNCLAIMED,
        is_claimable=_is_claimable(repo, change.path),
    )
    if others:
        return replace(plain, kind=HELD, claim=others[0])
    reason = may_write(repo, scene.session, change.path)
    if reason:
        return replace(plain, kind=ROLE, reason=reason)
    if scene.is_outside(root):
        owner = scene.owner_of(root) or {"agent": "", "session": ""}
        return replace(plain, kind=STRAY, owner=owner["agent"], owner_session=owner["session"])
    if is_mine:
        return replace(plain, kind=OWN)
    return replace(plain, kind=FREE) if _is_free(repo, pattern) else plain


def _is_claimable(repo: Repository, path: str) -> bool:
    """Return whether a path can be claimed by name; otherwise only its folder can."""
    try:
        repo.git.pattern_of(path, "literal")
    except PatternError:
        return False
    return True


def _claims_near(repo: Repository, patterns: Sequence[Pattern]) -> list[tuple[Claim, Pattern]]:
    near = list_claims(repo, patterns if len(patterns) <= _MOST_AT_ONCE else ())
    known = {claim.token: claim for claim in near}
    return [(claim, repo.git.pattern_of(claim.pattern, claim.kind)) for claim in known.values()]


def _covers(held: Pattern, wanted: Pattern) -> bool:
    return all(
        any(covers_alternative(mine, one) for mine in held.alternatives) for one in wanted.alternatives
    )


def _is_free(repo: Repository, pattern: Pattern) -> bool:
    return _is_listed(repo, repo.settings.claims.free, pattern)


def mode_for(repo: Repository, pattern: Pattern) -> ClaimMode:
    """Return how a path is claimed: a mergeable one is shared."""
    return (
        ClaimMode.SHARED
        if _is_listed(repo, repo.settings.mergeable_patterns, pattern)
        else ClaimMode.EXCLUSIVE
    )


def _is_listed(repo: Repository, listed: Sequence[str], pattern: Pattern) -> bool:
    known = [branch for text in listed for branch in repo.git.pattern_of(text, "glob").alternatives]
    return bool(known) and all(
        any(covers_alternative(one, branch) for one in known) for branch in pattern.alternatives
    )


def remembered_as(effect: Effect) -> str:
    """Return the name of a file in the recorded versions; empty for a name that is not text."""
    path = os.path.realpath(effect.full_path)
    return path if path == path.encode("utf-8", "replace").decode() else ""


# ------------------------------------------------------------------------------------------ who did it


def without_the_holders_own(repo: Repository, effects: Sequence[Effect]) -> list[Effect]:
    """Drop what the holder wrote itself; its hook gets a moment to report it.

    Only sessions of coding clients have hooks, so there is no wait for any other holder.
    """
    give_up_at = time.monotonic() + _WAIT_SECONDS
    open_ones = _not_written_by_holder(repo, effects)
    reporting = {one.holder_session for one in open_ones if _has_hooks(repo, one.holder_session)}
    while time.monotonic() < give_up_at and any(one.holder_session in reporting for one in open_ones):
        _pause()
        open_ones = _not_written_by_holder(repo, open_ones)
    return open_ones


def _not_written_by_holder(repo: Repository, effects: Sequence[Effect]) -> list[Effect]:
    return [one for one in effects if not _is_holders_own(repo, one)]


def _has_hooks(repo: Repository, session: str) -> bool:
    """Return whether a coding client is bound to the session; its hooks record what it writes."""
    return bool(session) and repo.store.view(lambda snapshot: is_client_session(snapshot, session))


def _pause() -> None:
    time.sleep(_TICK_SECONDS)


def _is_holders_own(repo: Repository, effect: Effect) -> bool:
    path = remembered_as(effect)
    if not effect.holder_session or not path:
        return False
    seen = last_seen(repo, effect.holder_session, path)
    return seen is not None and seen[0] == look_at(effect.full_path)[0]


def with_suspects(
    repo: Repository, scene: Scene, effects: Sequence[Effect], command: str, since: int | None
) -> list[Effect]:
    """Mark each effect as certain or not, by the other commands that ran there at the same time.

    A command of the holder always raises doubt. Any other one does, unless this command names the file. When
    the start is unknown (`since` is None), nothing is certain.
    """
    if since is None:
        return [_doubted(one, ()) for one in effects]
    calls = _calls_beside(repo, scene, effects, since)
    found: list[Effect] = []
    for one in effects:
        is_named = names_file(command, one.path)
        doubtful = [
            call.agent for call in calls[one.root] if call.session == one.holder_session or not is_named
        ]
        found.append(_doubted(one, tuple(dict.fromkeys(doubtful))) if doubtful else one)
    return found


def surely_ours(
    repo: Repository, scene: Scene, effects: Sequence[Effect], command: str, since: int | None
) -> list[Effect]:
    """Return the effects of this call: it names the file, or no other session ran a command there."""
    calls = _calls_beside(repo, scene, effects, since) if since is not None else {}
    return [
        one for one in effects if names_file(command, one.path) or (since is not None and not calls[one.root])
    ]


def _calls_beside(
    repo: Repository, scene: Scene, effects: Sequence[Effect], since: int
) -> dict[str, list[ToolCall]]:
    """Return the calls of others in each of the checkouts since an instant."""
    return {
        root: [
            call
            for call in calls_during(repo, root, since)
            if call.session != scene.session.id and call.session not in scene.kin
        ]
        for root in {one.root for one in effects}
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


def _doubted(effect: Effect, suspects: tuple[str, ...]) -> Effect:
    return replace(effect, is_sure=False, suspects=suspects)

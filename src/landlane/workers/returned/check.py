"""Judging a change that a worker returned: its form, the role it was made in, and the claims of its task.

What counts is what the change makes of the tree, each path at both ends of a rename: not what a patch says.
"""

from __future__ import annotations

import unicodedata

from landlane.claims.check import find_covering
from landlane.claims.held import held_by
from landlane.claims.model import MOST_PATTERNS, Refused
from landlane.claims.take import make_request, take_in
from landlane.errors import Held, NotAllowed, PatternError
from landlane.git.trailers import Trailers
from landlane.git.tree_diff import files_below
from landlane.landing.target_rules import why_not_change
from landlane.patterns.pattern import areas_of, covers_alternative
from landlane.roles.enforce import refuse_paths
from landlane.roles.model import Scope
from landlane.rules.violations import CLAIM_CODES, CLAIM_FIRST, STAY_IN_ROLE, Watched
from landlane.tasks.rows import pattern_pairs
from landlane.text import printable
from landlane.values import replace, value
from landlane.workers.returned import apply as returned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.git.discovery import Checkout
    from landlane.git.tree_diff import TreeChange
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


_GUARD = "hand-in"
_CAUGHT = frozenset({"CHANGE_UNSAFE", "CHANGE_TOO_BIG"})
_MOST_PATHS = 10_000
_MOST_NAMED = 50


@value
class Returner:
    """Who returns a change, and what for."""

    repo: Repository
    session: Session
    task: Task
    role: Role


def watched(who: Returner, rule: str = STAY_IN_ROLE, codes: frozenset[str] = _CAUGHT) -> Watched:
    """Around what may be refused for its form, so that it is written down."""
    return Watched(repo=who.repo, session=who.session, rule=rule, guard=_GUARD, codes=codes)


def judge(who: Returner, bench: Checkout, tree: str, changes: Sequence[TreeChange]) -> Trailers:
    """Whose commit it will be, and under which grants.

    Raises:
        LandlaneError: it may not be one, as `handing_in.hand_in` says.
    """
    trailers = judge_unclaimed(who, bench, tree, changes)
    with watched(who, CLAIM_FIRST, CLAIM_CODES):
        claims = _check_claims(who, [change.path for change in changes])
    return replace(trailers, tokens=tuple(sorted({claim.token for claim in claims})))


def judge_unclaimed(who: Returner, bench: Checkout, tree: str, changes: Sequence[TreeChange]) -> Trailers:
    """Whose commit it will be, where claims have no say: nobody lands it as it is.

    Raises:
        NotAllowed: its form or the role forbids it.
    """
    with watched(who):
        _check_form(bench, tree, changes)
    _check_role(who, bench, tree, changes)
    return Trailers(agent=who.session.agent, session=who.session.id, task=who.task.id, tokens=())


def _check_form(bench: Checkout, tree: str, changes: Sequence[TreeChange]) -> None:
    """Refuse what nobody hands in: submodules, names that pose as others, and too much of anything."""
    if len(changes) > _MOST_PATHS:
        raise NotAllowed(
            f"the change touches {len(changes):,} paths; {_MOST_PATHS:,} are the most",
            code="CHANGE_TOO_BIG",
            hint="leave out what is built or downloaded, or split the task",
            paths=[],
        )
    gitlinks = [printable(change.path) for change in changes if change.is_submodule]
    if gitlinks:
        raise returned.unsafe(f"{gitlinks[0]} is another repository: submodules are not handed in", gitlinks)
    returned.check_sizes(bench, changes)
    new = {change.path for change in changes if change.is_addition}
    posing = _find_posing(files_below(bench, tree, ""), new) if new else {}
    if posing:
        path, other = next(iter(posing.items()))
        raise returned.unsafe(
            f"{printable(path)} and {printable(other)} are one name to some disks",
            [printable(one) for one in posing],
        )


def _find_posing(paths: Sequence[str], new: set[str]) -> dict[str, str]:
    """New paths that some disk would take for a file or folder that is there under another spelling."""
    known = _with_folders([path for path in paths if path not in new])
    spelled = {_folded(path): path for path in known}
    found: dict[str, str] = {}
    for path in sorted(new):
        for step in _with_folders([path]):
            other = spelled.setdefault(_folded(step), step)
            if other != step and step not in known:
                found[path] = other
    return found


def _with_folders(paths: Sequence[str]) -> dict[str, None]:
    """These paths and every folder above them, each once."""
    found: dict[str, None] = {}
    for path in paths:
        step = path
        while step and step not in found:
            found[step] = None
            step = step.rpartition("/")[0]
    return found


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", path.casefold())


def _check_role(who: Returner, bench: Checkout, tree: str, changes: Sequence[TreeChange]) -> None:
    """Refuse what the role may not write. One that writes nothing hands in anything but protected files."""
    role = who.role
    judged = replace(role, writes=("**",), may_change_protected=False) if role.is_read_only else role
    scope = Scope(judged, who.repo.settings)
    found = {printable(change.path): why_not_change(bench, scope, tree, change) for change in changes}
    refused = {path: reason for path, reason in found.items() if reason}
    if refused:
        refuse_paths(who.repo, who.session, role.name, refused, guard=_GUARD)


def _check_claims(who: Returner, paths: Sequence[str]) -> list[Claim]:
    """The live claims that cover the change. A task that declares no paths gets claims on what it changed."""
    repo, session, task = who.repo, who.session, who.task
    pattern_of = repo.git.pattern_of
    declared = [pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)]
    if not declared:
        _claim_rest(who, paths)
    held = repo.store.view(lambda snapshot: held_by(snapshot, session.id))
    live = [(claim.task, pattern_of(claim.pattern, claim.kind)) for same in held.values() for claim in same]
    own = [pattern for of, pattern in live if of in ("", task.id)]
    outside = [path for path in paths if not _is_inside(repo, path, declared + own)]
    others = [pattern for of, pattern in live if of not in ("", task.id)]
    foreign = [path for path in outside if _is_inside(repo, path, others)]
    if foreign:
        raise _outside(task, foreign)
    try:
        return find_covering(repo, session, paths)  # what is free passes; of all else it says what is wrong
    except NotAllowed as error:
        named = [*outside, str(error.facts.get("path", ""))]
        raise _outside(task, outside or named) from error


def _outside(task: Task, paths: Sequence[str]) -> NotAllowed:
    named = [printable(path) for path in paths[:_MOST_NAMED]]
    words = f"{named[0]} is" if len(paths) == 1 else f"{named[0]} and {len(paths) - 1} more are"
    return NotAllowed(
        f"{words} not among the paths of {task.id}",
        code="NOT_CLAIMED",
        hint="change only what the task names; what else is needed, another task must name",
        path=named[0],
        paths=named,
        task=task.id,
    )


def _is_inside(repo: Repository, path: str, allowed: Sequence[Pattern]) -> bool:
    try:
        (changed,) = repo.git.pattern_of(path, "literal").alternatives
    except PatternError:
        return False
    return any(covers_alternative(branch, changed) for pattern in allowed for branch in pattern.alternatives)


def _claim_rest(who: Returner, paths: Sequence[str]) -> None:
    """Take claims on paths that the session does not hold yet, in one step.

    Raises:
        Held: another session holds one.
        NotAllowed: they are too many for one step.
    """
    repo, session = who.repo, who.session
    missing: list[str] = []
    for path in paths:
        try:
            find_covering(repo, session, [path])
        except (NotAllowed, Held):
            missing.append(path)
    if not missing:
        return
    if len(missing) > MOST_PATTERNS:
        raise NotAllowed(
            f"{who.task.id} names no paths, and its change touches {len(missing):,}",
            code="NOT_CLAIMED",
            hint=f"let the task name the folders it may change; else {MOST_PATTERNS:,} paths are the most",
            paths=[printable(path) for path in missing[:_MOST_NAMED]],
        )
    patterns = tuple(repo.git.pattern_of(path, "literal") for path in missing)
    request = make_request(repo, patterns, ttl_ms=session.lease_ms, task=who.task.id)

    def work(tx: Transaction) -> None:
        outcome = take_in(tx, repo, session, request)
        if isinstance(outcome, Refused):
            first = outcome.refused[0]
            raise Held(
                f"{first.pattern} is held by {first.holder}",
                code="CLAIM_HELD",
                hint=first.hint,
                path=first.pattern,
                paths=[one.pattern for one in outcome.refused[:_MOST_NAMED]],
                holder=first.holder,
                until_at=first.until,
            )

    repo.change(work, areas=areas_of(patterns))

"""Check a change that a worker returned: its form, the worker's role, and the claims of the task.

The resulting tree is checked, with both paths of a rename, and not what a patch claims.
"""

from __future__ import annotations

import unicodedata

from landlane.claims.check import find_covering, needs_no_claim
from landlane.claims.held import held_by
from landlane.claims.model import MOST_PATTERNS, Refused
from landlane.claims.take import make_request, take_in
from landlane.errors import Held, NotAllowed, PatternError, Stale
from landlane.git.commits import Trailers
from landlane.git.tree_diff import files_below
from landlane.landing.target_rules import why_not_change
from landlane.patterns.pattern import areas_of
from landlane.roles.enforce import refuse_paths
from landlane.roles.model import Scope
from landlane.rules.violations import CLAIM_CODES, CLAIM_FIRST, STAY_IN_ROLE, Watched
from landlane.tasks.evidence import is_inside
from landlane.tasks.records import require_owner, task_patterns
from landlane.text import printable
from landlane.values import replace, value
from landlane.workers.returned.apply import check_sizes, unsafe_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.git.discovery import Checkout
    from landlane.git.tree_diff import TreeChange
    from landlane.patterns.pattern import Pattern
    from landlane.protocol.worker.messages import WorkComplete
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


_GUARD = "hand-in"
_VIOLATIONS = frozenset({"CHANGE_UNSAFE", "CHANGE_TOO_BIG"})
_MAX_PATHS = 10_000
_MAX_NAMED = 50


@value
class ReturnedWork:
    """What a worker returned: `base` is the commit it started from, `scratch` the folder with its files."""

    repo: Repository
    session: Session
    task: Task
    role: Role
    base: str
    message: WorkComplete
    scratch: str


def watch_violations(
    work: ReturnedWork, rule: str = STAY_IN_ROLE, codes: frozenset[str] = _VIOLATIONS
) -> Watched:
    """Return a context that records refusals with these codes as violations of a rule."""
    return Watched(repo=work.repo, session=work.session, rule=rule, guard=_GUARD, codes=codes)


def check_still_ours(work: ReturnedWork) -> None:
    """Refuse work on a task that the session has lost, or has in another attempt.

    Raises:
        Stale: it has.
    """
    task = work.task
    now = work.repo.change(lambda tx: require_owner(tx, work.session, task.id))
    if now.attempt != task.attempt:
        raise Stale(
            f"{task.id} is in its attempt {now.attempt} by now; this is attempt {task.attempt}",
            code="TASK_NOT_YOURS",
            hint="what was done stays in the branch of its own attempt",
            state=now.state,
        )


def check_change(
    work: ReturnedWork, checkout: Checkout, tree: str, changes: Sequence[TreeChange]
) -> Trailers:
    """Check form and role, and return the trailers of the commit, without claims.

    Raises:
        NotAllowed: the form or the role forbids the change.
    """
    with watch_violations(work):
        _check_form(checkout, tree, changes)
    _check_role(work, checkout, tree, changes)
    return Trailers(agent=work.session.agent, session=work.session.id, task=work.task.id, tokens=())


def check_claims(work: ReturnedWork, changes: Sequence[TreeChange]) -> list[Claim]:
    """Return the claims that cover the change.

    Raises:
        LandlaneError: a path is not claimed, or another session holds it.
    """
    with watch_violations(work, CLAIM_FIRST, CLAIM_CODES):
        return _find_claims(work, [change.path for change in changes])


def _check_form(checkout: Checkout, tree: str, changes: Sequence[TreeChange]) -> None:
    """Refuse submodules, paths that some file systems confuse with others, and too large changes."""
    if len(changes) > _MAX_PATHS:
        raise NotAllowed(
            f"the change touches {len(changes):,} paths; {_MAX_PATHS:,} are the most",
            code="CHANGE_TOO_BIG",
            hint="leave out what is built or downloaded, or split the task",
            paths=[],
        )
    gitlinks = [printable(change.path) for change in changes if change.is_submodule]
    if gitlinks:
        raise unsafe_change(f"{gitlinks[0]} is another repository: submodules are not handed in", gitlinks)
    check_sizes(checkout, changes)
    new = {change.path for change in changes if change.is_addition}
    confusable = _find_confusable(files_below(checkout, tree, ""), new) if new else {}
    if confusable:
        path, other = next(iter(confusable.items()))
        raise unsafe_change(
            f"{printable(path)} and {printable(other)} are one name to some disks",
            [printable(path) for path in confusable],
        )


def _find_confusable(paths: Sequence[str], new: set[str]) -> dict[str, str]:
    """Return new paths that differ from an existing one only in case or in Unicode normalization."""
    known = _with_folders([path for path in paths if path not in new])
    spelled = {_folded(path): path for path in known}
    confusable: dict[str, str] = {}
    for path in sorted(new):
        for step in _with_folders([path]):
            other = spelled.setdefault(_folded(step), step)
            if other != step and step not in known:
                confusable[path] = other
    return confusable


def _with_folders(paths: Sequence[str]) -> dict[str, None]:
    """Return the paths and all folders above them, each once."""
    result: dict[str, None] = {}
    for path in paths:
        step = path
        while step and step not in result:
            result[step] = None
            step = step.rpartition("/")[0]
    return result


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", path.casefold())


def _check_role(work: ReturnedWork, checkout: Checkout, tree: str, changes: Sequence[TreeChange]) -> None:
    scope = Scope(work.role, work.repo.settings)
    reasons = {printable(change.path): why_not_change(checkout, scope, tree, change) for change in changes}
    refused = {path: reason for path, reason in reasons.items() if reason}
    if refused:
        refuse_paths(work.repo, work.session, work.role.name, refused, guard=_GUARD)


def scope_of_output(work: ReturnedWork) -> Scope:
    """Return what the role may leave as output, which is not committed: all but protected files."""
    role = work.role
    if role.is_read_only:
        role = replace(role, writes=("**",), may_change_protected=False)
    return Scope(role, work.repo.settings)


def claim_changed(work: ReturnedWork, changes: Sequence[TreeChange]) -> None:
    """Claim what a worker committed for a task that names no paths; landing needs the claims.

    Raises:
        Held: another session holds one of the paths.
        NotAllowed: there are too many.
    """
    if not task_patterns(work.repo, work.task):
        _claim_rest(work, [printable(change.path) for change in changes])


def _find_claims(work: ReturnedWork, paths: Sequence[str]) -> list[Claim]:
    """Return the claims that cover the change. A task without paths gets claims on the paths it changed."""
    repo, session, task = work.repo, work.session, work.task
    pattern_of = repo.git.pattern_of
    declared = task_patterns(repo, task)
    if not declared:
        _claim_rest(work, paths)
    held = repo.store.view(lambda snapshot: held_by(snapshot, session.id))
    claims = [claim for same in held.values() for claim in same]
    own = [claim for claim in claims if claim.task in ("", task.id)]
    allowed = [*declared, *(pattern_of(claim.pattern, claim.kind) for claim in own)]
    outside = [path for path in paths if not _is_inside(repo, path, allowed)]
    others = [pattern_of(claim.pattern, claim.kind) for claim in claims if claim not in own]
    foreign = [path for path in outside if _is_inside(repo, path, others)]
    if declared and repo.settings.claims.required:
        # What needs no claim is free for others; a worker stays on the paths of its task.
        foreign += [path for path in outside if needs_no_claim(repo, repo.settings.claims, path)]
    if foreign or (declared and outside):
        raise _outside(task, foreign or outside)
    try:
        return find_covering(repo, session, paths)  # raises for each path that is neither free nor claimed
    except NotAllowed as error:
        named = [*outside, str(error.facts.get("path", ""))]
        raise _outside(task, outside or named) from error


def _outside(task: Task, paths: Sequence[str]) -> NotAllowed:
    named = [printable(path) for path in paths[:_MAX_NAMED]]
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
        return is_inside(repo, path, allowed)
    except PatternError:
        return False


def _claim_rest(work: ReturnedWork, paths: Sequence[str]) -> None:
    """Claim the paths that the session does not hold yet, all or nothing.

    Raises:
        Held: another session holds one.
        NotAllowed: there are too many.
    """
    repo, session = work.repo, work.session
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
            f"{work.task.id} names no paths, and its change touches {len(missing):,}",
            code="NOT_CLAIMED",
            hint=f"let the task name the folders it may change; else {MOST_PATTERNS:,} paths are the most",
            paths=[printable(path) for path in missing[:_MAX_NAMED]],
        )
    patterns = tuple(repo.git.pattern_of(path, "literal") for path in missing)
    request = make_request(repo, patterns, ttl_ms=session.lease_ms, task=work.task.id)

    def claim(tx: Transaction) -> None:
        outcome = take_in(tx, repo, session, request)
        if isinstance(outcome, Refused):
            first = outcome.refused[0]
            raise Held(
                f"{first.pattern} is held by {first.holder}",
                code="CLAIM_HELD",
                hint=first.hint,
                path=first.pattern,
                paths=[refused.pattern for refused in outcome.refused[:_MAX_NAMED]],
                holder=first.holder,
                until_at=first.until,
            )

    repo.change(claim, areas=areas_of(patterns))

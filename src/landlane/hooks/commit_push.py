"""Checks of the git hooks: the paths of a commit, and whose work a push or a branch move affects.

The hooks identify the calling session as the commands do. Every refusal is recorded in the journal; a person
may override one with a reason, which is recorded as well.
"""

from __future__ import annotations

import os
import shlex

from landlane.claims.check import PathState, check, find_lapsed, pattern_of
from landlane.claims.describe import describe_holder
from landlane.claims.model import ClaimMode
from landlane.claims.not_held import holder_facts, lease_error
from landlane.errors import Held, LandlaneError, NotAllowed, StoreError
from landlane.git.run import run_in
from landlane.git.target import commits_at
from landlane.protocol.hook_events import HookPolicy
from landlane.rules.violations import CLAIM_FIRST, record_violation
from landlane.sessions.client_sessions import list_subagents
from landlane.text import list_some, path_text
from landlane.values import value
from landlane.workspaces.other_sessions import others_anywhere
from landlane.workspaces.records import list_open
from landlane.workspaces.target_guard import bypasses_queue_error, check_branch, guarded_target
from landlane.workspaces.unauthorized_writes import list_breaches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.target import TargetBranch
    from landlane.repository import Repository
    from landlane.sessions.model import Session


GUARD = "git hook"
NOT_OTHERS_WORK = "leave the work of others alone"
_HEADS = "refs/heads/"
_ROLE_FORBIDS = "ROLE_FORBIDS"
_MOST_NAMED = 5
_MOST_KEPT = 50


@value
class GitCaller:
    """The caller of git: a session, or a person without one. `why_no_person` is empty for a person."""

    session: Session | None
    name: str
    why_no_person: str = ""


@value
class BranchUpdate:
    """A branch, here or at a remote, that is about to be created, moved or deleted."""

    ref: str
    new: str
    is_new: bool = False  # known for a push only
    is_forced: bool = False  # a push that would lose commits of the remote branch

    @property
    def is_deletion(self) -> bool:
        """Whether the branch is deleted."""
        return not self.new.strip("0")

    @property
    def branch(self) -> str:
        """The branch name without `refs/heads/`."""
        return self.ref.removeprefix(_HEADS)


def judge_commit(repo: Repository, caller: GitCaller, paths: Sequence[str], branch: str) -> None:
    """Refuse a commit of paths that others hold, that need a claim, or that the caller's role forbids.

    Raises:
        Held: another session holds one of the paths.
        Stale: the caller's claim on one has ended, and another session has it now.
        NotAllowed: a claim is missing, the role forbids it, or the branch only moves through the queue.
    """
    session = caller.session
    _check_role(repo, session, paths)
    if session is not None and list_breaches(repo):
        from landlane.workspaces.fix_unauthorized_writes import refuse_breached  # noqa: PLC0415 - rarely needed

        refuse_breached(repo, session, paths, repo.checkout.root)
    # A person who is alone in the repository needs no claims.
    if caller.why_no_person or others_anywhere(repo, session):
        _judge_paths(repo, caller, paths)
    check_branch(repo, branch)


def _check_role(repo: Repository, session: Session | None, paths: Sequence[str] = ()) -> None:
    if session is None or not session.role:
        return
    from landlane.roles.enforce import check_paths, check_verb  # noqa: PLC0415 - few sessions have a role

    check_verb(repo, session, "commit", guard=GUARD)
    check_paths(repo, session, paths, guard=GUARD)


def _judge_paths(repo: Repository, caller: GitCaller, paths: Sequence[str]) -> None:
    session, name = caller.session, caller.name
    children: set[str] = set()  # the caller's subagents: it may commit their work
    if session is not None:
        children = {
            child.id for child in repo.store.view(lambda snapshot: list_subagents(snapshot, session.id))
        }
    foreign: list[str] = []
    first = None
    missing: list[str] = []
    is_strict = repo.settings.hooks.policy == HookPolicy.STRICT
    for path in paths:
        path_check = check(repo, session, pattern_of(repo, path))
        claim = path_check.claim
        if path_check.state == PathState.OTHER and claim is not None and claim.mode != ClaimMode.SHARED:
            if claim.session not in children:
                foreign.append(path)
                first = first or claim
        elif path_check.state == PathState.REQUIRED or (
            path_check.state == PathState.UNCLAIMED and is_strict
        ):
            missing.append(path)
    if first is not None:
        facts = {"path": foreign[0], "paths": foreign[:_MOST_KEPT], **holder_facts(first)}
        lost = find_lapsed(repo, name, pattern_of(repo, foreign[0]))
        if lost is not None:
            raise lease_error(lost, repo.store.view(lambda snapshot: snapshot.now), first, facts)
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        you = f", and you are {name}" if name else ""
        raise Held(
            describe_holder(repo, foreign[0], first) + you + more,
            code="CLAIM_HELD",
            hint=f"leave it out of the commit: git restore --staged {shlex.join(foreign[:_MOST_NAMED])}",
            **facts,
        )
    if missing:
        raise NotAllowed(
            f"{list_some(missing, _MOST_NAMED)} {_is(missing)} not claimed, and this repository requires "
            "a claim before every change",
            code="NOT_CLAIMED",
            hint=f"claim it, or leave it out of the commit: landlane claim {shlex.quote(':/' + missing[0])}",
            path=missing[0],
            paths=missing[:_MOST_KEPT],
        )


def judge_moves(
    repo: Repository, caller: GitCaller, moves: Sequence[BranchUpdate], *, is_packing: bool
) -> None:
    """Refuse moves that bypass the landing queue or discard the work of others.

    Git also calls the hook when it packs refs, which removes the loose file of an unchanged branch: with
    `is_packing`, a deletion is ignored when packed-refs holds the same commit.

    Raises:
        NotAllowed: the caller may not make one of the moves.
    """
    now = commits_at(repo.home, [move.ref for move in moves])
    real = [move for move in moves if _is_real(repo, move, now.get(move.ref, ""), is_packing=is_packing)]
    target = guarded_target(repo) if real else None
    for move in real:
        was = now[move.ref]
        if target is not None and move.ref == target.ref and not _has_landed(repo, target, was, move):
            raise bypasses_queue_error(target)
        if move.is_deletion or not _contains(repo, move.new, was):
            _check_not_in_use(repo, caller, move.branch, "delete" if move.is_deletion else "rewind")


def _is_real(repo: Repository, move: BranchUpdate, was: str, *, is_packing: bool) -> bool:
    if not was or was == move.new:
        return False
    if not move.is_deletion:
        return True
    if is_packing or not os.path.exists(os.path.join(repo.common_dir, "packed-refs.lock")):
        # A real deletion of a packed branch holds the lock on packed-refs at this moment.
        return _packed_value(repo.common_dir, move.ref) != was
    return True


def _packed_value(common_dir: str, ref: str) -> str:
    try:
        with open(
            os.path.join(common_dir, "packed-refs"), encoding="utf-8", errors="surrogateescape"
        ) as file:
            for line in file:
                if line.endswith(f" {ref}\n"):
                    return line.partition(" ")[0]
    except OSError:
        return ""
    return ""


def _has_landed(repo: Repository, target: TargetBranch, was: str, move: BranchUpdate) -> bool:
    """Return whether the local branch only follows what has landed at the remote."""
    if not target.remote or move.is_deletion:
        return False
    landed = commits_at(repo.home, [target.remote_ref]).get(target.remote_ref, "")
    return bool(landed) and _contains(repo, move.new, was) and _contains(repo, landed, move.new)


def _contains(repo: Repository, commit: str, older: str) -> bool:
    """Return whether a commit contains an older one; this also works for commits still being received."""
    return not run_in(repo.home, "merge-base", "--is-ancestor", older, commit).exit_code


def _check_not_in_use(repo: Repository, caller: GitCaller, branch: str, verb: str) -> None:
    """Refuse to delete or rewind a branch that another session or checkout uses."""
    for workspace in list_open(repo):
        if workspace.branch == branch:
            if caller.session is not None and workspace.is_owned_by(caller.session):
                return
            raise _in_use(
                f"{branch} is the branch of {workspace.agent}'s workspace for task {workspace.task}",
                branch,
                verb,
            )
    from landlane.git.remove_checkout import list_worktrees  # noqa: PLC0415 - rarely needed

    for git_dir, root in [(repo.common_dir, repo.home.root), *list_worktrees(repo.home)]:
        if os.path.realpath(root) != os.path.realpath(repo.checkout.root) and head_of(git_dir) == branch:
            raise _in_use(f"{branch} is checked out at {root}", branch, verb)


def head_of(git_dir: str) -> str:
    """Return the branch in a checkout's HEAD file, or an empty string when HEAD is detached."""
    try:
        with open(os.path.join(git_dir, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
            line = file.readline().rstrip("\n")
    except OSError:
        return ""
    branch = line.removeprefix(f"ref: {_HEADS}")
    return branch if branch != line else ""


def _in_use(what: str, branch: str, verb: str) -> NotAllowed:
    return NotAllowed(
        f"{what}: it is not yours to {verb}",
        code="BRANCH_OF_ANOTHER",
        hint="leave the branch to its owner; see who uses it: landlane workspace list",
        branch=branch,
        rule=NOT_OTHERS_WORK,
    )


def judge_push(repo: Repository, caller: GitCaller, remote: str, pushed: Sequence[BranchUpdate]) -> None:
    """Refuse pushes that bypass the landing queue or discard the work of others.

    Raises:
        NotAllowed: the caller may not push one of the branches.
    """
    _check_role(repo, caller.session)
    target = guarded_target(repo)
    for push in pushed:
        if push.is_new:
            continue
        if target is not None and push.ref == target.ref and _is_remote_of(repo, target, remote):
            raise bypasses_queue_error(target)
        if push.ref.startswith(_HEADS) and (push.is_deletion or push.is_forced):
            _check_not_in_use(repo, caller, push.branch, "delete" if push.is_deletion else "overwrite")


def _is_remote_of(repo: Repository, target: TargetBranch, remote: str) -> bool:
    return remote == target.remote or (bool(repo.checkout.home) and remote == "home")


def override(repo: Repository, caller: GitCaller, reason: str, hook: str, error: LandlaneError) -> None:
    """Let a person override a refusal, and record who did and why.

    Raises:
        NotAllowed: the caller is not a person.
    """
    if caller.why_no_person:
        raise NotAllowed(
            f"{error.message}; only a person can override that: {caller.why_no_person}",
            code="OVERRIDE_REFUSED",
            hint="ask the person at the terminal, or do what the refusal says",
            **{key: fact for key, fact in error.facts.items() if key in ("path", "paths", "branch", "rule")},
        ) from error
    session = caller.session
    entry: dict[str, object] = {
        "reason": path_text(reason)[:500],
        "by": caller.name,
        "guard": GUARD,
        "hook": hook,
        "what": path_text(f"{error.code}: {error.message}")[:200],
    }
    if paths := _refused_paths(error):
        entry["paths"] = [path_text(path) for path in paths]
    if error.facts.get("branch"):
        entry["branch"] = path_text(str(error.facts["branch"]))
    actor = (session.agent, session.id) if session is not None else (caller.name, "")
    repo.change(lambda tx: tx.record("guard.overridden", *actor, entry))


def note_refusal(repo: Repository, session: Session | None, error: LandlaneError) -> None:
    """Record a refusal in the journal; a store failure does not lift the refusal."""
    if error.code == _ROLE_FORBIDS:
        return  # already recorded by the role check
    rule = str(error.facts.get("rule") or CLAIM_FIRST)
    what = path_text(f"{error.code}: {error.message}")
    paths = tuple(path_text(path) for path in _refused_paths(error))
    try:
        record_violation(repo, session, rule=rule, guard=GUARD, what=what, paths=paths)
    except StoreError:
        return


def _refused_paths(error: LandlaneError) -> list[str]:
    paths = error.facts.get("paths") or [error.facts.get("path") or ""]
    return [str(path) for path in paths if path][:_MOST_KEPT]


def _is(paths: Sequence[str]) -> str:
    return "is" if len(paths) == 1 else "are"

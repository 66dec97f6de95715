"""Commit chosen paths: under one lock, only what the session's live claims cover, and with trailers.

Everything is checked while the lock is held, right before git commits, so exactly what was checked is
committed, whatever others add or stage meanwhile. Hooks may run for longer than a lease: the transaction that
writes the journal entry checks the tokens of the claims again, and the commit is undone if one has ended. A
crash between git's commit and the journal entry loses nothing: the trailers name the author.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex

from landlane.claims.check import find_covering
from landlane.claims.held import require_tokens
from landlane.errors import LandlaneError, Malformed, RepositoryError, Stale, StoreError
from landlane.files import is_at_or_below
from landlane.git import commit_paths as git
from landlane.git.commits import Trailers, find_forged_trailer, with_trailers
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.hooks.hooks_path import load_installed_hooks
from landlane.git.lock import git_lock, lock_environment, wait_for_index, wait_for_locks
from landlane.git.tree_diff import TreeChange, diff_trees
from landlane.roles.enforce import check_paths, check_verb
from landlane.rules.violations import CLAIM_CODES, CLAIM_FIRST, Watched
from landlane.sessions.leases import renew_session
from landlane.text import check_label, list_some, path_text
from landlane.values import replace, value
from landlane.workspaces.detect_reverts import find_reverted_changes
from landlane.workspaces.fix_unauthorized_writes import refuse_breached
from landlane.workspaces.target_guard import GUARD_CODES, LAND_FIRST, check_branch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.git.commit_paths import MadeCommit, PrivateIndex, WorktreeStatus
    from landlane.git.run import GitResult
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction


_ATTEMPTS = 5
_INDEX_ATTEMPTS = 50  # another git process may lock it first each time
_TAIL = 2000  # characters of the output of hooks
_HOOK_REFUSED = 1  # git's exit code then; for errors of its own it is 128
_MOST_NAMED = 50  # paths in an answer, an error or a journal entry
_FEW_NAMED = 3  # paths in a message
_WORK_BRANCH = re.compile(r"landlane/(.+)-\d+/work")


@value
class CommitRequest:
    """What to commit: paths relative to the root, and the message."""

    paths: tuple[str, ...]
    message: str
    task: str = ""
    may_undo: bool = False


@value
class CommitResult:
    """A commit that was made. `left_alone` counts the staged changes of others, which stay staged."""

    commit: str
    branch: str
    subject: str
    paths: tuple[str, ...]
    trailers: Trailers
    changed_by_hooks: tuple[str, ...] = ()
    left_alone: int = 0


@value
class _Plan:
    """Changes that were checked and may be committed."""

    status: WorktreeStatus
    changes: tuple[TreeChange, ...]
    left_alone: int
    trailers: Trailers
    claims: tuple[Claim, ...]  # that cover the changes


def make_commit_request(
    repo: Repository, paths: Sequence[str], cwd: str, *, message: str, task: str = "", may_undo: bool = False
) -> CommitRequest:
    """Return a valid request for paths as typed in the folder `cwd`.

    Raises:
        Malformed: there is no message, it has trailers that only Landlane writes, or a path is outside.
    """
    if not message.strip():
        raise Malformed(
            "there is no message", code="NO_MESSAGE", hint="landlane commit -m 'What and why' PATH"
        )
    if forged := find_forged_trailer(message):
        raise Malformed(
            f"the message says {forged.strip()[:80]!r}, which is only for landlane to say",
            code="MESSAGE_POSES",
            hint="leave these lines out: they are added with what is provably so",
        )
    if task:
        check_label(task, "task")
    inside = tuple(dict.fromkeys(git.resolve_path(text, repo.checkout, cwd) for text in paths))
    return CommitRequest(paths=inside, message=message, task=task, may_undo=may_undo)


def commit(repo: Repository, session: Session, request: CommitRequest) -> CommitResult:
    """Commit only these paths.

    Raises:
        NotAllowed: a changed path is not claimed, or the session's role may not change it.
        Held: another session holds one.
        Stale: a lease has ended, or the commit would undo changes that landed in the meantime.
        LandlaneError: there is nothing to commit, or a hook refused it.
    """
    check_verb(repo, session, "commit", guard="commit")
    with git_lock(repo.common_dir, f"commit by {session.agent}", on_wait=repo.report):
        if verb := git.operation_under_way(repo.checkout):
            raise RepositoryError(
                f"a {verb} is under way in this checkout, which no commit of single paths can go into",
                code="OPERATION_IN_PROGRESS",
                hint=f"finish it with `git {verb} --continue`, or end it with `git {verb} --abort`",
            )
        wait_for_locks(repo.checkout)
        git.finish_killed_commits(repo.checkout)
        for _ in range(_ATTEMPTS):
            made = _try_once(repo, session, request)
            if made is not None:
                break
        else:
            raise Stale(
                "HEAD moved again and again while this was being committed",
                code="HEAD_MOVED",
                hint="others commit here without landlane; try again",
            )
    _fetch_from_clone(repo, made)
    return made


def _try_once(repo: Repository, session: Session, request: CommitRequest) -> CommitResult | None:
    """Make one attempt; return None when HEAD moved in the middle of it."""
    with git.PrivateIndex(repo.checkout) as index:  # kept until the real index is updated, for recovery
        plan = _plan(repo, session, request, index)
        hooks = git.list_commit_hooks(repo.checkout)
        before = git.stamp_changed_files(repo.checkout) if hooks else {}
        renew_session(repo.store, session)  # hooks may take long, and give no sign of life
        message = with_trailers(request.message, plan.trailers)
        result = git.make_commit(repo.checkout, index, message, lock_environment(repo.common_dir))
        made = None if result.exit_code else git.find_made_commit(repo.checkout, session.id, plan.status.head)
        accepted = _accept(repo, session, request, plan, made) if made is not None else None
    with contextlib.suppress(Stale, StoreError):
        renew_session(repo.store, session)
    touched = _changed_by_hooks(repo, before, plan) if hooks else []
    if result.exit_code and git.read_head(repo.checkout) == plan.status.head:
        raise _not_committed(result, hooks, touched)
    if accepted is None:
        return None
    return replace(accepted, changed_by_hooks=tuple(path for path in touched if path not in accepted.paths))


def _plan(repo: Repository, session: Session, request: CommitRequest, index: PrivateIndex) -> _Plan:
    """Check what would be committed; raises as `commit` does."""
    status = git.read_status(repo.checkout, request.paths)
    _check_paths_exist(repo, request, status)
    if load_installed_hooks(repo.common_dir) is not None:  # the git hooks let Landlane's own git pass
        with Watched(repo=repo, session=session, rule=LAND_FIRST, guard="commit", codes=GUARD_CODES):
            check_branch(repo, status.branch)
    changes, others = index.fill(status)
    if not changes:
        raise LandlaneError(
            f"nothing has changed at {list_some(request.paths, _FEW_NAMED)}",
            code="NOTHING_TO_COMMIT",
            hint="`git status` shows what has; what was committed already needs no second commit",
        )
    paths = [change.path for change in changes]
    check_paths(repo, session, paths, guard="commit")
    refuse_breached(repo, session, paths, repo.checkout.root)
    with Watched(repo=repo, session=session, rule=CLAIM_FIRST, guard="commit", codes=CLAIM_CODES):
        claims = find_covering(repo, session, paths)
    if not request.may_undo:
        _refuse_reverts(repo, session, status, changes)
    _warn_of_staged_reverts(repo, session, status, others)
    work = _WORK_BRANCH.fullmatch(status.branch)
    task = request.task or (work[1] if work else "") or next((one.task for one in claims if one.task), "")
    tokens = tuple(sorted({claim.token for claim in claims}))
    trailers = Trailers(agent=session.agent, session=session.id, task=task, tokens=tokens)
    return _Plan(
        status=status,
        changes=tuple(changes),
        left_alone=len(others),
        trailers=trailers,
        claims=tuple(claims),
    )


def _check_paths_exist(repo: Repository, request: CommitRequest, status: WorktreeStatus) -> None:
    """Refuse a path that does not exist and is not tracked, and one that git ignores."""
    unchanged = [path for path in request.paths if path != "." and not _contains(path, status.paths)]
    if not unchanged:
        return
    tracked = tuple(git.list_tracked(repo.checkout, unchanged))
    for path in unchanged:
        if _contains(path, tracked):
            continue
        full = os.path.join(repo.checkout.root, path)
        if not os.path.lexists(full):
            raise Malformed(
                f"there is no {path}, and git knows of none",
                code="NO_SUCH_PATH",
                hint="check the spelling; of what was renamed, name both the old and the new path",
            )
        if os.path.islink(full) or not os.path.isdir(full):
            raise Malformed(
                f"git ignores {path}",
                code="PATH_IGNORED",
                hint=f"if it belongs under git: git add --force {shlex.quote(path)}, then commit it",
            )


def _contains(folder: str, paths: Sequence[str]) -> bool:
    return any(is_at_or_below(path, folder) for path in paths)


def _refuse_reverts(
    repo: Repository, session: Session, status: WorktreeStatus, changes: Sequence[TreeChange]
) -> None:
    undone = find_reverted_changes(repo.checkout, status.head, changes, session.id)
    if not undone:
        return
    first = undone[0]
    more = f", and {len(undone) - 1} more" if len(undone) > 1 else ""
    landed = f"{first.commits[0][:12]} by {first.author}: {first.subject}"
    raise Stale(
        f"{first.path} would be as it was before {landed}{more}",
        code="WOULD_REVERT",
        hint=(
            "an old copy was probably put on a new base: see `git diff HEAD -- PATH`, take what landed with "
            "`git checkout HEAD -- PATH` and do your change again; if undoing is what you want, say --revert"
        ),
        undone=[
            {"path": one.path, "commits": list(one.commits[:_MOST_NAMED]), "subject": one.subject}
            for one in undone[:_MOST_NAMED]
        ],
    )


def _warn_of_staged_reverts(
    repo: Repository, session: Session, status: WorktreeStatus, others: Sequence[TreeChange]
) -> None:
    """Report staged changes of other paths that would undo what landed if they were committed."""
    undone = find_reverted_changes(repo.checkout, status.head, others, session.id) if others else []
    if undone:
        names = list_some([one.path for one in undone], _FEW_NAMED)
        repo.report(f"left alone: what is staged of {names} would undo what landed; see `git diff --cached`")


def _accept(
    repo: Repository, session: Session, request: CommitRequest, plan: _Plan, made: MadeCommit
) -> CommitResult | None:
    """Check the commit that git made and update the index; undo a commit of more than was checked.

    It is undone as well if a claim has ended since, or if the store cannot tell.
    """
    if made.parent != plan.status.head:
        # Another commit was made after the check, and this tree does not contain it.
        if git.undo_commit(repo.checkout, made):
            return None
        raise _cannot_undo(made)
    committed = diff_trees(repo.checkout, made.parent, made.id)
    accepted = CommitResult(
        commit=made.id,
        branch=plan.status.branch,
        subject=request.message.strip().split("\n")[0],
        paths=tuple(one.path for one in committed),
        trailers=made.trailers,
        left_alone=plan.left_alone,
    )
    try:
        if made.trailers != plan.trailers:
            raise _trailers_changed()
        checked = {change.path for change in plan.changes}
        added = _claims_of_added(repo, session, request, [p for p in accepted.paths if p not in checked])
        record_commit(repo, session, accepted, (*plan.claims, *added))
    except LandlaneError as error:
        if not git.undo_commit(repo.checkout, made):
            raise _cannot_undo(made, error) from error
        raise
    _update_index(repo, committed)
    return accepted


def _claims_of_added(
    repo: Repository, session: Session, request: CommitRequest, added: Sequence[str]
) -> list[Claim]:
    """Return the claims on paths that a hook added: the request must name each of them or its folder.

    Raises:
        LandlaneError: one of them is not claimed, or was not named.
    """
    claims: list[Claim] = []
    foreign: list[str] = []
    for path in added:
        try:
            if not any(folder == "." or is_at_or_below(path, folder) for folder in request.paths):
                raise _paths_added([path])
            check_paths(repo, session, [path], guard="commit")
            claims += find_covering(repo, session, [path])
        except LandlaneError:
            foreign.append(path)
    if foreign:
        raise _paths_added(foreign)
    return claims


def _update_index(repo: Repository, committed: Sequence[TreeChange]) -> None:
    """Update the real index. The commit stands in any case, so a failure is only reported."""
    trouble = ""
    for _ in range(_INDEX_ATTEMPTS):
        try:
            wait_for_index(repo.checkout)
        except RepositoryError as error:
            trouble = error.message
            break
        trouble = git.update_index(repo.checkout, committed)
        if not trouble:
            return
    repo.report(f"committed, but the index did not follow ({trouble}); fix it: git reset --quiet -- PATH…")


def _changed_by_hooks(repo: Repository, before: dict[str, tuple[int, ...]], plan: _Plan) -> list[str]:
    """Return the paths outside of the commit that changed on disk or in the index while the hooks ran."""
    after = git.stamp_changed_files(repo.checkout)
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return sorted(paths - {change.path for change in plan.changes})


def _not_committed(result: GitResult, hooks: list[str], touched: list[str]) -> LandlaneError:
    output = result.stdout
    last = output.splitlines()[-1][:200] if output else "without a word"
    facts: dict[str, object] = {"output": output[-_TAIL:], "changed_by_hooks": touched[:_MOST_NAMED]}
    if hooks and result.exit_code == _HOOK_REFUSED:
        return LandlaneError(
            f"a commit hook ({', '.join(hooks)}) refused it: {last}",
            code="HOOK_REFUSED",
            hint="fix what it complains about and commit again; nothing was committed",
            **facts,
        )
    lacks_identity = "tell me who you are" in output or "was given and auto-detection is disabled" in output
    identity = 'git config user.name "…" and git config user.email "…"'
    hint = identity if lacks_identity else "nothing was committed"
    return RepositoryError(f"git did not commit: {last}", code="COMMIT_FAILED", hint=hint, **facts)


def _paths_added(paths: list[str]) -> LandlaneError:
    named = list_some(paths, _FEW_NAMED)
    return LandlaneError(
        f"a commit hook added {named}, which was not to be committed; the commit was taken back",
        code="HOOK_ADDED_PATHS",
        hint="claim and name these paths too, or let the hook change files without adding them",
        paths=paths[:_MOST_NAMED],
    )


def _trailers_changed() -> LandlaneError:
    return LandlaneError(
        "a commit hook changed the trailers that tell whose commit it is; the commit was taken back",
        code="HOOK_CHANGED_TRAILERS",
        hint="let the hook keep the lines that begin with Landlane-, each as it is",
    )


def _cannot_undo(made: MadeCommit, error: LandlaneError | None = None) -> Stale:
    reason = error.message if error is not None else f"commit {made.id[:12]} was made on another base"
    return Stale(
        f"{reason}; commit {made.id[:12]} cannot be undone, because another commit follows it",
        code="HEAD_MOVED",
        hint=f"look at it: git show {made.id[:12]}",
        commit=made.id,
    )


def _fetch_from_clone(repo: Repository, made: CommitResult) -> None:
    """Fetch a commit on a task branch of a clone into the repository, so that it outlives the clone."""
    if not repo.checkout.home or not _WORK_BRANCH.fullmatch(made.branch):
        return
    try:
        fetch_clone_branch(repo.home, repo.checkout.root, made.branch)
    except LandlaneError as error:
        repo.report(f"committed here, but not yet in the repository this is a clone of: {error.message}")


def record_commit(repo: Repository, session: Session, made: CommitResult, claims: Sequence[Claim]) -> None:
    """Write the journal entry of a commit whose claims still hold.

    Raises:
        Stale: one of the claims has ended since they were checked.
    """
    facts = {
        "commit": made.commit,
        "branch": path_text(made.branch),
        "paths": [path_text(path) for path in made.paths[:_MOST_NAMED]],
        "path_count": len(made.paths),
        "task": made.trailers.task,
        "tokens": list(made.trailers.tokens),
    }

    def work(tx: Transaction) -> None:
        require_tokens(tx, repo, session, claims)
        tx.record("commit.made", session.agent, session.id, facts)

    repo.change(work)

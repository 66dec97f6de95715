"""Commits of chosen paths: under one lock, only what the caller's live claims cover, and with trailers.

Everything is judged while the lock is held, right before git commits: what is committed is exactly what was
judged, whatever others add or stage meanwhile. A crash between git's commit and the journal's entry loses
nothing: who made a commit is read from its trailers, the entry only tells when.
"""

from __future__ import annotations

import os
import re
import shlex

from landlane.claims.check import find_covering
from landlane.errors import (
    LandlaneError,
    Malformed,
    RepositoryError,
    Stale,
    StoreError,
)
from landlane.git import commit_paths as git
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.hooks.former_hooks import load_installed_hooks
from landlane.git.lock import git_lock, lock_environment
from landlane.git.stale_locks import wait_for_index, wait_for_locks
from landlane.git.trailers import Trailers, find_forged_trailer, with_trailers
from landlane.git.tree_diff import TreeChange, diff_trees
from landlane.roles.enforce import check_paths, check_verb
from landlane.rules.violations import CLAIM_CODES, CLAIM_FIRST, Watched
from landlane.sessions.leases import renew_session
from landlane.text import check_label
from landlane.values import value
from landlane.workspaces.detect_reverts import find_reverted_changes
from landlane.workspaces.fix_unauthorized_writes import refuse_breached
from landlane.workspaces.target_guard import GUARD_CODES, LAND_FIRST, check_branch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.commit_paths import MadeCommit, PrivateIndex, WorktreeStatus
    from landlane.git.run import GitResult
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_ATTEMPTS = 5
_INDEX_ATTEMPTS = 50  # others' git may be quicker to lock it each time
_TAIL = 2000  # characters of what hooks said
_HOOK_SAID_NO = 1  # as git ends then; with what is its own trouble it ends with 128
_MOST_NAMED = 50  # paths in an answer, an error or an entry
_WORK_BRANCH = re.compile(r"landlane/(.+)-\d+/work")


@value
class CommitRequest:
    """What is to be committed: paths from the root, and what to say about them."""

    paths: tuple[str, ...]
    message: str
    task: str = ""
    may_undo: bool = False


@value
class Made:
    """A commit that was made. `left_alone` counts what others have staged and still have."""

    commit: str
    branch: str
    subject: str
    paths: tuple[str, ...]
    trailers: Trailers
    changed_by_hooks: tuple[str, ...] = ()
    left_alone: int = 0


@value
class _Plan:
    """What was judged, ready to be committed."""

    sight: WorktreeStatus
    changes: tuple[TreeChange, ...]
    left_alone: int
    trailers: Trailers


def make_commit_request(
    repo: Repository, paths: Sequence[str], cwd: str, *, message: str, task: str = "", may_undo: bool = False
) -> CommitRequest:
    """A request that makes sense, with its paths as typed in a folder.

    Raises:
        Malformed: there is no message, or it bears trailers that only we write; a path leads out of here.
    """
    if not message.strip():
        raise Malformed(
            "there is no message", code="NO_MESSAGE", hint="landlane commit -m 'What and why' PATH"
        )
    if posing := find_forged_trailer(message):
        raise Malformed(
            f"the message says {posing.strip()[:80]!r}, which is only for landlane to say",
            code="MESSAGE_POSES",
            hint="leave these lines out: they are added with what is provably so",
        )
    if task:
        check_label(task, "task")
    inside = tuple(dict.fromkeys(git.resolve_path(text, repo.checkout, cwd) for text in paths))
    return CommitRequest(paths=inside, message=message, task=task, may_undo=may_undo)


def commit(repo: Repository, session: Session, request: CommitRequest) -> Made:
    """Commit only these paths, or say why not.

    Raises:
        NotAllowed: a changed path is not claimed, or the session's role may not change it.
        Held: another session holds one.
        Stale: a lease is over, or the commit would undo what landed meanwhile.
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
    record_commit(repo, session, made)
    _bring_home(repo, made)
    return made


def _try_once(repo: Repository, session: Session, request: CommitRequest) -> Made | None:
    """One attempt; nothing when HEAD moved in the middle of it."""
    with git.PrivateIndex(repo.checkout) as index:  # until the real one has followed: it tells where we were
        plan = _plan(repo, session, request, index)
        hooks = git.list_commit_hooks(repo.checkout)
        before = git.stamp_changed_files(repo.checkout) if hooks else {}
        renew_session(repo.store, session)  # hooks may take long, and nobody can speak meanwhile
        message = with_trailers(request.message, plan.trailers)
        said = git.make_commit(repo.checkout, index, message, lock_environment(repo.common_dir))
        made = None if said.exit_code else git.find_made_commit(repo.checkout, session.id, plan.sight.head)
        committed = _accept(repo, session, request, plan, made) if made is not None else None
    _show_life_after(repo, session)
    touched = _touched(repo, before, plan) if hooks else []
    if said.exit_code and git.read_head(repo.checkout) == plan.sight.head:
        raise _refused(said, hooks, touched)
    if made is None or committed is None:
        return None
    paths = tuple(one.path for one in committed)
    return Made(
        commit=made.id,
        branch=plan.sight.branch,
        subject=request.message.strip().split("\n")[0],
        paths=paths,
        trailers=made.trailers,
        changed_by_hooks=tuple(path for path in touched if path not in paths),
        left_alone=plan.left_alone,
    )


def _plan(repo: Repository, session: Session, request: CommitRequest, index: PrivateIndex) -> _Plan:
    """Judge what would be committed.

    Raises:
        LandlaneError: it may not be, as `commit` says.
    """
    sight = git.read_status(repo.checkout, request.paths)
    _check_named(repo, request, sight)
    if load_installed_hooks(repo.common_dir) is not None:  # our own git is not judged by our hooks
        with Watched(repo=repo, session=session, rule=LAND_FIRST, guard="commit", codes=GUARD_CODES):
            check_branch(repo, sight.branch)
    changes, others = index.fill(sight)
    if not changes:
        raise LandlaneError(
            f"nothing has changed at {_some(request.paths)}",
            code="NOTHING_TO_COMMIT",
            hint="`git status` shows what has; what was committed already needs no second commit",
        )
    check_paths(repo, session, [change.path for change in changes], guard="commit")
    refuse_breached(repo, session, [change.path for change in changes], repo.checkout.root)
    with Watched(repo=repo, session=session, rule=CLAIM_FIRST, guard="commit", codes=CLAIM_CODES):
        claims = find_covering(repo, session, [change.path for change in changes])
    if not request.may_undo:
        _refuse_undoing(repo, session, sight, changes)
    _warn_of_stale(repo, session, sight, others)
    work = _WORK_BRANCH.fullmatch(sight.branch)
    task = request.task or (work[1] if work else "") or next((one.task for one in claims if one.task), "")
    tokens = tuple(sorted({claim.token for claim in claims}))
    trailers = Trailers(agent=session.agent, session=session.id, task=task, tokens=tokens)
    return _Plan(sight=sight, changes=tuple(changes), left_alone=len(others), trailers=trailers)


def _check_named(repo: Repository, request: CommitRequest, sight: WorktreeStatus) -> None:
    """Refuse a path that is not there and never was, and one that git ignores."""
    quiet = [path for path in request.paths if path != "." and not _at_or_below(sight.paths, path)]
    if not quiet:
        return
    tracked = tuple(git.list_tracked(repo.checkout, quiet))
    for path in quiet:
        if _at_or_below(tracked, path):
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


def _at_or_below(paths: Sequence[str], folder: str) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for path in paths)


def _refuse_undoing(
    repo: Repository, session: Session, sight: WorktreeStatus, changes: Sequence[TreeChange]
) -> None:
    undone = find_reverted_changes(repo.checkout, sight.head, changes, session.id)
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


def _warn_of_stale(
    repo: Repository, session: Session, sight: WorktreeStatus, others: Sequence[TreeChange]
) -> None:
    """Tell what is staged beside these paths and would undo what landed, should anybody commit it."""
    undone = find_reverted_changes(repo.checkout, sight.head, others, session.id) if others else []
    if undone:
        names = _some([one.path for one in undone])
        repo.report(f"left alone: what is staged of {names} would undo what landed; see `git diff --cached`")


def _accept(
    repo: Repository, session: Session, request: CommitRequest, plan: _Plan, made: MadeCommit
) -> list[TreeChange] | None:
    """Look at what git made of it, and let the index follow; take it back if it is more than was judged."""
    if made.parent != plan.sight.head:
        # Somebody committed between our look and git's: this tree knows nothing of that commit.
        if git.undo_commit(repo.checkout, made):
            return None
        raise _stuck(made)
    if made.trailers != plan.trailers:
        raise _trailers_gone() if git.undo_commit(repo.checkout, made) else _stuck(made)
    committed = diff_trees(repo.checkout, made.parent, made.id)
    judged = {change.path for change in plan.changes}
    added = [one.path for one in committed if one.path not in judged]
    foreign = [path for path in added if not _is_wanted(repo, session, request, path)]
    if foreign:
        raise _added(foreign) if git.undo_commit(repo.checkout, made) else _stuck(made)
    _bring_index_up(repo, committed)
    return committed


def _is_wanted(repo: Repository, session: Session, request: CommitRequest, path: str) -> bool:
    """Whether a hook may have added this path: it was named, if only by its folder, and is covered."""
    if not any(folder == "." or _at_or_below((path,), folder) for folder in request.paths):
        return False
    try:
        check_paths(repo, session, [path], guard="commit")
        find_covering(repo, session, [path])
    except LandlaneError:
        return False
    return True


def _bring_index_up(repo: Repository, committed: Sequence[TreeChange]) -> None:
    """Let the real index follow. The commit stands whatever happens here, so trouble is only told."""
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
    repo.report(f"committed, but the index did not follow ({trouble}); mend it: git reset --quiet -- PATH…")


def _touched(repo: Repository, before: dict[str, tuple[int, ...]], plan: _Plan) -> list[str]:
    """What changed on disk or in the index while the hooks ran, beyond what was to be committed."""
    after = git.stamp_changed_files(repo.checkout)
    judged = {change.path for change in plan.changes}
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return sorted(paths - judged)


def _show_life_after(repo: Repository, session: Session) -> None:
    try:
        renew_session(repo.store, session)
    except (Stale, StoreError) as error:
        repo.report(f"after the hooks: {error.message}")


def _refused(said: GitResult, hooks: list[str], touched: list[str]) -> LandlaneError:
    last = said.stdout.splitlines()[-1][:200] if said.stdout else "without a word"
    facts: dict[str, object] = {
        "output": said.stdout[-_TAIL:],
        "changed_by_hooks": touched[:_MOST_NAMED],
    }
    if hooks and said.exit_code == _HOOK_SAID_NO:
        return LandlaneError(
            f"a commit hook ({', '.join(hooks)}) refused it: {last}",
            code="HOOK_REFUSED",
            hint="mend what it complains about and commit again; nothing was committed",
            **facts,
        )
    is_nobody = (
        "tell me who you are" in said.stdout or "was given and auto-detection is disabled" in said.stdout
    )
    hint = 'git config user.name "…" and git config user.email "…"' if is_nobody else "nothing was committed"
    return RepositoryError(f"git did not commit: {last}", code="COMMIT_FAILED", hint=hint, **facts)


def _added(paths: list[str]) -> LandlaneError:
    return LandlaneError(
        f"a commit hook added {_some(paths)}, which was not to be committed; the commit was taken back",
        code="HOOK_ADDED_PATHS",
        hint="claim and name these paths too, or let the hook change files without adding them",
        paths=paths[:_MOST_NAMED],
    )


def _trailers_gone() -> LandlaneError:
    return LandlaneError(
        "a commit hook changed the trailers that tell whose commit it is; the commit was taken back",
        code="HOOK_CHANGED_TRAILERS",
        hint="let the hook keep the lines that begin with Landlane-, each as it is",
    )


def _stuck(made: MadeCommit) -> Stale:
    return Stale(
        f"commit {made.id[:12]} holds more than was judged, and somebody committed on top of it already",
        code="HEAD_MOVED",
        hint=f"look at it: git show {made.id[:12]}",
        commit=made.id,
    )


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _as_text(name: str) -> str:
    """A name that every store can hold: bytes that are no text are shown escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def _bring_home(repo: Repository, made: Made) -> None:
    """Let the repository have what a clone committed on a branch of ours, so that it outlives the clone."""
    if not repo.checkout.home or not _WORK_BRANCH.fullmatch(made.branch):
        return
    try:
        fetch_clone_branch(repo.home, repo.checkout.root, made.branch)
    except LandlaneError as error:
        repo.report(f"committed here, but not yet in the repository this is a clone of: {error.message}")


def record_commit(repo: Repository, session: Session, made: Made) -> None:
    """Write the entry. The commit is made and bears its trailers: a store that fails now is only told of."""
    facts = {
        "commit": made.commit,
        "branch": _as_text(made.branch),
        "paths": [_as_text(path) for path in made.paths[:_MOST_NAMED]],
        "path_count": len(made.paths),
        "task": made.trailers.task,
        "tokens": list(made.trailers.tokens),
    }
    try:
        repo.change(lambda tx: tx.record("commit.made", session.agent, session.id, facts))
    except StoreError as error:
        repo.report(f"committed, but not in the journal: {error.message}")

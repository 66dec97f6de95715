"""Stash the changes of one checkout and restore them.

git has one stash for all worktrees, in which an agent can mistake another's work for its own. Here a stash
is a rescue that belongs to its checkout.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from landlane.claims.take import list_claims
from landlane.errors import Held, LandlaneError, NotAllowed
from landlane.git import create_checkout as checkouts
from landlane.git.lock import git_lock
from landlane.git.remove_checkout import find_git_dir, remove_checkout
from landlane.git.run import git_failed, git_output, run_git, run_in
from landlane.git.untrusted_checkout import WORKTREE, UntrustedCheckout
from landlane.patterns.pattern import alternatives_overlap
from landlane.rescue.clear import clear_rescued
from landlane.rescue.list_changes import list_rescued_changes
from landlane.rescue.refs import Rescue, drop_rescue, get_rescue, list_rescues
from landlane.rescue.restore import restore_rescue
from landlane.rescue.save import locate_checkout, save_checkout
from landlane.rescue.scan_checkout import find_unsaved_work
from landlane.workspaces.records import is_held, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session


_IDENTITY = {
    f"GIT_{role}_{field}": text
    for role in ("AUTHOR", "COMMITTER")
    for field, text in (("NAME", "landlane"), ("EMAIL", "landlane@localhost"))
}


def save(repo: Repository, session: Session, message: str) -> Rescue:
    """Save all changes of this checkout, and reset it to HEAD.

    Checkouts inside this one, submodules, and files written in the meantime stay as they are.

    Raises:
        Held: another session holds some of the changed paths.
        LandlaneError: there are no changes, or a merge or similar operation is unfinished.
    """
    _check_workspace(repo, session)
    root = repo.checkout.root
    with _locked(repo, "stash save") as is_shared:
        unsaved = find_unsaved_work(locate_checkout(repo, root))
        if unsaved.operation:
            raise NotAllowed(
                f"a {unsaved.operation} is half done here",
                code="OPERATION_IN_PROGRESS",
                hint=f"finish it, or end it with git {unsaved.operation} --abort",
            )
        if not unsaved.has_changes:
            raise LandlaneError(
                "there is nothing to put aside", code="NOTHING_TO_SAVE", hint="the tree is clean"
            )
        if is_shared:
            _check_own(repo, session)
        saved = save_checkout(repo, session, root, message or "put aside", force=True, stash=root)
        rescue = get_rescue(repo.common_dir, saved)
        clear_rescued(repo.common_dir, repo.checkout, rescue)
    return rescue


@contextmanager
def _locked(repo: Repository, purpose: str) -> Generator[bool]:
    """Yield whether this checkout is shared, so not a workspace; a shared one is locked against commits."""
    if any(one.path == repo.checkout.root for one in list_workspaces(repo)):
        yield False
        return
    with git_lock(repo.common_dir, purpose):
        yield True


def _check_workspace(repo: Repository, session: Session) -> None:
    """Refuse the workspace of another live session."""
    for one in list_workspaces(repo):
        is_foreign = one.path == repo.checkout.root and one.session != session.id
        if is_foreign and is_held(repo, one):
            raise Held(
                f"{one.agent} is at work in {one.id}, where you stand",
                code="WORKSPACE_HELD",
                hint=f"act as {one.agent} (--as {one.agent}), or in a workspace of your own",
                holder=one.agent,
            )


def _check_own(repo: Repository, session: Session) -> None:
    """Refuse to stash the changes of other sessions in a shared checkout."""
    found = run_in(repo.checkout, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    hint = "commit your own paths with `landlane commit`, or work in a workspace of your own"
    paths = [item[3:] for item in found.stdout.split("\0") if item]
    _check_unclaimed(repo, session, paths, "changed here", hint)


def _check_unclaimed(repo: Repository, session: Session, paths: Sequence[str], state: str, hint: str) -> None:
    """Refuse to touch paths that other sessions have claimed."""
    pattern_of = repo.git.pattern_of
    others = [
        (claim, pattern_of(claim.pattern, claim.kind).alternatives)
        for claim in list_claims(repo)
        if claim.session != session.id
    ]
    for path in paths if others else ():
        (changed,) = pattern_of(path, "literal").alternatives
        for claim, held in others:
            if any(alternatives_overlap(one, changed) for one in held):
                raise Held(
                    f"{path} is {state}, and {claim.agent} holds it",
                    code="CLAIM_HELD",
                    hint=hint,
                    holder=claim.agent,
                    until_at=claim.until,
                )


def list_stashes(repo: Repository) -> list[Rescue]:
    """Return the stashes of this checkout, oldest first."""
    return [one for one in list_rescues(repo.common_dir) if one.facts.get("stash") == repo.checkout.root]


def restore(repo: Repository, session: Session, stash_id: str) -> tuple[Rescue, tuple[str, ...]]:
    """Restore the newest stash of this checkout, or the one with this id; return it with notes.

    Raises:
        Held: another session holds some of its paths now, or the workspace.
        LandlaneError: there is none, the checkout has changes, or they conflict with HEAD.
    """
    _check_workspace(repo, session)
    chosen = [one for one in list_stashes(repo) if not stash_id or one.id == stash_id]
    if not chosen:
        raise LandlaneError(
            "there is nothing to restore here"
            if not stash_id
            else f"{stash_id} was not put aside in this checkout",
            code="NOTHING_TO_RESTORE",
            hint="`landlane stash list` shows what was put aside here; `landlane rescue list` everything",
        )
    stash = chosen[-1]
    checkout = locate_checkout(repo, repo.checkout.root)
    with _locked(repo, "stash restore") as is_shared:
        # As in `save`: what that leaves here, such as submodules, does not prevent a restore.
        unsaved = find_unsaved_work(checkout)
        if unsaved.has_changes or unsaved.operation:
            raise LandlaneError(
                "this checkout has changes of its own",
                code="CHECKOUT_DIRTY",
                hint="commit them, or put them aside first: landlane stash save",
            )
        if is_shared:
            paths = [change.path for change in list_rescued_changes(repo.common_dir, stash)]
            hint = f"wait for it, or restore it elsewhere: landlane rescue restore {stash.id} --into ../look"
            _check_unclaimed(repo, session, paths, f"in {stash.id}", hint)
        head = run_in(repo.checkout, "rev-parse", "--verify", "--quiet", "HEAD").stdout.strip()
        if head == stash.head:
            notes = tuple(restore_rescue(stash.id, checkout, only_changes=True).notes)
        else:
            notes = (_merge_onto_head(repo, stash, head),)
        drop_rescue(repo.common_dir, stash.id)
    return stash, notes


def _merge_onto_head(repo: Repository, stash: Rescue, head: str) -> str:
    """Merge a stash onto another commit, staged changes staged; return a note.

    Raises:
        LandlaneError: it conflicts, and nothing was changed.
    """
    index, files = _read_trees(repo, stash)
    here = repo.checkout
    before = git_output(here, "rev-parse", f"{stash.head}^{{tree}}")
    now = git_output(here, "rev-parse", "HEAD^{tree}")
    merged_files = _merge(repo, before, now, files, stash, head)
    merged_index = _merge(repo, before, now, index, stash, head)
    words = ("read-tree", "-m", "-u", now, merged_files)
    result = run_in(here, *words, variables={"GIT_OPTIONAL_LOCKS": "1"})
    if result.exit_code:
        raise git_failed(words, result)
    git_output(here, "read-tree", merged_index)
    run_in(here, "update-index", "-q", "--refresh", variables={"GIT_OPTIONAL_LOCKS": "1"})
    return f"put aside at {stash.head[:12]}, merged onto {head[:12]}"


def _read_trees(repo: Repository, stash: Rescue) -> tuple[str, str]:
    """Return the index and the files of a stash as two trees, restored in a temporary checkout."""
    path = os.path.join(repo.common_dir, "landlane", f"restoring-{stash.id}-{os.getpid()}")

    def git_here(*words: str) -> str:
        result = run_git(*words, cwd=path, limit_seconds=600)
        if result.exit_code:
            raise git_failed(words, result)
        return result.stdout.strip()

    try:
        checkouts.add_detached_worktree(repo.home, path, stash.head)
        checkouts.write_files(path)
        git_dir = find_git_dir(repo.home, path)
        checkout = UntrustedCheckout(root=path, git_dir=git_dir, kind=WORKTREE, home=repo.common_dir)
        restore_rescue(stash.id, checkout, only_changes=True)
        index = git_here("write-tree")
        git_here("add", "--all")
        return index, git_here("write-tree")
    finally:
        remove_checkout(repo.home, path)


def _merge(repo: Repository, before: str, now: str, changed: str, stash: Rescue, head: str) -> str:
    """Return the tree with both changes since `before`; temporary commits define that merge base."""
    base = _commit(repo, before)
    ours, theirs = _commit(repo, now, base), _commit(repo, changed, base)
    result = run_in(repo.checkout, "merge-tree", "--write-tree", "--name-only", "--no-messages", ours, theirs)
    tree, *names = result.stdout.splitlines()
    if not result.exit_code:
        return tree
    raise LandlaneError(
        f"{stash.id}, put aside at {stash.head[:12]}, conflicts with {head[:12]} in {', '.join(names[:5])}",
        code="MOVED_MEANWHILE",
        hint=f"landlane rescue restore {stash.id} --into ../again, then merge; or git switch back first",
        paths=names,
    )


def _commit(repo: Repository, tree: str, *parents: str) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    result = run_in(repo.checkout, "commit-tree", tree, *words, "-m", "put aside", variables=_IDENTITY)
    if result.exit_code:
        raise git_failed(("commit-tree",), result)
    return result.stdout.strip()

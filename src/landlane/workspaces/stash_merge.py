"""Bringing back what was put aside when HEAD has moved since: a three-way merge, or nothing at all."""

from __future__ import annotations

import os

from landlane.errors import LandlaneError
from landlane.git import create_checkout as checkouts
from landlane.git.remove_checkout import find_git_dir, remove_checkout
from landlane.git.run import git_failed, git_output, run_git, run_in
from landlane.git.untrusted_checkout import WORKTREE, UntrustedCheckout
from landlane.rescue.restore import restore_rescue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.rescue.refs import Rescue


_NOBODY = {
    f"GIT_{role}_{field}": text
    for role in ("AUTHOR", "COMMITTER")
    for field, text in (("NAME", "landlane"), ("EMAIL", "landlane@localhost"))
}


def merge_back(repo: Repository, stash: Rescue, head: str) -> str:
    """Put saved changes onto another commit, staged ones staged; tells in words what was done.

    Raises:
        LandlaneError: they do not merge cleanly, and nothing was touched.
    """
    index, files = _trees_of(repo, stash)
    here = repo.checkout
    before = git_output(here, "rev-parse", f"{stash.head}^{{tree}}")
    now = git_output(here, "rev-parse", "HEAD^{tree}")
    merged_files = _merge(repo, before, now, files, stash, head)
    merged_index = _merge(repo, before, now, index, stash, head)
    words = ("read-tree", "-m", "-u", now, merged_files)
    found = run_in(here, *words, variables={"GIT_OPTIONAL_LOCKS": "1"})
    if found.exit_code:
        raise git_failed(words, found)
    git_output(here, "read-tree", merged_index)
    run_in(here, "update-index", "-q", "--refresh", variables={"GIT_OPTIONAL_LOCKS": "1"})
    return f"put aside at {stash.head[:12]}, merged onto {head[:12]}"


def _trees_of(repo: Repository, stash: Rescue) -> tuple[str, str]:
    """The index and the files of saved changes as two trees, by way of a checkout that is gone afterwards."""
    path = os.path.join(repo.common_dir, "landlane", f"restoring-{stash.id}-{os.getpid()}")
    try:
        checkouts.add_detached_worktree(repo.home, path, stash.head)
        checkouts.write_files(path)
        place = UntrustedCheckout(
            root=path, git_dir=find_git_dir(repo.home, path), kind=WORKTREE, home=repo.common_dir
        )
        restore_rescue(stash.id, place, only_changes=True)
        index = _asked(path, "write-tree")
        _asked(path, "add", "--all")
        return index, _asked(path, "write-tree")
    finally:
        remove_checkout(repo.home, path)


def _asked(path: str, *words: str) -> str:
    found = run_git(*words, cwd=path, limit_seconds=600)
    if found.exit_code:
        raise git_failed(words, found)
    return found.stdout.strip()


def _merge(repo: Repository, before: str, now: str, changed: str, stash: Rescue, head: str) -> str:
    """The tree with both changes since `before`; three commits of our own say which merge base is meant."""
    base = _commit(repo, before)
    ours, theirs = _commit(repo, now, base), _commit(repo, changed, base)
    found = run_in(repo.checkout, "merge-tree", "--write-tree", "--name-only", "--no-messages", ours, theirs)
    tree, *names = found.stdout.splitlines()
    if not found.exit_code:
        return tree
    raise LandlaneError(
        f"{stash.id}, put aside at {stash.head[:12]}, conflicts with {head[:12]} in {', '.join(names[:5])}",
        code="MOVED_MEANWHILE",
        hint=f"landlane rescue restore {stash.id} --into ../again, then merge; or git switch back first",
        paths=names,
    )


def _commit(repo: Repository, tree: str, *parents: str) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    found = run_in(repo.checkout, "commit-tree", tree, *words, "-m", "put aside", variables=_NOBODY)
    if found.exit_code:
        raise git_failed(("commit-tree",), found)
    return found.stdout.strip()

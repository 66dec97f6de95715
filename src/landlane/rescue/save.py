"""Save what exists only in one checkout; drop and pack rescues."""

from __future__ import annotations

import os

from landlane.errors import RepositoryError
from landlane.git.lock import git_lock
from landlane.git.remove_checkout import find_git_dir, is_folder
from landlane.git.run import try_git_output
from landlane.git.untrusted_checkout import CLONE, MAIN, WORKTREE, UntrustedCheckout
from landlane.rescue.refs import (
    Rescue,
    drop_rescue,
    find_rescue,
    get_rescue,
    list_rescues,
    pack_rescues,
    rescue_ref,
)
from landlane.rescue.write_rescue import take_rescue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from landlane.repository import Repository
    from landlane.store.interface import Actor, Transaction
else:
    Protocol = object

_OLD_MS = 7 * 86_400_000


class SavedWorkspace(Protocol):
    """What the manifest of a rescue says about the workspace it was taken from."""

    @property
    def id(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def agent(self) -> str: ...
    @property
    def session(self) -> str: ...


def locate_checkout(repo: Repository, path: str) -> UntrustedCheckout:
    """Return a checkout of this repository: the main one, a linked worktree, or a clone.

    Raises:
        RepositoryError: the folder is not one.
    """
    git_dir = find_git_dir(repo.home, path)
    if not git_dir:
        raise RepositoryError(
            f"{path} is not a checkout of this repository",
            code="NO_CHECKOUT",
            hint="list them: git worktree list",
        )
    kind = CLONE if is_folder(os.path.join(path, ".git")) else WORKTREE
    if os.path.realpath(git_dir) == repo.common_dir:
        kind, git_dir = MAIN, repo.common_dir
    return UntrustedCheckout(root=path, git_dir=git_dir, kind=kind, home=repo.common_dir)


def save_checkout(
    repo: Repository,
    session: Actor | None,
    where: str | UntrustedCheckout,
    reason: str,
    *,
    workspace: SavedWorkspace | None = None,
    force: bool = False,
    **more: Any,
) -> str:
    """Save what would be lost with a checkout; return the id of the rescue, or empty when there is nothing.

    Raises:
        RepositoryError: something cannot be saved; nothing may be deleted then.
    """
    checkout = locate_checkout(repo, where) if isinstance(where, str) else where
    facts: dict[str, Any] = {
        "reason": reason,
        "agent": workspace.agent if workspace else session.agent if session else "",
        "session": workspace.session if workspace else session.id if session else "",
        "task": workspace.task if workspace else "",
        "attempt": workspace.attempt if workspace else 0,
        "workspace": workspace.id if workspace else "",
        "by": session.agent if session else "",
        **more,
    }
    saved = take_rescue(checkout, _next_id(repo), facts, force=force)
    if saved is None:
        return ""
    actor = (session.agent, session.id) if session else ("", "")
    details = {"rescue": saved.id, "commit": saved.commit, "files": saved.files, "bytes": saved.bytes}
    repo.change(lambda tx: tx.record("rescue.saved", *actor, {**facts, **details}))
    return saved.id


def drop_same_rescues(repo: Repository, rescue_id: str, workspace: SavedWorkspace) -> None:
    """Drop earlier rescues of a workspace with the same content, left by an interrupted process."""
    for other in _find_same(repo, rescue_id, workspace):
        _drop_duplicate(repo, other, rescue_id, workspace)


def drop_if_same(repo: Repository, rescue_id: str, workspace: SavedWorkspace) -> bool:
    """Drop a rescue if an earlier one of the same workspace has the same content; return whether."""
    same = _find_same(repo, rescue_id, workspace)
    if same:
        _drop_duplicate(repo, rescue_id, same[0], workspace)
    return bool(same)


def _drop_duplicate(repo: Repository, rescue_id: str, kept: str, workspace: SavedWorkspace) -> None:
    drop_rescue(repo.common_dir, rescue_id)
    facts = {"rescue": rescue_id, "same_as": kept, "workspace": workspace.id}
    repo.change(lambda tx: tx.record("rescue.forgotten", "", "", facts))


def _find_same(repo: Repository, rescue_id: str, workspace: SavedWorkspace) -> list[str]:
    """Return the other rescues of a workspace with the same content, without stashes."""
    content = _list_content(repo, rescue_id)
    return [
        other.id
        for other in list_rescues(repo.common_dir)
        if other.facts.get("workspace") == workspace.id
        and other.id != rescue_id
        and "stash" not in other.facts
        and _list_content(repo, other.id) == content
    ]


def _list_content(repo: Repository, rescue_id: str) -> list[str]:
    """Return the entries of a rescue's tree without its manifest, which has the time and place."""
    rows = try_git_output(repo.home, "ls-tree", rescue_ref(rescue_id)).splitlines()
    return [row for row in rows if not row.endswith("\tmanifest.json")]


def _next_id(repo: Repository) -> str:
    """Return an unused id: the store counts, and git decides."""

    def count(tx: Transaction) -> int:
        row = tx.one("record_next", noun="rescue")
        assert row is not None
        return row["last"]

    while True:
        rescue_id = f"R{repo.change(count)}"
        if find_rescue(repo.common_dir, rescue_id) is None:
            return rescue_id


def discard_rescue(repo: Repository, session: Actor, rescue_id: str) -> Rescue:
    """Delete a rescue for good, and record it.

    Raises:
        RepositoryError: there is none of this id.
    """
    rescue = get_rescue(repo.common_dir, rescue_id)
    drop_rescue(repo.common_dir, rescue_id)
    facts = {"rescue": rescue_id, "commit": rescue.commit}
    repo.change(lambda tx: tx.record("rescue.dropped", session.agent, session.id, facts))
    return rescue


def pack_old_rescues(repo: Repository) -> int:
    """Put rescues of more than a week ago into a pack, where they take little space; return how many."""
    with git_lock(repo.common_dir, "pack rescues"):
        return pack_rescues(repo.common_dir, repo.wall_ms() - _OLD_MS)

"""Save what exists only in one checkout; list, drop and pack rescues."""

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
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def task(self) -> str:
        """The task it was opened for."""
        ...

    @property
    def agent(self) -> str:
        """The agent that worked in it."""
        ...

    @property
    def session(self) -> str:
        """The session that worked in it."""
        ...


def locate_checkout(repo: Repository, path: str) -> UntrustedCheckout:
    """A checkout of this repository: the main one, a linked worktree, or a clone.

    Raises:
        RepositoryError: the folder is none.
    """
    git_dir = find_git_dir(repo.home, path)
    if not git_dir:
        raise RepositoryError(
            f"{path} is no checkout of this repository",
            code="NO_CHECKOUT",
            hint="`git worktree list` and `landlane workspace list` show those that are",
        )
    if os.path.realpath(git_dir) == repo.common_dir:
        return UntrustedCheckout(root=path, git_dir=repo.common_dir, kind=MAIN)
    return UntrustedCheckout(
        root=path, git_dir=git_dir, kind=CLONE if is_folder(os.path.join(path, ".git")) else WORKTREE
    )


def save_checkout(
    repo: Repository,
    session: Actor | None,
    path: str,
    reason: str,
    *,
    workspace: SavedWorkspace | None = None,
    force: bool = False,
    **more: Any,
) -> str:
    """Save what is at stake in a checkout; the id of the rescue, or nothing when nothing is.

    Raises:
        RepositoryError: something cannot be saved; nothing may be deleted then.
    """
    place = locate_checkout(repo, path)
    return save_located(repo, session, place, reason, workspace=workspace, force=force, **more)


def save_located(
    repo: Repository,
    session: Actor | None,
    place: UntrustedCheckout,
    reason: str,
    *,
    workspace: SavedWorkspace | None = None,
    force: bool = False,
    **more: Any,
) -> str:
    """As `save_checkout`, for a checkout that lies where git does not look for it."""
    facts: dict[str, Any] = {
        "reason": reason,
        "agent": workspace.agent if workspace else session.agent if session else "",
        "session": workspace.session if workspace else session.id if session else "",
        "task": workspace.task if workspace else "",
        "workspace": workspace.id if workspace else "",
        "by": session.agent if session else "",
        **more,
    }
    rescue_id = _next_id(repo)
    saved = take_rescue(repo.common_dir, place, rescue_id, facts, force=force)
    if saved is None:
        return ""
    who = (session.agent, session.id) if session else ("", "")

    def record(tx: Transaction) -> None:
        told = {"rescue": saved.id, "commit": saved.commit, "files": saved.files, "bytes": saved.bytes}
        tx.record("rescue.saved", *who, {**facts, **told})

    repo.change(record)
    return saved.id


def drop_same_rescues(repo: Repository, rescue_id: str, workspace: SavedWorkspace) -> None:
    """Drop an earlier rescue of a workspace that holds exactly the same: its taker was cut off after it."""
    for one in _same_as(repo, rescue_id, workspace):
        _forget(repo, one, rescue_id, workspace)


def drop_if_same(repo: Repository, rescue_id: str, workspace: SavedWorkspace) -> bool:
    """Drop a rescue that holds nothing but what an earlier one of the same workspace does."""
    same = _same_as(repo, rescue_id, workspace)
    if same:
        _forget(repo, rescue_id, same[0], workspace)
    return bool(same)


def _forget(repo: Repository, rescue_id: str, kept: str, workspace: SavedWorkspace) -> None:
    """Drop a rescue that another one holds all of, and say so: the journal knows of both."""
    drop_rescue(repo.common_dir, rescue_id)
    facts = {"rescue": rescue_id, "same_as": kept, "workspace": workspace.id}
    repo.change(lambda tx: tx.record("rescue.forgotten", "", "", facts))


def _same_as(repo: Repository, rescue_id: str, workspace: SavedWorkspace) -> list[str]:
    """The other rescues of a workspace, without what was put aside there, that hold exactly the same."""
    held = _holdings(repo, rescue_id)
    return [
        one.id
        for one in saved_work(repo)
        if one.facts.get("workspace") == workspace.id
        and one.id != rescue_id
        and "stash" not in one.facts
        and _holdings(repo, one.id) == held
    ]


def _holdings(repo: Repository, rescue_id: str) -> list[str]:
    """What a rescue's tree has beside its manifest, which tells when it was taken and where."""
    rows = try_git_output(repo.home, "ls-tree", rescue_ref(rescue_id)).splitlines()
    return [row for row in rows if not row.endswith("\tmanifest.json")]


def _next_id(repo: Repository) -> str:
    """An id that no rescue here has: the store counts, and git has the last word."""

    def count(tx: Transaction) -> int:
        row = tx.one("record_next", noun="rescue")
        assert row is not None
        return row["last"]

    while True:
        rescue_id = f"R{repo.change(count)}"
        if find_rescue(repo.common_dir, rescue_id) is None:
            return rescue_id


def saved_work(repo: Repository) -> list[Rescue]:
    """All that was saved, the oldest first."""
    return list_rescues(repo.common_dir)


def discard_rescue(repo: Repository, session: Actor, rescue_id: str) -> Rescue:
    """Forget saved work for good.

    Raises:
        RepositoryError: there is none of this id.
    """
    rescue = get_rescue(repo.common_dir, rescue_id)
    drop_rescue(repo.common_dir, rescue_id)
    facts = {"rescue": rescue_id, "commit": rescue.commit}
    repo.change(lambda tx: tx.record("rescue.dropped", session.agent, session.id, facts))
    return rescue


def pack_old_rescues(repo: Repository) -> int:
    """Put rescues of more than a week ago into a pack, where they take little room; tells how many."""
    with git_lock(repo.common_dir, "pack rescues"):
        return pack_rescues(repo.common_dir, repo.wall_ms() - _OLD_MS)

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

    from landlane.context import Site
    from landlane.store.interface import Actor, Change
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


def locate_checkout(site: Site, path: str) -> UntrustedCheckout:
    """A checkout of this repository: the main one, a linked worktree, or a clone.

    Raises:
        RepositoryError: the folder is none.
    """
    git_dir = find_git_dir(site.home, path)
    if not git_dir:
        raise RepositoryError(
            f"{path} is no checkout of this repository",
            code="NO_CHECKOUT",
            hint="`git worktree list` and `landlane workspace list` show those that are",
        )
    if os.path.realpath(git_dir) == site.common_dir:
        return UntrustedCheckout(root=path, git_dir=site.common_dir, kind=MAIN)
    return UntrustedCheckout(
        root=path, git_dir=git_dir, kind=CLONE if is_folder(os.path.join(path, ".git")) else WORKTREE
    )


def save_checkout(
    site: Site,
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
    place = locate_checkout(site, path)
    return save_located(site, session, place, reason, workspace=workspace, force=force, **more)


def save_located(
    site: Site,
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
    rescue_id = _next_id(site)
    saved = take_rescue(site.common_dir, place, rescue_id, facts, force=force)
    if saved is None:
        return ""
    who = (session.agent, session.id) if session else ("", "")

    def record(tx: Change) -> None:
        told = {"rescue": saved.id, "commit": saved.commit, "files": saved.files, "bytes": saved.bytes}
        tx.record("rescue.saved", *who, {**facts, **told})

    site.context.change(record)
    return saved.id


def drop_same_rescues(site: Site, rescue_id: str, workspace: SavedWorkspace) -> None:
    """Drop an earlier rescue of a workspace that holds exactly the same: its taker was cut off after it."""
    for one in _same_as(site, rescue_id, workspace):
        _forget(site, one, rescue_id, workspace)


def drop_if_same(site: Site, rescue_id: str, workspace: SavedWorkspace) -> bool:
    """Drop a rescue that holds nothing but what an earlier one of the same workspace does."""
    same = _same_as(site, rescue_id, workspace)
    if same:
        _forget(site, rescue_id, same[0], workspace)
    return bool(same)


def _forget(site: Site, rescue_id: str, kept: str, workspace: SavedWorkspace) -> None:
    """Drop a rescue that another one holds all of, and say so: the journal knows of both."""
    drop_rescue(site.common_dir, rescue_id)
    facts = {"rescue": rescue_id, "same_as": kept, "workspace": workspace.id}
    site.context.change(lambda tx: tx.record("rescue.forgotten", "", "", facts))


def _same_as(site: Site, rescue_id: str, workspace: SavedWorkspace) -> list[str]:
    """The other rescues of a workspace, without what was put aside there, that hold exactly the same."""
    held = _holdings(site, rescue_id)
    return [
        one.id
        for one in saved_work(site)
        if one.facts.get("workspace") == workspace.id
        and one.id != rescue_id
        and "stash" not in one.facts
        and _holdings(site, one.id) == held
    ]


def _holdings(site: Site, rescue_id: str) -> list[str]:
    """What a rescue's tree has beside its manifest, which tells when it was taken and where."""
    rows = try_git_output(site.home, "ls-tree", rescue_ref(rescue_id)).splitlines()
    return [row for row in rows if not row.endswith("\tmanifest.json")]


def _next_id(site: Site) -> str:
    """An id that no rescue here has: the store counts, and git has the last word."""

    def count(tx: Change) -> int:
        row = tx.one("record_next", noun="rescue")
        assert row is not None
        return row["last"]

    while True:
        rescue_id = f"R{site.context.change(count)}"
        if find_rescue(site.common_dir, rescue_id) is None:
            return rescue_id


def saved_work(site: Site) -> list[Rescue]:
    """All that was saved, the oldest first."""
    return list_rescues(site.common_dir)


def discard_rescue(site: Site, session: Actor, rescue_id: str) -> Rescue:
    """Forget saved work for good.

    Raises:
        RepositoryError: there is none of this id.
    """
    rescue = get_rescue(site.common_dir, rescue_id)
    drop_rescue(site.common_dir, rescue_id)
    facts = {"rescue": rescue_id, "commit": rescue.commit}
    site.context.change(lambda tx: tx.record("rescue.dropped", session.agent, session.id, facts))
    return rescue


def pack_old_rescues(site: Site) -> int:
    """Put rescues of more than a week ago into a pack, where they take little room; tells how many."""
    with git_lock(site.common_dir, "pack rescues"):
        return pack_rescues(site.common_dir, site.wall_ms() - _OLD_MS)

"""A repository that was moved to another folder: notice it, and let its workspaces and landings follow."""

from __future__ import annotations

import os

from landlane.files import write_atomically
from landlane.git.discovery import HOME_POINTER
from landlane.git.hooks.hooks_path import is_former_folder, read_hooks_path
from landlane.git.run import run_in
from landlane.git.untrusted_checkout import quote_alternate
from landlane.store import records
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.model import CLONE, ON_DISK
from landlane.workspaces.records import list_workspaces, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.store.interface import Transaction
    from landlane.workspaces.model import Workspace

_OPEN_LANDINGS = ("queued", "testing", "held")


def find_former_place(repo: Repository) -> str:
    """Return the git directory that this repository had before it was moved; empty if it was not.

    Its hooks or workspaces name a folder that no longer exists. A copy beside the original is no move.
    """
    common = repo.common_dir
    if not common:
        return ""
    named = read_hooks_path(os.path.join(common, "config"))
    if named and is_former_folder(named, common):
        return os.path.dirname(named)
    homes = [workspace.home for workspace in _left_behind(repo)]
    return next((home for home in homes if not os.path.exists(home)), "")


def _left_behind(repo: Repository) -> list[Workspace]:
    """Return the workspaces of this machine that belong to another place of the repository."""
    machine, common = repo.processes.machine, repo.common_dir
    return [one for one in list_workspaces(repo, ON_DISK) if one.machine == machine and one.home != common]


def follow_move(repo: Repository, former: str) -> list[str]:
    """Let the workspaces and open landings of the former place belong to this one; return their ids."""
    done: list[str] = []
    for workspace in _left_behind(repo):
        if workspace.home == former:
            path = _find_path(repo, workspace)
            _reconnect(repo, workspace, path)
            update(repo, workspace, "moved", None, home=repo.common_dir, path=path)
            done.append(workspace.id)

    def work(tx: Transaction) -> list[str]:
        moved: list[str] = []
        for document in records.find_all(tx, "landing", _OPEN_LANDINGS):
            if document["home"] == former and document["machine"] == repo.processes.machine:
                locked = records.lock(tx, "landing", document["id"])
                assert locked is not None
                records.put(tx, "landing", {**locked, "home": repo.common_dir}, "moved")
                moved.append(str(document["id"]))
        return moved

    return done + repo.change(work)


def _find_path(repo: Repository, workspace: Workspace) -> str:
    """Return where the folder of a workspace is now: it may have been moved together with the repository."""
    candidate = os.path.join(workspaces_folder(repo), os.path.basename(workspace.path))
    return workspace.path if os.path.isdir(workspace.path) or not os.path.isdir(candidate) else candidate


def _reconnect(repo: Repository, workspace: Workspace, path: str) -> None:
    """Let git find the repository from a workspace, and the workspace from the repository."""
    if not os.path.isdir(path):
        return
    if workspace.kind != CLONE:
        run_in(repo.home, "worktree", "repair", path)
        return
    git_dir = os.path.join(path, ".git")
    write_atomically(os.path.join(git_dir, HOME_POINTER), repo.common_dir + "\n")
    objects = quote_alternate(f"{repo.common_dir}/objects") + "\n"
    write_atomically(os.path.join(git_dir, "objects", "info", "alternates"), objects)

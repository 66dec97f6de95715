"""Close a workspace: save what exists nowhere else, remove the checkout, free its pins and slots.

Only then is it `closed`. Each step can be repeated, so that clean_up.py can continue after a crash.
"""

from __future__ import annotations

import contextlib
import os

from landlane.errors import Held, LandlaneError, NotAllowed, RepositoryError
from landlane.files import read_first_line
from landlane.git import create_checkout as checkouts
from landlane.git.commits import is_merged
from landlane.git.remove_checkout import (
    check_no_mounts,
    is_folder,
    is_own_checkout,
    list_worktrees,
    removal_path,
    remove_checkout,
    unlink_in_git_dir,
    worktree_git_dir,
)
from landlane.git.run import run_git
from landlane.git.target import commit_at, find_target, target_tip
from landlane.git.untrusted_checkout import CLONE as CLONE_CHECKOUT
from landlane.git.untrusted_checkout import WORKTREE as WORKTREE_CHECKOUT
from landlane.git.untrusted_checkout import UntrustedCheckout
from landlane.platform.file_users import processes_in
from landlane.units import count
from landlane.values import as_dict, value
from landlane.workspaces import records
from landlane.workspaces.environment import free_slots
from landlane.workspaces.model import CLONE, CLOSED, CLOSING, FAILED, OPEN, Workspace
from landlane.workspaces.recent_changes import has_newer, read_clocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.recent_changes import ClockReading


@value
class Closed:
    """A workspace that was removed, and the rescue of what was in it."""

    workspace: Workspace
    rescue: str
    is_merged: bool
    notes: tuple[str, ...] = ()


def close_workspace(
    repo: Repository,
    session: Session | None,
    workspace: Workspace,
    *,
    force: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
) -> Closed:
    """Save what exists nowhere else, then remove a workspace.

    `on_step` is called with the name of each step after it is done.

    Raises:
        Held: it belongs to another live session, or processes run in it.
        RepositoryError: something in it can be neither saved nor removed.
    """
    if not force:
        _check_unused(repo, session, workspace)
    check_no_mounts(workspace.path)
    if workspace.state == OPEN:
        process = as_dict(repo.processes.current())
        closing = records.update(repo, workspace, "closing", session, state=CLOSING, process=process)
        return finish_closing(repo, session, closing, on_step, done="closing")
    taken = records.take_over(repo, workspace)
    if taken is None:
        raise NotAllowed(
            f"another process is {workspace.state} {workspace.id}",
            code="WORKSPACE_BUSY",
            hint=f"try again in a moment: landlane workspace close {workspace.id}",
        )
    if taken.state == CLOSING:
        return finish_closing(repo, session, taken, on_step)
    discarded = discard_opening(repo, session, taken, process_ended())
    return Closed(workspace=discarded or taken, rescue="", is_merged=False)


def _check_unused(repo: Repository, session: Session | None, workspace: Workspace) -> None:
    is_own = session is not None and workspace.session == session.id
    if not is_own and records.is_held(repo, workspace):
        raise records.held_by(workspace)
    users = list_processes_inside(workspace)
    if users:
        named = ", ".join(f"{pid} ({name})" for pid, name in users[:5])
        raise Held(
            f"{count(len(users), 'process', 'processes')} still running in {workspace.id}: {named}",
            code="WORKSPACE_IN_USE",
            hint=f"save everything and close it anyway: landlane workspace close {workspace.id} --force",
            holder=workspace.agent,
            processes=[pid for pid, _ in users],
        )


def list_processes_inside(workspace: Workspace) -> list[tuple[int, str]]:
    """Return the processes in a workspace, also after its folder was renamed for its removal."""
    return [*processes_in(workspace.path), *processes_in(removal_path(workspace.path, workspace.id))]


def finish_closing(
    repo: Repository,
    session: Session | None,
    closing: Workspace,
    on_step: Callable[[str], None] = lambda _: None,
    done: str = "",
) -> Closed:
    """Carry out a closing that was recorded. If it fails, any process may continue it from then on."""
    try:
        if done:
            on_step(done)
        return _Closing(repo, session, closing, on_step).finish()
    except BaseException:
        _give_up_process(repo, closing)
        raise


class _Closing:
    """One closing of a workspace. Every step can be repeated."""

    def __init__(
        self,
        repo: Repository,
        session: Session | None,
        workspace: Workspace,
        on_step: Callable[[str], None],
    ) -> None:
        self._repo = repo
        self._session = session
        self._workspace = workspace
        self._on_step = on_step
        self._moved_to = removal_path(workspace.path, workspace.id)
        self._started: ClockReading | None = None  # when the first look at the files began
        self._notes: list[str] = []

    def finish(self) -> Closed:
        """Save, remove, free, and record that it is closed."""
        repo = self._repo
        is_renamed = is_folder(self._moved_to)
        if not is_renamed:
            self._save_first()
        head = commit_at(repo.home, f"refs/heads/{self._workspace.branch}")
        is_landed = _is_merged(repo, head)
        if is_renamed:  # the process that renamed it may have ended before it looked a second time
            self._save_late()
        remove_checkout(
            repo.home, self._workspace.path, mark=self._workspace.id, on_step=self._on_removal_step
        )
        if os.path.isfile(self._workspace.path):
            self._notes.append(f"{self._workspace.path} is a file, not the workspace, and was left alone")
        self._on_step("removed")
        self._notes += _settle_branch(repo.home, self._workspace, head, is_landed=is_landed)
        checkouts.unpin_workspace(repo.home, self._workspace.id, branch=self._workspace.branch)
        self._on_step("unpinned")
        free_slots(repo, self._workspace)
        self._on_step("freed")
        ended: dict[str, object] = {"state": CLOSED, "closed_at": repo.wall_ms(), "is_merged": is_landed}
        closed = self._record("closed", **ended, process={}, slots={}, why="")
        self._on_step("closed")
        return Closed(workspace=closed, rescue=closed.rescue, is_merged=is_landed, notes=tuple(self._notes))

    def _record(self, verb: str, **fields: object) -> Workspace:
        self._workspace = records.update(self._repo, self._workspace, verb, self._session, **fields)
        return self._workspace

    def _on_removal_step(self, step: str) -> None:
        if step == "renamed":
            self._repair_git_dir(self._moved_to)
            self._save_late()
        self._on_step(step)

    def _save_first(self) -> None:
        """Save everything while nothing is removed yet; if that fails, the workspace stays open."""
        try:
            self._restore_missing_folder()
            state_folder = os.path.join(self._repo.common_dir, "landlane")
            self._started = read_clocks(os.path.dirname(self._workspace.path), state_folder)
            self._save()
        except BaseException as error:
            why = error.message if isinstance(error, LandlaneError) else str(error)
            self._record("kept", state=OPEN, process={}, why=why[:1000])
            raise

    def _save(self) -> None:
        from landlane.rescue.save import drop_same_rescues, save_checkout  # noqa: PLC0415 - lists load this module, too

        repo, session, workspace = self._repo, self._session, self._workspace
        if not is_folder(workspace.path):
            return
        self._repair_git_dir(workspace.path)
        if workspace.kind == CLONE:
            checkouts.fetch_clone_branch(repo.home, workspace.path, workspace.branch)
            self._on_step("brought")
        reason = "workspace closed"
        saved = [save_checkout(repo, session, workspace.path, reason, workspace=workspace)]
        # A repository that was created inside a worktree hides the git directory of the worktree itself.
        saved += [
            save_checkout(repo, session, checkout, reason, workspace=workspace)
            for checkout in self._checkouts_in(workspace.path)[1:]
        ]
        self._on_step("saved")
        rescues = [rescue for rescue in saved if rescue]
        if rescues:
            for rescue in rescues:
                drop_same_rescues(repo, rescue, workspace)
            self._record("rescued", rescue=rescues[0])
            self._on_step("rescued")
        self._notes += [f"the state of its worktree is saved as {one}" for one in rescues[1:]]

    def _save_late(self) -> None:
        """Save what was written after the first look, now that no new process finds the folder.

        Afterwards git does not know the folder any more, before the first file is deleted. So a process that
        continues after a crash never takes a half-deleted folder for deletions by the user.
        """
        from landlane.rescue.save import drop_if_same, save_checkout  # noqa: PLC0415 - lists load this module, too

        known = self._checkouts_in(self._moved_to)
        rescues: list[str] = []
        for checkout in known:
            if not os.path.lexists(os.path.join(checkout.git_dir, "HEAD")):
                continue
            if self._started is None or has_newer(checkout.root, checkout.git_dir, self._started):
                reason = "written while the workspace was closed"
                saved = save_checkout(self._repo, self._session, checkout, reason, workspace=self._workspace)
                if saved and not drop_if_same(self._repo, saved, self._workspace):
                    rescues.append(saved)
        # The next step of the removal deletes a worktree's entry in the repository; a clone's HEAD goes here.
        if known and known[0].git_dir == os.path.join(self._moved_to, ".git"):
            with contextlib.suppress(FileNotFoundError):
                unlink_in_git_dir(self._moved_to, "HEAD")
        if rescues and not self._workspace.rescue:
            self._record("rescued", rescue=rescues[0])
        self._notes[:0] = [f"what was written meanwhile is saved as {rescue}" for rescue in rescues]

    def _repair_git_dir(self, root: str) -> None:
        """Make sure that the files can be saved through a git directory that belongs to the workspace.

        An agent can write everything in its clone: `.git` may be missing, or point to another repository,
        which must not be touched. A worktree is known by its entry in the repository, whatever its `.git`
        says.
        """
        if not is_folder(root):
            return
        own = os.path.join(root, ".git")
        if is_folder(own):
            try:
                os.rmdir(own)  # an empty folder is as good as none
            except OSError:
                return
        if not self._checkouts_in(root):
            workspace = self._workspace
            checkouts.recreate_git_dir(self._repo.home, root, workspace.branch, workspace.base, workspace.id)

    def _checkouts_in(self, root: str) -> list[UntrustedCheckout]:
        """Return the workspace in a folder, once for each git directory that belongs to it alone."""
        home = self._repo.home
        found: list[UntrustedCheckout] = []
        own = os.path.join(root, ".git")
        if is_folder(root) and is_folder(own):
            found.append(UntrustedCheckout(root=root, git_dir=own, kind=CLONE_CHECKOUT, home=home.common_dir))
        entry = worktree_git_dir(home, self._workspace.path) if self._workspace.kind != CLONE else ""
        if is_folder(root) and entry:
            found.append(
                UntrustedCheckout(root=root, git_dir=entry, kind=WORKTREE_CHECKOUT, home=home.common_dir)
            )
        return found

    def _restore_missing_folder(self) -> None:
        """Restore the folder of a worktree that was removed by hand, from git's index.

        Staged changes and detached commits are then saved like those of any other workspace.
        """
        path = self._workspace.path
        entry = worktree_git_dir(self._repo.home, path)
        if not entry or self._workspace.kind == CLONE or os.path.lexists(path):
            return
        os.makedirs(path)
        with open(os.path.join(path, ".git"), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"gitdir: {entry}\n")
        run_git("checkout-index", "--all", "--quiet", cwd=path, limit_seconds=1800)


def _settle_branch(home: Checkout, workspace: Workspace, head: str, *, is_landed: bool) -> list[str]:
    """Delete a branch without commits of its own; return a note about the outcome."""
    branch = workspace.branch
    if not head:
        return []
    is_empty = head == workspace.base
    if not is_empty and not is_landed:
        return [f"kept {branch}: it is not merged"]
    if is_checked_out(home, branch):
        return [f"kept {branch}: another checkout is on it"]
    checkouts.delete_branch(home, branch, head)
    return [f"deleted {branch}: it is {'empty' if is_empty else 'merged'}"]


def is_checked_out(home: Checkout, branch: str) -> bool:
    """Return whether a worktree of the repository is on a branch."""
    git_dirs = (home.common_dir, *(entry for entry, _ in list_worktrees(home)))
    heads = (read_first_line(os.path.join(git_dir, "HEAD")) for git_dir in git_dirs)
    return f"ref: refs/heads/{branch}" in heads


def _is_merged(repo: Repository, head: str) -> bool:
    if not head:
        return False
    try:
        target = find_target(repo.home, repo.settings)
    except RepositoryError:
        return False
    return is_merged(repo.home, head, target_tip(repo.home, target))


def discard_opening(
    repo: Repository, session: Session | None, begun: Workspace, error: BaseException
) -> Workspace | None:
    """Remove what was created of a workspace that never became open; no agent has worked in it yet."""
    why = error.message if isinstance(error, LandlaneError) else f"{type(error).__name__}: {error}"
    try:
        _remove_partial_checkout(repo, begun)
        head = begun.base if begun.has_new_branch else ""
        checkouts.unpin_workspace(repo.home, begun.id, branch=begun.branch, head=head)
        free_slots(repo, begun)
        ended: dict[str, object] = {"state": FAILED, "closed_at": repo.wall_ms()}
        return records.update(repo, begun, "failed", session, **ended, why=why[:1000], process={})
    except (LandlaneError, OSError):
        _give_up_process(repo, begun)
        return None


def _give_up_process(repo: Repository, unfinished: Workspace) -> None:
    """Record that this process no longer works on it, so that clean_up.py continues, even if it lives on."""
    try:
        records.update(repo, unfinished, "left", None, process={})
    except LandlaneError:
        return  # it is open or closed by now


def _remove_partial_checkout(repo: Repository, begun: Workspace) -> None:
    """Remove what was created of a checkout, but nothing that another program put in its place."""
    path = begun.path
    if (
        not os.path.lexists(path)
        or os.path.lexists(removal_path(path, begun.id))
        or is_own_checkout(repo.home, path)
    ):
        remove_checkout(repo.home, path, mark=begun.id)
        return
    try:
        if os.listdir(path) == [".git"]:  # a clone whose creation was interrupted at once
            os.rmdir(os.path.join(path, ".git"))
        os.rmdir(path)
    except OSError:
        return  # something is in it that Landlane did not create
    remove_checkout(repo.home, path, mark=begun.id)  # git may know it as a worktree already


def process_ended() -> LandlaneError:
    """Return the error for a step whose process has ended."""
    return LandlaneError("its process has ended", code="PROCESS_ENDED")

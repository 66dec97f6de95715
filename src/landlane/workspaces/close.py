"""Close a workspace: save what exists nowhere else, remove the checkout, free its pins and slots.

Only then is it `closed`. Each step can be repeated, so that workspaces/recover.py can go on after a crash.
"""

from __future__ import annotations

import contextlib
import os

from landlane.errors import Held, LandlaneError, NotAllowed, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git.ancestry import is_merged
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
from landlane.git.untrusted_checkout import CLONE as CLONE_PLACE
from landlane.git.untrusted_checkout import WORKTREE, UntrustedCheckout
from landlane.platform.file_users import processes_in
from landlane.values import as_dict, replace, value
from landlane.workspaces import records as operations
from landlane.workspaces.environment import free_slots
from landlane.workspaces.model import CLONE, CLOSED, CLOSING, FAILED, OPEN, OPENING, Workspace
from landlane.workspaces.recent_changes import has_newer, instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.recent_changes import Instant

    Step = Callable[[str], None]


@value
class Closed:
    """A workspace that is gone, and where what was in it is now."""

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
    on_step: Step = lambda _: None,
) -> Closed:
    """Rescue what exists nowhere else, then remove a workspace. `on_step` hears each step after it is done.

    Raises:
        Held: another live session has it, or live processes are in it.
        RepositoryError: something in it can be neither saved nor removed.
    """
    if not force:
        _check_alone(repo, session, workspace)
    check_no_mounts(workspace.path)
    if workspace.state == OPEN:
        process = as_dict(repo.processes.current())
        going = operations.change_state(repo, workspace, "closing", session, state=CLOSING, process=process)
        return finish_or_leave(repo, session, going, on_step, "closing")
    taken = operations.take_over(repo, workspace, workspace.state)
    if taken is None:
        raise NotAllowed(
            f"{workspace.id} is {workspace.state} by another process",
            code="WORKSPACE_BUSY",
            hint="try again in a moment",
        )
    if taken.state == CLOSING:
        return finish_or_leave(repo, session, taken, on_step)
    given_up = give_up(repo, session, taken, process_ended())
    return Closed(workspace=given_up or taken, rescue="", is_merged=False)


def _check_alone(repo: Repository, session: Session | None, workspace: Workspace) -> None:
    is_own = session is not None and workspace.session == session.id
    if not is_own and operations.is_held(repo, workspace):
        raise operations.held_by(workspace)
    inside = processes_inside(workspace)
    if inside:
        named = ", ".join(f"{pid} ({name})" for pid, name in inside[:5])
        raise Held(
            f"{len(inside)} live process{'es are' if len(inside) > 1 else ' is'} in {workspace.id}: {named}",
            code="WORKSPACE_IN_USE",
            hint="end them, or close it anyway with --force: everything is rescued first",
            holder=workspace.agent,
            processes=[pid for pid, _ in inside],
        )


def finish_or_leave(
    repo: Repository, session: Session | None, going: Workspace, on_step: Step, done: str = ""
) -> Closed:
    """Go to the end; or say that nobody is at it any more, for this process may live on for long."""
    try:
        if done:
            on_step(done)
        return _finish(repo, session, going, on_step)
    except BaseException:
        _leave(repo, going)
        raise


def processes_inside(workspace: Workspace) -> list[tuple[int, str]]:
    """The processes in a workspace, also when its folder was renamed under them to be removed."""
    return [*processes_in(workspace.path), *processes_in(removal_path(workspace.path, workspace.id))]


def _finish(repo: Repository, session: Session | None, going: Workspace, on_step: Step) -> Closed:
    """The second half, which can be done again: save, remove, let go, and write down that it is gone."""
    is_renamed = is_folder(removal_path(going.path, going.id))
    began: Instant | None = None
    others: list[str] = []
    try:
        if not is_renamed:
            _rebuild_if_gone(repo.home, going)
            began = instant(os.path.dirname(going.path), os.path.join(repo.common_dir, "landlane"))
            going, others = _save(repo, session, going, on_step)
    except BaseException as error:
        # Nothing was removed yet: it is as it was, and whoever closes it next hears the same reason.
        why = error.message if isinstance(error, LandlaneError) else str(error)
        operations.change_state(repo, going, "kept", session, state=OPEN, process={}, why=why[:1000])
        raise
    head = commit_at(repo.home, f"refs/heads/{going.branch}")
    merged = _is_merged(repo, head)
    late: list[str] = []

    def look_again() -> None:
        nonlocal going
        late.extend(_save_late(repo, session, going, began))
        if late and not going.rescue:
            going = operations.change_state(repo, going, "rescued", session, rescue=late[0])

    def after(step: str) -> None:
        if step == "renamed":
            _mend_git_dir(repo.home, going, removal_path(going.path, going.id))
            look_again()
        on_step(step)

    if is_renamed:  # whoever renamed it may have been cut off before the second look
        look_again()
    remove_checkout(repo.home, going.path, mark=going.id, on_step=after)
    on_step("removed")
    notes = [f"what was written meanwhile is {one}" for one in late]
    notes += [f"what the repository knew of its worktree is {one}" for one in others]
    notes += _settle_branch(repo.home, going, head, is_merged=merged)
    checkouts.unpin_workspace(repo.home, going.id, branch=going.branch)
    on_step("unpinned")
    free_slots(repo, going)
    on_step("freed")
    closed = operations.change_state(
        repo,
        going,
        "closed",
        session,
        state=CLOSED,
        is_merged=merged,
        closed_at=repo.wall_ms(),
        process={},
        slots={},
        why="",
    )
    on_step("closed")
    return Closed(workspace=closed, rescue=going.rescue, is_merged=merged, notes=tuple(notes))


def _save(
    repo: Repository, session: Session | None, going: Workspace, on_step: Step
) -> tuple[Workspace, list[str]]:
    """Bring home what exists only in the workspace; tells also the rescues that it does not name."""
    from landlane.rescue.save import drop_same_rescues, save_checkout, save_located  # noqa: PLC0415 - lists load this module, too

    if not is_folder(going.path):
        return going, []
    _mend_git_dir(repo.home, going, going.path)
    if going.kind == CLONE:
        checkouts.fetch_clone_branch(repo.home, going.path, going.branch)
        on_step("brought")
    reason = f"closing {going.id}"
    saved = [save_checkout(repo, session, going.path, reason, workspace=going)]
    # A repository that somebody made in a worktree hides what git had of the worktree itself.
    saved += [
        save_located(repo, session, place, reason, workspace=going)
        for place in _places(repo.home, going, going.path)[1:]
    ]
    on_step("saved")
    rescues = [one for one in saved if one]
    if not rescues:
        return going, []
    for one in rescues:
        drop_same_rescues(repo, one, going)
    now = operations.change_state(repo, going, "rescued", session, rescue=rescues[0])
    on_step("rescued")
    return now, rescues[1:]


def _mend_git_dir(home: Checkout, going: Workspace, root: str) -> None:
    """Make sure that there is a git directory of its own to save the files by.

    An agent can write to all of its clone: `.git` may be gone, or lead to the repository of another, which
    is none of its business. A worktree is known by its entry in the repository; what its `.git` says does not
    count.
    """
    if not is_folder(root):
        return
    own = os.path.join(root, ".git")
    if is_folder(own):
        try:
            os.rmdir(own)  # nothing is in it: as good as none
        except OSError:
            return
    if not _places(home, going, root):
        checkouts.recreate_git_dir(home, root, going.branch, going.base, going.id)


def _places(home: Checkout, going: Workspace, root: str) -> list[UntrustedCheckout]:
    """A workspace in a folder, by each git directory that is its own and no one else's."""
    found: list[UntrustedCheckout] = []
    own = os.path.join(root, ".git")
    if is_folder(root) and is_folder(own):
        found.append(UntrustedCheckout(root=root, git_dir=own, kind=CLONE_PLACE, home=home.common_dir))
    entry = worktree_git_dir(home, going.path) if going.kind != CLONE else ""
    if is_folder(root) and entry:
        found.append(UntrustedCheckout(root=root, git_dir=entry, kind=WORKTREE, home=home.common_dir))
    return found


def _rebuild_if_gone(home: Checkout, going: Workspace) -> None:
    """Somebody removed the folder of a worktree by hand, but git still has its index and its HEAD.

    With the folder back, as the index says it was, staged changes and detached commits are saved like any.
    """
    entry = worktree_git_dir(home, going.path)
    if not entry or going.kind == CLONE or os.path.lexists(going.path):
        return
    os.makedirs(going.path)
    with open(os.path.join(going.path, ".git"), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"gitdir: {entry}\n")
    run_git("checkout-index", "--all", "--quiet", cwd=going.path, limit_seconds=1800)


def _save_late(
    repo: Repository, session: Session | None, going: Workspace, since: Instant | None
) -> list[str]:
    """Save what was written after the first look, now that nobody new finds the folder.

    That this is done shows in the folder itself: git does not know it any more, before the first file goes.
    So whoever goes on after a crash never takes a half-deleted folder for somebody's deletions.
    """
    from landlane.rescue.save import drop_if_same, save_located  # noqa: PLC0415 - lists load this module, too

    root = removal_path(going.path, going.id)
    known = _places(repo.home, going, root)
    found: list[str] = []
    for place in known:
        if not os.path.lexists(os.path.join(place.git_dir, "HEAD")):
            continue
        if since is None or has_newer(place.root, place.git_dir, since):
            reason = f"written while {going.id} was closed"
            saved = save_located(repo, session, place, reason, workspace=going)
            if saved and not drop_if_same(repo, saved, going):
                found.append(saved)
    # A worktree is forgotten by the repository, as the next step of its removal.
    if known and known[0].git_dir == os.path.join(root, ".git"):
        with contextlib.suppress(FileNotFoundError):
            unlink_in_git_dir(root, "HEAD")
    return found


def _settle_branch(home: Checkout, going: Workspace, head: str, *, is_merged: bool) -> list[str]:
    """Delete a branch that holds nothing of its own; tells what became of it."""
    if not head:
        return []
    is_empty = head == going.base
    if not is_empty and not is_merged:
        return [f"{going.branch} stays: it is not merged"]
    if is_checked_out(home, going.branch):
        return [f"{going.branch} stays: another checkout stands on it"]
    checkouts.delete_branch(home, going.branch, head)
    return [f"{going.branch} is {'empty' if is_empty else 'merged'} and was deleted"]


def is_checked_out(home: Checkout, branch: str) -> bool:
    """Whether a worktree of the repository stands on a branch."""
    wanted = f"ref: refs/heads/{branch}"
    for folder in (home.common_dir, *(entry for entry, _ in list_worktrees(home))):
        try:
            with open(os.path.join(folder, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
                if file.readline().rstrip("\n") == wanted:
                    return True
        except OSError:
            continue
    return False


def _is_merged(repo: Repository, head: str) -> bool:
    if not head:
        return False
    try:
        target = find_target(repo.home, repo.settings)
    except RepositoryError:
        return False
    return is_merged(repo.home, head, target_tip(repo.home, target))


def give_up(
    repo: Repository, session: Session | None, begun: Workspace, error: BaseException
) -> Workspace | None:
    """Take back what was made of a workspace that was never handed out: nobody has worked in it yet."""
    why = error.message if isinstance(error, LandlaneError) else f"{type(error).__name__}: {error}"
    try:
        _take_back(repo, begun)
        head = begun.base if begun.has_new_branch else ""
        checkouts.unpin_workspace(repo.home, begun.id, branch=begun.branch, head=head)
        free_slots(repo, begun)
        return operations.change_state(
            repo,
            replace(begun, state=OPENING),
            "failed",
            session,
            state=FAILED,
            why=why[:1000],
            closed_at=repo.wall_ms(),
            process={},
        )
    except (LandlaneError, OSError):
        _leave(repo, replace(begun, state=OPENING))
        return None


def _leave(repo: Repository, half_way: Workspace) -> None:
    """Say that nobody is at it any more, so that the next `mend` goes on."""
    try:
        operations.change_state(repo, half_way, "left", None, process={})
    except LandlaneError:
        return  # it is not half way any more


def _take_back(repo: Repository, begun: Workspace) -> None:
    """Remove what was made of a checkout, and nothing that somebody else put at its place."""
    path = begun.path
    if (
        not os.path.lexists(path)
        or os.path.lexists(removal_path(path, begun.id))
        or is_own_checkout(repo.home, path)
    ):
        remove_checkout(repo.home, path, mark=begun.id)
        return
    try:
        if os.listdir(path) == [".git"]:  # a clone whose maker was cut off at once
            os.rmdir(os.path.join(path, ".git"))
        os.rmdir(path)
    except OSError:
        return  # there is something in it, and none of it is ours
    remove_checkout(repo.home, path, mark=begun.id)  # git may have entered it already


def process_ended() -> LandlaneError:
    """Return the error for a step whose process has ended."""
    return LandlaneError("its process ended", code="PROCESS_ENDED")

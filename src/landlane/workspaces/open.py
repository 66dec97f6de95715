"""Open a workspace: fetch the base, record it, pin commits, create the checkout, lease slots, prepare it.

Only then is it `open`. After a crash, the record shows that it was begun, and clean_up.py removes it.
"""

from __future__ import annotations

import os
import time

from landlane.errors import Held, LandlaneError, Malformed, NotAllowed
from landlane.git import create_checkout as checkouts
from landlane.git.create_checkout import fill_submodules
from landlane.git.refs import refs_below
from landlane.git.run import run_git, try_git_output
from landlane.git.shared_config import set_git_limits
from landlane.git.target import find_base, find_target
from landlane.managed_files.client_files import equip
from landlane.platform.file_users import processes_in
from landlane.rescue.save import drop_same_rescues, save_checkout
from landlane.sandbox.sandboxed_check import CheckPlaces
from landlane.sessions.leases import touch
from landlane.tasks.model import READY, WaitKind
from landlane.tasks.pick import take_task
from landlane.tasks.records import get_task
from landlane.tasks.text import waits_text
from landlane.tasks.waits import find_waits
from landlane.units import byte_size
from landlane.usage.budget import why_over_budget
from landlane.values import value
from landlane.workspaces import records
from landlane.workspaces.clean_up import finish_interrupted
from landlane.workspaces.close import close_workspace, discard_opening
from landlane.workspaces.disk_space import evict_caches, free_bytes
from landlane.workspaces.environment import lease_slots, renew_slots
from landlane.workspaces.locate import find_free_path, forbidden, main_root, make_folder, workspaces_folder
from landlane.workspaces.model import CLONE, IN_TRANSITION, OPEN, OPENING, Workspace, WorkspaceKind
from landlane.workspaces.prepare import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.target import BaseCommit
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task


_TASK_BRANCHES = "refs/heads/landlane/"
_POLL_SECONDS = 0.05


@value
class Opened:
    """An open workspace, whether it is new, and the branches and rescues of earlier attempts."""

    workspace: Workspace
    is_new: bool
    notes: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    rescues: tuple[str, ...] = ()


def open_workspace(
    repo: Repository,
    session: Session,
    task_id: str,
    *,
    kind: str = "",
    is_offline: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
) -> Opened:
    """Create a checkout and a branch for a task, or return the workspace that exists.

    `on_step` is called with the name of each step after it is done.

    Raises:
        RepositoryError: the remote cannot be reached, or git refuses.
        Held: another session works on the task or in its workspace.
        LandlaneError: the workspace could not be prepared; nothing is left behind.
    """
    wanted = kind or repo.settings.workspace.kind
    if wanted not in list(WorkspaceKind):
        raise Malformed(
            f"{wanted[:40]!r} is not a kind of workspace", code="UNKNOWN_KIND", hint="use worktree or clone"
        )
    folder = workspaces_folder(repo)
    for line in finish_interrupted(repo, session):
        repo.report(line)
    records.check_task_available(repo, session, task_id)
    base = find_base(repo.home, find_target(repo.home, repo.settings), is_offline=is_offline)
    _take_task_if_ready(repo, session, task_id, base.commit)
    while True:
        opening = _Opening(repo, session, base, _read_branches(repo, task_id), on_step)
        known, is_new = records.begin(
            repo,
            session,
            task_id,
            WorkspaceKind(wanted),
            free_path=lambda name, taken: find_free_path(folder, name, taken),
            base_fields=opening.base_fields,
        )
        if is_new:
            return opening.create(known)
        if known.state == OPEN and os.path.isdir(known.path):
            saved = _save_former_work(repo, session, known)
            current = known if known.session == session.id else records.adopt(repo, known, session)
            if current is not None:  # else another session was faster
                return opening.result(renew_slots(repo, session, current), is_new=False, rescues=saved)
        elif known.state == OPEN:
            # The folder was removed by hand. Closing saves what git still has of it.
            repo.report(f"{known.path} no longer exists: closed {known.id} and opening a new workspace")
            close_workspace(repo, session, known, force=True)
        else:
            _wait_for_other_process(repo, known)


def _take_task_if_ready(repo: Repository, session: Session, task_id: str, base: str) -> None:
    """Take a task without an owner, so that `next` does not give it to another session.

    Raises:
        Held: another session holds paths that the task will change, or it is offered again only later.
        NotAllowed: its budget is used up.
    """
    if get_task(repo, task_id).state != READY:
        return
    picked = take_task(repo, session, task_id, base)
    if picked is not None:
        repo.report(f"{task_id} and its paths are yours now")
        if picked.saved is not None:
            repo.report(picked.saved.note)
        return
    task = get_task(repo, task_id)
    if task.state == READY:
        raise _not_taken_error(repo, task)


def _not_taken_error(repo: Repository, task: Task) -> LandlaneError:
    """Return the error for a ready task that could not be taken, with what it waits for."""
    why = why_over_budget(repo, task)
    if why:
        hint = "see what was spent: landlane usage"
        return NotAllowed(
            f"{task.id} {task.title} is over its budget ({why})", code="OVER_BUDGET", hint=hint, task=task.id
        )
    waits = find_waits(repo, [task]).get(task.id, ())
    now = repo.store.wall_of(repo.store.view(lambda snapshot: snapshot.now))
    is_held = not waits or any(wait.kind == WaitKind.CLAIM for wait in waits)
    return Held(
        f"{task.id} {task.title} waits for {waits_text(waits, now, is_person=False) or 'a claimed path'}",
        code="TASK_PATHS_HELD" if is_held else "TASK_WAITS",
        hint="take a task that is free: landlane next",
        task=task.id,
    )


def _save_former_work(repo: Repository, session: Session, known: Workspace) -> tuple[str, ...]:
    """Save what an ended session left in its workspace, before this session changes anything there."""
    if known.session == session.id:
        return ()
    reason = f"{session.agent} took over {known.id}"
    saved = save_checkout(repo, session, known.path, reason, workspace=known)
    if not saved:
        return ()
    drop_same_rescues(repo, saved, known)
    repo.report(f"the changes that {known.agent} left in {known.id} are still there, and saved as {saved}")
    return (saved,)


def _wait_for_other_process(repo: Repository, known: Workspace) -> None:
    """Wait while another process opens or closes the same workspace, or finish its work if it has ended.

    Raises:
        NotAllowed: it takes longer than the settings allow for one step, or a child of it still runs.
    """
    repo.report(f"{known.id} is being {'opened' if known.state == OPENING else 'closed'} by another process")
    give_up_at = time.monotonic() + repo.settings.workspace.limit_ms / 1000
    while time.monotonic() < give_up_at:
        now = records.find(repo, known.id)
        if now is None or now.state not in IN_TRANSITION:
            return
        if records.is_abandoned(repo, now) and not records.is_in_this_process(repo, now):
            finish_interrupted(repo)
            if users := processes_in(now.path):
                pid, name = users[0]
                raise _busy(f"{now.id} was interrupted, and process {pid} ({name}) still runs in it")
            return
        time.sleep(_POLL_SECONDS)
    raise _busy(f"another process has been {known.state} {known.id} for a long time")


def _busy(message: str) -> NotAllowed:
    return NotAllowed(message, code="WORKSPACE_BUSY", hint="wait for that process or end it, then try again")


def _read_branches(repo: Repository, task_id: str) -> dict[str, str]:
    """Return the branches of all attempts at a task, with their heads."""
    known = refs_below(repo.common_dir, f"{_TASK_BRANCHES}{task_id}-", "/work")
    if known is None:
        form = "--format=%(refname) %(objectname)"
        listed = try_git_output(repo.home, "for-each-ref", form, f"{_TASK_BRANCHES}{task_id}-*/work")
        known = dict(line.split(" ") for line in listed.splitlines())
    return {ref.removeprefix("refs/heads/"): commit for ref, commit in known.items()}


class _Opening:
    """Creates one workspace. `branches` are those of earlier attempts with their heads."""

    def __init__(
        self,
        repo: Repository,
        session: Session,
        base: BaseCommit,
        branches: dict[str, str],
        on_step: Callable[[str], None],
    ) -> None:
        self._repo = repo
        self._session = session
        self._base = base
        self._branches = branches
        self._on_step = on_step

    def base_fields(self, branch: str) -> dict[str, object]:
        """Return the fields about the base; an existing branch counts from where it left the target."""
        head = self._branches.get(branch, "")
        base = try_git_output(self._repo.home, "merge-base", self._base.commit, head) if head else ""
        return {
            "base": base or self._base.commit,
            "target": self._base.target.branch,
            "is_offline": not self._base.is_fresh,
            "has_new_branch": not head,
        }

    def create(self, begun: Workspace) -> Opened:
        """Create the checkout of a workspace that was recorded, or remove everything again."""
        try:
            saved = self._save_earlier_attempts(begun)
            self._on_step("begun")
            self._free_disk_space(os.path.dirname(begun.path))
            begun = self._create_folder(begun)
            start = self._create_checkout(begun)
            opened = self._prepare(begun)
        except BaseException as error:
            discard_opening(self._repo, self._session, begun, error)
            raise
        notes = [] if self._base.is_fresh else [self._offline_note()]
        notes += _lfs_notes(begun.path)
        if not begun.has_new_branch:
            notes.append(f"{begun.branch} already exists: the workspace continues at {start[:8]}")
        return self.result(opened, is_new=True, notes=notes, rescues=saved)

    def result(
        self, workspace: Workspace, *, is_new: bool, notes: list[str] | None = None, rescues: tuple[str, ...]
    ) -> Opened:
        """Return the workspace with the branches and rescues of earlier attempts at the same task."""
        ended = records.list_ended(self._repo, workspace.task)
        earlier = dict.fromkeys(one.rescue for one in ended if one.rescue)
        return Opened(
            workspace=workspace,
            is_new=is_new,
            notes=tuple(notes or ()),
            branches=tuple(branch for branch in self._branches if branch != workspace.branch),
            rescues=(*earlier, *rescues),
        )

    def _save_earlier_attempts(self, begun: Workspace) -> tuple[str, ...]:
        """Save what ended sessions left in workspaces of earlier attempts, so that this one can use it."""
        saved: list[str] = []
        for one in records.list_open(self._repo):
            is_earlier = one.task == begun.task and one.id != begun.id
            if is_earlier and not records.is_held(self._repo, one):
                saved += _save_former_work(self._repo, self._session, one)
        return tuple(saved)

    def _free_disk_space(self, folder: str) -> None:
        """Remove caches of abandoned workspaces if less space is free than the settings want."""
        repo = self._repo
        if free_bytes(folder) >= repo.settings.workspace.disk_floor_bytes:
            return
        try:
            for path, size in evict_caches(repo):
                repo.report(f"deleted the cache {path} ({byte_size(size)})")
        except (LandlaneError, OSError) as error:
            repo.report(f"cannot delete caches: {error}")

    def _create_folder(self, begun: Workspace) -> Workspace:
        """Create the empty folder, under another name if something appeared there in the meantime."""
        parent, name = os.path.split(begun.path)
        make_folder(parent)
        while True:
            try:
                os.mkdir(begun.path)
            except FileExistsError:
                path = find_free_path(parent, name)
                begun = records.update(self._repo, begun, "placed", self._session, path=path)
            except OSError as error:
                raise forbidden(parent, error.strerror or str(error)) from error
            else:
                return begun

    def _create_checkout(self, begun: Workspace) -> str:
        """Pin the commits, create the checkout with its files, and return the commit it starts at."""
        home = self._repo.home
        set_git_limits(home)
        self._repo.report(f"{begun.id}: new {begun.kind} from {begun.target} at {begun.base[:8]}")
        start = self._branches.get(begun.branch) or begun.base
        if begun.kind == CLONE:
            refs = {**self._branches, begun.target: self._base.commit}
            checkouts.pin_workspace(home, begun.id, begun.base, (start, *refs.values()))
            self._on_step("pinned")
            checkouts.add_clone(home, begun.path, begun.branch, start, refs)
        else:
            new_branch = begun.branch if begun.has_new_branch else ""
            checkouts.pin_workspace(home, begun.id, begun.base, (start,), branch=new_branch)
            self._on_step("pinned")
            checkouts.add_worktree(home, begun.path, begun.branch)
        self._on_step("entered")
        checkouts.write_files(begun.path)
        self._on_step("written")
        if os.path.exists(os.path.join(begun.path, ".gitmodules")):
            fill_submodules(home, begun.path, is_clone=begun.kind == CLONE)
        return start

    def _prepare(self, begun: Workspace) -> Workspace:
        """Lease slots, run the steps of the settings, install client hooks, and record that it is open."""
        repo, session = self._repo, self._session
        slots, environment = lease_slots(repo, session, begun)
        self._on_step("leased")
        # A sign of life on every tick: installing can take longer than a lease.
        tick = lambda: touch(repo.store, session)  # noqa: E731
        places = CheckPlaces(
            root=main_root(repo.home), common_dir=repo.common_dir, state_folder=repo.state_folder
        )
        prepare(repo.settings, places, begun.path, environment, repo.report, tick)
        equip(repo, begun.path)
        self._on_step("prepared")
        fields: dict[str, object] = {"state": OPEN, "slots": slots, "environment": environment, "process": {}}
        opened = records.update(repo, begun, "opened", session, **fields)
        self._on_step("opened")
        return opened

    def _offline_note(self) -> str:
        target = self._base.target
        return f"OFFLINE: started from {target.remote}/{target.branch} as it was fetched last"


def _lfs_notes(path: str) -> list[str]:
    """Return a note if large files are only pointers in this checkout."""
    try:
        with open(os.path.join(path, ".gitattributes"), encoding="utf-8", errors="replace") as file:
            has_lfs = "filter=lfs" in file.read(1_000_000)
    except OSError:
        return []
    if has_lfs and not run_git("config", "filter.lfs.smudge", cwd=path).stdout.strip():
        return ["Git LFS is not set up: large files are pointers here; `git lfs install && git lfs pull`"]
    return []

"""Opening workspaces.

The base is fetched, the record written, what is needed pinned, the checkout entered and filled, its slots
leased, the manifest carried out; only then is it `open`. After a crash the record tells that it was begun,
and `closing.mend` takes back what there is of it.
"""

from __future__ import annotations

import os
import time

from landlane.errors import Held, LandlaneError, Malformed, NotAllowed
from landlane.git import create_checkout as checkouts
from landlane.git.refs import refs_below
from landlane.git.run import run_git, try_git_output
from landlane.git.shared_config import set_git_limits
from landlane.git.submodules import fill_submodules
from landlane.git.target import find_base, find_target
from landlane.managed_files.client_files import equip
from landlane.platform.file_users import processes_in
from landlane.rescue.save import drop_same_rescues, save_checkout
from landlane.sessions.leases import touch
from landlane.tasks.model import READY
from landlane.tasks.pick import take_task
from landlane.tasks.records import get_task
from landlane.values import replace, value
from landlane.workspaces import records as operations
from landlane.workspaces.close import close_workspace, give_up
from landlane.workspaces.disk_space import evict_caches, free_bytes
from landlane.workspaces.environment import lease_slots, renew_slots
from landlane.workspaces.locate import forbidden, free_place, main_root, make_folder, workspaces_folder
from landlane.workspaces.model import CLONE, KINDS, OPEN, OPENING, Workspace
from landlane.workspaces.prepare import prepare
from landlane.workspaces.recover import mend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.target import BaseCommit
    from landlane.repository import Repository
    from landlane.sessions.model import Session

    Step = Callable[[str], None]


INIT_RECORD = "init/record.json"  # what init wrote down, if clients were set up
_OURS = "refs/heads/landlane/"
_LOOK_AGAIN_SECONDS = 0.05


@value
class Opened:
    """A workspace that is ready, whether it was there before, and what earlier attempts left."""

    workspace: Workspace
    is_new: bool
    notes: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    rescues: tuple[str, ...] = ()


@value
class _Ground:
    """What a workspace is made from: the base, and the branches of earlier attempts with their heads."""

    base: BaseCommit
    earlier: dict[str, str]

    def facts_for(self, repo: Repository, branch: str) -> dict[str, object]:
        """What the record says of it; a branch that is there already counts from where it left the target."""
        head = self.earlier.get(branch, "")
        base = try_git_output(repo.home, "merge-base", self.base.commit, head) if head else ""
        return {
            "base": base or self.base.commit,
            "target": self.base.target.branch,
            "is_offline": not self.base.is_fresh,
            "has_new_branch": not head,
        }


def open_workspace(
    repo: Repository,
    session: Session,
    task_id: str,
    *,
    kind: str = "",
    is_offline: bool = False,
    on_step: Step = lambda _: None,
) -> Opened:
    """Make a checkout and a branch for a task, or give back the one that is there.

    `on_step` hears the name of each step after it is done.

    Raises:
        RepositoryError: the remote cannot be reached, or git refuses.
        Held: another session is at work on the task, or in its workspace.
        LandlaneError: the manifest could not be carried out; nothing is left behind.
    """
    wanted = kind or repo.settings.workspace.kind
    if wanted not in KINDS:
        raise Malformed(
            f"{wanted[:40]!r} is no kind of workspace", code="UNKNOWN_KIND", hint="worktree or clone"
        )
    folder = workspaces_folder(repo)
    _mend(repo, session)
    operations.check_free(repo, session, task_id)
    target = find_target(repo.home, repo.settings)
    base = find_base(repo.home, target, is_offline=is_offline)
    _take_if_ready(repo, session, task_id, base.commit)
    while True:
        ground = _Ground(base=base, earlier=_earlier_branches(repo, task_id))
        begun, is_new = operations.begin(
            repo,
            session,
            task_id,
            home=repo.common_dir,
            kind=wanted,
            place=lambda name: free_place(folder, name),
            facts=lambda branch, ground=ground: ground.facts_for(repo, branch),
            wall_ms=repo.wall_ms(),
        )
        if is_new:
            left = _save_earlier(repo, session, begun)
            opened = _fill(repo, session, begun, ground, on_step)
            return replace(opened, rescues=(*opened.rescues, *left))
        if begun.state == OPEN and os.path.isdir(begun.path):
            saved = _save_left(repo, session, begun)
            if begun.session != session.id:
                begun = operations.adopt(repo, begun, session)
            if begun is None:
                continue  # somebody else was faster
            renewed = renew_slots(repo, session, begun)
            left = _left_before(repo, renewed, ground)
            left["rescues"] += saved
            return Opened(workspace=renewed, is_new=False, **left)
        if begun.state == OPEN:
            _close_missing(repo, session, begun)
        else:
            _await_other(repo, begun)


def _take_if_ready(repo: Repository, session: Session, task_id: str, base: str) -> None:
    """Whoever opens a workspace for a task that nobody has is at work on it: else `next` would give it away.

    Raises:
        Held: what it will change is held by another.
    """
    task = get_task(repo, task_id)
    if task.state != READY:
        return
    if take_task(repo, session, task_id, base) is not None:
        repo.report(f"{task_id} is yours now, and its paths with it")
    elif get_task(repo, task_id).state == READY:
        raise Held(
            f"{task_id} will change paths that another holds",
            code="TASK_PATHS_HELD",
            hint="`landlane claims` shows who holds them; `landlane next` gives you a task that is free",
            task=task_id,
        )


def _save_earlier(repo: Repository, session: Session, begun: Workspace) -> tuple[str, ...]:
    """Save what ended sessions left in workspaces of earlier attempts, so that it is in reach of this one."""
    saved: list[str] = []
    for one in operations.list_workspaces(repo):
        is_earlier = one.task == begun.task and one.id != begun.id and one.state == OPEN
        is_ours = is_earlier and operations.is_here(repo, one, repo.common_dir)
        if is_ours and os.path.isdir(one.path) and not operations.is_held(repo, one):
            saved += _save_left(repo, session, one)
    return tuple(saved)


def _save_left(repo: Repository, session: Session, begun: Workspace) -> tuple[str, ...]:
    """Save what an ended session left in its workspace, before another one changes anything there."""
    if begun.session == session.id:
        return ()
    saved = save_checkout(
        repo, session, begun.path, f"{session.agent} takes {begun.id} over", workspace=begun
    )
    if not saved:
        return ()
    drop_same_rescues(repo, saved, begun)
    repo.report(f"what {begun.agent} left in {begun.id} is saved as {saved}, and still there")
    return (saved,)


def _fill(repo: Repository, session: Session, begun: Workspace, ground: _Ground, on_step: Step) -> Opened:
    """Make what was begun, or take everything back."""
    try:
        on_step("begun")
        _make_room(repo, os.path.dirname(begun.path))
        begun = _take_place(repo, session, begun)
        opened, notes = _make(repo, session, begun, ground, on_step)
    except BaseException as error:
        give_up(repo, session, begun, error)
        raise
    base = ground.base
    if not base.is_fresh:
        where = f"{base.target.remote}/{base.target.branch}"
        notes = (f"OFFLINE: begun from {where} as it was fetched last", *notes)
    return Opened(workspace=opened, is_new=True, notes=notes, **_left_before(repo, opened, ground))


def _mend(repo: Repository, session: Session) -> None:
    """Take up what was left half way; loading what that needs is worth it only if there is anything."""
    if operations.list_interrupted(repo):
        for told in mend(repo, session):
            repo.report(told)


def _close_missing(repo: Repository, session: Session, begun: Workspace) -> None:
    """Somebody removed the folder by hand: what git still knows of it is saved, then a new one is made."""
    repo.report(f"{begun.path} is gone: {begun.id} is closed, and opened anew")
    close_workspace(repo, session, begun, force=True)


def _await_other(repo: Repository, begun: Workspace) -> None:
    """Wait while another process opens or closes the same workspace; whoever asks twice gets one answer.

    Raises:
        NotAllowed: it takes longer than the settings allow one step to take.
    """
    repo.report(f"{begun.id} is being {'opened' if begun.state == OPENING else 'closed'} by another process")
    give_up_at = time.monotonic() + repo.settings.workspace.limit_ms / 1000
    while time.monotonic() < give_up_at:
        now = operations.find(repo, begun.id)
        if now is None or now.state not in operations.HALF_WAY:
            return
        if operations.is_abandoned(repo, now) and not operations.is_own(repo, now):
            _check_mended(repo, now)
            return
        time.sleep(_LOOK_AGAIN_SECONDS)
    raise _busy(f"{begun.id} has been {begun.state} for long")


def _check_mended(repo: Repository, left: Workspace) -> None:
    """Take back what another process has just left half way; a child of it may still be in the way."""
    mend(repo)
    inside = processes_in(left.path)
    if inside:
        pid, name = inside[0]
        raise _busy(f"{left.id} was left half way, and process {pid} ({name}) still runs in it")


def _busy(message: str) -> NotAllowed:
    return NotAllowed(message, code="WORKSPACE_BUSY", hint="end that process, or wait for it; then try again")


def _take_place(repo: Repository, session: Session, begun: Workspace) -> Workspace:
    """Make the empty folder, which only one can; what appeared there meanwhile is somebody else's."""
    make_folder(os.path.dirname(begun.path))
    while True:
        try:
            os.mkdir(begun.path)
        except FileExistsError:
            path = free_place(*os.path.split(begun.path))
            begun = operations.change_state(repo, begun, "placed", session, path=path)
        except OSError as error:
            raise forbidden(os.path.dirname(begun.path), error.strerror or str(error)) from error
        else:
            return begun


def _make_room(repo: Repository, folder: str) -> None:
    """Remove caches of workspaces that nobody has, if there is less room than the settings want."""
    settings = repo.settings
    if not settings.workspace.disk_floor_bytes or not settings.workspace.caches:
        return
    if free_bytes(folder) >= settings.workspace.disk_floor_bytes:
        return
    try:
        for path, size in evict_caches(repo):
            repo.report(f"evicted {path} ({size:,} bytes)")
    except (LandlaneError, OSError) as error:
        repo.report(f"no cache was evicted: {error}")


def _make(
    repo: Repository, session: Session, begun: Workspace, ground: _Ground, on_step: Step
) -> tuple[Workspace, tuple[str, ...]]:
    home = repo.home
    set_git_limits(home)
    repo.report(f"{begun.kind} of {begun.target} at {begun.base[:12]}")
    start = ground.earlier.get(begun.branch) or begun.base
    if begun.kind == CLONE:
        refs = {**ground.earlier, begun.target: ground.base.commit}
        checkouts.pin_workspace(home, begun.id, begun.base, (start, *refs.values()))
        on_step("pinned")
        checkouts.add_clone(home, begun.path, begun.branch, start, refs)
    else:
        new_branch = begun.branch if begun.has_new_branch else ""
        checkouts.pin_workspace(home, begun.id, begun.base, (start,), branch=new_branch)
        on_step("pinned")
        checkouts.add_worktree(home, begun.path, begun.branch)
    on_step("entered")
    checkouts.write_files(begun.path)
    on_step("written")
    _fill_submodules(repo, begun)
    opened = _make_runnable(repo, session, begun, on_step)
    notes = [_pointers_note(begun.path)]
    if not begun.has_new_branch:
        notes.append(f"{begun.branch} was there already: the workspace goes on at {start[:12]}")
    return opened, tuple(note for note in notes if note)


def _fill_submodules(repo: Repository, begun: Workspace) -> None:
    if os.path.exists(os.path.join(begun.path, ".gitmodules")):
        fill_submodules(repo.home, begun.path, is_clone=begun.kind == CLONE)


def _make_runnable(repo: Repository, session: Session, begun: Workspace, on_step: Step) -> Workspace:
    """Lease slots, carry the manifest out, and write down that it is open."""
    leased, environment = lease_slots(repo, session, begun)
    on_step("leased")
    settings = repo.settings
    steps = (settings.workspace.copy, settings.workspace.link, settings.workspace.install)
    if any(steps) or settings.workspace.generate or settings.workspace.check:
        tick = lambda: touch(repo.store, session)  # noqa: E731 - a sign of life, however long it takes
        prepare(settings, main_root(repo.home), begun.path, environment, repo.report, tick)
    if os.path.exists(os.path.join(repo.home.state_folder, INIT_RECORD)):
        equip(repo, begun.path)
    on_step("prepared")
    opened = operations.change_state(
        repo,
        begun,
        "opened",
        session,
        state=OPEN,
        slots=leased,
        environment=environment,
        process={},
    )
    on_step("opened")
    return opened


def _pointers_note(path: str) -> str:
    """Say so when large files are only pointers here."""
    attributes = os.path.join(path, ".gitattributes")
    try:
        with open(attributes, encoding="utf-8", errors="replace") as file:
            has_lfs = "filter=lfs" in file.read(1_000_000)
    except OSError:
        return ""
    if has_lfs and not run_git("config", "filter.lfs.smudge", cwd=path).stdout.strip():
        return "Git LFS is not set up: large files are pointers here; `git lfs install && git lfs pull`"
    return ""


def _earlier_branches(repo: Repository, task_id: str) -> dict[str, str]:
    """The branches of all attempts at a task, with their heads."""
    known = refs_below(repo.common_dir, f"{_OURS}{task_id}-", "/work")
    if known is not None:
        return {ref.removeprefix("refs/heads/"): commit for ref, commit in known.items()}
    form = "--format=%(objectname) %(refname)"
    lines = try_git_output(repo.home, "for-each-ref", form, f"{_OURS}{task_id}-*/work").splitlines()
    rows = (line.partition(" ") for line in lines)
    return {ref.removeprefix("refs/heads/"): commit for commit, _, ref in rows}


def _left_before(repo: Repository, workspace: Workspace, ground: _Ground) -> dict[str, tuple[str, ...]]:
    """The branches and rescues of earlier attempts at the same task."""
    tried = operations.earlier(repo, workspace.task)
    rescues = tuple(dict.fromkeys(one.rescue for one in tried if one.rescue))
    branches = tuple(branch for branch in ground.earlier if branch != workspace.branch)
    return {"branches": branches, "rescues": rescues}

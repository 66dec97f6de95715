"""Opening, closing and looking after workspaces.

Opening: the record is written, the base fetched and pinned, the checkout entered and filled, its slots leased,
the manifest carried out; only then is it `open`. Closing: what exists nowhere else is rescued, the checkout
removed, its slots freed; only then is it `closed`. After a crash the record tells how far it was, and
`mend` goes on: back to nothing for one that was being opened, to the end for one that was being closed.
"""

from __future__ import annotations

import os
import shlex

from interlock.domain.slots import SlotRefused, known_kinds, make_wish, workspace_id
from interlock.domain.tasks import OVER
from interlock.domain.workspaces import CLONE, CLOSED, CLOSING, FAILED, KINDS, OPEN, OPENING, Workspace
from interlock.errors import Held, InterlockError, Malformed, NotAllowed, RepositoryError
from interlock.flows.preparing import prepare
from interlock.flows.rescues import save_checkout
from interlock.git import checkouts
from interlock.git.merged import is_merged
from interlock.git.run import ask
from interlock.git.target import find_base, find_target, tip_of
from interlock.operations import slots as slot_operations
from interlock.operations import workspaces as operations
from interlock.operations.leases import touch
from interlock.operations.tasks import get_task
from interlock.runners.inhabitants import processes_in
from interlock.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.domain.agents import Session
    from interlock.flows.site import Site


@value
class Opened:
    """A workspace that is ready, whether it was there before, and what earlier attempts left."""

    workspace: Workspace
    is_new: bool
    notes: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    rescues: tuple[str, ...] = ()


@value
class Closed:
    """A workspace that is gone, and where what was in it is now."""

    workspace: Workspace
    rescue: str
    is_merged: bool
    notes: tuple[str, ...] = ()


def workspaces_folder(site: Site) -> str:
    """Where workspaces lie: beside the repository, so that no tool walks into them."""
    home = site.home
    root = home.root if os.path.basename(home.common_dir) == ".git" else home.common_dir
    named = site.settings.workspace_folder
    if not named:
        return os.path.join(os.path.dirname(root), f"{os.path.basename(root)}.workspaces")
    folder = os.path.normpath(os.path.join(root, named))
    if folder == root or folder.startswith(root + "/"):
        raise Malformed(
            f"[workspace] folder is {folder}, inside the repository, where every tool would walk into it",
            code="WORKSPACE_INSIDE",
            hint="name a folder outside of it, such as ../workspaces",
        )
    return folder


def open_workspace(
    site: Site, session: Session, task_id: str, *, kind: str = "", is_offline: bool = False
) -> Opened:
    """Make a checkout and a branch for a task, or give back the one that is there.

    Raises:
        RepositoryError: the remote cannot be reached, or git refuses.
        Held: another session is at work on the task.
        InterlockError: the manifest could not be carried out; nothing is left behind.
    """
    wanted = kind or site.settings.workspace_kind
    if wanted not in KINDS:
        raise Malformed(
            f"{wanted[:40]!r} is no kind of workspace", code="UNKNOWN_KIND", hint="worktree or clone"
        )
    folder = workspaces_folder(site)
    mend(site, session)
    target = find_target(site.home, site.settings)
    base = find_base(site.home, target, is_offline=is_offline)
    begun = operations.begin(
        site.context,
        session,
        task_id,
        home=site.common_dir,
        kind=wanted,
        place=lambda name: _free_place(folder, name),
        wall_ms=site.wall_ms(),
    )
    if begun.state == OPEN and os.path.isdir(begun.path):
        return Opened(workspace=begun, is_new=False, **_left_before(site, begun))
    if begun.state != OPENING or not operations.is_forsaken(site.context, begun):
        raise NotAllowed(
            f"{begun.id} for {task_id} is being {'opened' if begun.state == OPENING else 'closed'} just now",
            code="WORKSPACE_BUSY",
            hint="try again in a moment",
        )
    begun = replace(begun, base=base.commit, target=target.branch, is_offline=not base.is_fresh)
    try:
        opened, notes = _make(site, session, begun)
    except BaseException as error:
        _give_up(site, session, begun, error)
        raise
    if not base.is_fresh:
        notes = (f"OFFLINE: begun from {target.remote}/{target.branch} as it was fetched last", *notes)
    return Opened(workspace=opened, is_new=True, notes=notes, **_left_before(site, opened))


def _free_place(folder: str, name: str) -> str:
    """A path that nothing lies at; what somebody else put there is not touched."""
    path, count = os.path.join(folder, name), 1
    while os.path.lexists(path):
        count += 1
        path = os.path.join(folder, f"{name}-{count}")
    return path


def _make(site: Site, session: Session, begun: Workspace) -> tuple[Workspace, tuple[str, ...]]:
    from interlock.git.settings import set_git_limits

    home = site.home
    os.makedirs(os.path.dirname(begun.path), exist_ok=True)
    set_git_limits(home)
    earlier_head = ask(home, "rev-parse", "--verify", "--quiet", f"refs/heads/{begun.branch}")
    begun = operations.change_state(
        site.context,
        replace(begun, state=OPENING),
        "based",
        session,
        base=begun.base,
        target=begun.target,
        is_offline=begun.is_offline,
        has_new_branch=not earlier_head,
    )
    add = checkouts.add_clone if begun.kind == CLONE else checkouts.add_worktree
    site.tell(f"{begun.kind} of {begun.target} at {begun.base[:12]}")
    add(home, begun.path, begun.branch, earlier_head or begun.base, checkouts.base_ref(begun.id))
    checkouts.write_files(begun.path)
    checkouts.fill_submodules(home, begun.path)
    leased, environment = _lease_slots(site, session, begun)
    begun = replace(begun, slots=leased, environment=environment)
    prepare(
        site.settings,
        home.root,
        begun.path,
        environment,
        site.tell,
        lambda: touch(site.context.store, session),
    )
    opened = operations.change_state(
        site.context,
        begun,
        "opened",
        session,
        state=OPEN,
        slots=leased,
        environment=environment,
        process={},
    )
    notes = _pointers_note(begun.path)
    return opened, (notes,) if notes else ()


def _pointers_note(path: str) -> str:
    """Say so when large files are only pointers here."""
    attributes = os.path.join(path, ".gitattributes")
    try:
        with open(attributes, encoding="utf-8", errors="replace") as file:
            has_lfs = "filter=lfs" in file.read(1_000_000)
    except OSError:
        return ""
    from interlock.git.run import run_git

    if has_lfs and not run_git("config", "filter.lfs.smudge", cwd=path).text.strip():
        return "Git LFS is not set up: large files are pointers here; `git lfs install && git lfs pull`"
    return ""


def _lease_slots(site: Site, session: Session, begun: Workspace) -> tuple[dict[str, str], dict[str, str]]:
    """Lease what the workspace needs beside files; the variables that tell of it."""
    context = site.context
    leased: dict[str, str] = {}
    environment = {"INTERLOCK_WORKSPACE": begun.id, "INTERLOCK_TASK": begun.task}
    place = workspace_id(context.processes.machine, begun.path)
    for variable, kind in site.settings.workspace_slots:
        wish = make_wish(known_kinds(site.settings.slots), kind, name=variable, amount=1, workspace=place)
        outcome = slot_operations.take_slot(context, session, wish)
        if isinstance(outcome, SlotRefused):
            for slot in leased.values():
                slot_operations.free(context, session, slot)
            holder = outcome.holders[0].agent if outcome.holders else ""
            raise Held(
                f"no {kind} is left for {variable}: all {outcome.size} are held",
                code="SLOT_TAKEN",
                hint=outcome.hint,
                holder=holder,
            )
        leased[variable] = outcome.slot.id
        environment[variable] = outcome.slot.place or str(outcome.slot.amount)
    return leased, environment


def _left_before(site: Site, workspace: Workspace) -> dict[str, tuple[str, ...]]:
    """The branches and rescues of earlier attempts at the same task."""
    tried = operations.earlier(site.context, workspace.task)
    pattern = f"refs/heads/interlock/{workspace.task}-*"
    refs = ask(site.home, "for-each-ref", "--format=%(refname:short)", f"{pattern}/work").splitlines()
    rescues = tuple(dict.fromkeys(one.rescue for one in tried if one.rescue))
    return {"branches": tuple(ref for ref in refs if ref != workspace.branch), "rescues": rescues}


def _give_up(site: Site, session: Session | None, begun: Workspace, error: BaseException) -> None:
    """Take back what was made of a workspace that could not be opened."""
    why = error.message if isinstance(error, InterlockError) else f"{type(error).__name__}: {error}"
    try:
        _remove(site, begun, is_fresh=True)
        _free_slots(site, begun)
        ended = site.wall_ms()
        operations.change_state(
            site.context,
            replace(begun, state=OPENING),
            "failed",
            session,
            state=FAILED,
            why=why[:1000],
            closed_at=ended,
        )
    except InterlockError:
        return  # `mend` will find it


def _remove(site: Site, workspace: Workspace, *, is_fresh: bool) -> None:
    """Remove the checkout and the pin; of one that was never open, also the branch that was made for it."""
    home = site.home
    checkouts.remove_checkout(home, workspace.path)
    head = workspace.base if is_fresh and workspace.has_new_branch else ""
    checkouts.drop_branch(home, workspace.branch, head, [checkouts.base_ref(workspace.id)])


def _free_slots(site: Site, workspace: Workspace) -> None:
    """Give back what was leased with a workspace, if it is still held by whoever leased it."""
    from interlock.operations.leases import session_from

    if not workspace.slots:
        return
    row = site.context.store.view(lambda reading: reading.one("session_get", session=workspace.session))
    if row is None or row[12] is not None:
        return
    for slot in workspace.slots.values():
        try:
            slot_operations.free(site.context, session_from(row), slot)
        except InterlockError:
            continue


def find_workspace(site: Site, text: str) -> Workspace:
    """The workspace that an id, a task or a folder means; without a text, the one we stand in.

    Raises:
        Malformed: there is none.
    """
    known = operations.list_workspaces(site.context)
    known = [one for one in known if operations.is_here(site.context, one, site.common_dir)]
    path = os.path.realpath(text) if text else site.here.root
    meant = [one for one in known if one.id == text] or [one for one in known if one.path == path]
    meant = meant or [one for one in known if one.task == text]
    meant = meant or [one for one in known if path.startswith(one.path + "/")]
    if meant:
        return meant[-1]
    raise operations.unknown_workspace(text or site.here.root)


def close_workspace(
    site: Site, session: Session | None, workspace: Workspace, *, force: bool = False
) -> Closed:
    """Rescue what exists nowhere else, then remove a workspace.

    Raises:
        Held: another live session has it, or live processes are in it.
        RepositoryError: something in it can be neither saved nor removed.
    """
    if not force:
        _check_alone(site, session, workspace)
    if workspace.state != OPEN:
        taken = operations.take_over(site.context, workspace, CLOSING)
        if taken is None:
            raise NotAllowed(
                f"{workspace.id} is {workspace.state} by another process",
                code="WORKSPACE_BUSY",
                hint="try again in a moment",
            )
        return _finish_closing(site, session, taken)
    process = site.context.processes.current()
    going = operations.change_state(
        site.context,
        workspace,
        "closing",
        session,
        state=CLOSING,
        process={name: getattr(process, name) for name in ("boot_id", "namespace", "pid", "started")},
    )
    return _finish_closing(site, session, going)


def _check_alone(site: Site, session: Session | None, workspace: Workspace) -> None:
    is_own = session is not None and workspace.session == session.id
    if not is_own and operations.is_held(site.context, workspace):
        raise Held(
            f"{workspace.agent} is at work in {workspace.id}",
            code="WORKSPACE_HELD",
            hint=f"ask {workspace.agent} to close it; --force rescues everything and closes it anyway",
            holder=workspace.agent,
            task=workspace.task,
        )
    inside = processes_in(workspace.path)
    if inside:
        named = ", ".join(f"{pid} ({name})" for pid, name in inside[:5])
        raise Held(
            f"{len(inside)} live process{'es are' if len(inside) > 1 else ' is'} in {workspace.path}: {named}",
            code="WORKSPACE_IN_USE",
            hint="end them, or close it anyway with --force: everything is rescued first",
            holder=workspace.agent,
            processes=[pid for pid, _ in inside],
        )


def _finish_closing(site: Site, session: Session | None, going: Workspace) -> Closed:
    """The second half, which can be done again: save, remove, free, and write down that it is gone."""
    home = site.home
    notes: list[str] = []
    rescue = going.rescue
    if os.path.isdir(going.path) and checkouts.private_git_dir(home, going.path):
        if going.kind == CLONE:
            checkouts.bring_back(home, going.path, going.branch)
        saved = save_checkout(site, session, going.path, f"closing {going.id}", workspace=going)
        if saved:
            rescue = saved
            going = operations.change_state(site.context, going, "rescued", session, rescue=rescue)
    head = ask(home, "rev-parse", "--verify", "--quiet", f"refs/heads/{going.branch}")
    merged = _is_merged(site, head)
    _remove(site, going, is_fresh=False)
    if head and (merged or head == going.base):
        checkouts.drop_branch(home, going.branch, head)
        notes.append(f"{going.branch} is {'empty' if head == going.base else 'merged'} and was deleted")
    elif head:
        notes.append(f"{going.branch} stays: it is not merged")
    _free_slots(site, going)
    closed = operations.change_state(
        site.context,
        going,
        "closed",
        session,
        state=CLOSED,
        is_merged=merged,
        closed_at=site.wall_ms(),
        process={},
        slots={},
    )
    return Closed(workspace=closed, rescue=rescue, is_merged=merged, notes=tuple(notes))


def _is_merged(site: Site, head: str) -> bool:
    if not head:
        return False
    try:
        target = find_target(site.home, site.settings)
    except RepositoryError:
        return False
    return is_merged(site.home, head, tip_of(site.home, target))


def mend(site: Site, session: Session | None = None) -> list[str]:
    """Go on with what processes that have ended left half way; tells what was done."""
    done: list[str] = []
    for one in operations.list_workspaces(site.context):
        if one.state == OPEN or not operations.is_here(site.context, one, site.common_dir):
            continue
        taken = operations.take_over(site.context, one, one.state)
        if taken is None:
            continue
        if taken.state == CLOSING:
            _finish_closing(site, session, taken)
            done.append(f"{taken.id} was half closed, and is closed now")
        else:
            _save_half_open(site, session, taken)
            done.append(f"{taken.id} was half opened, and is taken back")
    return done


def _save_half_open(site: Site, session: Session | None, taken: Workspace) -> None:
    if os.path.isdir(taken.path) and checkouts.private_git_dir(site.home, taken.path):
        checkouts.write_files(taken.path)  # a file not written yet is no deletion
        save_checkout(site, session, taken.path, f"{taken.id} was never opened", workspace=taken)
    _give_up(site, session, taken, InterlockError("its process ended", code="PROCESS_ENDED"))


def prune(
    site: Site, session: Session, *, is_dry: bool = False
) -> list[tuple[Workspace, str, Closed | None]]:
    """Close what is finished or forsaken; of each workspace, what became of it or why it stays."""
    mend(site, session)
    found: list[tuple[Workspace, str, Closed | None]] = []
    for one in operations.list_workspaces(site.context):
        reason = _reason_to_stay(site, session, one)
        if reason or is_dry:
            found.append((one, reason or "would be closed", None))
            continue
        try:
            closed = close_workspace(site, session, one)
            found.append((one, "rescued and closed" if closed.rescue else "closed", closed))
        except InterlockError as error:
            found.append((one, error.message, None))
    return found


def _reason_to_stay(site: Site, session: Session, one: Workspace) -> str:
    if not operations.is_here(site.context, one, site.common_dir):
        return "it belongs to another clone or machine"
    if one.state != OPEN:
        return f"it is {one.state}"
    task = get_task(site.context, one.task)
    if task.state in OVER:
        return ""
    if operations.is_held(site.context, one):
        return "its session lives" if one.session != session.id else "it is yours"
    if task.session and task.session != one.session and task.attempt == one.attempt:
        return f"{task.owner} is at work on {one.task}"
    return ""


def shell_environment(workspace: Workspace) -> str:
    """The environment of a workspace as lines for a shell."""
    return "\n".join(f"export {name}={shlex.quote(text)}" for name, text in workspace.environment.items())

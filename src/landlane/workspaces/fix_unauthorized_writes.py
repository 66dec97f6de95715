"""Putting stray writes right: undone, moved or accepted; until then no commit or landing takes them in."""

from __future__ import annotations

import os

from landlane.claims.check import check, pattern_of
from landlane.errors import LandlaneError, Malformed, NotAllowed, RepositoryError
from landlane.git.lock import git_lock
from landlane.git.snapshot import KeptFile, path_text, read_file_now, read_kept
from landlane.git.untrusted_checkout import run_home_git
from landlane.git.worktree_files import TreeWriter
from landlane.values import value
from landlane.workspaces.locate import find_workspace
from landlane.workspaces.move_misplaced import Content, merge_contents, read_content, write_content
from landlane.workspaces.other_sessions import open_workspaces
from landlane.workspaces.unauthorized_writes import (
    ACCEPTED,
    CLEARED,
    HELD,
    MOVED,
    OPEN,
    STRAY,
    UNDONE,
    end_breach,
    find_breach,
    list_breaches,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.model import Workspace
    from landlane.workspaces.unauthorized_writes import Breach


_MOST_NAMED = 5
_MOST_ENDED = 50  # of which the contents are still kept
_LINK = "120000"


@value
class FixResult:
    """A breach that was put right, the paths that were written, and the workspace they went to."""

    breach: Breach
    paths: tuple[str, ...]
    workspace: Workspace | None = None


def undo_breach(repo: Repository, session: Session | None, breach_id: str) -> FixResult:
    """Put back what was there before a stray write, byte for byte; all paths or none.

    Raises:
        LandlaneError: there is no such one, or it was put right already.
        NotAllowed: somebody has changed a path since.
    """
    with git_lock(repo.common_dir, "undo a stray write"):
        breach = _open(repo, breach_id)
        before, after = read_kept(repo.common_dir, breach.commit)
        paths = _put_back(repo, breach, before, after)
    ended = end_breach(repo, session, breach_id, UNDONE)
    _drop_old(repo)
    return FixResult(breach=ended, paths=tuple(paths))


def move_breach(repo: Repository, session: Session | None, breach_id: str, to: str = "") -> FixResult:
    """Bring a stray write into a workspace, the writer's own if none is named, and put back what was there.

    Raises:
        LandlaneError: there is no such one, or it was put right already.
        Malformed: there is no telling which workspace is meant.
        NotAllowed: the workspace has changed the same lines, or somebody changed a path since.
    """
    with git_lock(repo.common_dir, "move a stray write"):
        breach = _open(repo, breach_id)
        workspace = find_workspace(repo, to) if to else _own_workspace(repo, breach)
        if workspace.path == breach.root:
            raise Malformed(
                f"{breach_id} is in that workspace already",
                code="NOT_MISPLACED",
                hint=f"landlane stray undo {breach_id}",
            )
        before, after = read_kept(repo.common_dir, breach.commit)
        _check_untouched(repo, breach, before, after)
        there: dict[str, Content] = {}
        wanted: dict[str, Content] = {}
        for path in sorted(before.keys() | after.keys()):
            was, now = _content(before.get(path)), _content(after.get(path))
            there[path] = read_content(workspace.path, path)
            if there[path] in (was, now):
                wanted[path] = now
            else:
                wanted[path] = merge_contents(path, breach.root, workspace, was, now, there[path])
        try:
            for path, content in wanted.items():
                write_content(workspace.path, path, content)
            _put_back(repo, breach, before, after)
        except BaseException:
            for path, content in there.items():
                write_content(workspace.path, path, content)
            raise
    ended = end_breach(repo, session, breach_id, MOVED)
    _drop_old(repo)
    return FixResult(breach=ended, paths=tuple(wanted), workspace=workspace)


def accept_breach(repo: Repository, session: Session | None, breach_id: str) -> FixResult:
    """Let a stray write stand: said by the holder, or by a person, but not by the writer.

    Raises:
        NotAllowed: the writer itself asks.
    """
    breach = _open(repo, breach_id)
    if session is not None and session.agent == breach.agent:
        whose = breach.holder or "a person"
        raise NotAllowed(
            f"{breach_id} is {session.agent}'s own write: it is for {whose} to accept",
            code="NOT_YOURS_TO_ACCEPT",
            hint=f"ask {whose}, or take it back: landlane stray undo {breach_id}",
        )
    return FixResult(breach=end_breach(repo, session, breach_id, ACCEPTED), paths=breach.paths)


def end_moved(repo: Repository, session: Session | None, moved: Sequence[tuple[str, str]]) -> None:
    """End the breaches whose paths were all moved away by other means: (root, path)."""
    places = {(root, path_text(path)) for root, path in moved}
    for breach in list_breaches(repo):
        if all((breach.root, path) in places for path in breach.paths):
            end_breach(repo, session, breach.id, MOVED)


def list_open_breaches(repo: Repository, session: Session | None = None) -> list[Breach]:
    """The stray writes that are still to be put right; one whose files are as before is over, and ended."""
    standing: list[Breach] = []
    for breach in list_breaches(repo):
        try:
            before, after = read_kept(repo.common_dir, breach.commit)
            is_over = _is_as_before(breach, before, after)
        except RepositoryError:  # what was kept is gone: nobody can tell
            is_over = False
        if is_over:
            end_breach(repo, session, breach.id, CLEARED)
        else:
            standing.append(breach)
    return standing


def _is_as_before(breach: Breach, before: dict[str, KeptFile], after: dict[str, KeptFile]) -> bool:
    return all(read_file_now(breach.root, path) == before.get(path) for path in before.keys() | after.keys())


def refuse_breached(repo: Repository, session: Session, paths: Sequence[str], root: str = "") -> None:
    """Refuse to commit (in the checkout at `root`) or land paths that the session wrote though not its own.

    It is right again once the bytes are as before, or the holder has let go and the writer holds the path.

    Raises:
        NotAllowed: one of them is such a path.
    """
    wanted = {path_text(path) for path in paths}
    for breach in list_breaches(repo):
        is_writer = breach.session == session.id or breach.agent == session.agent
        if not breach.is_blocking or not is_writer:
            continue
        # A stray lies in the wrong checkout only: what is landed was committed where it belongs.
        is_here = breach.root == root if root else breach.kind != STRAY
        hit = sorted(wanted & set(breach.paths)) if is_here else []
        if hit and not _is_right_again(repo, session, breach):
            raise _refusal(breach, hit)


def _is_right_again(repo: Repository, session: Session, breach: Breach) -> bool:
    before, after = read_kept(repo.common_dir, breach.commit)
    paths = before.keys() | after.keys()
    is_as_before = _is_as_before(breach, before, after)
    is_handed_over = breach.kind == HELD and all(
        check(repo, session, pattern_of(repo, path)).state == "held" for path in paths
    )
    if is_as_before or is_handed_over:
        end_breach(repo, session, breach.id, CLEARED)
    return is_as_before or is_handed_over


def _refusal(breach: Breach, paths: Sequence[str]) -> NotAllowed:
    whose = f" while {breach.holder} held it" if breach.kind == HELD else f" in {breach.root}"
    why = {HELD: whose, STRAY: f"{whose}, outside of its workspace"}.get(breach.kind, " against its role")
    accept = f"; or ask {breach.holder} for `landlane stray accept {breach.id}`" if breach.holder else ""
    return NotAllowed(
        f"{_some(paths)} was written through a shell by {breach.agent}{why}",
        code="MISPLACED_WRITE",
        hint=f"take it back: landlane stray undo {breach.id}{accept}",
        path=paths[0],
        holder=breach.holder or None,
        breach=breach.id,
    )


def _open(repo: Repository, breach_id: str) -> Breach:
    breach = find_breach(repo, breach_id)
    if breach.state != OPEN:
        raise LandlaneError(
            f"{breach_id} was {breach.state} already",
            code="BREACH_ENDED",
            hint=f"what was there is in git show {breach.ref}",
        )
    return breach


def _own_workspace(repo: Repository, breach: Breach) -> Workspace:
    own = [
        one
        for one in open_workspaces(repo)
        if one["session"] == breach.session or one["agent"] == breach.agent
    ]
    if len(own) != 1:
        names = " or ".join(str(one["id"]) for one in own)
        raise Malformed(
            f"{breach.agent} has {'several workspaces' if own else 'no workspace'}",
            code="MISPLACED_UNCLEAR",
            hint=f"name it: landlane stray move {breach.id} --to {names or 'WORKSPACE'}",
        )
    return find_workspace(repo, str(own[0]["id"]))


def _check_untouched(
    repo: Repository, breach: Breach, before: dict[str, KeptFile], after: dict[str, KeptFile]
) -> list[str]:
    """The paths that must be written; refuses when somebody has changed one since."""
    todo: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        now, was, made = read_file_now(breach.root, path), before.get(path), after.get(path)
        if now == was:
            continue
        if any(one is not None and not one.is_kept for one in (was, made)):
            raise _cannot(breach, path, "it is too large, or could not be read, so its bytes were not kept")
        if now != made:
            newer = _newer(repo, breach, path)
            why = f"undo the newer write first: landlane stray undo {newer}" if newer else ""
            raise _cannot(breach, path, "it has changed since", why)
        todo.append(path)
    return todo


def _newer(repo: Repository, breach: Breach, path: str) -> str:
    found = [
        one.id
        for one in list_breaches(repo)
        if one.root == breach.root and path_text(path) in one.paths and int(one.id[1:]) > int(breach.id[1:])
    ]
    return found[-1] if found else ""


def _cannot(breach: Breach, path: str, why: str, hint: str = "") -> NotAllowed:
    shown = path_text(path)
    return NotAllowed(
        f"{shown} cannot be put back: {why}. Nothing was changed",
        code="MISPLACED_CONFLICT",
        hint=hint or f"see what was there before: git show {breach.ref}:before/{shown}",
        path=shown,
        breach=breach.id,
    )


def _put_back(
    repo: Repository, breach: Breach, before: dict[str, KeptFile], after: dict[str, KeptFile]
) -> list[str]:
    todo = _check_untouched(repo, breach, before, after)
    with TreeWriter(breach.root) as tree:
        for path in todo:  # what gives way first: a file may stand where a folder was
            if path not in before:
                tree.remove(path)
        for path in todo:
            kept = before.get(path)
            if kept is None:
                continue
            if kept.mode == _LINK:
                tree.link(path, kept.data)
            else:
                tree.write(path, [kept.data], _mode_for(os.path.join(breach.root, path), kept))
    return todo


def _mode_for(full: str, kept: KeptFile) -> int:
    """The permissions as they are, or the usual ones, with git's executable bit."""
    try:
        mode = os.stat(full, follow_symlinks=False).st_mode & 0o666
    except OSError:
        umask = os.umask(0o022)
        os.umask(umask)
        mode = 0o666 & ~umask
    return mode | (mode & 0o444) >> 2 if kept.mode == "100755" else mode


def _content(kept: KeptFile | None) -> Content:
    return Content(data=None) if kept is None else Content(data=kept.data, mode=int(kept.mode, 8))


def _drop_old(repo: Repository) -> None:
    """Let go of what was kept for breaches that are long over."""
    ended = [one for one in list_breaches(repo, with_ended=True) if one.state != OPEN]
    ended.sort(key=lambda one: one.at)
    for one in ended[:-_MOST_ENDED]:
        run_home_git(repo.common_dir, "update-ref", "-d", one.ref)


def _some(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:_MOST_NAMED])
    return f"{shown} and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else shown

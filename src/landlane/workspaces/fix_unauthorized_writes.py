"""Undo, move or accept unauthorized writes; until then they can be neither committed nor landed."""

from __future__ import annotations

import os

from landlane.claims.check import PathState, check, pattern_of
from landlane.errors import LandlaneError, Malformed, NotAllowed, RepositoryError
from landlane.git.lock import git_lock
from landlane.git.snapshot import KeptFile, read_file_now, read_kept
from landlane.git.tree_diff import LINK
from landlane.git.untrusted_checkout import run_home_git
from landlane.git.worktree_files import TreeWriter
from landlane.text import list_some, path_text
from landlane.values import value
from landlane.workspaces.locate import find_workspace
from landlane.workspaces.move_misplaced import merge_files, read_file, write_file
from landlane.workspaces.records import list_open
from landlane.workspaces.unauthorized_writes import (
    ACCEPTED,
    CLEARED,
    MOVED,
    OPEN,
    UNDONE,
    BreachKind,
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
    from landlane.workspaces.unauthorized_writes import Breach, BreachState


_MOST_NAMED = 5
_MOST_ENDED = 50  # ended breaches whose files are still kept


@value
class FixResult:
    """A breach that was fixed, the paths that were written, and the workspace they were moved to."""

    breach: Breach
    paths: tuple[str, ...]
    workspace: Workspace | None = None


@value
class _BreachFiles:
    """The files of a breach as they were before and after it."""

    breach: Breach
    before: dict[str, KeptFile]
    after: dict[str, KeptFile]

    @property
    def paths(self) -> list[str]:
        return sorted(self.before.keys() | self.after.keys())

    @property
    def are_as_before(self) -> bool:
        return all(read_file_now(self.breach.root, path) == self.before.get(path) for path in self.paths)


def _read_files(repo: Repository, breach: Breach) -> _BreachFiles:
    before, after = read_kept(repo.common_dir, breach.commit)
    return _BreachFiles(breach=breach, before=before, after=after)


def undo_breach(repo: Repository, session: Session | None, breach_id: str) -> FixResult:
    """Restore the files from before an unauthorized write, byte for byte; all paths or none.

    Raises:
        LandlaneError: there is no such breach, or it has ended.
        NotAllowed: a path was changed since.
    """
    with git_lock(repo.common_dir, "undo a misplaced change"):
        paths = _restore(repo, _read_files(repo, _find_open(repo, breach_id)))
    return _end(repo, session, breach_id, UNDONE, paths)


def move_breach(repo: Repository, session: Session | None, breach_id: str, to: str = "") -> FixResult:
    """Move an unauthorized write into a workspace, by default the writer's, and restore the files here.

    Raises:
        LandlaneError: there is no such breach, or it has ended.
        Malformed: it is unclear which workspace is meant.
        NotAllowed: the workspace has changed the same lines, or a path was changed since.
    """
    with git_lock(repo.common_dir, "move a misplaced change"):
        breach = _find_open(repo, breach_id)
        workspace = find_workspace(repo, to) if to else _writers_workspace(repo, breach)
        if workspace.path == breach.root:
            raise Malformed(
                f"{breach_id} is in that workspace already",
                code="NOT_MISPLACED",
                hint=f"landlane misplaced undo {breach_id}",
            )
        files = _read_files(repo, breach)
        _check_unchanged(repo, files)
        there: dict[str, KeptFile | None] = {}
        merged: dict[str, KeptFile | None] = {}
        for path in files.paths:
            before, after = files.before.get(path), files.after.get(path)
            there[path] = read_file(workspace.path, path)
            merged[path] = after
            if there[path] not in (before, after):
                merged[path] = merge_files(path, breach.root, workspace, before, after, there[path])
        try:
            for path, version in merged.items():
                write_file(workspace.path, path, version)
            _restore(repo, files)
        except BaseException:
            for path, version in there.items():
                write_file(workspace.path, path, version)
            raise
    return _end(repo, session, breach_id, MOVED, list(merged), workspace)


def accept_breach(repo: Repository, session: Session | None, breach_id: str) -> FixResult:
    """Accept an unauthorized write, as its holder or as a person, but not as the writer.

    Raises:
        NotAllowed: the caller is the writer.
    """
    breach = _find_open(repo, breach_id)
    if session is not None and session.agent == breach.agent:
        whose = breach.holder or "a person"
        raise NotAllowed(
            f"{breach_id} was written by {session.agent}; only {whose} can accept it",
            code="NOT_YOURS_TO_ACCEPT",
            hint=f"ask {whose}, or undo it: landlane misplaced undo {breach_id}",
        )
    return FixResult(breach=end_breach(repo, session, breach_id, ACCEPTED), paths=breach.paths)


def end_moved(repo: Repository, session: Session | None, moved: Sequence[tuple[str, str]]) -> None:
    """End the breaches of which all paths (root, path) were moved as misplaced changes."""
    places = {(root, path_text(path)) for root, path in moved}
    for breach in list_breaches(repo):
        if all((breach.root, path) in places for path in breach.paths):
            end_breach(repo, session, breach.id, MOVED)


def list_open_breaches(repo: Repository, session: Session | None = None) -> list[Breach]:
    """Return the breaches that must still be fixed; end those whose files are as before."""
    remaining: list[Breach] = []
    for breach in list_breaches(repo):
        try:
            is_over = _read_files(repo, breach).are_as_before
        except RepositoryError:  # the kept files are gone, so it cannot be known
            is_over = False
        if is_over:
            end_breach(repo, session, breach.id, CLEARED)
        else:
            remaining.append(breach)
    return remaining


def refuse_breached(repo: Repository, session: Session, paths: Sequence[str], root: str = "") -> None:
    """Refuse to commit (in the checkout at `root`) or land paths that the session wrote without permission.

    A path is allowed again once its bytes are as before, or the writer holds it.

    Raises:
        NotAllowed: one of them is such a path.
    """
    wanted = {path_text(path) for path in paths}
    for breach in list_breaches(repo):
        is_writer = breach.session == session.id or breach.agent == session.agent
        if not breach.is_blocking or not is_writer:
            continue
        # A stray write affects only the wrong checkout: a landed commit was made in the right one.
        is_affected = breach.root == root if root else breach.kind != BreachKind.STRAY
        hit = sorted(wanted & set(breach.paths)) if is_affected else []
        if hit and not _end_if_resolved(repo, session, breach):
            raise _refusal(breach, hit)


def _end_if_resolved(repo: Repository, session: Session, breach: Breach) -> bool:
    files = _read_files(repo, breach)
    is_resolved = files.are_as_before or (
        breach.kind == BreachKind.HELD
        and all(check(repo, session, pattern_of(repo, path)).state is PathState.HELD for path in files.paths)
    )
    if is_resolved:
        end_breach(repo, session, breach.id, CLEARED)
    return is_resolved


def _refusal(breach: Breach, paths: Sequence[str]) -> NotAllowed:
    why = {
        BreachKind.HELD: f", and {breach.holder} has claimed it",
        BreachKind.STRAY: f" in {breach.root}, outside its workspace",
        BreachKind.ROLE: ", whose role does not allow it",
    }[breach.kind]
    ask = f"ask {breach.holder} to accept it, or undo it" if breach.holder else "undo it"
    return NotAllowed(
        f"{list_some(paths, _MOST_NAMED)} was written through a shell by {breach.agent}{why}",
        code="MISPLACED_WRITE",
        hint=f"{ask}: landlane misplaced undo {breach.id}",
        path=paths[0],
        holder=breach.holder or None,
        breach=breach.id,
    )


def _find_open(repo: Repository, breach_id: str) -> Breach:
    breach = find_breach(repo, breach_id)
    if breach.state != OPEN:
        raise LandlaneError(
            f"{breach_id} was already {breach.state}",
            code="BREACH_ENDED",
            hint=f"see the files before and after: git show {breach.ref}",
        )
    return breach


def _writers_workspace(repo: Repository, breach: Breach) -> Workspace:
    own = [one for one in list_open(repo) if one.session == breach.session or one.agent == breach.agent]
    if len(own) != 1:
        name = own[0].id if own else "WORKSPACE"
        raise Malformed(
            f"{breach.agent} has {'several workspaces' if own else 'no workspace'}",
            code="MISPLACED_UNCLEAR",
            hint=f"name one: landlane misplaced move {breach.id} --to {name}",
        )
    return own[0]


def _check_unchanged(repo: Repository, files: _BreachFiles) -> list[str]:
    """Return the paths that must be written; refuse if one was changed since the breach."""
    breach = files.breach
    changed: list[str] = []
    for path in files.paths:
        now = read_file_now(breach.root, path)
        before, after = files.before.get(path), files.after.get(path)
        if now == before:
            continue
        if any(one is not None and not one.is_kept for one in (before, after)):
            raise _cannot_restore(breach, path, "it was too large or unreadable, so its content was not kept")
        if now != after:
            newer = _find_newer(repo, breach, path)
            hint = f"undo the newer write first: landlane misplaced undo {newer}" if newer else ""
            raise _cannot_restore(breach, path, "it has changed since", hint)
        changed.append(path)
    return changed


def _find_newer(repo: Repository, breach: Breach, path: str) -> str:
    newer = [
        one.id
        for one in list_breaches(repo)
        if one.root == breach.root and path_text(path) in one.paths and int(one.id[1:]) > int(breach.id[1:])
    ]
    return newer[-1] if newer else ""


def _cannot_restore(breach: Breach, path: str, why: str, hint: str = "") -> NotAllowed:
    name = path_text(path)
    return NotAllowed(
        f"{name} cannot be restored: {why}; nothing was changed",
        code="MISPLACED_CONFLICT",
        hint=hint or f"see what was there before: git show {breach.ref}:before/{name}",
        path=name,
        breach=breach.id,
    )


def _restore(repo: Repository, files: _BreachFiles) -> list[str]:
    """Restore the files from before the breach, and return the paths that were written."""
    paths = _check_unchanged(repo, files)
    root = files.breach.root
    with TreeWriter(root) as tree:
        for path in paths:  # removals first: a file may have been where a folder is now
            if path not in files.before:
                tree.remove(path)
        for path in paths:
            kept = files.before.get(path)
            if kept is not None and kept.mode == LINK:
                tree.link(path, kept.data)
            elif kept is not None:
                tree.write(path, [kept.data], _mode_for(os.path.join(root, path), kept))
    return paths


def _mode_for(full: str, kept: KeptFile) -> int:
    """Return the present permissions, or the default ones, with git's executable bit."""
    try:
        mode = os.stat(full, follow_symlinks=False).st_mode & 0o666
    except OSError:
        umask = os.umask(0o022)
        os.umask(umask)
        mode = 0o666 & ~umask
    return mode | (mode & 0o444) >> 2 if kept.mode == "100755" else mode


def _end(
    repo: Repository,
    session: Session | None,
    breach_id: str,
    state: BreachState,
    paths: list[str],
    workspace: Workspace | None = None,
) -> FixResult:
    """End a breach, and drop the kept files of breaches that ended long ago."""
    breach = end_breach(repo, session, breach_id, state)
    ended = [one for one in list_breaches(repo, with_ended=True) if one.state != OPEN]
    ended.sort(key=lambda one: one.at)
    for one in ended[:-_MOST_ENDED]:
        run_home_git(repo.common_dir, "update-ref", "-d", one.ref)
    return FixResult(breach=breach, paths=tuple(paths), workspace=workspace)

"""Move misplaced changes: merge each into its workspace, and restore the committed file in its old place.

First everything is planned and checked, then both checkouts are rescued, then files are written. A failure is
rolled back, so that either all paths are moved or none.
"""

from __future__ import annotations

import os
import stat
import tempfile

from landlane.claims.check import check
from landlane.errors import Held, Malformed, NotAllowed, RepositoryError
from landlane.git.discovery import checkout_at
from landlane.git.lock import git_lock
from landlane.git.run import git_output, run_git, run_in
from landlane.git.snapshot import KeptFile
from landlane.git.tree_diff import LINK
from landlane.rescue.save import save_checkout
from landlane.values import value
from landlane.workspaces.locate import find_workspace
from landlane.workspaces.misplaced import STRAY, MisplacedChange, find_misplaced
from landlane.workspaces.records import list_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.model import Workspace


@value
class PlannedMove:
    """One change to move: the file in each place now (None: no file), and the merged one."""

    change: MisplacedChange
    workspace: Workspace
    here: KeptFile | None
    there: KeptFile | None
    merged: KeptFile | None


@value
class Moved:
    """The moves that were made, and the rescues that undo them."""

    moves: tuple[PlannedMove, ...]
    rescues: tuple[tuple[str, str], ...]  # (the root of a checkout, the rescue of it)


def move_misplaced_changes(
    repo: Repository, session: Session | None, paths: Sequence[tuple[str, str]] | None, to: str
) -> Moved:
    """Move misplaced changes, all or those at (root of a checkout, path), to their workspace or to `to`.

    Raises:
        Malformed: a path is not changed, or it is unknown where it belongs.
        Held: another session than the workspace's holds a path.
        NotAllowed: the workspace changed the same lines; nothing was moved.
    """
    chosen = _choose(repo, paths, to)
    with git_lock(repo.common_dir, "move misplaced changes"):
        moves = [_plan(repo, change, workspace) for change, workspace in chosen]
        rescues = _rescue(repo, session, moves)
        _carry_out(repo, moves)
    facts = {
        "to": ", ".join(dict.fromkeys(one.workspace.id for one in moves)),
        "paths": [
            {"path": one.change.path, "from": one.change.root, "to": one.workspace.id} for one in moves
        ],
        "rescues": [rescue for _, rescue in rescues],
    }
    actor = (session.agent, session.id) if session else ("", "")
    repo.store.change(lambda tx: tx.record("stray.moved", *actor, facts))
    return Moved(moves=tuple(moves), rescues=tuple(rescues))


def locate(repo: Repository, cwd: str, text: str, to: str) -> tuple[str, str]:
    """Return the checkout and the path in it that a typed path means.

    In the workspace that it will be moved to, a path means the same path in the main checkout.
    """
    pattern = repo.git.pattern(text, is_literal=True)
    full = os.path.realpath(os.path.join(cwd, text))
    roots = [repo.home.root, *(one.path for one in list_open(repo))]
    root = max((one for one in roots if full.startswith(one + "/")), key=len, default=repo.home.root)
    is_target = root == (find_workspace(repo, to).path if to else repo.checkout.root)
    return repo.home.root if is_target else root, pattern.text.removeprefix("./")


def _choose(
    repo: Repository, paths: Sequence[tuple[str, str]] | None, to: str
) -> list[tuple[MisplacedChange, Workspace]]:
    known = find_misplaced(repo)
    target = find_workspace(repo, to) if to else None
    if paths is None:
        chosen = [one for one in known if one.state == STRAY and (target is None or target.id in one.choices)]
    else:
        chosen = [_find_named(repo, known, root, path, target) for root, path in paths]
    if not chosen:
        raise Malformed(
            "no misplaced changes to move", code="NOTHING_MISPLACED", hint="landlane misplaced list"
        )
    return [(one, target or _find_target(repo, one)) for one in chosen]


def _find_named(
    repo: Repository, known: Sequence[MisplacedChange], root: str, path: str, target: Workspace | None
) -> MisplacedChange:
    found = next((one for one in known if (one.root, one.path) == (root, path)), None)
    if found is None:
        claim = check(repo, None, repo.git.pattern_of(path, "literal")).claim
        if claim is not None:
            raise Held(
                f"{path} is where it belongs: {claim.agent} has claimed it and works in {root}",
                code="CLAIM_HELD",
                hint="landlane misplaced list",
                path=path,
                holder=claim.agent,
                until_at=claim.until,
            )
        raise Malformed(
            f"{path} is not changed in {root}",
            code="NOT_MISPLACED",
            hint="landlane misplaced list",
        )
    if found.state == STRAY and target is not None and target.id not in found.choices:
        raise Held(
            f"{path} is claimed by {found.agent}, whose workspace is {' or '.join(found.choices)}",
            code="CLAIM_HELD",
            hint=f"landlane misplaced move {path} --to {found.choices[0]}",
            path=path,
            holder=found.agent,
        )
    if target is not None and found.root == target.path:
        raise Malformed(
            f"{path} is already in that workspace", code="NOT_MISPLACED", hint="landlane misplaced list"
        )
    return found


def _find_target(repo: Repository, change: MisplacedChange) -> Workspace:
    if change.to:
        return find_workspace(repo, change.to)
    names = change.choices or tuple(one.id for one in list_open(repo))
    whose = f"{change.agent} has several workspaces" if change.choices else "no session has claimed it"
    raise Malformed(
        f"cannot tell where {change.path} belongs: {whose}",
        code="MISPLACED_UNCLEAR",
        hint=f"name the workspace: landlane misplaced move {change.path} --to {next(iter(names), 'W1')}",
    )


def _plan(repo: Repository, change: MisplacedChange, workspace: Workspace) -> PlannedMove:
    here, there = read_file(change.root, change.path), read_file(workspace.path, change.path)
    base = _read_committed(repo, change)
    if there in (base, here):
        merged = here
    elif here == base:
        merged = there
    else:
        merged = merge_files(change.path, change.root, workspace, base, here, there)
    return PlannedMove(change=change, workspace=workspace, here=here, there=there, merged=merged)


def _read_committed(repo: Repository, change: MisplacedChange) -> KeptFile | None:
    """Return the file in the commit of its checkout, converted as for a checkout."""
    checkout = _checkout(repo, change.root)
    listed = git_output(checkout, "ls-tree", "-z", "HEAD", "--", f":(top,literal){change.path}").rstrip("\0")
    if not listed:
        return None
    mode, kind, _ = listed.partition("\t")[0].split(" ")
    if kind != "blob":
        raise _unmovable(change.path, "it is not a file in the last commit")
    found = run_in(checkout, "cat-file", "-p" if mode == LINK else "--filters", f"HEAD:{change.path}")
    if found.exit_code:
        raise _unmovable(change.path, found.stderr)
    return KeptFile(data=found.stdout.encode("utf-8", "surrogateescape"), mode=mode)


def _checkout(repo: Repository, root: str) -> Checkout:
    found = repo.home if root == repo.home.root else checkout_at(root)
    if found is None:
        raise RepositoryError(f"{root} is not a checkout", code="NO_CHECKOUT", hint="landlane workspace list")
    return found


def merge_files(
    path: str,
    root: str,
    workspace: Workspace,
    base: KeptFile | None,
    here: KeptFile | None,
    there: KeptFile | None,
) -> KeptFile:
    """Merge the changes of both sides line by line.

    Raises:
        NotAllowed: the workspace changed the same lines.
    """
    if base is not None and here is not None and there is not None and LINK not in (here.mode, there.mode):
        with tempfile.TemporaryDirectory() as folder:
            names = ("workspace", "committed", "stray")
            for name, version in zip(names, (there, base, here), strict=True):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(version.data)
            merged = run_git("merge-file", "-p", "-q", *names, cwd=folder)
        if not merged.exit_code:
            mode = here.mode if there.mode == base.mode else there.mode
            return KeptFile(data=merged.stdout.encode("utf-8", "surrogateescape"), mode=mode)
    raise NotAllowed(
        f"{path} cannot be moved to {workspace.id}, which changed the same lines; nothing was moved",
        code="MISPLACED_CONFLICT",
        hint=f"merge them by hand: git diff --no-index {os.path.join(root, path)} {workspace.path}/{path}",
        path=path,
        workspace=workspace.id,
    )


def _unmovable(path: str, why: str) -> RepositoryError:
    return RepositoryError(
        f"{path} cannot be moved: {why}", code="MISPLACED_UNMOVABLE", hint="move it by hand"
    )


def read_file(root: str, path: str) -> KeptFile | None:
    """Return the file or link at a path of a checkout; None if there is none.

    Raises:
        RepositoryError: it is not a file, or it is behind a link.
    """
    full = os.path.join(root, path)
    parent = os.path.realpath(os.path.dirname(full))
    if parent != os.path.normpath(os.path.join(os.path.realpath(root), os.path.dirname(path))):
        raise RepositoryError(
            f"{full} is behind a symbolic link", code="MISPLACED_UNMOVABLE", hint="move the file it points to"
        )
    try:
        mode = os.lstat(full).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(mode):
        return KeptFile(data=os.fsencode(os.readlink(full)), mode=LINK)
    if not stat.S_ISREG(mode):
        raise RepositoryError(f"{full} is not a file", code="MISPLACED_UNMOVABLE", hint="move it by hand")
    with open(full, "rb") as file:
        return KeptFile(data=file.read(), mode="100755" if mode & 0o100 else "100644")


def _rescue(repo: Repository, session: Session | None, moves: Sequence[PlannedMove]) -> list[tuple[str, str]]:
    """Save every checkout that will be changed."""
    workspaces = {one.workspace.path: one.workspace for one in moves}
    roots = dict.fromkeys([*(one.change.root for one in moves), *workspaces])
    why = "before misplaced changes were moved"
    saved = [
        (root, save_checkout(repo, session, root, why, workspace=workspaces.get(root))) for root in roots
    ]
    return [(root, rescue) for root, rescue in saved if rescue]


def _carry_out(repo: Repository, moves: Sequence[PlannedMove]) -> None:
    begun: list[PlannedMove] = []
    is_restoring = False
    try:
        for one in moves:
            _check_unchanged(one, one.there)
            begun.append(one)
            write_file(one.workspace.path, one.change.path, one.merged)
        for one in moves:
            _check_unchanged(one, one.merged)
        is_restoring = True
        for root in dict.fromkeys(one.change.root for one in moves):
            _restore_committed(repo, root, [one.change for one in moves if one.change.root == root])
    except BaseException:
        for one in begun:
            if read_file(one.workspace.path, one.change.path) == one.merged:
                write_file(one.workspace.path, one.change.path, one.there)
            if is_restoring:
                write_file(one.change.root, one.change.path, one.here)
        raise


def _check_unchanged(move: PlannedMove, expected: KeptFile | None) -> None:
    """Refuse to overwrite a file that another process changed since it was read."""
    path = move.change.path
    is_same = read_file(move.change.root, path) == move.here
    if not is_same or read_file(move.workspace.path, path) != expected:
        raise NotAllowed(
            f"{path} changed while it was moved; nothing was moved",
            code="MISPLACED_CONFLICT",
            hint=f"try again once nothing writes to it: landlane misplaced move {path}",
            path=path,
            workspace=move.workspace.id,
        )


def _restore_committed(repo: Repository, root: str, changes: Sequence[MisplacedChange]) -> None:
    """Restore the committed files in the old place, and delete new files there."""
    checkout = _checkout(repo, root)
    tracked = [one.path for one in changes if not one.is_new]
    committed = [
        path
        for path in tracked
        if git_output(checkout, "ls-tree", "-z", "HEAD", "--", f":(top,literal){path}")
    ]
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs")
    if committed:
        git_output(checkout, *quiet, "restore", "--source=HEAD", "--staged", "--worktree", "--", *committed)
    added = [path for path in tracked if path not in committed]
    if added:
        git_output(checkout, *quiet, "rm", "--cached", "--quiet", "--force", "--", *added)
    for one in changes:
        if one.path not in committed:
            write_file(root, one.path, None)


def write_file(root: str, path: str, version: KeptFile | None) -> None:
    """Replace the file at a path of a checkout in one step; None removes it."""
    full = os.path.join(root, path)
    if version is None:
        if os.path.lexists(full):
            os.unlink(full)
        return
    os.makedirs(os.path.dirname(full), exist_ok=True)
    scratch = f"{full}.landlane-{os.getpid()}-{os.urandom(4).hex()}"
    if version.mode == LINK:
        os.symlink(os.fsdecode(version.data), scratch)
    else:
        with open(scratch, "xb") as file:
            file.write(version.data)
            old = os.stat(file.fileno()).st_mode & 0o777
            # Executable by everyone who may read it, as git does.
            is_executable = version.mode == "100755"
            os.chmod(file.fileno(), old | (old & 0o444) >> 2 if is_executable else old & ~0o111)
    os.replace(scratch, full)

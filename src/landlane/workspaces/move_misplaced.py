"""Moving stray work: each change is merged into its workspace, and its old place is as committed again.

First everything is worked out and checked, then both checkouts are rescued, then files are written. What
fails on the way is taken back, so that either all paths are moved or none.
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
from landlane.rescue.save import save_checkout
from landlane.values import value
from landlane.workspaces.locate import find_workspace
from landlane.workspaces.misplaced import STRAY, MisplacedChange, find_misplaced
from landlane.workspaces.other_sessions import open_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.workspaces.model import Workspace


_CONFLICT = "the workspace changed the same lines"


@value
class Content:
    """A file as it is: its bytes, none where nothing is, and the type and executable bit that git knows."""

    data: bytes | None
    mode: int = 0

    @property
    def is_there(self) -> bool:
        """Whether there is a file."""
        return self.data is not None


@value
class PlannedMove:
    """One path to move: what lies in each place now, and what shall lie in the workspace."""

    stray: MisplacedChange
    workspace: Workspace
    here: Content
    there: Content
    wanted: Content


@value
class Moved:
    """What was moved to which workspace, and the rescues that undo it."""

    steps: tuple[PlannedMove, ...]
    rescues: tuple[tuple[str, str], ...]  # (the folder of a checkout, the rescue of it)


def move_misplaced_changes(
    repo: Repository, session: Session | None, paths: Sequence[tuple[str, str]] | None, to: str
) -> Moved:
    """Move stray changes, all or those at (root of a checkout, path), to where they belong or are told to.

    Raises:
        Malformed: a path is not changed, or there is no telling where it belongs.
        Held: a path is held by another session than the workspace's.
        NotAllowed: the workspace changed the same lines; nothing was moved.
    """
    chosen = _choose(repo, paths, to)
    with git_lock(repo.common_dir, "move stray work"):
        steps = [_plan(repo, stray, workspace) for stray, workspace in chosen]
        rescues = _rescue(repo, session, steps)
        _carry_out(repo, steps)
    _record(repo, session, steps, rescues)
    return Moved(steps=tuple(steps), rescues=tuple(rescues))


# ------------------------------------------------------------------------------------------ choosing


def locate(repo: Repository, cwd: str, text: str, to: str) -> tuple[str, str]:
    """The checkout and the path in it that a typed path means.

    Typed in the workspace that it shall be moved to, it means the same path in the main checkout.
    """
    pattern = repo.git.pattern(text, is_literal=True)
    full = os.path.realpath(os.path.join(cwd, text))
    roots = [repo.home.root, *(str(one["path"]) for one in open_workspaces(repo))]
    root = max((one for one in roots if full.startswith(one + "/")), key=len, default=repo.home.root)
    is_target = root == (find_workspace(repo, to).path if to else repo.checkout.root)
    return repo.home.root if is_target else root, pattern.text.removeprefix("./")


def _choose(
    repo: Repository, paths: Sequence[tuple[str, str]] | None, to: str
) -> list[tuple[MisplacedChange, Workspace]]:
    known = find_misplaced(repo)
    target = find_workspace(repo, to) if to else None
    if paths is None:
        meant = [one for one in known if one.state == STRAY and (target is None or target.id in one.choices)]
    else:
        meant = [_named(repo, known, root, path, target) for root, path in paths]
    if not meant:
        raise Malformed(
            "there is no stray work to move", code="NOTHING_MISPLACED", hint="landlane stray list"
        )
    return [(one, target or _home_of(repo, one)) for one in meant]


def _named(
    repo: Repository, known: Sequence[MisplacedChange], root: str, path: str, target: Workspace | None
) -> MisplacedChange:
    found = next((one for one in known if (one.root, one.path) == (root, path)), None)
    if found is None:
        standing = check(repo, None, repo.git.pattern_of(path, "literal"))
        if standing.claim is not None:
            holder = standing.claim.agent
            raise Held(
                f"{path} in {root} is where it belongs: {holder} holds it and works there",
                code="CLAIM_HELD",
                hint="landlane stray list shows what lies in the wrong place",
                path=path,
                holder=holder,
                until_at=standing.claim.until,
            )
        raise Malformed(
            f"{path} is not changed in {root}", code="NOT_MISPLACED", hint="landlane stray list shows what is"
        )
    if found.state == STRAY and target is not None and target.id not in found.choices:
        raise Held(
            f"{path} is held by {found.agent}, whose workspace is {' or '.join(found.choices)}",
            code="CLAIM_HELD",
            hint=f"landlane stray move {path} --to {found.choices[0]}",
            path=path,
            holder=found.agent,
        )
    if found.root == (target.path if target else ""):
        raise Malformed(
            f"{path} is in that workspace already", code="NOT_MISPLACED", hint="landlane stray list"
        )
    return found


def _home_of(repo: Repository, stray: MisplacedChange) -> Workspace:
    if stray.to:
        return find_workspace(repo, stray.to)
    names = stray.choices or tuple(str(one["id"]) for one in open_workspaces(repo))
    whose = f"{stray.agent} has several workspaces" if stray.choices else "nobody holds it"
    raise Malformed(
        f"there is no telling where {stray.path} belongs: {whose}",
        code="MISPLACED_UNCLEAR",
        hint=f"name the workspace: landlane stray move {stray.path} --to {' or '.join(names)}",
    )


# ------------------------------------------------------------------------------------------ planning


def _plan(repo: Repository, stray: MisplacedChange, workspace: Workspace) -> PlannedMove:
    here, there = read_content(stray.root, stray.path), read_content(workspace.path, stray.path)
    base = _committed(repo, stray)
    if there in (base, here):
        wanted = here
    elif here == base:
        wanted = there
    else:
        wanted = merge_contents(stray.path, stray.root, workspace, base, here, there)
    return PlannedMove(stray=stray, workspace=workspace, here=here, there=there, wanted=wanted)


def _committed(repo: Repository, stray: MisplacedChange) -> Content:
    """The file as the commit of its checkout has it, in the form in which it is checked out."""
    checkout = _checkout(repo, stray.root)
    listed = git_output(checkout, "ls-tree", "-z", "HEAD", "--", f":(top,literal){stray.path}").rstrip("\0")
    if not listed:
        return Content(data=None)
    mode, kind, _ = listed.partition("\t")[0].split(" ")
    if kind != "blob":
        raise _unmovable(stray, "it is no file in the last commit")
    wanted = ("-p",) if mode == "120000" else ("--filters",)
    found = run_in(checkout, "cat-file", *wanted, f"HEAD:{stray.path}")
    if found.exit_code:
        raise _unmovable(stray, found.stderr)
    return Content(data=found.stdout.encode("utf-8", "surrogateescape"), mode=int(mode, 8))


def _checkout(repo: Repository, root: str) -> Checkout:
    found = repo.home if root == repo.home.root else checkout_at(root)
    if found is None:
        raise RepositoryError(f"{root} is no checkout", code="NO_CHECKOUT", hint="landlane workspace list")
    return found


def merge_contents(
    path: str, root: str, workspace: Workspace, base: Content, here: Content, there: Content
) -> Content:
    """Both changed it: join the changes line by line, or refuse.

    Raises:
        NotAllowed: the workspace changed the same lines.
    """
    if not (base.is_there and here.is_there and there.is_there) or stat.S_ISLNK(here.mode | there.mode):
        raise _conflict(path, root, workspace)
    with tempfile.TemporaryDirectory() as folder:
        names = ("workspace", "committed", "stray")
        for name, content in zip(names, (there, base, here), strict=True):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content.data or b"")
        merged = run_git("merge-file", "-p", "-q", *names, cwd=folder)
    if merged.exit_code:
        raise _conflict(path, root, workspace)
    mode = here.mode if there.mode == base.mode else there.mode
    return Content(data=merged.stdout.encode("utf-8", "surrogateescape"), mode=mode)


def _conflict(path: str, root: str, workspace: Workspace) -> NotAllowed:
    return NotAllowed(
        f"{path} cannot be moved to {workspace.id}: {_CONFLICT}. Nothing was moved",
        code="MISPLACED_CONFLICT",
        hint=f"join {os.path.join(root, path)} and the one in {workspace.path} by hand",
        path=path,
        workspace=workspace.id,
    )


def _unmovable(stray: MisplacedChange, why: str) -> RepositoryError:
    return RepositoryError(
        f"{stray.path} cannot be moved: {why}", code="MISPLACED_UNMOVABLE", hint="move it by hand"
    )


def read_content(root: str, path: str) -> Content:
    """What lies at a path of a checkout; a link is its target.

    Raises:
        RepositoryError: it is no file, or lies behind a link that leads elsewhere.
    """
    full = os.path.join(root, path)
    parent = os.path.realpath(os.path.dirname(full))
    if parent != os.path.normpath(os.path.join(os.path.realpath(root), os.path.dirname(path))):
        raise RepositoryError(
            f"{full} lies behind a link", code="MISPLACED_UNMOVABLE", hint="move the file that it leads to"
        )
    try:
        mode = os.lstat(full).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return Content(data=None)
    if stat.S_ISLNK(mode):
        return Content(data=os.fsencode(os.readlink(full)), mode=0o120000)
    if not stat.S_ISREG(mode):
        raise RepositoryError(f"{full} is no file", code="MISPLACED_UNMOVABLE", hint="move it by hand")
    with open(full, "rb") as file:
        return Content(data=file.read(), mode=0o100755 if mode & 0o100 else 0o100644)


# ---------------------------------------------------------------------------------------- carrying out


def _rescue(repo: Repository, session: Session | None, steps: Sequence[PlannedMove]) -> list[tuple[str, str]]:
    """Save every checkout that is about to change."""
    found: list[tuple[str, str]] = []
    workspaces = {step.workspace.path: step.workspace for step in steps}
    for root in dict.fromkeys([*(step.stray.root for step in steps), *workspaces]):
        why = "before stray work was moved"
        saved = save_checkout(repo, session, root, why, workspace=workspaces.get(root))
        if saved:
            found.append((root, saved))
    return found


def _carry_out(repo: Repository, steps: Sequence[PlannedMove]) -> None:
    done: list[PlannedMove] = []
    is_restoring = False
    try:
        for step in steps:
            _still(step)
            done.append(step)
            write_content(step.workspace.path, step.stray.path, step.wanted)
        for step in steps:
            _still(step, is_written=True)
        is_restoring = True
        for root in dict.fromkeys(step.stray.root for step in steps):
            _restore(repo, root, [step.stray for step in steps if step.stray.root == root])
    except BaseException:
        for step in done:
            if read_content(step.workspace.path, step.stray.path) == step.wanted:
                write_content(step.workspace.path, step.stray.path, step.there)
            if is_restoring:
                write_content(step.stray.root, step.stray.path, step.here)
        raise


def _still(step: PlannedMove, *, is_written: bool = False) -> None:
    """Refuse to go on over a file that somebody changed since it was looked at."""
    is_same = read_content(step.stray.root, step.stray.path) == step.here
    expected = step.wanted if is_written else step.there
    if not is_same or read_content(step.workspace.path, step.stray.path) != expected:
        raise NotAllowed(
            f"{step.stray.path} changed while it was moved; nothing was moved",
            code="MISPLACED_CONFLICT",
            hint="try again when nobody writes to it",
            path=step.stray.path,
            workspace=step.workspace.id,
        )


def _restore(repo: Repository, root: str, strays: Sequence[MisplacedChange]) -> None:
    """Make the old place as it was committed; what was new there is gone."""
    checkout = _checkout(repo, root)
    known = [one.path for one in strays if not one.is_new]
    has_it = [
        path for path in known if git_output(checkout, "ls-tree", "-z", "HEAD", "--", f":(top,literal){path}")
    ]
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs")
    if has_it:
        git_output(checkout, *quiet, "restore", "--source=HEAD", "--staged", "--worktree", "--", *has_it)
    added = [path for path in known if path not in has_it]
    if added:
        git_output(checkout, *quiet, "rm", "--cached", "--quiet", "--force", "--", *added)
    for one in strays:
        if one.path not in has_it:
            write_content(root, one.path, Content(data=None))


def write_content(root: str, path: str, content: Content) -> None:
    """Make a path of a checkout hold just this; a file is there as a whole or not at all."""
    full = os.path.join(root, path)
    if content.data is None:
        if os.path.lexists(full):
            os.unlink(full)
        return
    os.makedirs(os.path.dirname(full), exist_ok=True)
    scratch = f"{full}.landlane-{os.getpid()}-{os.urandom(4).hex()}"
    if stat.S_ISLNK(content.mode):
        os.symlink(os.fsdecode(content.data), scratch)
    else:
        with open(scratch, "xb") as file:
            file.write(content.data)
            old = os.stat(file.fileno()).st_mode & 0o777
            # Executable for whoever may read it, as git does.
            os.chmod(file.fileno(), old | (old & 0o444) >> 2 if content.mode & 0o100 else old & ~0o111)
    os.replace(scratch, full)


def _record(
    repo: Repository,
    session: Session | None,
    steps: Sequence[PlannedMove],
    rescues: Sequence[tuple[str, str]],
) -> None:
    who = (session.agent, session.id) if session else ("", "")
    facts = {
        "to": ", ".join(dict.fromkeys(one.workspace.id for one in steps)),
        "paths": [{"path": one.stray.path, "from": one.stray.root, "to": one.workspace.id} for one in steps],
        "rescues": [rescue for _, rescue in rescues],
    }

    def record(tx: Transaction) -> None:
        tx.record("stray.moved", *who, facts)

    repo.store.change(record)

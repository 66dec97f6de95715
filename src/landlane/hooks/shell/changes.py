"""Record the files that a shell call could change before it runs, and find what it changed.

A snapshot is taken of the checkout that the call runs in, and of every other checkout of this repository that
its text names or leads to: workspaces, and linked worktrees made by hand. In other checkouts, only files
that are claimed by name are compared.
"""

from __future__ import annotations

import contextlib
import json
import os

from landlane.claims.take import list_claims
from landlane.errors import Malformed, RepositoryError
from landlane.git.private_git_dir import read_head
from landlane.git.snapshot import StoredFile, changes_between, last_snapshot, store_files, take_snapshot
from landlane.git.tree_diff import TreeChange
from landlane.git.untrusted_checkout import CLONE, MAIN, WORKTREE, UntrustedCheckout
from landlane.protocol.hook_events import HookPolicy
from landlane.sessions.join import live_sessions
from landlane.sessions.leases import find_ancestors
from landlane.values import replace, value
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.records import list_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from landlane.claims.model import Claim
    from landlane.hooks.shell_syntax.command_line import ShellLine
    from landlane.protocol.hook_events import HookEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.model import Workspace

_MOST_FILES = 500  # single files in other checkouts
_MOST_CHECKOUTS = 50  # linked worktrees; with more of them, most are abandoned
_MOST_WORDS = 400  # of a command, resolved as paths
_MOST_FOLDERS = 5  # that a command changes to
_MOST_COMMAND = 8_000  # characters of a command that are kept
_LITERAL = "literal"


@value
class SessionContext:
    """The session of a call, and what it shares the repository with: sessions, claims, workspaces."""

    session: Session
    ancestors: frozenset[str]  # of the session
    sessions: Mapping[str, Session]
    claims: Sequence[Claim]
    workspaces: Sequence[Workspace]
    worktrees: Sequence[str] = ()  # linked ones that are not workspaces

    @property
    def own(self) -> list[Workspace]:
        """The workspaces of the session itself."""
        return [workspace for workspace in self.workspaces if workspace.is_owned_by(self.session)]

    def is_ours(self, session: str) -> bool:
        """Return whether an id is that of the session or of one of its ancestors."""
        return session == self.session.id or session in self.ancestors

    @property
    def has_others(self) -> bool:
        """Whether other sessions are alive."""
        return not all(map(self.is_ours, self.sessions))

    def workspace_at(self, root: str) -> Workspace | None:
        """Return the workspace in a checkout, if it is one."""
        return next((workspace for workspace in self.workspaces if workspace.path == root), None)

    def is_outside(self, root: str) -> bool:
        """Return whether the session should not work in a checkout: it works in a workspace elsewhere."""
        workspace = self.workspace_at(root)
        if workspace is not None:
            return not workspace.is_owned_by(self.session) and workspace.session not in self.ancestors
        return bool(self.own)


@value
class CallSnapshot:
    """The state before a call: checkout → tree, and file → content. Without trees, nothing is compared."""

    trees: Mapping[str, str]
    files: Mapping[str, StoredFile]
    heads: Mapping[str, str] = {}  # checkout → its commit
    is_background: bool = False
    command: str = ""
    is_patch: bool = False  # the client may apply it as an edit of its own, and then sends no end event
    may_leave_processes: bool = False  # that still run when the call has ended

    def to_text(self) -> str:
        """Return the snapshot as it is stored while the call runs."""
        files = {path: [file.mode, file.oid, file.stamp] for path, file in self.files.items()}
        return json.dumps(
            {
                "trees": dict(self.trees),
                "files": files,
                "heads": dict(self.heads),
                "background": self.is_background,
                "patch": self.is_patch,
                "leaving": self.may_leave_processes,
                "command": self.command[-_MOST_COMMAND:],
            }
        )


NO_SNAPSHOT = CallSnapshot(trees={}, files={})


def parse_snapshot(text: str) -> CallSnapshot:
    """Return a stored snapshot; an empty one for any other text."""
    try:
        found = json.loads(text)
        files = {
            path: StoredFile(mode=mode, oid=oid, stamp=stamp)
            for path, (mode, oid, stamp) in found["files"].items()
        }
        return CallSnapshot(
            trees=found["trees"],
            files=files,
            heads=found["heads"],
            is_background=found["background"],
            command=found.get("command", ""),
            is_patch=found.get("patch", False),
            may_leave_processes=found.get("leaving", False),
        )
    except (ValueError, KeyError, TypeError, IndexError):
        return NO_SNAPSHOT


@value
class CheckoutChange:
    """A changed file of a checkout. The tree after it is empty for a file that was compared by itself."""

    root: str
    change: TreeChange
    tree: str


def read_context(repo: Repository, session: Session) -> SessionContext:
    """Read from the store what the session shares the repository with."""
    ancestors = repo.store.view(lambda snapshot: find_ancestors(snapshot, session.id))
    sessions = {other.id: other for other in live_sessions(repo)}
    workspaces = list_open(repo)
    is_shared = len(sessions) > 1 or bool(workspaces)
    return SessionContext(
        session=session,
        ancestors=frozenset(ancestors),
        sessions=sessions,
        claims=list_claims(repo) if is_shared else (),
        workspaces=workspaces,
        worktrees=_worktrees(repo, workspaces) if is_shared else (),
    )


def _worktrees(repo: Repository, workspaces: Sequence[Workspace]) -> list[str]:
    """Return the linked worktrees that were made by hand: not workspaces, and not Landlane's own."""
    if not os.path.isdir(os.path.join(repo.common_dir, "worktrees")):
        return []
    from landlane.git.remove_checkout import list_worktrees  # noqa: PLC0415 - few repositories have worktrees

    known = {one.path for one in workspaces}
    roots = [root for _, root in list_worktrees(repo.home) if root not in known]
    roots = [root for root in roots if os.path.lexists(os.path.join(root, ".git"))]
    if not roots:
        return []
    # The landing queue checks commits there, and workspaces come and go: no shell command does that.
    ours = (f"{repo.common_dir}/",)
    with contextlib.suppress(Malformed):  # invalid settings are reported elsewhere
        ours = (*ours, f"{workspaces_folder(repo)}/")
    return [root for root in roots if not root.startswith(ours)][:_MOST_CHECKOUTS]


def locate_checkout_at(repo: Repository, root: str) -> UntrustedCheckout:
    """Return the checkout at a root of this repository."""
    here = repo.checkout
    if root != here.root:
        from landlane.rescue.save import locate_checkout  # noqa: PLC0415 - few calls reach another checkout

        return locate_checkout(repo, root)
    kind = CLONE if here.home else MAIN if here.git_dir == here.common_dir else WORKTREE
    return UntrustedCheckout(root=root, git_dir=here.git_dir, kind=kind, home=repo.common_dir)


def take_call_snapshot(repo: Repository, session: Session, event: HookEvent, line: ShellLine) -> CallSnapshot:
    """Record everything that the call could change; with no other session there, as little as possible.

    Raises:
        RepositoryError: a checkout cannot be read.
    """
    context = read_context(repo, session)
    policy = repo.settings.hooks.policy
    root = repo.checkout.root
    is_alone = not context.has_others and not context.is_outside(root)
    if is_alone and policy == HookPolicy.WATCH:
        return NO_SNAPSHOT
    checkout = locate_checkout_at(repo, root)
    tree = ""
    if is_alone and policy == HookPolicy.AUTO:
        # No other session can have changed anything since the snapshot after the last call.
        tree = last_snapshot(checkout, session.id)
    tree = tree or take_snapshot(checkout, _claimed_by_name(context), by=session.id)
    trees = {root: tree}
    if not is_alone or context.workspaces:
        for other in _reached_checkouts(repo, context, event, line):
            trees[other] = take_snapshot(
                locate_checkout_at(repo, other), _claimed_by_name(context), by=session.id
            )
    return CallSnapshot(
        trees=trees,
        files=_store_files(repo, _files_elsewhere(repo, context, trees)),
        heads={root: read_head(locate_checkout_at(repo, root))[1] for root in trees},
        is_background=event.is_background,
        command=_kept_command(event, line),
        is_patch=bool(line.patches),
        may_leave_processes=line.may_leave_processes,
    )


def _kept_command(event: HookEvent, line: ShellLine) -> str:
    """Return the text of a call by which named files are recognized; its words if it is long."""
    text = event.command
    words = (*line.words, text)
    return text if len(text) <= _MOST_COMMAND else " ".join(dict.fromkeys(words))[:_MOST_COMMAND]


def _claimed_by_name(context: SessionContext) -> list[str]:
    """Return the files that are claimed by name: they are compared even where git ignores them."""
    return [claim.pattern for claim in context.claims if claim.kind == _LITERAL][:_MOST_FILES]


def checkouts_of(repo: Repository, context: SessionContext) -> list[str]:
    """Return the roots of the main checkout, the workspaces and the linked worktrees."""
    workspaces = (workspace.path for workspace in context.workspaces)
    roots = [repo.home.root, *workspaces, *context.worktrees]
    return [root for root in dict.fromkeys(roots) if os.path.lexists(os.path.join(root, ".git"))]


def _reached_checkouts(
    repo: Repository, context: SessionContext, event: HookEvent, line: ShellLine
) -> list[str]:
    """Return the other checkouts that the text of a call names, or that a path in it leads to."""
    others = [root for root in checkouts_of(repo, context) if root != repo.checkout.root]
    if not others:
        return []
    base = event.cwd or repo.checkout.root
    folders = [base, *(os.path.join(base, os.path.expanduser(one)) for one in line.folders)]
    words = [
        word.rpartition("=")[2] for word in dict.fromkeys((*line.words, *line.folders)) if "\0" not in word
    ]
    reached = [
        os.path.realpath(os.path.join(folder, os.path.expanduser(word)))
        for word in [word for word in words if word and not word.startswith("-")][:_MOST_WORDS]
        for folder in dict.fromkeys(folders[:_MOST_FOLDERS])
    ]
    return [
        root
        for root in others
        if root in event.command or any(one == root or one.startswith(f"{root}/") for one in reached)
    ]


def _files_elsewhere(repo: Repository, context: SessionContext, trees: Mapping[str, str]) -> list[str]:
    """Return the files that are claimed by name in checkouts without a snapshot."""
    found: list[str] = []
    for root in checkouts_of(repo, context):
        if root in trees:
            continue
        found += [
            os.path.join(root, claim.pattern)
            for claim in context.claims
            if claim.kind == _LITERAL and _applies_at(repo, context, claim, root)
        ]
    return found[:_MOST_FILES]


def _applies_at(repo: Repository, context: SessionContext, claim: Claim, root: str) -> bool:
    """Return whether a claim concerns the copy of a file in this checkout.

    The session's own claims concern copies outside of its workspace, which it should not change.
    """
    if claim.session == context.session.id:
        return context.is_outside(root)
    if root in context.worktrees:
        return True  # not the workspace of a session: a claim concerns all copies of a file
    session = context.sessions.get(claim.session)
    if session is None:
        return False
    own = [workspace.path for workspace in context.workspaces if workspace.is_owned_by(session)]
    return root in own if own else root == repo.home.root


def find_changes(
    repo: Repository, session: Session, before: CallSnapshot
) -> tuple[list[CheckoutChange], CallSnapshot]:
    """Return what has changed since a snapshot, and a new snapshot of the same files."""
    context = read_context(repo, session)
    changes: list[CheckoutChange] = []
    trees: dict[str, str] = {}
    heads: dict[str, str] = {}
    for root, tree in before.trees.items():
        try:
            checkout = locate_checkout_at(repo, root)
        except RepositoryError:  # a workspace that was closed meanwhile
            continue
        trees[root] = after = take_snapshot(checkout, _claimed_by_name(context), by=session.id)
        heads[root] = read_head(checkout)[1]
        try:
            found = changes_between(checkout, tree, after)
        except RepositoryError:  # so old that its objects were deleted
            continue
        changes += [CheckoutChange(root=root, change=change, tree=after) for change in found]
    files = _store_files(repo, before.files)
    changes += _changed_files(repo, context, before, files)
    return changes, replace(before, trees=trees, heads=heads, files=files)


def advance_snapshot(snapshot: CallSnapshot, now: CallSnapshot) -> CallSnapshot:
    """Return the snapshot with the newer state of everything that both contain."""
    return replace(
        snapshot,
        trees={root: now.trees.get(root, tree) for root, tree in snapshot.trees.items()},
        heads={root: now.heads.get(root, head) for root, head in snapshot.heads.items()},
        files={path: now.files.get(path, file) for path, file in snapshot.files.items()},
    )


def _store_files(repo: Repository, paths: Iterable[str]) -> dict[str, StoredFile]:
    """Store single files of other checkouts; one that does not exist is empty."""
    wanted = list(paths)
    stored = store_files(locate_checkout_at(repo, repo.checkout.root), wanted) if wanted else {}
    return {path: stored.get(path, StoredFile()) for path in wanted}


def _changed_files(
    repo: Repository, context: SessionContext, before: CallSnapshot, now: Mapping[str, StoredFile]
) -> list[CheckoutChange]:
    roots = sorted(checkouts_of(repo, context), key=len, reverse=True)
    changes: list[CheckoutChange] = []
    for path, old in before.files.items():
        new = now[path]
        root = next((root for root in roots if path.startswith(f"{root}/")), "")
        if (new.mode, new.oid) == (old.mode, old.oid) or not root:
            continue
        change = TreeChange(
            path=path[len(root) + 1 :],
            old_mode=old.mode,
            old_oid=old.oid,
            new_mode=new.mode,
            new_oid=new.oid,
        )
        changes.append(CheckoutChange(root=root, change=change, tree=""))
    return changes

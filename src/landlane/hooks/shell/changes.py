"""What is looked at before and after a shell call: pictures of checkouts, and single files in the others.

The checkout that the call runs in is pictured as a whole, and so is every other checkout of this repository
that its text names or leads to, be it a workspace or a linked worktree that somebody made by hand. In the
rest only the files are looked at that are claimed by name there.
"""

from __future__ import annotations

import contextlib
import json
import os

from landlane.claims.read import list_claims
from landlane.errors import Malformed, RepositoryError
from landlane.git.private_git_dir import read_head
from landlane.git.snapshot import StoredFile, changes_between, last_snapshot, store_files, take_snapshot
from landlane.git.tree_diff import TreeChange
from landlane.git.untrusted_checkout import CLONE, MAIN, WORKTREE, UntrustedCheckout
from landlane.protocol.hook_events import AUTO, WATCH
from landlane.sessions.join import live_sessions
from landlane.sessions.read import find_ancestors
from landlane.values import replace, value
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.other_sessions import is_owner, open_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.claims.model import Claim
    from landlane.hooks.shell_syntax.command_line import ShellLine
    from landlane.protocol.hook_events import HookEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.records import Document

_MOST_FILES = 500  # in other checkouts, looked at one by one
_MOST_CHECKOUTS = 50  # linked worktrees; whoever has more of them has left most of them behind
_MOST_WORDS = 400  # of a command, asked where they lead
_MOST_FOLDERS = 5  # that it goes to
_MOST_COMMAND = 8_000  # letters of a command's text that are kept
_LITERAL = "literal"


@value
class Scene:
    """Who is there besides the session, what is held, and which workspaces are open."""

    session: Session
    kin: frozenset[str]
    sessions: Mapping[str, Session]
    claims: Sequence[Claim]
    workspaces: Sequence[Document]
    worktrees: Sequence[str] = ()  # linked ones that are nobody's workspace

    @property
    def own(self) -> list[Document]:
        """The workspaces of the session itself."""
        return [one for one in self.workspaces if is_owner(one, self.session)]

    def others(self) -> list[Session]:
        """The live sessions that are in nobody's family here."""
        return [one for one in self.sessions.values() if one.id != self.session.id and one.id not in self.kin]

    def owner_of(self, root: str) -> Document | None:
        """The workspace that a checkout is, if it is one."""
        return next((one for one in self.workspaces if one["path"] == root), None)

    def is_outside(self, root: str) -> bool:
        """Whether a checkout is not where the session works: another's workspace, or beside its own."""
        owner = self.owner_of(root)
        if owner is not None:
            return not is_owner(owner, self.session) and owner["session"] not in self.kin
        return bool(self.own)


@value
class Window:
    """What was there before a call: checkout → tree, and file → what it held. Nothing: it is not watched.

    `is_patch`: the client may apply it as an edit of its own, and then never tells of an end. `is_leaving`:
    something of it may run on behind it.
    """

    trees: Mapping[str, str]
    files: Mapping[str, StoredFile]
    heads: Mapping[str, str] = {}  # checkout → the commit that it stood on
    is_background: bool = False
    command: str = ""
    is_patch: bool = False
    is_leaving: bool = False

    def to_text(self) -> str:
        """As it is kept while the call runs."""
        files = {path: [one.mode, one.oid, one.stamp] for path, one in self.files.items()}
        found = {"trees": dict(self.trees), "files": files, "heads": dict(self.heads)}
        marks = {"background": self.is_background, "patch": self.is_patch, "leaving": self.is_leaving}
        return json.dumps({**found, **marks, "command": self.command[-_MOST_COMMAND:]})


NO_WINDOW = Window(trees={}, files={})


def window_from(text: str) -> Window:
    """A window as it was kept; nothing when it is not one."""
    try:
        found = json.loads(text)
        files = {
            path: StoredFile(mode=mode, oid=oid, stamp=stamp)
            for path, (mode, oid, stamp) in found["files"].items()
        }
        return Window(
            trees=found["trees"],
            files=files,
            heads=found["heads"],
            is_background=found["background"],
            command=found.get("command", ""),
            is_patch=found.get("patch", False),
            is_leaving=found.get("leaving", False),
        )
    except (ValueError, KeyError, TypeError, IndexError):
        return NO_WINDOW


def survey_scene(repo: Repository, session: Session) -> Scene:
    """Look who is there."""
    kin = repo.store.view(lambda snapshot: find_ancestors(snapshot, session.id))
    sessions = {one.id: one for one in live_sessions(repo)}
    workspaces = open_workspaces(repo)
    return Scene(
        session=session,
        kin=frozenset(kin),
        sessions=sessions,
        claims=list_claims(repo) if len(sessions) > 1 or workspaces else (),
        workspaces=workspaces,
        worktrees=_worktrees(repo, workspaces) if len(sessions) > 1 or workspaces else (),
    )


def _worktrees(repo: Repository, workspaces: Sequence[Document]) -> list[str]:
    """The linked worktrees that somebody made by hand: no workspaces, and none of Landlane's own."""
    if not os.path.isdir(os.path.join(repo.common_dir, "worktrees")):
        return []
    from landlane.git.remove_checkout import list_worktrees  # noqa: PLC0415 - few repositories have worktrees

    known = {str(one["path"]) for one in workspaces}
    roots = [root for _, root in list_worktrees(repo.home) if root not in known]
    roots = [root for root in roots if os.path.lexists(os.path.join(root, ".git"))]
    if not roots:
        return []
    # There the queue checks what it lands, and workspaces are made and taken away: nobody's shell does that.
    ours = (f"{repo.common_dir}/",)
    with contextlib.suppress(Malformed):  # settings that are to be mended elsewhere
        ours = (*ours, f"{workspaces_folder(repo)}/")
    return [root for root in roots if not root.startswith(ours)][:_MOST_CHECKOUTS]


def place_at(repo: Repository, root: str) -> UntrustedCheckout:
    """The checkout at a folder, as those know it who look at it."""
    here = repo.checkout
    if root != here.root:
        from landlane.rescue.save import locate_checkout  # noqa: PLC0415 - few calls reach another checkout

        return locate_checkout(repo, root)
    kind = CLONE if here.home else MAIN if here.git_dir == here.common_dir else WORKTREE
    return UntrustedCheckout(root=root, git_dir=here.git_dir, kind=kind, home=repo.common_dir)


def open_window(repo: Repository, session: Session, event: HookEvent, line: ShellLine) -> Window:
    """Look at everything that the call could hit; who is alone is looked at as little as will do.

    Raises:
        RepositoryError: it cannot be looked at.
    """
    scene = survey_scene(repo, session)
    policy = repo.settings.hooks.policy
    root = repo.checkout.root
    is_alone = not scene.others() and not scene.is_outside(root)
    if is_alone and policy == WATCH:
        return NO_WINDOW
    place = place_at(repo, root)
    tree = ""
    if is_alone and policy == AUTO:
        # Nobody else could have changed anything since: the picture after the last call will do.
        tree = last_snapshot(place, session.id)
    tree = tree or take_snapshot(place, _named(repo, scene), by=session.id)
    trees = {root: tree}
    if not is_alone or scene.workspaces:
        for other in _mentioned(repo, scene, event, line):
            trees[other] = take_snapshot(place_at(repo, other), _named(repo, scene), by=session.id)
    files = _files_elsewhere(repo, scene, trees)
    stored = store_files(place, files) if files else {}
    return Window(
        trees=trees,
        files={path: stored.get(path, StoredFile()) for path in files},
        heads={one: read_head(place_at(repo, one))[1] for one in trees},
        is_background=event.is_background,
        command=_kept_command(event, line),
        is_patch=bool(line.patches),
        is_leaving=line.is_leaving,
    )


def _kept_command(event: HookEvent, line: ShellLine) -> str:
    """The text of a call, as far as it tells which files it names; of a long one the words are enough."""
    text = event.command
    return (
        text if len(text) <= _MOST_COMMAND else " ".join(dict.fromkeys((*line.words, text)))[:_MOST_COMMAND]
    )


def _named(repo: Repository, scene: Scene) -> list[str]:
    """The files that are claimed by name: they are looked at even where git ignores them."""
    return [claim.pattern for claim in scene.claims if claim.kind == _LITERAL][:_MOST_FILES]


def checkouts_of(repo: Repository, scene: Scene) -> list[str]:
    """The roots of this repository's checkouts on this machine, as far as they matter here."""
    roots = [repo.home.root, *(str(one["path"]) for one in scene.workspaces), *scene.worktrees]
    return [root for root in dict.fromkeys(roots) if os.path.lexists(os.path.join(root, ".git"))]


def _mentioned(repo: Repository, scene: Scene, event: HookEvent, line: ShellLine) -> list[str]:
    """The other checkouts that the text of a call names, or that a path in it leads to."""
    others = [root for root in checkouts_of(repo, scene) if root != repo.checkout.root]
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


def _files_elsewhere(repo: Repository, scene: Scene, trees: Mapping[str, str]) -> list[str]:
    """The files claimed by name in those checkouts that are not pictured."""
    found: list[str] = []
    for root in checkouts_of(repo, scene):
        if root in trees:
            continue
        here = [claim for claim in scene.claims if _works_at(repo, scene, claim, root)]
        found += [os.path.join(root, claim.pattern) for claim in here if claim.kind == _LITERAL]
    return found[:_MOST_FILES]


def _works_at(repo: Repository, scene: Scene, claim: Claim, root: str) -> bool:
    """Whether a claim is about the copy of a file in this checkout; an own one is where it would stray."""
    if claim.session == scene.session.id:
        return scene.is_outside(root)
    if root in scene.worktrees:
        return True  # nobody's own place: a claim is about the file wherever it lies
    session = scene.sessions.get(claim.session)
    if session is None:
        return False
    own = [one["path"] for one in scene.workspaces if is_owner(one, session)]
    return root in own if own else root == repo.home.root


def close_window(
    repo: Repository, session: Session, window: Window
) -> tuple[list[tuple[str, TreeChange, str]], Window]:
    """What changed since, and what is there now. A change is (root, change, the tree after it).

    The tree is empty for a file that was looked at by itself.
    """
    scene = survey_scene(repo, session)
    found: list[tuple[str, TreeChange, str]] = []
    trees: dict[str, str] = {}
    heads: dict[str, str] = {}
    for root, before in window.trees.items():
        try:
            place = place_at(repo, root)
        except RepositoryError:  # a workspace that was closed meanwhile
            continue
        trees[root] = after = take_snapshot(place, _named(repo, scene), by=session.id)
        heads[root] = read_head(place)[1]
        try:
            changes = changes_between(place, before, after)
        except RepositoryError:  # so long ago that it was swept away
            continue
        found += [(root, change, after) for change in changes]
    stored = _store_now(repo, window)
    found += _changed_files(repo, scene, window, stored)
    return found, replace(window, trees=trees, heads=heads, files=stored)


def move_window(window: Window, now: Window) -> Window:
    """A window that begins where another look ended, in all that both look at."""
    return replace(
        window,
        trees={root: now.trees.get(root, tree) for root, tree in window.trees.items()},
        heads={root: now.heads.get(root, head) for root, head in window.heads.items()},
        files={path: now.files.get(path, one) for path, one in window.files.items()},
    )


def _store_now(repo: Repository, window: Window) -> dict[str, StoredFile]:
    if not window.files:
        return {}
    now = store_files(place_at(repo, repo.checkout.root), window.files)
    return {path: now.get(path, StoredFile()) for path in window.files}


def _changed_files(
    repo: Repository, scene: Scene, window: Window, now: Mapping[str, StoredFile]
) -> list[tuple[str, TreeChange, str]]:
    roots = sorted(checkouts_of(repo, scene), key=len, reverse=True)
    found: list[tuple[str, TreeChange, str]] = []
    for full, was in window.files.items():
        one = now[full]
        root = next((root for root in roots if full.startswith(f"{root}/")), "")
        if (one.mode, one.oid) == (was.mode, was.oid) or not root:
            continue
        change = TreeChange(
            path=full[len(root) + 1 :],
            old_mode=was.mode,
            old_oid=was.oid,
            new_mode=one.mode,
            new_oid=one.oid,
        )
        found.append((root, change, ""))
    return found

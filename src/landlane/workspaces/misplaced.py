"""Misplaced changes: those outside the workspace of the session that claimed their paths.

A session that works in a workspace of its own, and writes to an absolute path that it carries along from
before, changes the main checkout without noticing. Claims tell whose a changed path is. Nothing is guessed:
what nobody holds is called unknown.
"""

from __future__ import annotations

from landlane.claims.model import ClaimMode
from landlane.claims.read import list_claims
from landlane.errors import PatternError
from landlane.git.private_git_dir import open_temporary
from landlane.git.run import git_output
from landlane.patterns.pattern import covers_alternative
from landlane.rescue.save import locate_checkout
from landlane.sessions.join import live_sessions
from landlane.values import as_dict, value
from landlane.workspaces.other_sessions import is_owner, open_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.records import Document


STRAY = "stray"
UNKNOWN = "unknown"
_STATUS = (
    "status",
    "--porcelain=v1",
    "-z",
    "--untracked-files=all",
    "--ignore-submodules=all",
    "--no-renames",
)


@value
class Changed:
    """A path that differs from the commit of its checkout."""

    root: str
    path: str
    is_new: bool


@value
class MisplacedChange:
    """A change, the checkout it lies in, and where it belongs; without `to`, any of `choices` is possible."""

    root: str
    path: str
    is_new: bool
    state: str
    agent: str = ""
    session: str = ""
    to: str = ""
    choices: tuple[str, ...] = ()


def changes_in(repo: Repository, root: str) -> list[Changed]:
    """What is changed or new in a checkout, and not ignored.

    Raises:
        RepositoryError: git cannot tell.
    """
    if root == repo.home.root:
        listed = git_output(repo.home, *_STATUS)
    else:
        # Through a git directory of ours: what a worker wrote into its settings is not run.
        with open_temporary(locate_checkout(repo, root)) as private:
            listed = private.git_output(*_STATUS)
    found: list[Changed] = []
    for entry in listed.split("\0"):
        letters, path = entry[:2], entry[3:]
        if path and not path.endswith("/"):  # a folder that is a repository of its own
            found.append(Changed(root=root, path=path, is_new=letters == "??"))
    return found


def find_misplaced(repo: Repository) -> list[MisplacedChange]:
    """The changes in the main checkout and in all workspaces here that another session holds, or nobody.

    What is changed in a workspace without a claim is its own session's business. In the main checkout it
    may be anybody's.
    """
    workspaces = open_workspaces(repo)
    claims = _exclusive(repo)
    sessions = {session.id: session for session in live_sessions(repo)}
    found: list[MisplacedChange] = []
    for root in [repo.home.root, *(one["path"] for one in workspaces)]:
        is_main = root == repo.home.root
        for change in changes_in(repo, root):
            holder = _holder(repo, claims, change.path)
            if holder is None:
                if is_main and workspaces:
                    found.append(MisplacedChange(**as_dict(change), state=UNKNOWN))
                continue
            session = sessions.get(holder.session)
            own = [one for one in workspaces if session is not None and is_owner(one, session)]
            if session is not None and own and all(one["path"] != root for one in own):
                found.append(_belonging(change, session, own, holder))
    return found


def _exclusive(repo: Repository) -> list[tuple[Claim, Pattern]]:
    """The claims that allow to change something; a shared one does not."""
    pattern_of = repo.git.pattern_of
    claims = list_claims(repo)
    return [
        (claim, pattern_of(claim.pattern, claim.kind))
        for claim in claims
        if claim.mode == ClaimMode.EXCLUSIVE
    ]


def _holder(repo: Repository, claims: Sequence[tuple[Claim, Pattern]], path: str) -> Claim | None:
    try:
        (wanted,) = repo.git.pattern_of(path, "literal").alternatives
    except PatternError:  # a name that is no text cannot be claimed
        return None
    for claim, pattern in claims:
        if any(covers_alternative(mine, wanted) for mine in pattern.alternatives):
            return claim
    return None


def _belonging(change: Changed, session: Session, own: Sequence[Document], claim: Claim) -> MisplacedChange:
    """Where a change belongs: the workspace of the claim's task, or the only one of the session."""
    fitting = [one for one in own if claim.task and one["task"] == claim.task] or list(own)
    return MisplacedChange(
        **as_dict(change),
        state=STRAY,
        agent=session.agent,
        session=session.id,
        to=fitting[0]["id"] if len(fitting) == 1 else "",
        choices=tuple(one["id"] for one in fitting),
    )

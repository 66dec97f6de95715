"""Find misplaced changes: those outside the workspace of the session that claimed their paths.

A session with its own workspace that writes to an absolute path from before changes the main checkout without
noticing. Claims show to whom a changed path belongs. A change that no session claimed is `unknown`.
"""

from __future__ import annotations

import os
from enum import StrEnum

from landlane.claims.model import ClaimMode
from landlane.claims.take import list_claims
from landlane.errors import PatternError
from landlane.git.private_git_dir import open_temporary
from landlane.git.run import git_output
from landlane.patterns.pattern import covers_alternative
from landlane.rescue.save import locate_checkout
from landlane.sessions.join import live_sessions
from landlane.values import value
from landlane.workspaces.records import list_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository


class ChangeState(StrEnum):
    """Whether it is known to whom a change belongs."""

    STRAY = "stray"  # to a session that works elsewhere
    UNKNOWN = "unknown"


STRAY, UNKNOWN = ChangeState
_STATUS = (
    *("status", "--porcelain=v1", "-z", "--untracked-files=all"),
    *("--ignore-submodules=all", "--no-renames"),
)


@value
class MisplacedChange:
    """A change, the checkout it is in, and the workspaces that it may belong to."""

    root: str
    path: str
    is_new: bool
    agent: str = ""  # that claimed the path; empty if no session did
    choices: tuple[str, ...] = ()

    @property
    def state(self) -> ChangeState:
        return STRAY if self.agent else UNKNOWN

    @property
    def to(self) -> str:
        """The id of the workspace that it belongs to; empty if that is not certain."""
        return self.choices[0] if len(self.choices) == 1 else ""

    @property
    def changed_at(self) -> int | None:
        """When the file was written, in wall-clock milliseconds; None if it was deleted."""
        try:
            return os.lstat(os.path.join(self.root, self.path)).st_mtime_ns // 1_000_000
        except OSError:
            return None


def find_misplaced(repo: Repository) -> list[MisplacedChange]:
    """Return the changes in the main checkout and the workspaces here that belong elsewhere or to no session.

    An unclaimed change in a workspace belongs to the session of that workspace. In the main checkout it may
    belong to any session.

    Raises:
        RepositoryError: git cannot list the changes.
    """
    workspaces = list_open(repo)
    pattern_of = repo.git.pattern_of
    # A shared claim does not allow changes.
    claims = [
        (claim, pattern_of(claim.pattern, claim.kind))
        for claim in list_claims(repo)
        if claim.mode == ClaimMode.EXCLUSIVE
    ]
    sessions = {session.id: session for session in live_sessions(repo)}
    found: list[MisplacedChange] = []
    for root in [repo.home.root, *(one.path for one in workspaces)]:
        for path, is_new in list_changed_files(repo, root):
            claim = _find_claim(repo, claims, path)
            if claim is None:
                if root == repo.home.root and workspaces:
                    found.append(MisplacedChange(root=root, path=path, is_new=is_new))
                continue
            holder = sessions.get(claim.session)
            own = [one for one in workspaces if holder is not None and one.is_owned_by(holder)]
            if holder is not None and own and all(one.path != root for one in own):
                fitting = [one for one in own if claim.task and one.task == claim.task] or own
                choices = tuple(one.id for one in fitting)
                found.append(
                    MisplacedChange(root=root, path=path, is_new=is_new, agent=holder.agent, choices=choices)
                )
    return found


def list_changed_files(repo: Repository, root: str) -> list[tuple[str, bool]]:
    """Return the changed paths in a checkout that are not ignored, each with whether it is new."""
    if root == repo.home.root:
        listed = git_output(repo.home, *_STATUS)
    else:
        # Through a private git directory, so that no command in a worker's git config is run.
        with open_temporary(locate_checkout(repo, root)) as private:
            listed = private.git_output(*_STATUS)
    entries = [(entry[3:], entry[:2] == "??") for entry in listed.split("\0")]
    # A path that ends in a slash is a repository of its own.
    return [(path, is_new) for path, is_new in entries if path and not path.endswith("/")]


def _find_claim(repo: Repository, claims: Sequence[tuple[Claim, Pattern]], path: str) -> Claim | None:
    try:
        (wanted,) = repo.git.pattern_of(path, "literal").alternatives
    except PatternError:  # a name that is not UTF-8 cannot be claimed
        return None
    for claim, pattern in claims:
        if any(covers_alternative(mine, wanted) for mine in pattern.alternatives):
            return claim
    return None

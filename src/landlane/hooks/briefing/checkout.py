"""Describe the checkout at the start of a session: is it behind the target, and what is uncommitted."""

from __future__ import annotations

from landlane.claims.model import ClaimMode
from landlane.claims.take import list_claims
from landlane.errors import PatternError, RepositoryError
from landlane.git.run import run_in
from landlane.git.target import commits_at, find_target
from landlane.patterns.pattern import covers_alternative
from landlane.text import list_some, path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_LIMIT_SECONDS = 4.0  # of one git call: the start of a session must not wait for minutes
_MOST_NAMED = 8
_STATUS = ("status", "--porcelain=v1", "-z", "--ignore-submodules=all", "--no-renames")


def describe_base(repo: Repository) -> str:
    """Return how far the checkout is behind the target, as far as is known without asking the remote."""
    target = find_target(repo.home, repo.settings)
    # The remote's branch as it was last fetched, and the local one, which may not be pushed yet.
    refs = [ref for ref in (target.remote_ref, target.ref) if ref]
    known = commits_at(repo.home, refs)
    behind = 0
    for tip in dict.fromkeys(known.values()):
        found = run_in(repo.checkout, "rev-list", "--count", f"HEAD..{tip}", limit_seconds=_LIMIT_SECONDS)
        if found.exit_code:  # a clone that has not fetched it
            return (
                f"{target.branch} has moved since this checkout was made: `landlane sync` before you begin."
            )
        behind = max(behind, int(found.stdout or 0))
    if not behind:
        return ""
    commits = "commit" if behind == 1 else "commits"
    return (
        f"Your base is stale: this checkout is {behind} {commits} behind {target.branch}. Bring it up to "
        "date before you change anything: `landlane sync --update merge`."
    )


def changed_paths(checkout: Checkout, *, with_new_files: bool = False) -> list[str]:
    """Return the paths that are changed or new in a checkout, within a short time.

    A folder with nothing but new files is one path that ends with `/`, unless `with_new_files`.

    Raises:
        RepositoryError: git cannot tell, or not in time.
    """
    untracked = f"--untracked-files={'all' if with_new_files else 'normal'}"
    found = run_in(checkout, *_STATUS, untracked, limit_seconds=_LIMIT_SECONDS)
    if found.exit_code:
        raise RepositoryError(
            f"git status failed: {found.stderr[-200:]}", code="GIT_FAILED", hint="see `git status`"
        )
    return [entry[3:] for entry in found.stdout.split("\0") if len(entry) > 3]


def describe_uncommitted(repo: Repository, session: Session) -> str:
    """Return what is uncommitted in this checkout, and whose it is according to the claims."""
    changed = changed_paths(repo.checkout)
    if not changed:
        return ""
    claims = [
        (claim, repo.git.pattern_of(claim.pattern, claim.kind).alternatives)
        for claim in list_claims(repo)
        if claim.mode == ClaimMode.EXCLUSIVE
    ]
    owners: dict[str, list[str]] = {}
    for path in changed:
        try:
            (name,) = repo.git.pattern_of(path.rstrip("/"), "literal").alternatives
        except PatternError:  # a name that is not text cannot be claimed
            owners.setdefault("", []).append(path)
            continue
        holder = next(
            (claim for claim, held in claims if any(covers_alternative(one, name) for one in held)), None
        )
        mine = holder is not None and holder.session == session.id
        owners.setdefault("you" if mine else holder.agent if holder is not None else "", []).append(path)
    lines = [
        f"- {owner or 'not claimed'}: {list_some([path_text(path) for path in paths], _MOST_NAMED)}"
        for owner, paths in sorted(owners.items())
    ]
    return (
        "Uncommitted in this checkout; leave alone what is not yours, and neither revert nor commit it:\n"
        + "\n".join(lines)
    )

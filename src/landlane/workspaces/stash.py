"""Putting the changes of one checkout aside and bringing them back: each checkout has its own, in both kinds.

git keeps one stash for all worktrees, where one agent takes another's work for its own. Here what is put
aside is a rescue that knows its checkout.
"""

from __future__ import annotations

from contextlib import contextmanager

from landlane.claims.read import list_claims
from landlane.errors import Held, LandlaneError, NotAllowed
from landlane.git.lock import git_lock
from landlane.git.run import run_in
from landlane.patterns.pattern import alternatives_overlap
from landlane.rescue.clear import clear_rescued
from landlane.rescue.refs import Rescue, drop_rescue, get_rescue
from landlane.rescue.restore import restore_rescue
from landlane.rescue.save import locate_checkout, save_checkout, saved_work
from landlane.rescue.scan_checkout import find_unsaved_work
from landlane.workspaces.records import is_held, list_workspaces
from landlane.workspaces.stash_merge import merge_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from landlane.git.untrusted_checkout import UntrustedCheckout
    from landlane.repository import Repository
    from landlane.sessions.model import Session


def save(repo: Repository, session: Session, message: str) -> Rescue:
    """Put everything aside that is changed here, and stand on HEAD as it was committed.

    What is not saved stays: checkouts within this one, submodules, and what is written meanwhile.

    Raises:
        Held: some of it is on paths that another session holds.
        LandlaneError: there is nothing to put aside, or a merge or the like is half done.
    """
    _check_workspace(repo, session)
    root = repo.checkout.root
    with _alone(repo, "stash save") as is_shared:
        stake = find_unsaved_work(locate_checkout(repo, root))
        if stake.operation:
            raise NotAllowed(
                f"a {stake.operation} is half done here",
                code="OPERATION_IN_PROGRESS",
                hint=f"finish it, or end it with git {stake.operation} --abort",
            )
        if not stake.has_changes:
            raise LandlaneError(
                "there is nothing to put aside", code="NOTHING_TO_SAVE", hint="the tree is clean"
            )
        if is_shared:
            _check_own(repo, session)
        saved = save_checkout(repo, session, root, message or "put aside", force=True, stash=root)
        rescue = get_rescue(repo.common_dir, saved)
        clear_rescued(repo.common_dir, repo.checkout, rescue)
    return rescue


@contextmanager
def _alone(repo: Repository, purpose: str) -> Generator[bool]:
    """Tells whether others may be at work in this checkout; then nobody commits there meanwhile."""
    is_own = any(one.path == repo.checkout.root for one in list_workspaces(repo))
    if is_own:
        yield False
        return
    with git_lock(repo.common_dir, purpose):
        yield True


def _check_workspace(repo: Repository, session: Session) -> None:
    """The workspace of somebody who is at work in it is theirs."""
    for one in list_workspaces(repo):
        is_anothers = one.path == repo.checkout.root and one.session != session.id
        if is_anothers and is_held(repo, one):
            raise Held(
                f"{one.agent} is at work in {one.id}, where you stand",
                code="WORKSPACE_HELD",
                hint=f"act as {one.agent} (--as {one.agent}), or in a workspace of your own",
                holder=one.agent,
            )


def _check_own(repo: Repository, session: Session) -> None:
    """In a checkout that several share, the changes of others stay where they are."""
    found = run_in(repo.checkout, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    pattern_of = repo.git.pattern_of
    others = [
        (claim, pattern_of(claim.pattern, claim.kind).alternatives)
        for claim in list_claims(repo)
        if claim.session != session.id
    ]
    paths = [item[3:] for item in found.stdout.split("\0") if item] if others else []
    for path in paths:
        (changed,) = pattern_of(path, "literal").alternatives
        for claim, held in others:
            if any(alternatives_overlap(one, changed) for one in held):
                raise Held(
                    f"{path} is changed here, and {claim.agent} holds it",
                    code="CLAIM_HELD",
                    hint="commit your own paths with `landlane commit`, or work in a workspace of your own",
                    holder=claim.agent,
                    until_at=claim.until,
                )


def put_aside(repo: Repository) -> list[Rescue]:
    """What was put aside in this checkout, the oldest first."""
    return [one for one in saved_work(repo) if one.facts.get("stash") == repo.checkout.root]


def restore(repo: Repository, stash_id: str) -> tuple[Rescue, tuple[str, ...]]:
    """Bring back what was put aside last in this checkout, or what this id names.

    Raises:
        LandlaneError: there is nothing, or the checkout has changes of its own.
    """
    known = put_aside(repo)
    chosen = [one for one in known if not stash_id or one.id == stash_id]
    if not chosen:
        raise LandlaneError(
            "there is nothing to restore here"
            if not stash_id
            else f"{stash_id} was not put aside in this checkout",
            code="NOTHING_TO_RESTORE",
            hint="`landlane stash list` shows what was put aside here; `landlane rescue list` everything",
        )
    stash = chosen[-1]
    place = locate_checkout(repo, repo.checkout.root)
    with _alone(repo, "stash restore"):
        _check_clean(repo, place)
        head = run_in(repo.checkout, "rev-parse", "--verify", "--quiet", "HEAD").stdout.strip()
        if head == stash.head:
            notes = tuple(restore_rescue(stash.id, place, only_changes=True).notes)
        else:
            notes = (merge_back(repo, stash, head),)
        drop_rescue(repo.common_dir, stash.id)
    return stash, notes


def _check_clean(repo: Repository, place: UntrustedCheckout) -> None:
    """By the same look that `save` takes: what it leaves here, such as submodules, hinders nobody."""
    stake = find_unsaved_work(place)
    if stake.has_changes or stake.operation:
        raise LandlaneError(
            "this checkout has changes of its own",
            code="CHECKOUT_DIRTY",
            hint="commit them, or put them aside first: landlane stash save",
        )

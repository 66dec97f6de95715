"""Putting the changes of one checkout aside and bringing them back: each checkout has its own, in both kinds.

git keeps one stash for all worktrees, where one agent takes another's work for its own. Here what is put
aside is a rescue that knows its checkout.
"""

from __future__ import annotations

from interlock.domain.patterns import branches_overlap
from interlock.errors import Held, InterlockError, NotAllowed
from interlock.flows.rescues import place_of, save_checkout, saved_work
from interlock.git.lock import git_lock
from interlock.git.rescue_restoring import restore_rescue
from interlock.git.rescue_stakes import is_anything_at_stake
from interlock.git.rescues import Rescue, drop_rescue
from interlock.git.run import git_failed, run_in
from interlock.operations.held import list_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.domain.agents import Session
    from interlock.flows.site import Site


def save(site: Site, session: Session, message: str) -> Rescue:
    """Put everything aside that is changed here, and stand on HEAD as it was committed.

    Raises:
        Held: some of it is on paths that another session holds.
        InterlockError: there is nothing to put aside, or a merge or the like is half done.
    """
    root = site.here.root
    with git_lock(site.common_dir, "stash save"):
        stake = is_anything_at_stake(site.common_dir, place_of(site, root))
        if stake.operation:
            raise NotAllowed(
                f"a {stake.operation} is half done here",
                code="OPERATION_IN_PROGRESS",
                hint=f"finish it, or end it with git {stake.operation} --abort",
            )
        if not (stake.modified or stake.staged or stake.untracked or stake.deleted):
            raise InterlockError(
                "there is nothing to put aside", code="NOTHING_TO_SAVE", hint="the tree is clean"
            )
        _check_own(site, session)
        saved = save_checkout(site, session, root, message or "put aside", force=True, stash=root)
        _clear(site)
    return next(one for one in saved_work(site) if one.id == saved)


def _check_own(site: Site, session: Session) -> None:
    """In a checkout that several share, the changes of others stay where they are."""
    found = run_in(site.here, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    for item in found.text.split("\0"):
        path = item[3:]
        if not path:
            continue
        (changed,) = site.context.repository.pattern_of(path, "literal").branches
        for claim in list_claims(site.context, (site.context.repository.pattern_of(path, "literal"),)):
            held = site.context.repository.pattern_of(claim.pattern, claim.kind)
            if claim.session != session.id and any(branches_overlap(one, changed) for one in held.branches):
                raise Held(
                    f"{path} is changed here, and {claim.agent} holds it",
                    code="CLAIM_HELD",
                    hint="commit your own paths with `interlock commit`, or work in a workspace of your own",
                    holder=claim.agent,
                    until_at=claim.until,
                )


def _clear(site: Site) -> None:
    """Put the tree back to HEAD. What is ignored stays."""
    for words in (("reset", "--hard", "--quiet"), ("clean", "-ffdq")):
        found = run_in(site.here, *words)
        if found.exit_code:
            raise git_failed(words, found)


def put_aside(site: Site) -> list[Rescue]:
    """What was put aside in this checkout, the oldest first."""
    return [one for one in saved_work(site) if one.facts.get("stash") == site.here.root]


def restore(site: Site, stash_id: str) -> tuple[Rescue, tuple[str, ...]]:
    """Bring back what was put aside last in this checkout, or what this id names.

    Raises:
        InterlockError: there is nothing, or the checkout has changes of its own.
    """
    known = put_aside(site)
    chosen = [one for one in known if not stash_id or one.id == stash_id]
    if not chosen:
        raise InterlockError(
            "there is nothing to restore here"
            if not stash_id
            else f"{stash_id} was not put aside in this checkout",
            code="NOTHING_TO_RESTORE",
            hint="`interlock stash list` shows what was put aside here; `interlock rescue list` everything",
        )
    stash = chosen[-1]
    place = place_of(site, site.here.root)
    with git_lock(site.common_dir, "stash restore"):
        _check_clean(site)
        head = run_in(site.here, "rev-parse", "HEAD").text.strip()
        if head != stash.head:
            raise InterlockError(
                f"{stash.id} was put aside at {stash.head[:12]}, and this checkout is at {head[:12]} now",
                code="MOVED_MEANWHILE",
                hint=f"interlock rescue restore {stash.id} --into ../again, then merge; or git switch back first",
            )
        restored = restore_rescue(site.common_dir, stash.id, place)
        drop_rescue(site.common_dir, stash.id)
    return stash, tuple(restored.notes)


def _check_clean(site: Site) -> None:
    found = run_in(site.here, "status", "--porcelain", "--untracked-files=normal")
    if found.text.strip():
        raise InterlockError(
            "this checkout has changes of its own",
            code="CHECKOUT_DIRTY",
            hint="commit them, or put them aside first: interlock stash save",
        )

"""The claims of a queued entry: held by a session of its own until the entry ends.

So the author can leave, expire or crash, and no other session can change the paths that are being landed. An
author who stays keeps its own claims beside those of the entry; claims made for the entry's task move to the
entry, and come back if it is rejected.
"""

from __future__ import annotations

import os

from landlane.claims.holder_sessions import FOR_EVER_MS, begin_holder, drop_claims, give_claim
from landlane.claims.model import ClaimMode
from landlane.claims.read import claims_near, claims_of
from landlane.landing.model import Landing, entry_agent_name, landing_id_of, name_some
from landlane.landing.records import read_landings
from landlane.sessions.client_sessions import live_links
from landlane.sessions.file_versions import seen_in
from landlane.sessions.leases import end_session
from landlane.sessions.model import Claim, SessionKind
from landlane.sessions.notices import add_notice
from landlane.sessions.read import lock_live_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

_MAX_PATHS = 100


def is_covered(claims: Sequence[Claim], pattern: Pattern, *, is_mergeable: bool) -> bool:
    """Return whether one of these claims allows to change a path; a shared one only if it is mergeable."""
    return any(
        claim.covers(pattern) and (claim.mode == ClaimMode.EXCLUSIVE or is_mergeable) for claim in claims
    )


def start_entry_session(tx: Transaction, author: Session, landing_id: str) -> Session:
    """Start the session of an entry: it has no process and never expires."""
    return begin_holder(tx, author, entry_agent_name(landing_id), SessionKind.LANDING)


def give_claims_to_entry(
    tx: Transaction,
    repo: Repository,
    author: Session,
    holder: Session,
    landing: Landing,
    patterns: Sequence[Pattern],
    claims: Sequence[Claim],
) -> None:
    """Move the author's claims for the entry's task to the entry, and claim its other paths one by one."""
    note = f"{landing.id}: {landing.branch} of {author.agent}"
    moved = [claim for claim in claims if landing.task and claim.task == landing.task]
    for claim in moved:
        drop_claims(tx, [claim])
        pattern = repo.git.pattern_of(claim.pattern, claim.kind)
        _give(tx, holder, pattern, claim.mode, FOR_EVER_MS, landing, note)
    left = [pattern for pattern in patterns if not is_covered(moved, pattern, is_mergeable=True)]
    if len(left) > _MAX_PATHS:  # copy the author's claims instead: fewer of them cover the same paths
        for claim in claims:
            if claim not in moved and any(claim.covers(pattern) for pattern in left):
                pattern = repo.git.pattern_of(claim.pattern, claim.kind)
                _give(tx, holder, pattern, claim.mode, FOR_EVER_MS, landing, note)
        return
    for pattern in left:
        modes = {claim.mode for claim in claims if claim.covers(pattern)}
        if modes:
            is_shared = modes == {ClaimMode.SHARED}
            _give(
                tx,
                holder,
                pattern,
                ClaimMode.SHARED if is_shared else ClaimMode.EXCLUSIVE,
                FOR_EVER_MS,
                landing,
                note,
            )


def _give(
    tx: Transaction,
    session: Session,
    pattern: Pattern,
    mode: ClaimMode,
    ttl_ms: int,
    landing: Landing,
    note: str = "",
) -> None:
    give_claim(tx, session, pattern, mode, ttl_ms, task=landing.task, note=note)


def end_entry_session(tx: Transaction, landing: Landing, commit: str) -> None:
    """Release the claims of an entry, and end its session."""
    holder = lock_live_session(tx, landing.holder)
    if holder is None:
        return
    drop_claims(tx, claims_of(tx, holder.id), commit)
    end_session(tx, holder, "session.left", {})


def release_author_claims(tx: Transaction, repo: Repository, landed: Sequence[Landing]) -> None:
    """Release the authors' claims on paths that landed, unless another entry of theirs still needs them."""
    waiting = read_landings(tx) if landed else []
    for session in dict.fromkeys(landing.session for landing in landed):
        if lock_live_session(tx, session) is None:
            continue
        own = [landing for landing in landed if landing.session == session]
        tasks = {"", *(landing.task for landing in own)}
        claims = [claim for claim in claims_of(tx, session) if claim.task in tasks]
        needed = _tokens_used(repo, claims, [landing for landing in waiting if landing.session == session])
        for landing in own:
            unneeded = _tokens_used(repo, claims, [landing]) - needed
            drop_claims(tx, [claim for claim in claims if claim.token in unneeded], landing.commit)


def _tokens_used(repo: Repository, claims: Sequence[Claim], landings: Sequence[Landing]) -> set[int]:
    """Return the tokens of the claims that cover a path of these entries."""
    used: set[int] = set()
    for path in dict.fromkeys(path for landing in landings for path in landing.paths):
        left = [claim for claim in claims if claim.token not in used]
        if not left:
            break
        pattern = repo.git.pattern_of(path, "literal")
        used |= {claim.token for claim in left if claim.covers(pattern)}
    return used


def find_live_author(tx: Transaction, landing: Landing) -> Session | None:
    """Return the session that submitted an entry, if it is still alive."""
    author = lock_live_session(tx, landing.session)
    return author if author is not None and author.is_alive(tx.now) else None


def return_claims(tx: Transaction, repo: Repository, landing: Landing, author: Session | None) -> None:
    """Return the claims of an ended entry to its author; release them if the author is gone."""
    if author is not None:
        held = {claim.pattern for claim in claims_of(tx, author.id)}
        for claim in claims_of(tx, landing.holder):
            if claim.pattern in held:
                continue
            drop_claims(tx, [claim])
            pattern = repo.git.pattern_of(claim.pattern, claim.kind)
            # Only for the lease that the author's session has anyway: it is renewed together with that.
            _give(tx, author, pattern, claim.mode, author.shortest_ms, landing)
    end_entry_session(tx, landing, "")


def notify_affected_sessions(tx: Transaction, repo: Repository, landing: Landing) -> None:
    """Notify every other session that holds or has read a path that a landing changed."""
    affected = _list_readers(tx, landing)
    for path in landing.paths:
        pattern = repo.git.pattern_of(path, "literal")
        for claim in claims_near(tx, pattern.alternatives, ""):
            is_own = claim.session in (landing.holder, landing.session) or landing_id_of(claim.agent)
            if not is_own and claim.overlaps(pattern) and not claim.is_over(tx.now):
                affected.setdefault(claim.session, []).append(path)
    for session, paths in affected.items():
        changed = name_some(list(dict.fromkeys(paths)))
        how = f"{landing.id} of {landing.agent} landed as {landing.commit[:12]}"
        add_notice(tx, session, f"{how} and changed {changed}: read it again")


def _list_readers(tx: Transaction, landing: Landing) -> dict[str, list[str]]:
    """Return the client sessions that have read a changed path, without the author's and its subagents'.

    The paths that were read are absolute: each parent folder may be the root of a checkout.
    """
    readers: dict[str, list[str]] = {}
    changed = set(landing.paths)
    for link in live_links(tx):
        if landing.session in (link.session, link.parent):
            continue
        for path in seen_in(tx, link.session):
            at = path.find("/", 1)
            while at > 0:
                if path[at + 1 :] in changed and _may_be_checkout(path[:at]):
                    readers.setdefault(link.session, []).append(path[at + 1 :])
                    break
                at = path.find("/", at + 1)
    return readers


def _may_be_checkout(folder: str) -> bool:
    """Return whether a folder is the root of a checkout, or is not on this machine."""
    return os.path.lexists(os.path.join(folder, ".git")) or not os.path.isdir(folder)

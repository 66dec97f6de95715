"""The claims of a queued entry: held by a session of its own until it lands or bounces.

So its author may leave, lapse or die, and nobody else can change what is being landed. An author who stays
keeps its own claims beside those of the entry until that has landed; those made for the task of the entry go
over to it, and come back if it bounces.
"""

from __future__ import annotations

from landlane.claims.holder_sessions import FOR_EVER_MS, begin_holder, drop_claims, give_claim
from landlane.claims.model import EXCLUSIVE, SHARED
from landlane.claims.read import claims_near, claims_of
from landlane.landing.model import OPEN, Landing, holder_name
from landlane.landing.records import NOUN, landing_from
from landlane.sessions.client_sessions import live_links
from landlane.sessions.file_versions import seen_in
from landlane.sessions.leases import end_session
from landlane.sessions.model import Claim
from landlane.sessions.notices import add_notice
from landlane.sessions.read import lock_live_session
from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

_MOST_NAMED = 5
_MOST_PATHS = 100


def is_covered(claims: Sequence[Claim], pattern: Pattern, *, is_mergeable: bool) -> bool:
    """Return whether one of these claims allows to change a path; a shared one only if it is mergeable."""
    return any(claim.covers(pattern) and (claim.mode == EXCLUSIVE or is_mergeable) for claim in claims)


def begin_entry_holder(tx: Transaction, author: Session, landing_id: str) -> Session:
    """The session of the entry itself: nobody can act for it, and it never lapses."""
    return begin_holder(tx, author, holder_name(landing_id), NOUN)


def hand_over(
    tx: Transaction,
    repo: Repository,
    me: Session,
    holder: Session,
    landing: Landing,
    patterns: Sequence[Pattern],
    claims: Sequence[Claim],
) -> None:
    """Give the entry the author's claims for its task, and what else it changes path by path."""
    note = f"{landing.id}: {landing.branch} of {me.agent}"
    moved = [claim for claim in claims if landing.task and claim.task == landing.task]
    for claim in moved:
        drop_claims(tx, [claim])
        pattern = repo.git.pattern_of(claim.pattern, claim.kind)
        _give(tx, holder, pattern, claim.mode, FOR_EVER_MS, landing, note)
    left = [pattern for pattern in patterns if not is_covered(moved, pattern, is_mergeable=True)]
    if len(left) > _MOST_PATHS:  # the author's own claims say the same in fewer words
        for claim in claims:
            if claim not in moved and any(claim.covers(pattern) for pattern in left):
                pattern = repo.git.pattern_of(claim.pattern, claim.kind)
                _give(tx, holder, pattern, claim.mode, FOR_EVER_MS, landing, note)
        return
    for pattern in left:
        covering = [claim for claim in claims if claim.covers(pattern)]
        if covering:
            is_shared = all(claim.mode == SHARED for claim in covering)
            _give(tx, holder, pattern, SHARED if is_shared else EXCLUSIVE, FOR_EVER_MS, landing, note)


def _give(
    tx: Transaction,
    session: Session,
    pattern: Pattern,
    mode: str,
    ttl_ms: int,
    landing: Landing,
    note: str = "",
) -> None:
    give_claim(tx, session, pattern, mode, ttl_ms, task=landing.task, note=note)


def end_holder(tx: Transaction, landing: Landing, commit: str) -> None:
    """Give back what an entry held, and end its session."""
    holder = lock_live_session(tx, landing.holder)
    if holder is None:
        return
    drop_claims(tx, claims_of(tx, holder.id), commit)
    end_session(tx, holder, "session.left", {})


def release_authors(tx: Transaction, repo: Repository, landed: Sequence[Landing]) -> None:
    """Release what authors claimed for work that landed, unless another entry of theirs still needs it."""
    waiting = [landing_from(document) for document in records.all_of(tx, NOUN, OPEN)] if landed else []
    for session in dict.fromkeys(one.session for one in landed):
        if lock_live_session(tx, session) is None:
            continue
        mine = [one for one in landed if one.session == session]
        tasks = {"", *(one.task for one in mine)}
        claims = [claim for claim in claims_of(tx, session) if claim.task in tasks]
        needed = _used(repo, claims, [one for one in waiting if one.session == session])
        for one in mine:
            over = _used(repo, claims, [one]) - needed
            drop_claims(tx, [claim for claim in claims if claim.token in over], one.commit)


def _used(repo: Repository, claims: Sequence[Claim], landings: Sequence[Landing]) -> set[int]:
    """The tokens of those claims that cover a path of these entries."""
    used: set[int] = set()
    for path in dict.fromkeys(path for one in landings for path in one.paths):
        left = [claim for claim in claims if claim.token not in used]
        if not left:
            break
        pattern = repo.git.pattern_of(path, "literal")
        used |= {claim.token for claim in left if claim.covers(pattern)}
    return used


def living_author(tx: Transaction, landing: Landing) -> Session | None:
    """The session that submitted an entry, if it still lives."""
    author = lock_live_session(tx, landing.session)
    return author if author is not None and author.is_alive(tx.now) else None


def give_back(tx: Transaction, repo: Repository, landing: Landing, author: Session | None) -> None:
    """Return the claims to the author, who has to mend the work; without one they are free."""
    if author is not None:
        has = {claim.pattern for claim in claims_of(tx, author.id)}
        for claim in claims_of(tx, landing.holder):
            if claim.pattern in has:
                continue
            drop_claims(tx, [claim])
            pattern = repo.git.pattern_of(claim.pattern, claim.kind)
            # No longer than what it holds anyway: its next sign of life renews it.
            _give(tx, author, pattern, claim.mode, author.shortest_ms, landing)
    end_holder(tx, landing, "")


def tell_holders(
    tx: Transaction, repo: Repository, landing: Landing, is_checkout: Callable[[str], bool] = lambda _: True
) -> None:
    """Tell every other session that holds or has read a path which was changed under it.

    What was read is known by absolute paths; `is_checkout` says whether a folder is the root of a checkout.
    """
    told = _readers(tx, landing, is_checkout)
    for path in landing.paths:
        pattern = repo.git.pattern_of(path, "literal")
        for claim in claims_near(tx, pattern.alternatives, ""):
            is_other = claim.session not in (
                landing.holder,
                landing.session,
            ) and not claim.agent.startswith(holder_name(""))
            if is_other and claim.overlaps(pattern) and not claim.is_over(tx.now):
                told.setdefault(claim.session, []).append(path)
    for session, paths in told.items():
        named = list(dict.fromkeys(paths))
        shown = ", ".join(named[:_MOST_NAMED])
        shown += f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        how = f"{landing.id} of {landing.agent} landed as {landing.commit[:12]}"
        add_notice(tx, session, f"{how} and changed {shown}: read it again")


def _readers(tx: Transaction, landing: Landing, is_checkout: Callable[[str], bool]) -> dict[str, list[str]]:
    """The sessions of clients, other than the author's and its subagents', that have read a changed path."""
    told: dict[str, list[str]] = {}
    changed = set(landing.paths)
    for link in live_links(tx):
        if landing.session in (link.session, link.parent):
            continue
        for path in seen_in(tx, link.session):
            at = path.find("/", 1)
            while at > 0:
                if path[at + 1 :] in changed and is_checkout(path[:at]):
                    told.setdefault(link.session, []).append(path[at + 1 :])
                    break
                at = path.find("/", at + 1)
    return told

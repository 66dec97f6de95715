"""The claims of a queued entry: held by a session of its own until it lands or bounces.

So its author may leave, lapse or die, and nobody else can change what is being landed. An author who stays
keeps its own claims beside those of the entry until that has landed; those made for the task of the entry go
over to it, and come back if it bounces.
"""

from __future__ import annotations

from landlane.claims.holder_sessions import FOR_EVER_MS, begin_holder, give_claim, release_rows
from landlane.claims.model import EXCLUSIVE, SHARED
from landlane.claims.take import is_over
from landlane.landing.model import OPEN, Landing, holder_name
from landlane.landing.records import NOUN, landing_from
from landlane.patterns.pattern import Alternative, alternatives_overlap, covers_alternative
from landlane.sessions.leases import end_session, session_from
from landlane.sessions.notices import add_notice
from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.context import Context
    from landlane.patterns.pattern import Pattern
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Row

_MOST_NAMED = 5
_MOST_PATHS = 100


def is_covered(rows: Sequence[Row], pattern: Pattern, *, is_mergeable: bool) -> bool:
    """Return whether one of these claims allows to change a path; a shared one only if it is mergeable."""
    (path,) = pattern.alternatives
    return any(
        covers_alternative(Alternative(key=row[0], rest=row[1]), path)
        and (row[5] == EXCLUSIVE or is_mergeable)
        for row in rows
    )


def begin_entry_holder(tx: Change, author: Session, landing_id: str) -> Session:
    """The session of the entry itself: nobody can act for it, and it never lapses."""
    return begin_holder(tx, author, holder_name(landing_id), NOUN)


def hand_over(
    tx: Change,
    context: Context,
    me: Session,
    holder: Session,
    landing: Landing,
    patterns: Sequence[Pattern],
    rows: Sequence[Row],
) -> None:
    """Give the entry the author's claims for its task, and what else it changes path by path."""
    note = f"{landing.id}: {landing.branch} of {me.agent}"
    moved = [row for row in rows if landing.task and row[8] == landing.task]
    seen: set[int] = set()
    for row in moved:
        if row[2] in seen:
            continue
        seen.add(row[2])
        if tx.run("claim_drop", session=me.id, token=row[2]):
            tx.record("claim.released", me.agent, me.id, {"pattern": row[3], "token": row[2]})
        pattern = context.repository.pattern_of(row[3], row[4])
        _give(tx, holder, pattern, row[5], FOR_EVER_MS, landing, note)
    left = [pattern for pattern in patterns if not is_covered(moved, pattern, is_mergeable=True)]
    if len(left) > _MOST_PATHS:  # the author's own claims say the same in fewer words
        for row in {row[2]: row for row in rows if row not in moved and _is_needed(row, left)}.values():
            pattern = context.repository.pattern_of(row[3], row[4])
            _give(tx, holder, pattern, row[5], FOR_EVER_MS, landing, note)
        return
    for pattern in left:
        covering = [row for row in rows if is_covered([row], pattern, is_mergeable=True)]
        if covering:
            is_shared = all(row[5] == SHARED for row in covering)
            _give(tx, holder, pattern, SHARED if is_shared else EXCLUSIVE, FOR_EVER_MS, landing, note)


def _is_needed(row: Row, patterns: Sequence[Pattern]) -> bool:
    return any(is_covered([row], pattern, is_mergeable=True) for pattern in patterns)


def _give(
    tx: Change, session: Session, pattern: Pattern, mode: str, ttl_ms: int, landing: Landing, note: str = ""
) -> None:
    give_claim(tx, session, pattern, mode, ttl_ms, task=landing.task, note=note)


def end_holder(tx: Change, landing: Landing, commit: str) -> None:
    """Give back what an entry held, and end its session."""
    row = tx.one("session_lock", session=landing.holder)
    if row is None or row[12] is not None:
        return
    release_rows(tx, tx.all("claims_of", session=landing.holder), commit)
    end_session(tx, session_from(row), "session.left", {})


def release_authors(tx: Change, context: Context, landed: Sequence[Landing]) -> None:
    """Release what authors claimed for work that landed, unless another entry of theirs still needs it."""
    waiting = [landing_from(document) for document in records.all_of(tx, NOUN, OPEN)] if landed else []
    for session in dict.fromkeys(one.session for one in landed):
        row = tx.one("session_lock", session=session)
        if row is None or row[12] is not None:
            continue
        mine = [one for one in landed if one.session == session]
        tasks = {"", *(one.task for one in mine)}
        rows = [row for row in tx.all("claims_of", session=session) if row[8] in tasks]
        needed = _used(context, rows, [one for one in waiting if one.session == session])
        for one in mine:
            over = _used(context, rows, [one]) - needed
            release_rows(tx, [row for row in rows if row[2] in over], one.commit)


def _used(context: Context, rows: Sequence[Row], landings: Sequence[Landing]) -> set[int]:
    """The tokens of those claims that cover a path of these entries."""
    used: set[int] = set()
    for path in dict.fromkeys(path for one in landings for path in one.paths):
        left = [row for row in rows if row[2] not in used]
        if not left:
            break
        pattern = context.repository.pattern_of(path, "literal")
        used |= {row[2] for row in left if is_covered([row], pattern, is_mergeable=True)}
    return used


def living_author(tx: Change, landing: Landing) -> Session | None:
    """The session that submitted an entry, if it still lives."""
    row = tx.one("session_lock", session=landing.session)
    if row is None or row[12] is not None or row[9] + row[7] <= tx.now:
        return None
    return session_from(row)


def give_back(tx: Change, context: Context, landing: Landing, author: Session | None) -> None:
    """Return the claims to the author, who has to mend the work; without one they are free."""
    if author is not None:
        has = {row[3] for row in tx.all("claims_of", session=author.id)}
        seen: set[int] = set()
        for row in tx.all("claims_of", session=landing.holder):
            if row[2] in seen or row[3] in has:
                continue
            seen.add(row[2])
            release_rows(tx, [row], "")
            pattern = context.repository.pattern_of(row[3], row[4])
            # No longer than what it holds anyway: its next sign of life renews it.
            _give(tx, author, pattern, row[5], author.shortest_ms, landing)
    end_holder(tx, landing, "")


def tell_holders(
    tx: Change, context: Context, landing: Landing, is_checkout: Callable[[str], bool] = lambda _: True
) -> None:
    """Tell every other session that holds or has read a path which was changed under it.

    What was read is known by absolute paths; `is_checkout` says whether a folder is the root of a checkout.
    """
    told = _readers(tx, landing, is_checkout)
    for path in landing.paths:
        pattern = context.repository.pattern_of(path, "literal")
        for row in tx.near("claims_near", pattern.alternatives, ""):
            is_hit = any(
                alternatives_overlap(Alternative(key=row[0], rest=row[1]), one)
                for one in pattern.alternatives
            )
            is_other = row[6] not in (landing.holder, landing.session) and not row[7].startswith(
                holder_name("")
            )
            if is_hit and is_other and not is_over(row, tx.now):
                told.setdefault(row[6], []).append(path)
    for session, paths in told.items():
        named = list(dict.fromkeys(paths))
        shown = ", ".join(named[:_MOST_NAMED])
        shown += f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        how = f"{landing.id} of {landing.agent} landed as {landing.commit[:12]}"
        add_notice(tx, session, f"{how} and changed {shown}: read it again")


def _readers(tx: Change, landing: Landing, is_checkout: Callable[[str], bool]) -> dict[str, list[str]]:
    """The sessions of clients, other than the author's and its subagents', that have read a changed path."""
    told: dict[str, list[str]] = {}
    changed = set(landing.paths)
    for _, _, _, session, parent, _ in tx.all("client_sessions_live"):
        if landing.session in (session, parent):
            continue
        for path, *_ in tx.all("reads_of", session=session):
            at = path.find("/", 1)
            while at > 0:
                if path[at + 1 :] in changed and is_checkout(path[:at]):
                    told.setdefault(session, []).append(path[at + 1 :])
                    break
                at = path.find("/", at + 1)
    return told

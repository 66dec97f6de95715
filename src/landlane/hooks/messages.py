"""Messages that a session gets with its next tool result, each of them once.

Other operations leave notices for a session, such as a landing or an answered gate. Handoffs are looked up by
agent name, so that no message about them is lost. Leases are checked here: every hook call renews them, so
a lease of a live session only ends when its calls are further apart than the lease is long.
"""

from __future__ import annotations

import shlex

from landlane.claims.model import LostClaim
from landlane.claims.take import claims_of, list_claims, lost_claims
from landlane.clock import duration_text, rfc3339
from landlane.errors import LandlaneError
from landlane.handoffs.transfer import waiting_in
from landlane.journal.read import parse_leniently
from landlane.rules.file import load_rules, load_version
from landlane.rules.show_to_session import show_rules_change
from landlane.rules.versions import acknowledgement_in, find_current_version, is_about_change, see_version
from landlane.sessions.model import Slot, lease_end
from landlane.sessions.notices import list_unread, take_notices, take_undelivered
from landlane.tasks.records import tasks_of
from landlane.text import list_some
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


_LAPSING_PART = 5  # a lease is about to lapse when less than a fifth of it is left
_MOST_NAMED = 5
_OLD_MS = 86_400_000


@value
class _SessionNews:
    """What one read of the store found for a session."""

    has_notices: bool
    known_version: str
    current_version: str
    lapsed: tuple[LostClaim, ...]
    lapsing: tuple[Claim, ...]
    going: tuple[str, ...]  # tasks and slots that would have ended with the session
    has_handoffs: bool  # a handoff is pending, for this session or another


def due_messages(repo: Repository, session: Session) -> list[str]:
    """Return the messages due now; `session` is as it was before this call renewed its leases."""
    news = repo.store.view(lambda snapshot: _read_news(snapshot, session))
    notices = take_notices(repo, session.id) if news.has_notices else []
    messages = [text for text in notices if not is_about_change(text)]
    messages += _about_leases(repo, session, news)
    messages += _about_rules(repo, session, news)
    if news.has_handoffs:
        from landlane.handoffs.context import waiting_messages  # noqa: PLC0415 - few sessions are handed anything

        messages += waiting_messages(repo, session)
    return messages


def _read_news(snapshot: Snapshot, session: Session) -> _SessionNews:
    known = acknowledgement_in(snapshot, session.id)
    lapsed = lost_claims(snapshot, session.agent)
    left = session.lapses_at - snapshot.now
    is_near = left * _LAPSING_PART < session.shortest_ms
    claims = claims_of(snapshot, session.id) if is_near or lapsed else []
    held = {claim.pattern for claim in claims}
    return _SessionNews(
        has_notices=bool(list_unread(snapshot, session.id)),
        known_version=known.shown if known is not None else "",
        current_version=find_current_version(snapshot),
        lapsed=tuple(
            lost for lost in lapsed if lost.pattern not in held and lost.ended_at > snapshot.now - _OLD_MS
        ),
        lapsing=tuple(_lapsing(claims, session, snapshot.now)) if is_near else (),
        going=tuple(_going(snapshot, session)) if is_near else (),
        has_handoffs=bool(waiting_in(snapshot)),
    )


def _lapsing(claims: list[Claim], session: Session, now: int) -> list[Claim]:
    """Return the claims that were about to lapse when this call came."""
    return [
        claim
        for claim in claims
        if not claim.is_over(now)
        and (lease_end(claim.granted_at, session.seen_at, claim.ttl_ms) - now) * _LAPSING_PART < claim.ttl_ms
    ]


def _going(snapshot: Snapshot, session: Session) -> list[str]:
    """Return the tasks and slots that end with the session, if it was about to lapse."""
    if (session.lease_ends_at - snapshot.now) * _LAPSING_PART >= session.lease_ms:
        return []
    tasks = [f"task {task.id}" for task in tasks_of(snapshot, session.id)]
    slots = [Slot.from_row(row) for row in snapshot.all("slots_of", session=session.id)]
    return tasks + [f"slot {slot.kind} {slot.place}" for slot in slots]


def _about_rules(repo: Repository, session: Session, news: _SessionNews) -> list[str]:
    file = repo.settings.rules.file
    try:
        version = load_version(repo.checkout, repo.home, file)
        if not version or version == news.known_version == news.current_version:
            return []
        text = show_rules_change(repo, session)
        rules = load_rules(repo.checkout, repo.home, file)
        if rules is not None:  # other sessions must be notified, even if this one need not
            see_version(repo, session, rules, file=file)
    except LandlaneError:
        return []  # the file is invalid now; the session is notified once it can be read
    return [text] if text else []


def _about_leases(repo: Repository, session: Session, news: _SessionNews) -> list[str]:
    messages: list[str] = []
    if news.lapsed:
        messages += _about_lapsed(repo, session, news.lapsed)
    if news.lapsing:
        by_token = {str(claim.token): claim for claim in news.lapsing}
        new = take_undelivered(repo, session.id, f"lapsing/{session.id}", list(by_token))
        if new:
            messages.append(_lapsing_text([by_token[token] for token in new]))
    if news.going:
        new = take_undelivered(repo, session.id, f"going/{session.id}", news.going)
        if new:
            messages.append(
                f"Your session was about to lapse, and {list_some(new, _MOST_NAMED)} with it; this call "
                "renewed it. Any landlane command is a sign of life: give one within "
                f"{duration_text(session.lease_ms)}."
            )
    return messages


def _about_lapsed(repo: Repository, session: Session, lapsed: tuple[LostClaim, ...]) -> list[str]:
    by_token = {str(lost.token): lost for lost in lapsed}
    new = take_undelivered(repo, session.id, f"lapsed/{session.agent}", list(by_token))
    lines: list[str] = []
    for token in new[:_MOST_NAMED]:
        lost = by_token[token]
        since = rfc3339(repo.store.wall_of(lost.ended_at))
        held_now = _held_now(repo, session, lost.pattern, lost.kind)
        lines.append(f"{lost.pattern} (since {since}{held_now})")
    if not lines:
        return []
    more = f" and {len(new) - len(lines)} more" if len(new) > len(lines) else ""
    text = (
        f"Your lease is over on {', '.join(lines)}{more}: you were silent for too long. Look at what changed "
        "there meanwhile and claim it again (`landlane claim PATH`) before you change or commit it."
    )
    return [text]


def _held_now(repo: Repository, session: Session, text: str, kind: str) -> str:
    pattern = parse_leniently(repo, text, kind)
    others = [
        claim
        for claim in (list_claims(repo, (pattern,)) if pattern is not None else [])
        if claim.session != session.id
    ]
    return f", {others[0].agent} holds {others[0].pattern} now" if others else ""


def _lapsing_text(claims: list[Claim]) -> str:
    leases = [f"{claim.pattern} ({duration_text(claim.ttl_ms)})" for claim in claims]
    again = shlex.join(["landlane", "claim", claims[0].pattern, "--ttl", "2h"])
    return (
        f"Your lease on {list_some(leases, _MOST_NAMED)} was about to lapse; this call renewed it. If your "
        f"next step takes long, take a longer one first: `{again}`. Release what you need no more."
    )

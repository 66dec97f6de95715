"""Messages between turns: what a session must hear of with its next tool result, each of them once.

Notices are left by those who change something under a session: a landing, an answered gate. What is handed
to a session is found by its name, so that no message about it can be lost. Leases are looked
at here. Every call of a hook is a sign of life, which renews; so a lease ends under a living session only
where its calls are further apart than the lease is long, and that is what it has to hear of.
"""

from __future__ import annotations

import shlex

from landlane.claims.model import LostClaim
from landlane.claims.read import claims_of, list_claims, lost_claims
from landlane.clock import duration_text, rfc3339
from landlane.errors import LandlaneError
from landlane.handoffs.transfer import waiting_in
from landlane.journal.read import parse_leniently
from landlane.rules.file import load_rules, load_version
from landlane.rules.show_to_session import tell_change
from landlane.rules.versions import acknowledgement_in, current_in, is_about_change, see_version
from landlane.sessions.model import HeldSlot, lease_end
from landlane.sessions.notices import has_notices, take_notices, take_untold
from landlane.tasks.records import tasks_of
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


_LEFT = 5  # a lease is about to lapse when less than the fifth part of it is left
_MOST_NAMED = 5
_OLD_MS = 86_400_000


@value
class _Sight:
    """What one look at the store tells."""

    has_notices: bool
    told_version: str
    current_version: str
    lapsed: tuple[LostClaim, ...]
    lapsing: tuple[Claim, ...]
    going: tuple[str, ...]  # tasks and slots that would have gone with the session
    has_handoffs: bool  # somebody hands something over, to this session or another


def due_messages(repo: Repository, session: Session) -> list[str]:
    """What the session must hear of now; the session is as it was before this call renewed its leases."""
    sight = repo.store.view(lambda snapshot: _look(snapshot, session))
    notices = take_notices(repo, session.id) if sight.has_notices else []
    messages = [text for text in notices if not is_about_change(text)]
    messages += _about_leases(repo, session, sight)
    messages += _about_rules(repo, session, sight)
    if sight.has_handoffs:
        from landlane.handoffs.hand_over import tell_waiting  # noqa: PLC0415 - few sessions are handed anything

        messages += tell_waiting(repo, session)
    return messages


def _look(snapshot: Snapshot, session: Session) -> _Sight:
    known = acknowledgement_in(snapshot, session.id)
    lapsed = lost_claims(snapshot, session.agent)
    left = session.lapses_at - snapshot.now
    is_near = left * _LEFT < session.shortest_ms
    claims = claims_of(snapshot, session.id) if is_near or lapsed else []
    held = {claim.pattern for claim in claims}
    return _Sight(
        has_notices=bool(has_notices(snapshot, session.id)),
        told_version=known.told if known is not None else "",
        current_version=current_in(snapshot),
        lapsed=tuple(
            lost for lost in lapsed if lost.pattern not in held and lost.ended_at > snapshot.now - _OLD_MS
        ),
        lapsing=tuple(_lapsing(claims, session, snapshot.now)) if is_near else (),
        going=tuple(_going(snapshot, session)) if is_near else (),
        has_handoffs=bool(waiting_in(snapshot)),
    )


def _lapsing(claims: list[Claim], session: Session, now: int) -> list[Claim]:
    """The claims that would soon have ended, had the session stayed silent."""
    return [
        claim
        for claim in claims
        if not claim.is_over(now)
        and (lease_end(claim.granted_at, session.seen_at, claim.ttl_ms) - now) * _LEFT < claim.ttl_ms
    ]


def _going(snapshot: Snapshot, session: Session) -> list[str]:
    """What ends with the session itself, where that was about to lapse."""
    if (session.lease_ends_at - snapshot.now) * _LEFT >= session.lease_ms:
        return []
    tasks = [f"task {task.id}" for task in tasks_of(snapshot, session.id)]
    slots = [HeldSlot.from_row(row) for row in snapshot.all("slots_of", session=session.id)]
    return tasks + [f"slot {slot.kind} {slot.place}" for slot in slots]


def _about_rules(repo: Repository, session: Session, sight: _Sight) -> list[str]:
    file = repo.settings.rules.file
    try:
        version = load_version(repo.checkout, repo.home, file)
        if not version or version == sight.told_version == sight.current_version:
            return []
        text = tell_change(repo, session)
        rules = load_rules(repo.checkout, repo.home, file)
        if rules is not None:  # the others must hear of it, even if this session need not
            see_version(repo, session, rules, file=file)
    except LandlaneError:
        return []  # a file that is broken just now: it was told at the start, or is when it can be read
    return [text] if text else []


def _about_leases(repo: Repository, session: Session, sight: _Sight) -> list[str]:
    messages: list[str] = []
    if sight.lapsed:
        messages += _about_lapsed(repo, session, sight.lapsed)
    if sight.lapsing:
        by_token = {str(claim.token): claim for claim in sight.lapsing}
        new = take_untold(repo, session.id, f"lapsing/{session.id}", list(by_token))
        if new:
            messages.append(_lapsing_text([by_token[token] for token in new]))
    if sight.going:
        new = take_untold(repo, session.id, f"going/{session.id}", sight.going)
        if new:
            messages.append(
                f"Your session was about to lapse, and {_some(new)} with it; this call renewed it. Any "
                f"landlane command is a sign of life: give one within {duration_text(session.lease_ms)}."
            )
    return messages


def _about_lapsed(repo: Repository, session: Session, lapsed: tuple[LostClaim, ...]) -> list[str]:
    by_token = {str(lost.token): lost for lost in lapsed}
    new = take_untold(repo, session.id, f"lapsed/{session.agent}", list(by_token))
    lines: list[str] = []
    for token in new[:_MOST_NAMED]:
        lost = by_token[token]
        since = rfc3339(repo.store.wall_of(lost.ended_at))
        held_now = _held_now(repo, session, lost.pattern, lost.kind)
        lines.append(f"{lost.pattern} (since {since}{held_now})")
    if not lines:
        return []
    more = f" and {len(new) - len(lines)} more" if len(new) > len(lines) else ""
    told = (
        f"Your lease is over on {', '.join(lines)}{more}: you were silent for too long. Look at what changed "
        "there meanwhile and claim it again (`landlane claim PATH`) before you change or commit it."
    )
    return [told]


def _held_now(repo: Repository, session: Session, text: str, kind: str) -> str:
    pattern = parse_leniently(repo, text, kind)
    others = [
        claim
        for claim in (list_claims(repo, (pattern,)) if pattern is not None else [])
        if claim.session != session.id
    ]
    return f", {others[0].agent} holds {others[0].pattern} now" if others else ""


def _lapsing_text(claims: list[Claim]) -> str:
    named = _some([f"{one.pattern} ({duration_text(one.ttl_ms)})" for one in claims])
    again = shlex.join(["landlane", "claim", claims[0].pattern, "--ttl", "2h"])
    return (
        f"Your lease on {named} was about to lapse; this call renewed it. If your next step takes "
        f"long, take a longer one first: `{again}`. Release what you need no more."
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more

"""Describe who holds a path: the facts behind a refusal, and the sentence that every entry point shows."""

from __future__ import annotations

import os

from landlane.claims.model import Holding, Refusal, find_conflict
from landlane.ids import is_record_id
from landlane.patterns.pattern import LITERAL, alternatives_overlap, has_special
from landlane.sessions.leases import sweep_if_due
from landlane.sessions.model import Claim, ClaimMode, SessionKind, Waiter
from landlane.text import nearest_word, shell_quote
from landlane.units import ordinal, rough_duration, time_ago, time_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from landlane.claims.model import Request
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Store


LAST_TICKET = 2**62  # behind every waiter
_FIRST_PAGE = 8  # waiters, of which one is nearly always in the way

# Sessions that only hold claims have the id of a record as their name; its letter says of what kind.
_HOLDER_KINDS = {
    "L": SessionKind.LANDING,
    "G": SessionKind.GATE,
    "V": SessionKind.REVIEW,
    "H": SessionKind.HANDOFF,
}


def list_holdings(repo: Repository, patterns: Sequence[Pattern] = ()) -> list[Holding]:
    """Return the live claims with who waits for them, oldest first: all, or those that overlap a pattern."""

    def look(snapshot: Snapshot) -> list[Holding]:
        if patterns:
            near = [
                claim
                for pattern in patterns
                for claim in Claim.from_rows(snapshot.near("claims_near", pattern.alternatives, ""))
                if claim.overlaps(pattern)
            ]
            claims = sorted({claim.token: claim for claim in near}.values(), key=lambda claim: claim.token)
        else:
            claims = Claim.from_rows(snapshot.all("claims_all"))
        return describe_claims(snapshot, [claim for claim in claims if not claim.is_over(snapshot.now)])

    sweep_if_due(repo.store)
    return repo.store.view(look)


def list_waiters(snapshot: Snapshot) -> list[Waiter]:
    """Return the waiters that are alive, in order of arrival."""
    waiters = Waiter.from_rows(snapshot.all("waiters_all"))
    return [waiter for waiter in waiters if waiter.alive_until > snapshot.now]


def next_in_line(repo: Repository, patterns: Sequence[Pattern]) -> dict[str, str]:
    """Return who waits first for each of these patterns; patterns without a waiter are left out."""
    waiters = repo.store.view(list_waiters) if patterns else []
    found: dict[str, str] = {}
    for waiter in waiters:
        for pattern in patterns:
            if any(
                alternatives_overlap(wanted, freed)
                for wanted in waiter.alternatives
                for freed in pattern.alternatives
            ):
                found.setdefault(pattern.text, waiter.agent)
    return found


def describe_claims(snapshot: Snapshot, claims: Sequence[Claim]) -> list[Holding]:
    """Return claims with the titles of their tasks, the kinds of their holders, and who waits for them."""
    waiters = [waiter for waiter in list_waiters(snapshot) if not waiter.is_for_slot]
    titles = {task: _title_of(snapshot, task) for task in {claim.task for claim in claims}}
    return [
        Holding(
            claim=claim,
            title=titles[claim.task],
            kind=_kind_of(claim),
            waiting=tuple(
                dict.fromkeys(
                    waiter.agent
                    for waiter in waiters
                    if waiter.mode.conflicts_with(claim.mode) and _wants(waiter, claim)
                )
            ),
        )
        for claim in claims
    ]


def _wants(waiter: Waiter, claim: Claim) -> bool:
    return waiter.session != claim.session and any(
        alternatives_overlap(wanted, held) for wanted in waiter.alternatives for held in claim.alternatives
    )


def _title_of(snapshot: Snapshot, task: str) -> str:
    row = snapshot.one("task_get", task=task) if task else None
    return str(row["title"]) if row is not None else ""


def _kind_of(claim: Claim) -> SessionKind:
    is_agent = not is_record_id(claim.agent)
    return SessionKind.AGENT if is_agent else _HOLDER_KINDS.get(claim.agent[0], SessionKind.AGENT)


def refuse_held(
    snapshot: Snapshot,
    me: Session,
    request: Request,
    pattern: Pattern,
    held: Sequence[Claim],
    ticket: int | None,
) -> Refusal:
    """Return the refusal of a pattern that other sessions hold."""
    first = held[0]
    waiting = waiters_ahead(snapshot, me, request, pattern, ticket)
    holders = tuple(describe_claims(snapshot, held))
    return Refusal(
        pattern=pattern.text,
        holder=first.agent,
        session=first.session,
        held=first.pattern,
        mode=first.mode,
        task=first.task,
        note=first.note,
        since=first.granted_at,
        until=first.until,
        is_waiting=False,
        hint=how_to_get(pattern, holders[0], len(waiting) + 1),
        holders=holders,
        waiting=waiting,
        position=len(waiting) + 1,
    )


def refuse_awaited(
    snapshot: Snapshot, me: Session, request: Request, pattern: Pattern, ticket: int | None
) -> Refusal | None:
    """Return the refusal of a free pattern for which others have waited longer; None if there are none."""
    earlier = earlier_waiters(snapshot, me.id, request, pattern, ticket)
    if not earlier:
        return None
    first = earlier[0]
    wanted = find_conflict(pattern, request.mode, first)
    assert wanted is not None
    waiting = tuple(dict.fromkeys(waiter.agent for waiter in earlier))
    return Refusal(
        pattern=pattern.text,
        holder=first.agent,
        session=first.session,
        held=first.patterns[first.alternatives.index(wanted)],
        mode=first.mode,
        task=first.task,
        note="",
        since=first.since,
        until=first.alive_until,
        is_waiting=True,
        hint=f"wait as {ordinal(len(waiting) + 1)} in line: {claim_command(pattern)} --wait",
        waiting=waiting,
        position=len(waiting) + 1,
    )


def waiters_ahead(
    snapshot: Snapshot, me: Session, request: Request, pattern: Pattern, ticket: int | None
) -> tuple[str, ...]:
    """Return the agents ahead of the caller in line for a pattern, in their order."""
    earlier = earlier_waiters(snapshot, me.id, request, pattern, ticket)
    return tuple(dict.fromkeys(waiter.agent for waiter in earlier))


def waiters_before(
    snapshot: Snapshot, session: str, request: Request, pattern: Pattern, ticket: int | None
) -> Iterator[Waiter]:
    """Yield the other waiters for a pattern that have waited longer than a ticket, the nearest first.

    They are read in pages: most callers need only the nearest, and the line may be long.
    """
    before = LAST_TICKET if ticket is None else ticket
    skipped, limit = 0, _FIRST_PAGE
    while True:
        rows = [
            row
            for alternative in pattern.alternatives
            for row in snapshot.near(
                "waiters_before", [alternative], ticket=before, limit=limit, skipped=skipped
            )
        ]
        for waiter in sorted(Waiter.from_rows(rows), key=lambda waiter: waiter.ticket, reverse=True):
            is_other = waiter.session != session and waiter.alive_until > snapshot.now
            if is_other and find_conflict(pattern, request.mode, waiter) is not None:
                yield waiter
        if len(rows) < limit:
            return
        skipped, limit = skipped + limit, limit * 4


def is_awaited(
    snapshot: Snapshot, session: str, request: Request, pattern: Pattern, ticket: int | None
) -> bool:
    """Return whether others have waited longer for a pattern than a ticket, or than a caller without one."""
    return next(waiters_before(snapshot, session, request, pattern, ticket), None) is not None


def earlier_waiters(
    snapshot: Snapshot, session: str, request: Request, pattern: Pattern, ticket: int | None
) -> list[Waiter]:
    """Return the other waiters for a pattern, without those behind the caller's own ticket."""
    rows = snapshot.near("waiters_near", pattern.alternatives, session)
    if ticket is not None:
        rows = [row for row in rows if row["ticket"] < ticket]
    waiters = Waiter.from_rows(rows)
    return [waiter for waiter in waiters if find_conflict(pattern, request.mode, waiter) is not None]


def claim_command(pattern: Pattern) -> str:
    """Return the command that claims a pattern from the root of the repository."""
    is_literal = pattern.kind is LITERAL and has_special(pattern.text)
    return f"landlane claim {shell_quote(pattern.text)}" + (" --literal" if is_literal else "")


def how_to_get(pattern: Pattern, holding: Holding, position: int = 1) -> str:
    """Return the hint for a pattern that is held: a reason and a command."""
    command = claim_command(pattern)
    if holding.kind is SessionKind.GATE:
        return f"see what a person is asked: landlane gate show {holding.claim.agent}"
    if holding.kind is SessionKind.LANDING:
        return f"wait for it: {command} --wait"
    if holding.claim.mode is ClaimMode.SHARED:
        return f"share it, if the file is mergeable: {command} --shared"
    place = f"as {ordinal(position)} in line" if position > 1 else "in line"
    return f"wait {place}: {command} --wait"


def reason_text(holding: Holding) -> str:
    """Return what a claim is for: its task with its title, and the note of an agent in quotes."""
    claim = holding.claim
    has_note = claim.note and holding.kind in (SessionKind.AGENT, SessionKind.PERSON)
    return " ".join(filter(None, (claim.task, holding.title, f'"{claim.note}"' if has_note else "")))


def end_text(holding: Holding, now: int) -> str:
    """Return when a claim ends: `in 29 min`, or the event that ends it."""
    if holding.kind is SessionKind.LANDING:
        return "when landed"
    if holding.kind is SessionKind.GATE:
        return "when answered"
    if holding.kind is SessionKind.REVIEW:
        return "when reviewed"
    if holding.kind is SessionKind.HANDOFF:
        return "when accepted"
    return time_left(holding.claim.until - now)


def age_text(holding: Holding, store: Store, now: int) -> str:
    """Return when a claim was taken, such as `4 min ago`."""
    return time_ago(store.wall_of(holding.claim.granted_at), store.wall_of(now))


def held_text(path: str, holding: Holding, store: Store, now: int, name: str = "") -> str:
    """Return the sentence that says who holds a path, for what, since when and until when.

    `name` is the path as claims name it, if it is shown in another form.
    """
    age, held = age_text(holding, store, now), holding.claim.pattern
    reason, is_same = reason_text(holding), held == (name or path)
    is_narrower = holding.claim.kind is LITERAL and not (name or path).startswith(f"{held}/")
    subject = f"{path} overlaps {held}, which" if is_narrower and not is_same else path
    if holding.kind is SessionKind.LANDING:
        return f"{subject} is queued to land: {f'{holding.claim.agent} {reason}'.rstrip()} ({age})"
    if not holding.claim.session:
        return f"{subject} is locked by {holding.claim.agent}: {holding.claim.note} ({age})"
    by = holding.claim.agent + ("" if is_same or is_narrower else f" with {held}")
    for_what = f": {reason}" if reason else ""
    return f"{subject} is claimed by {by}{for_what} ({age}, lease ends {end_text(holding, now)})"


def describe_holder(repo: Repository, path: str, claim: Claim, name: str = "") -> str:
    """Return the sentence about a path and the claim on it, with the facts read now; see `held_text`."""

    def look(snapshot: Snapshot) -> tuple[Holding, int]:
        return describe_claims(snapshot, [claim])[0], snapshot.now

    holding, now = repo.store.view(look)
    return held_text(path, holding, repo.store, now, name)


def refusal_text(refusal: Refusal, store: Store, now: int, path: str = "") -> str:
    """Return the sentence that says why a pattern was refused."""
    path = path or refusal.pattern
    if refusal.is_waiting:
        waited = rough_duration(max(now - refusal.since, 0))
        return f"{path} is free, but {refusal.holder} is next in line (waiting for {waited})"
    if len(refusal.holders) == 1:
        return held_text(path, refusal.holders[0], store, now, refusal.pattern)
    return f"{path} overlaps {len(refusal.holders)} claims"


def find_missing_folder(root: str, pattern: str) -> tuple[str, str]:
    """Return the first folder of a glob that does not exist, and the existing one most like it."""
    parts = pattern.removeprefix("./").split("/")
    if not any(mark in pattern for mark in "*?[{") or ":" in parts[0]:
        return "", ""  # a plain path may be a file that is yet to be written
    folder = root
    for part in parts[:-1]:
        if any(mark in part for mark in "*?[{"):
            return "", ""
        below = os.path.join(folder, part)
        if not os.path.isdir(below):
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
            return part, nearest_word(part, names)
        folder = below
    return "", ""

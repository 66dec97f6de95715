"""Claims and refusals as public JSON."""

from __future__ import annotations

from landlane.claims.describe import age_text, end_text, reason_text, refusal_text
from landlane.claims.model import Refused
from landlane.clock import duration_text, rfc3339
from landlane.error_json import failure_json
from landlane.units import exact_duration, ordinal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.claims.json_types import ClaimJson, HoldingJson, RefusalJson, WaiterJson
    from landlane.claims.model import Claim, Holding, Refusal, Taken
    from landlane.sessions.model import Waiter
    from landlane.store.interface import Store


_EXITS = {"CLAIM_HELD": 3, "WAIT_TIMED_OUT": 5, "WAIT_CYCLE": 3}


def claim_json(claim: Claim, store: Store) -> ClaimJson:
    """Return a claim as JSON."""
    return {
        "pattern": claim.pattern,
        "kind": claim.kind,
        "mode": claim.mode,
        "token": claim.token,
        "holder": claim.agent,
        "session": claim.session,
        "since": rfc3339(store.wall_of(claim.granted_at)),
        "until": rfc3339(store.wall_of(claim.until)),
        "task": claim.task or None,
        "note": claim.note or None,
    }


def holding_json(holding: Holding, store: Store, now: int) -> HoldingJson:
    """Return a claim as JSON, with what it is for, how it ends and who waits for it."""
    return {
        **claim_json(holding.claim, store),
        "title": holding.title or None,
        "holder_kind": holding.kind,
        "for": reason_text(holding) or None,
        "ends": end_text(holding, now),
        "waiting": list(holding.waiting),
    }


def refusal_json(refusal: Refusal, store: Store, now: int) -> RefusalJson:
    """Return a refusal as JSON."""
    return {
        "pattern": refusal.pattern,
        "holder": refusal.holder,
        "session": refusal.session,
        "held": refusal.held,
        "mode": refusal.mode,
        "since": rfc3339(store.wall_of(refusal.since)),
        "age": duration_text(max(now - refusal.since, 0)),
        "until": rfc3339(store.wall_of(refusal.until)),
        "task": refusal.task or None,
        "note": refusal.note or None,
        "waiting": refusal.is_waiting,
        "message": refusal_text(refusal, store, now),
        "hint": refusal.hint,
        "holders": [holding_json(holding, store, now) for holding in refusal.holders],
        "position": refusal.position,
    }


def outcome_json(
    outcome: Taken | Refused, store: Store, typed: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], int]:
    """Return the answer to `claim` and its exit code; `typed` has the patterns as the caller wrote them."""
    now = store.view(lambda snapshot: snapshot.now)
    refused = [refusal_json(refusal, store, now) for refusal in outcome.refused]
    if not isinstance(outcome, Refused):
        granted = [claim_json(claim, store) for claim in outcome.granted]
        waited = {"waited_seconds": round(outcome.waited_ms / 1000, 1)} if outcome.waited_ms else {}
        return {"ok": True, "granted": granted, "refused": refused, **waited}, 0
    answer = _failure(outcome, store, now, typed or {})
    answer |= {
        "granted": [],
        "refused": refused,
        "holders": [holding_json(holding, store, now) for holding in all_holders(outcome)],
        "waiting": list(dict.fromkeys(agent for one in outcome.refused for agent in one.waiting)),
        "position": max(one.position for one in outcome.refused),
    }
    if outcome.cycle:
        answer["cycle"] = list(outcome.cycle)
    return answer, _EXITS[outcome.code]


def all_holders(refused: Refused) -> list[Holding]:
    """Return every claim in the way of a request, each of them once."""
    found = {holding.claim.token: holding for one in refused.refused for holding in one.holders}
    return list(found.values())


def _failure(refused: Refused, store: Store, now: int, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return code, message and hint of a refusal."""
    first = refused.refused[0]
    path = typed.get(first.pattern, first.pattern)
    if refused.code == "WAIT_CYCLE":
        pairs = zip(refused.cycle, refused.cycle[1:], strict=False)
        waits = ", ".join(f"{one} waits for {other}" for one, other in pairs)
        hint = f"release what {refused.cycle[1]} waits for, then claim again: landlane claims"
        return failure_json("WAIT_CYCLE", f"waiting for {path} would never end: {waits}", hint)
    if refused.code == "WAIT_TIMED_OUT":
        holder = first.holders[0].claim.agent if first.holders else f"{first.holder}, who is next in line"
        waited, place = exact_duration(refused.waited_ms), ordinal(first.position)
        message = f"{path} is still claimed by {holder} after {waited}; you were {place} in line"
        return failure_json("WAIT_TIMED_OUT", message, first.hint)
    return failure_json("CLAIM_HELD", _held_message(refused, store, now, path), first.hint)


def _held_message(refused: Refused, store: Store, now: int, path: str) -> str:
    if len(refused.refused) == 1:
        several = "; nothing was claimed" if len(refused.refused[0].holders) > 1 else ""
        return refusal_text(refused.refused[0], store, now, path) + several
    count = len(refused.refused)
    return f"{count} of {count + len(refused.free)} paths are claimed by others; nothing was claimed"


def holder_rows(holders: Sequence[Holding], store: Store, now: int) -> list[tuple[str, ...]]:
    """Return pattern, holder, reason, age and end of each claim, as people read them."""
    return [
        (
            holding.claim.pattern,
            holding.claim.agent,
            reason_text(holding),
            age_text(holding, store, now),
            f"lease ends {end_text(holding, now)}",
        )
        for holding in holders
    ]


def waiter_json(waiter: Waiter, store: Store) -> WaiterJson:
    """Return a waiter as JSON."""
    return {
        "ticket": waiter.ticket,
        "agent": waiter.agent,
        "mode": waiter.mode,
        "patterns": list(dict.fromkeys(waiter.patterns)),
        "since": rfc3339(store.wall_of(waiter.since)),
    }

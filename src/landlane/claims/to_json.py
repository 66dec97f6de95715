"""Claims and refusals as public JSON."""

from __future__ import annotations

from landlane.claims.model import Refused
from landlane.clock import duration_text, rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.claims.model import Claim, Refusal, Taken
    from landlane.sessions.model import Waiter
    from landlane.store.interface import Store


_MESSAGES = {
    "CLAIM_HELD": "another session holds it",
    "WAIT_TIMED_OUT": "it stayed held for as long as you would wait",
    "WAIT_CYCLE": "waiting would never end: these sessions would wait for each other",
}
_EXITS = {"CLAIM_HELD": 3, "WAIT_TIMED_OUT": 5, "WAIT_CYCLE": 3}


def claim_json(claim: Claim, store: Store) -> dict[str, Any]:
    """A claim as programs read it."""
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


def refusal_json(refusal: Refusal, store: Store, now: int) -> dict[str, Any]:
    """A refusal as programs read it."""
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
        "hint": refusal.hint,
    }


def outcome_json(outcome: Taken | Refused, store: Store) -> tuple[dict[str, Any], int]:
    """The answer to `claim`, and the exit code that goes with it."""
    now = store.view(lambda snapshot: snapshot.now)
    refused = [refusal_json(refusal, store, now) for refusal in outcome.refused]
    if not isinstance(outcome, Refused):
        granted = [claim_json(claim, store) for claim in outcome.granted]
        return {"ok": True, "granted": granted, "refused": refused}, 0
    first = outcome.refused[0]
    answer: dict[str, Any] = {
        "ok": False,
        "code": outcome.code,
        "message": f"{first.pattern}: {_MESSAGES[outcome.code]}",
        "hint": first.hint,
        "granted": [],
        "refused": refused,
    }
    if outcome.cycle:
        answer["cycle"] = list(outcome.cycle)
        answer["message"] += f" ({' → '.join(outcome.cycle)})"
        answer["hint"] = f"release what {outcome.cycle[1]} waits for first, then ask again"
    return answer, _EXITS[outcome.code]


def waiter_json(waiter: Waiter, store: Store) -> dict[str, Any]:
    """A waiter as programs read it."""
    return {
        "ticket": waiter.ticket,
        "agent": waiter.agent,
        "mode": waiter.mode,
        "patterns": list(dict.fromkeys(waiter.patterns)),
        "since": rfc3339(store.wall_of(waiter.since)),
    }

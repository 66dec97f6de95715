"""What a fence caught, in the journal under the rule that was broken."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.domain.agents import Session
    from landlane.operations.context import Context

# The rules that fences watch over, by the short names that RULES.md gives them.
CLAIM_FIRST = "claim before you change"
SYNC_FIRST = "sync before you deploy"
VERIFY_FIRST = "verify before done"
MEMORY_FIRST = "load memory before acting"
STAY_IN_ROLE = "stay in your role"
_MOST_PATHS = 50


def note_catch(
    context: Context,
    session: Session | None,
    *,
    rule: str,
    fence: str,
    what: str,
    paths: tuple[str, ...] = (),
) -> None:
    """Write down that a fence stopped or found something: `what` in a few words."""
    who = (session.agent, session.id) if session is not None else ("", "")
    facts: dict[str, object] = {"rule": rule, "fence": fence, "what": what[:200]}
    if paths:
        facts["paths"] = list(paths[:_MOST_PATHS])
    context.change(lambda tx: tx.record("fence.caught", *who, facts))

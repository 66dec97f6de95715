"""Giving out numbers: distinct and growing over all worktrees and machines, and above all that stand in git.

Git is asked before the transaction, which then takes the next number above both what git shows and what was
given out before. A number that nobody used is reported, never given out again.
"""

from __future__ import annotations

from landlane.domain.agents import check_text
from landlane.domain.numbers import (
    GIVEN,
    LONGEST_PURPOSE,
    PENDING,
    Number,
    NumbersFound,
    number_kind,
    state_of,
)
from landlane.operations.claims import living
from landlane.operations.leases import sweep_if_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.domain.agents import Session
    from landlane.domain.journal import Entry
    from landlane.domain.numbers import NumberKind
    from landlane.operations.context import Context
    from landlane.ports.store import Change


def give_number(context: Context, session: Session, kind: str, *, purpose: str = "") -> Number:
    """The next number of a kind, for this session alone.

    Raises:
        Malformed: the kind or the purpose cannot be used.
        Stale: the session is over.
    """
    known = number_kind(context.settings.numbers, kind)
    check_text(purpose, "purpose", LONGEST_PURPOSE)
    floor = _found(context, known).highest

    def work(tx: Change) -> Number:
        me = living(tx, session)
        last = tx.one("number_last", kind=kind)
        number = max(last[0] if last and last[0] is not None else 0, floor) + 1
        given = Number(
            kind=kind,
            number=number,
            text=known.text_of(number),
            path=known.path_of(number),
            agent=me.agent,
            session=me.id,
            purpose=purpose,
            at=context.store.wall_of(tx.now),
            state=PENDING if known.path else GIVEN,
        )
        _store(tx, given)
        facts = {"kind": kind, "number": number, "purpose": purpose}
        tx.record("number.given", me.agent, me.id, facts)
        return given

    # The root is locked shared, as for claims: who moves the whole store away takes it alone.
    return context.change(work, areas={"": False, f"//number:{kind}": True})


def list_numbers(context: Context, kind: str) -> list[Number]:
    """Every number of a kind that was given out, and whether it is used, may still come, or was abandoned."""
    known = number_kind(context.settings.numbers, kind)
    sweep_if_due(context.store)
    rows = context.store.view(lambda reading: reading.all("numbers_of", kind=kind))
    found = _found(context, known) if rows else NumbersFound()
    return [
        Number(
            kind=kind,
            number=number,
            text=known.text_of(number),
            path=known.path_of(number),
            agent=agent,
            session=session,
            purpose=purpose,
            at=given_at,
            state=state_of(number, known, found, is_over=ended_at is not None),
        )
        for number, agent, session, purpose, given_at, ended_at in rows
    ]


def _found(context: Context, kind: NumberKind) -> NumbersFound:
    return context.repository.numbers_in(kind.path) if kind.path else NumbersFound()


def _store(tx: Change, number: Number) -> None:
    tx.run(
        "number_add",
        kind=number.kind,
        number=number.number,
        agent=number.agent,
        session=number.session,
        purpose=number.purpose,
        given_at=number.at,
    )


def follow_number(tx: Change, entry: Entry) -> None:
    """Do again what an entry of the journal tells."""
    facts = entry.facts()
    tx.run(
        "number_add",
        kind=facts["kind"],
        number=facts["number"],
        agent=entry.agent,
        session=entry.session,
        purpose=facts["purpose"],
        given_at=entry.at,
    )

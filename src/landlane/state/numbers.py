"""Give out numbers that no one else gets: distinct and growing over all worktrees and machines.

Git is read before the transaction, which then takes the next number above both those in git and those given
out before. A number that was never used is reported, but not given out again.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.git.numbers_in_file_names import NUMBER_MARK, NumbersFound
from landlane.sessions.leases import require_live, sweep_if_due
from landlane.text import check_text
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import NumberSettings
    from landlane.store.interface import Transaction
    from landlane.store.journal_chain import Entry

LONGEST_PURPOSE = 200
_LONGEST_KIND = 64
_KIND_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")

USED, PENDING, ABANDONED, GIVEN = "used", "pending", "abandoned", "given"


@value
class Number:
    """A number that was given out. `text` has the width, and `path` the place, that the settings say."""

    kind: str
    number: int
    text: str
    path: str
    agent: str
    session: str
    purpose: str
    at: int
    state: str = PENDING


@value
class NumberKind:
    """What the settings say of a kind: where its numbers stand, and how wide they are written."""

    name: str
    path: str = ""
    width: int = 0

    def text_of(self, number: int) -> str:
        """The number as it is written."""
        return str(number).zfill(self.width)

    def path_of(self, number: int) -> str:
        """Where the number will stand; empty when nobody said."""
        return self.path.replace(NUMBER_MARK, self.text_of(number))


def number_kind(settings: Mapping[str, NumberSettings], kind: str) -> NumberKind:
    """The kind of this name; one that the settings do not know just counts.

    Raises:
        Malformed: the text cannot name a kind.
    """
    is_word = bool(kind) and len(kind) <= _LONGEST_KIND and _KIND_CHARACTERS.issuperset(kind)
    if not is_word or kind == "list":
        raise Malformed(
            f"{kind[:40]!r} cannot name a kind of numbers",
            code="BAD_KIND",
            hint=f"use 1 to {_LONGEST_KIND} small letters, digits, _ or -, as in: landlane number migration",
        )
    known = settings.get(kind)
    return NumberKind(name=kind, path=known.path, width=known.width) if known else NumberKind(name=kind)


def state_of(number: int, kind: NumberKind, found: NumbersFound, *, is_over: bool) -> str:
    """How far a number is: it stands in a branch, may still come, or its session ended without using it."""
    if not kind.path:
        return GIVEN  # nobody said where to look
    if number in found.in_branches:
        return USED
    return ABANDONED if is_over and number not in found.in_trees else PENDING


def give_number(repo: Repository, session: Session, kind: str, *, purpose: str = "") -> Number:
    """The next number of a kind, for this session alone.

    Raises:
        Malformed: the kind or the purpose cannot be used.
        Stale: the session is over.
    """
    known = number_kind(repo.settings.numbers, kind)
    check_text(purpose, "purpose", LONGEST_PURPOSE)
    floor = _found(repo, known).highest

    def work(tx: Transaction) -> Number:
        me = require_live(tx, session)
        last = tx.one("number_last", kind=kind)
        number = max((last["number"] if last else None) or 0, floor) + 1
        given = Number(
            kind=kind,
            number=number,
            text=known.text_of(number),
            path=known.path_of(number),
            agent=me.agent,
            session=me.id,
            purpose=purpose,
            at=repo.store.wall_of(tx.now),
            state=PENDING if known.path else GIVEN,
        )
        _store(tx, given)
        facts = {"kind": kind, "number": number, "purpose": purpose}
        tx.record("number.given", me.agent, me.id, facts)
        return given

    # The root is locked shared, as for claims: who moves the whole store away takes it alone.
    return repo.change(work, areas={"": False, f"//number:{kind}": True})


def list_numbers(repo: Repository, kind: str) -> list[Number]:
    """Every number of a kind that was given out, and whether it is used, may still come, or was abandoned."""
    known = number_kind(repo.settings.numbers, kind)
    sweep_if_due(repo.store)
    rows = repo.store.view(lambda snapshot: snapshot.all("numbers_of", kind=kind))
    found = _found(repo, known) if rows else NumbersFound()
    return [
        Number(
            kind=kind,
            number=row["number"],
            text=known.text_of(row["number"]),
            path=known.path_of(row["number"]),
            agent=row["agent"],
            session=row["session"],
            purpose=row["purpose"],
            at=row["given_at"],
            state=state_of(row["number"], known, found, is_over=row["ended_at"] is not None),
        )
        for row in rows
    ]


def _found(repo: Repository, kind: NumberKind) -> NumbersFound:
    return repo.git.numbers_in(kind.path) if kind.path else NumbersFound()


def _store(tx: Transaction, number: Number) -> None:
    tx.run(
        "number_add",
        kind=number.kind,
        number=number.number,
        agent=number.agent,
        session=number.session,
        purpose=number.purpose,
        given_at=number.at,
    )


def replay_number(tx: Transaction, entry: Entry) -> None:
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

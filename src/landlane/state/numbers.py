"""Give out numbers that no one else gets: distinct and growing over all worktrees and machines.

Git is read before the transaction, which then takes the next number above both those in git and those given
out before. A number that was never used is reported, but not given out again.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed
from landlane.git.numbers_in_file_names import NUMBER_MARK, NumbersFound, find_numbers
from landlane.sessions.leases import require_live, sweep_if_due
from landlane.text import check_text, nearest_word
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import NumberSettings
    from landlane.store.interface import Transaction
    from landlane.store.journal_chain import JournalEntry

LONGEST_PURPOSE = 200
_LONGEST_KIND = 64
_KIND_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


class NumberState(StrEnum):
    """What became of a number that was given out; derived from git and its session, never stored."""

    USED = "used"  # a branch has a file with it
    PENDING = "pending"
    ABANDONED = "abandoned"  # its session ended without using it
    GIVEN = "given"  # the settings name no path where it could be found


USED, PENDING, ABANDONED, GIVEN = NumberState


@value
class AllocatedNumber:
    """A number that was given out; `text` and `path` are formatted as the settings say."""

    kind: str
    number: int
    text: str
    path: str
    agent: str
    session: str
    purpose: str
    at: int
    state: NumberState = PENDING


@value
class NumberKind:
    """The settings of one kind of numbers: the path pattern of its files, and the width in digits."""

    name: str
    path: str = ""
    width: int = 0

    def text_of(self, number: int) -> str:
        """Return the number, padded with zeros."""
        return str(number).zfill(self.width)

    def path_of(self, number: int) -> str:
        """Return the path of the file with this number; empty if the settings have no pattern."""
        return self.path.replace(NUMBER_MARK, self.text_of(number))


def number_kind(settings: Mapping[str, NumberSettings], kind: str) -> NumberKind:
    """Return the kind with this name; a kind without settings has no path and no width.

    Raises:
        Malformed: the text cannot name a kind.
    """
    is_word = bool(kind) and len(kind) <= _LONGEST_KIND and _KIND_CHARACTERS.issuperset(kind)
    if not is_word or kind == "list":
        raise Malformed(
            f'"{kind[:40]}" cannot be a kind; use up to {_LONGEST_KIND} lower-case letters, digits, _ or -',
            code="BAD_KIND",
            hint="for example: landlane number migration",
        )
    known = settings.get(kind)
    return NumberKind(name=kind, path=known.path, width=known.width) if known else NumberKind(name=kind)


def state_of(number: int, kind: NumberKind, found: NumbersFound, *, is_over: bool) -> NumberState:
    """Return the state of a number; `is_over` says that its session has ended."""
    if not kind.path:
        return GIVEN
    if number in found.in_branches:
        return USED
    return ABANDONED if is_over and number not in found.in_trees else PENDING


def check_known_kind(repo: Repository, kind: str, *, is_listing: bool = False) -> None:
    """Refuse a kind that is neither in the settings nor was used before.

    Raises:
        Malformed: there are no numbers of this kind; nothing was counted.
    """
    number_kind(repo.settings.numbers, kind)
    used = {row["kind"] for row in repo.store.view(lambda snapshot: snapshot.all("number_kinds"))}
    known = sorted(used | set(repo.settings.numbers))
    if kind in known:
        return
    meant = nearest_word(kind, known)
    if meant:
        hint = f"did you mean: landlane number {'list ' if is_listing else ''}{meant}"
    elif known and nearest_word(kind, ["list"]):
        hint = f"did you mean: landlane number list {known[0]}"
    else:
        hint = f"to begin a new kind: landlane number {kind} --new"
    raise Malformed(
        f"no numbers of kind {kind}; nothing was counted", code="UNKNOWN_KIND", hint=hint, known=known
    )


def give_number(
    repo: Repository, session: Session, kind: str, *, purpose: str = "", is_new_kind: bool = False
) -> AllocatedNumber:
    """Return the next number of a kind and record that this session has it.

    Raises:
        Malformed: the kind or the purpose cannot be used, or the kind is unknown and not `is_new_kind`.
        Stale: the session is over.
    """
    if not is_new_kind:
        check_known_kind(repo, kind)
    known = number_kind(repo.settings.numbers, kind)
    check_text(purpose, "purpose", LONGEST_PURPOSE)
    floor = _found(repo, known).highest

    def work(tx: Transaction) -> AllocatedNumber:
        me = require_live(tx, session)
        last = tx.one("number_last", kind=kind)
        number = max((last["number"] if last else None) or 0, floor) + 1
        facts = {"kind": kind, "number": number, "purpose": purpose}
        given_at = repo.store.wall_of(tx.now)
        tx.run("number_add", agent=me.agent, session=me.id, given_at=given_at, **facts)
        tx.record("number.given", me.agent, me.id, facts)
        state = PENDING if known.path else GIVEN
        return _allocated(known, number, state, me.agent, me.id, purpose, given_at)

    # The root is locked shared, as for claims; moving the store takes it exclusively.
    return repo.change(work, areas={"": False, f"//number:{kind}": True})


def list_numbers(repo: Repository, kind: str) -> list[AllocatedNumber]:
    """Return all numbers of a kind that were given out, with their states."""
    known = number_kind(repo.settings.numbers, kind)
    sweep_if_due(repo.store)
    rows = repo.store.view(lambda snapshot: snapshot.all("numbers_of", kind=kind))
    found = _found(repo, known) if rows else NumbersFound()
    return [
        _allocated(
            known,
            row["number"],
            state_of(row["number"], known, found, is_over=row["ended_at"] is not None),
            row["agent"],
            row["session"],
            row["purpose"],
            row["given_at"],
        )
        for row in rows
    ]


def _allocated(
    kind: NumberKind, number: int, state: NumberState, agent: str, session: str, purpose: str, at: int
) -> AllocatedNumber:
    return AllocatedNumber(
        kind=kind.name,
        number=number,
        text=kind.text_of(number),
        path=kind.path_of(number),
        agent=agent,
        session=session,
        purpose=purpose,
        at=at,
        state=state,
    )


def _found(repo: Repository, kind: NumberKind) -> NumbersFound:
    return find_numbers(repo.checkout, kind.path) if kind.path else NumbersFound()


def replay_number(tx: Transaction, entry: JournalEntry) -> None:
    """Apply a journal entry to a store that is rebuilt."""
    tx.run("number_add", agent=entry.agent, session=entry.session, given_at=entry.at, **entry.facts())

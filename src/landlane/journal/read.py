"""Read the journal: a range of entries, the newest ones, or new ones as they come."""

from __future__ import annotations

from landlane.errors import PatternError
from landlane.patterns.pattern import overlap
from landlane.sessions.leases import sweep_if_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.store.journal_chain import JournalEntry


PAGE = 1000
_LOOK_BACK = 5000
_POLL_SECONDS = 2.0  # poll interval, in case a wake-up is lost


def read_entries(repo: Repository, after: int = 0, most: int | None = None) -> Iterator[JournalEntry]:
    """Yield sealed entries in order, read page by page."""
    given = 0
    sweep_if_due(repo.store)
    while most is None or given < most:
        page = repo.store.entries(after, PAGE if most is None else min(PAGE, most - given))
        yield from page
        given += len(page)
        if not page:
            return
        after = page[-1].position


def last_position(repo: Repository) -> int:
    """Return the position of the newest sealed entry."""
    entry = repo.store.last_entry()
    return entry.position if entry else 0


def follow(
    repo: Repository, after: int, is_done: Callable[[], bool] = lambda: False
) -> Iterator[JournalEntry]:
    """Yield entries as they come, forever, sleeping until woken."""
    listener = repo.store.listen()
    try:
        while not is_done():
            for entry in read_entries(repo, after):
                after = entry.position
                yield entry
            listener.wait(_POLL_SECONDS)
    finally:
        listener.close()


def find_last_claim_entry(repo: Repository, pattern: Pattern) -> JournalEntry | None:
    """Return the newest entry about a claim that covers this pattern, within a limited range."""
    newest = last_position(repo)
    found: JournalEntry | None = None
    kinds: dict[int, str] = {}  # an entry that ends a claim does not repeat the kind of its pattern
    for entry in read_entries(repo, max(0, newest - _LOOK_BACK)):
        if entry.kind.startswith("claim.") and entry.kind != "claim.refused":
            facts = entry.facts()
            kind = kinds.setdefault(facts.get("token", 0), str(facts.get("kind", "glob")))
            held = parse_leniently(repo, str(facts.get("pattern", "")), kind)
            if held is not None and overlap(held, pattern):
                found = entry
    return found


def parse_leniently(repo: Repository, text: str, kind: str) -> Pattern | None:
    """Parse a pattern from the journal; None if this version cannot read it."""
    try:
        return repo.git.pattern_of(text, kind)
    except PatternError:
        return None

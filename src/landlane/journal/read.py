"""Reading the journal: a stretch of it, following it as it grows, and proving that nobody changed it."""

from __future__ import annotations

from landlane.errors import PatternError
from landlane.patterns.pattern import overlap
from landlane.sessions.leases import sweep_if_due
from landlane.store.journal_chain import Verdict, check_chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.context import Context
    from landlane.patterns.pattern import Pattern
    from landlane.store.journal_chain import Entry

_PAGE = 1000
_LOOK_BACK = 5000
_LOOK_SECONDS = 2.0  # how long a lost wake-up can go unnoticed


def read_entries(context: Context, after: int = 0, most: int | None = None) -> Iterator[Entry]:
    """Sealed entries in order, page by page."""
    given = 0
    sweep_if_due(context.store)
    while most is None or given < most:
        page = context.store.entries(after, _PAGE if most is None else min(_PAGE, most - given))
        yield from page
        given += len(page)
        if not page:
            return
        after = page[-1].position


def last_position(context: Context) -> int:
    """The position of the newest sealed entry."""
    entry = context.store.last_entry()
    return entry.position if entry else 0


def follow(context: Context, after: int, is_done: Callable[[], bool] = lambda: False) -> Iterator[Entry]:
    """Entries as they come, for ever; sleeps until woken."""
    listener = context.store.listen()
    try:
        while not is_done():
            for entry in read_entries(context, after):
                after = entry.position
                yield entry
            listener.wait(_LOOK_SECONDS)
    finally:
        listener.close()


def last_word_on(context: Context, pattern: Pattern) -> Entry | None:
    """The newest entry about a claim that covers this, looking back over a bounded stretch."""
    newest = last_position(context)
    found: Entry | None = None
    kinds: dict[int, str] = {}  # an entry that ends a grant does not repeat whether it was a literal
    for entry in read_entries(context, max(0, newest - _LOOK_BACK)):
        if entry.kind.startswith("claim."):
            facts = entry.facts()
            kind = kinds.setdefault(facts.get("token", 0), str(facts.get("kind", "glob")))
            held = parse_leniently(context, str(facts.get("pattern", "")), kind)
            if held is not None and overlap(held, pattern):
                found = entry
    return found


def parse_leniently(context: Context, text: str, kind: str) -> Pattern | None:
    """A pattern out of the journal; one that this version cannot read is passed over."""
    try:
        return context.repository.pattern_of(text, kind)
    except PatternError:
        return None


def verify(context: Context, copies: list[tuple[str, Iterator[Entry]]], *, mirrored: int = 0) -> Verdict:
    """Check the chain of the store, then that of each copy, and whether it is the same.

    `mirrored` is the position that the copy called `….jsonl` must have reached by now.
    """
    hashes: dict[int, str] = {}
    held = {row[2]: row[3] for row in context.store.view(lambda reading: reading.all("claims_all"))}

    def remembered() -> Iterator[Entry]:
        for entry in read_entries(context):
            hashes[entry.position] = entry.hash
            if held and entry.kind == "claim.taken":
                held.pop(entry.facts().get("token"), None)
            yield entry

    verdict = check_chain(remembered())
    trouble = list(verdict.trouble)
    # Every live grant has the entry that gave it: one without shows a cut.
    trouble += [f"the store was cut: the entry that granted {pattern} is gone" for pattern in held.values()]
    for name, entries in copies:
        trouble += _compare(context, name, entries, hashes, mirrored if name.endswith(".jsonl") else 0)
    return Verdict(entries=verdict.entries, head=verdict.head, trouble=tuple(trouble))


def _compare(
    context: Context, name: str, entries: Iterator[Entry], hashes: dict[int, str], mirrored: int
) -> list[str]:
    """What is wrong with a copy: in itself, or beside the store."""
    differing: list[str] = []
    newest = max(hashes, default=0)
    last = 0

    def compared() -> Iterator[Entry]:
        nonlocal newest, last
        for entry in entries:
            last = entry.position
            if last > newest:  # written since the store was read?
                hashes.update({one.position: one.hash for one in context.store.entries(newest, _PAGE)})
                newest = max(hashes, default=0)
            if hashes.get(last, entry.hash) != entry.hash:
                differing.append(f"entry {last} in {name} differs from the store")
            yield entry

    try:
        trouble = [f"{line}, in {name}" for line in check_chain(compared()).trouble] or differing
    except ValueError as error:
        trouble = [*differing, f"{name} holds something else after entry {last}: {error}"]
    if last > newest:
        trouble.append(f"the store was cut: {name} knows {last - newest} newer entries, up to {last}")
    if last < mirrored:
        trouble.append(f"{name} ends at entry {last}, the store went on to {mirrored}")
    return trouble

"""Verify the hash chain of the journal and compare its copies."""

from __future__ import annotations

from landlane.journal.read import PAGE, read_entries
from landlane.store.journal_chain import JournalCheck, check_chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.repository import Repository
    from landlane.store.journal_chain import JournalEntry


def verify(
    repo: Repository, copies: list[tuple[str, Iterator[JournalEntry]]], *, mirrored: int = 0
) -> JournalCheck:
    """Check the chain of the store, then each copy and whether it matches the store.

    `mirrored` is the position that the copy `….jsonl` must have reached.
    """
    hashes: dict[int, str] = {}
    held = repo.store.view(
        lambda snapshot: {row["token"]: row["pattern"] for row in snapshot.all("claims_all")}
    )

    def remembered() -> Iterator[JournalEntry]:
        for entry in read_entries(repo):
            hashes[entry.position] = entry.hash
            if held and entry.kind == "claim.taken":
                held.pop(entry.facts().get("token"), None)
            yield entry

    verdict = check_chain(remembered())
    trouble = list(verdict.trouble)
    # Every live claim has the entry that granted it: a missing one means that the journal was cut.
    trouble += [f"the store was cut: the entry that granted {pattern} is gone" for pattern in held.values()]
    for name, entries in copies:
        trouble += _compare(repo, name, entries, hashes, mirrored if name.endswith(".jsonl") else 0)
    return JournalCheck(entries=verdict.entries, head=verdict.head, trouble=tuple(trouble))


def _compare(
    repo: Repository, name: str, entries: Iterator[JournalEntry], hashes: dict[int, str], mirrored: int
) -> list[str]:
    """Return the problems of a copy, in itself or compared with the store."""
    differing: list[str] = []
    newest = max(hashes, default=0)
    last = 0

    def compared() -> Iterator[JournalEntry]:
        nonlocal newest, last
        for entry in entries:
            last = entry.position
            if last > newest:  # written since the store was read?
                hashes.update({entry.position: entry.hash for entry in repo.store.entries(newest, PAGE)})
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

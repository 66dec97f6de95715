"""Copy the journal to git: one commit on a separate ref whenever it has grown."""

from __future__ import annotations

from landlane.git.run import run_in
from landlane.store.journal_chain import parse_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.git.discovery import Checkout
    from landlane.store.journal_chain import JournalEntry

REF = "refs/landlane/journal"
_CHUNK = 1000  # entries in one file: a commit rewrites only the newest


def commit_journal(checkout: Checkout, journal_path: str) -> bool:
    """Commit the entries that the ref lacks; return whether there were any.

    Two processes may do so at once: the ref only moves from where it was read, and the loser's entries are in
    the winner's commit or in the next.
    """
    have = _last_position(checkout)
    chunks = _chunks_behind(journal_path, have)
    if not chunks:
        return False
    tip = run_in(checkout, "rev-parse", "--verify", "--quiet", REF).stdout.strip()
    # Without --force, fast-import moves the ref forward only: a rival's newer commit makes it refuse.
    made = run_in(checkout, "fast-import", "--quiet", "--done", stdin=_import_script(tip, chunks))
    return made.exit_code == 0


def _chunks_behind(journal_path: str, have: int) -> dict[str, list[str]]:
    """Return the complete chunk files with entries after a position."""
    first = have // _CHUNK * _CHUNK
    chunks: dict[str, list[str]] = {}
    newest = have
    try:
        with open(journal_path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if number > first and line.endswith("\n"):
                    chunks.setdefault(_chunk_name((number - 1) // _CHUNK), []).append(line)
                    newest = number
    except OSError:
        return {}
    return chunks if newest > have else {}


def _chunk_name(index: int) -> str:
    return f"journal/{index * _CHUNK + 1:09d}.jsonl"


def _last_position(checkout: Checkout) -> int:
    names = _chunk_names(checkout)
    lines = _lines(checkout, names[-1]) if names else []
    return parse_line(lines[-1]).position if lines else 0


def _chunk_names(checkout: Checkout) -> list[str]:
    return sorted(run_in(checkout, "ls-tree", "--name-only", REF, "journal/").stdout.split())


def _lines(checkout: Checkout, name: str) -> list[str]:
    # Not splitlines(): a note may hold other Unicode line separators.
    return run_in(checkout, "show", f"{REF}:{name}").stdout.removesuffix("\n").split("\n")


def _import_script(tip: str, chunks: dict[str, list[str]]) -> bytes:
    newest = parse_line(list(chunks.values())[-1][-1])
    message = f"journal: up to entry {newest.position}\n".encode()
    lines = [
        f"commit {REF}".encode(),
        f"committer Landlane <landlane@localhost> {newest.at // 1000} +0000".encode(),
        f"data {len(message)}".encode(),
        message,
    ]
    if tip:
        lines.append(f"from {tip}".encode())
    for name, content in chunks.items():
        data = "".join(content).encode("utf-8")
        lines += [f"M 100644 inline {name}".encode(), f"data {len(data)}".encode(), data]
    return b"\n".join(lines) + b"\ndone\n"


def read_journal_ref(checkout: Checkout) -> Iterator[JournalEntry]:
    """Return all committed entries.

    Raises:
        ValueError: a line is not a journal entry.
    """
    for name in _chunk_names(checkout):
        for line in _lines(checkout, name):
            yield parse_line(line)

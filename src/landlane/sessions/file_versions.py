"""What a session has seen of a file, by content: whoever builds on a version that is gone must read again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.files import Seen
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction


def remember(repo: Repository, session: str, seen: Mapping[str, Seen]) -> None:
    """Note what a session has just seen, by absolute path. Like a sign of life, it may be forgotten."""
    if not seen:
        return

    def work(tx: Transaction) -> None:
        for path, (digest, stamp) in seen.items():
            tx.run("read_put", session=session, path=path, digest=digest, stamp=stamp)

    repo.store.change(work, is_durable=False)


def last_seen(repo: Repository, session: str, path: str) -> Seen | None:
    """What a session last saw of a file."""
    row = repo.store.view(lambda snapshot: snapshot.one("read_get", session=session, path=path))
    return (row["digest"], row["stamp"]) if row else None


def all_seen(repo: Repository, session: str) -> dict[str, Seen]:
    """Everything that a session has seen, by absolute path."""
    return repo.store.view(lambda snapshot: seen_in(snapshot, session))


def seen_in(snapshot: Snapshot, session: str) -> dict[str, Seen]:
    """Everything that a session has seen, by absolute path."""
    rows = snapshot.all("reads_of", session=session)
    return {row["path"]: (row["digest"], row["stamp"]) for row in rows}


def readers_of(repo: Repository, paths: list[str]) -> list[tuple[str, str, str]]:
    """The live sessions that have seen one of these files: (session, path, digest)."""
    if not paths:
        return []
    rows = repo.store.view(lambda snapshot: snapshot.all("readers_of", paths=paths))
    return [(row["session"], row["path"], row["digest"]) for row in rows]


def forget(repo: Repository, session: str, path: str = "") -> None:
    """It counts no more: one file, or all that a session has seen."""

    def work(tx: Transaction) -> None:
        if path:
            tx.run("read_drop", session=session, path=path)
        else:
            tx.run("reads_forget", session=session)

    repo.store.change(work, is_durable=False)

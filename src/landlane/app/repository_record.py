"""The repository in the store: its id, its first entry, its token epochs, how it compares paths."""

from __future__ import annotations

from landlane.claims.take import add_claim
from landlane.errors import StoreError
from landlane.ids import epoch_of
from landlane.patterns.pattern import LITERAL, parse
from landlane.sessions.model import Claim
from landlane.store.sqlite.database import store_moved_error
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from landlane.store.interface import Snapshot, Store, Transaction
    from landlane.store.journal_chain import JournalEntry


TABLES = (  # those with a column for the repository
    *("sessions", "processes", "claims", "lapsed", "waiters", "waiter_paths", "journal"),
    *("tasks", "task_after", "task_signs", "task_links", "task_counts"),
    *("state", "state_versions", "numbers", "slots", "slot_places", "once", "once_waits"),
    *("records", "record_counts", "verdicts", "runners"),
    *("client_sessions", "reads", "tool_calls"),
)


@value
class RepositoryRecord:
    """What a store knows about the repository itself."""

    ignore_case: bool


def read_record(store: Store) -> RepositoryRecord | None:
    """Return what the store knows about the repository; None if it does not hold it.

    Raises:
        StoreError: its state was moved to another store, or arrived only in part.
    """
    repository = store.repository
    row, moved, arriving = store.view(
        lambda snapshot: (
            snapshot.one("repository_get"),
            snapshot.one("meta_get", key=moved_key(repository)),
            snapshot.one("meta_get", key=arriving_key(repository)),
        )
    )
    if moved is not None:  # even a read would return outdated state
        raise store_moved_error(str(store.describe()["place"]), moved["value"])
    if arriving is not None:
        place = str(store.describe()["place"])
        raise StoreError(
            f"a move of the state to {place} was interrupted",
            code="STORE_MOVE_UNFINISHED",
            hint=f"where it was started, repeat it: landlane store move '{place}'",
        )
    return RepositoryRecord(ignore_case=bool(row["ignore_case"])) if row is not None else None


def list_repositories(store: Store) -> list[str]:
    """Return the ids of all repositories whose state is in this store, without those that have left it."""

    def look(snapshot: Snapshot) -> list[str]:
        known = [str(row["id"]) for row in snapshot.all("repository_ids")]
        return [one for one in known if snapshot.one("meta_get", key=moved_key(one)) is None]

    return store.view(look)


def begin_repository(store: Store, *, ignore_case: bool) -> None:
    """Add the repository to the store, unless it is there."""

    def work(tx: Transaction) -> None:
        if tx.one("repository_get") is None:
            tx.run("repository_add", ignore_case=int(ignore_case))
            tx.record("repository.begun", "", "", {"epoch": tx.epoch, "ignore_case": ignore_case})

    store.change(work, areas={"": True})


def rename_repository(store: Store, former: str) -> None:
    """Give everything that the store holds of the repository `former` to the repository it is opened for."""

    def work(tx: Transaction) -> None:
        if tx.one("repository_get") is None and tx.one("repository_known", id=former) is not None:
            for table in TABLES:
                tx.run(f"rekey_{table}", former=former)
            tx.run("repository_rename", former=former)
            # Other clones that still use the former id learn where the state is.
            tx.run("meta_set", key=moved_key(former), value=f"the repository id {store.repository}")
            tx.record("repository.adopted", "", "", {"former": former})

    store.change(work, areas={"": True})


def moved_key(repository: str) -> str:
    """Return the key of the fact that the state of a repository has left the store."""
    return f"moved_to/{repository}"


def arriving_key(repository: str) -> str:
    """Return the key of the fact that the state of a repository is being copied to the store."""
    return f"arriving/{repository}"


def change_case(store: Store, *, ignore_case: bool) -> None:
    """Change whether paths are compared by case, and rewrite the keys of all live claims."""

    def work(tx: Transaction) -> None:
        for claim in Claim.from_rows(tx.all("claims_all")):
            pattern = parse(claim.pattern, literal=claim.kind is LITERAL, ignore_case=ignore_case)
            tx.run("claim_branches_drop", token=claim.token)
            add_claim(tx, replace(claim, alternatives=pattern.alternatives))
        tx.run("repository_set_case", ignore_case=int(ignore_case))
        tx.record("repository.case", "", "", {"ignore_case": ignore_case})

    store.change(work, areas={"": True})


def newest_epoch(entries: Iterable[JournalEntry]) -> int:
    """Return the highest epoch in these entries."""
    newest = 0
    for entry in entries:
        facts = entry.facts()
        newest = max(newest, epoch_of(int(facts.get("token", 0))), int(facts.get("epoch", 0)))
    return newest


def begin_epoch(store: Store, above: int, kind: str, facts: dict[str, object]) -> int:
    """Raise the epoch above every token that was ever issued, and record why."""

    def work(tx: Transaction) -> int:
        epoch = max(tx.epoch, above) + 1
        tx.run("meta_set", key="epoch", value=str(epoch))
        tx.record(kind, "", "", {"epoch": epoch, **facts})
        return epoch

    return store.change(work)

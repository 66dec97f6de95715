"""The repository itself: its beginning, a changed id or way to compare paths, and a restored store."""

from __future__ import annotations

from landlane.claims.take import add_claim
from landlane.patterns.pattern import parse
from landlane.sessions.model import Claim
from landlane.store.fencing_tokens import epoch_of
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from landlane.store.interface import Store, Transaction
    from landlane.store.journal_chain import Entry


_TABLES = (
    *("sessions", "processes", "claims", "lapsed", "waiters", "waiter_paths", "journal"),
    *("tasks", "task_after", "task_signs", "task_links", "task_counts"),
    *("state", "state_versions", "numbers", "slots", "slot_places", "once"),
    *("records", "record_counts", "verdicts", "runners"),
    *("client_sessions", "reads", "tool_calls"),
)


def begin_repository(store: Store, former_id: str, *, ignore_case: bool) -> None:
    """Enter the repository into the store; what stood there under its former id comes along."""

    def work(tx: Transaction) -> None:
        if tx.one("repository_get") is not None:
            return
        former = tx.one("repository_known", id=former_id) if former_id else None
        if former is not None:
            for table in _TABLES:
                tx.run(f"rekey_{table}", former=former_id)
            tx.run("repository_rename", former=former_id)
            tx.record("repository.adopted", "", "", {"former": former_id})
            return
        tx.run("repository_add", ignore_case=int(ignore_case))
        tx.record("repository.begun", "", "", {"epoch": tx.epoch, "ignore_case": ignore_case})

    store.change(work, areas={"": True})


def change_case(store: Store, *, ignore_case: bool) -> None:
    """Compare paths another way from now on: every live claim's key is written anew."""

    def work(tx: Transaction) -> None:
        for claim in Claim.from_rows(tx.all("claims_all")):
            pattern = parse(claim.pattern, literal=claim.kind == "literal", ignore_case=ignore_case)
            tx.run("claim_branches_drop", token=claim.token)
            add_claim(tx, replace(claim, alternatives=pattern.alternatives))
        tx.run("repository_set_case", ignore_case=int(ignore_case))
        tx.record("repository.case", "", "", {"ignore_case": ignore_case})

    store.change(work, areas={"": True})


def newest_epoch(entries: Iterable[Entry]) -> int:
    """The highest epoch that any of these entries knows of."""
    newest = 0
    for entry in entries:
        facts = entry.facts()
        newest = max(newest, epoch_of(int(facts.get("token", 0))), int(facts.get("epoch", 0)))
    return newest


def begin_epoch(store: Store, above: int, kind: str, facts: dict[str, object]) -> int:
    """Raise the epoch above every token that was ever given out, and record why."""

    def work(tx: Transaction) -> int:
        epoch = max(tx.epoch, above) + 1
        tx.run("meta_set", key="epoch", value=str(epoch))
        tx.record(kind, "", "", {"epoch": epoch, **facts})
        return epoch

    return store.change(work)

"""The repository in the store: its id, its first entry, its token epochs, how it compares paths."""

from __future__ import annotations

import os

from landlane.claims.take import add_claim
from landlane.errors import StoreError
from landlane.files import write_atomically
from landlane.ids import epoch_of, is_uuid, new_uuid
from landlane.patterns.pattern import parse
from landlane.sessions.model import Claim
from landlane.store.sqlite.database import translate_os_error
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from landlane.settings.model import Settings
    from landlane.store.interface import Store, Transaction
    from landlane.store.journal_chain import Entry


ID_FILE = "repository"
_TABLES = (  # those with a column for the repository
    *("sessions", "processes", "claims", "lapsed", "waiters", "waiter_paths", "journal"),
    *("tasks", "task_after", "task_signs", "task_links", "task_counts"),
    *("state", "state_versions", "numbers", "slots", "slot_places", "once"),
    *("records", "record_counts", "verdicts", "runners"),
    *("client_sessions", "reads", "tool_calls"),
)


def begin_repository(store: Store, former_id: str, *, ignore_case: bool) -> None:
    """Add the repository to the store; state under its former id is moved to the new one."""

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
    """Change whether paths are compared by case, and rewrite the keys of all live claims."""

    def work(tx: Transaction) -> None:
        for claim in Claim.from_rows(tx.all("claims_all")):
            pattern = parse(claim.pattern, literal=claim.kind == "literal", ignore_case=ignore_case)
            tx.run("claim_branches_drop", token=claim.token)
            add_claim(tx, replace(claim, alternatives=pattern.alternatives))
        tx.run("repository_set_case", ignore_case=int(ignore_case))
        tx.record("repository.case", "", "", {"ignore_case": ignore_case})

    store.change(work, areas={"": True})


def newest_epoch(entries: Iterable[Entry]) -> int:
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


def repository_id_of(folder: str, settings: Settings) -> tuple[str, str]:
    """Return the repository's id, and its former id if the settings name another now.

    Raises:
        StoreError: the id cannot be written, or the file does not hold one.
    """
    path = os.path.join(folder, ID_FILE)
    known = _read_id(path)
    if settings.repository.id:
        if not known:
            write_id(path, settings.repository.id)
        return settings.repository.id, known if known != settings.repository.id else ""
    if known:
        return known, ""
    # When two first commands run at once, the one that links its file first decides the id.
    scratch = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    write_id(scratch, new_uuid())
    try:
        os.link(scratch, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(scratch)
    found = _read_id(path)
    if not found:
        raise StoreError(
            f"{path} does not hold the id of this repository",
            code="REPOSITORY_ID_BROKEN",
            hint="the store knows the id: sqlite3 store.db 'SELECT id FROM repositories'; write it back",
        )
    return found, ""


def _read_id(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read().strip()
    except OSError:
        return ""
    return text if is_uuid(text) else ""


def write_id(path: str, repository_id: str) -> None:
    """Write the id durably: after a power cut the repository must not get a new one."""
    try:
        write_atomically(path, repository_id + "\n", is_durable=True)
    except OSError as error:
        raise translate_os_error(error, path) from error

"""The versions of the rules in the store, and which of them each session has read.

A version is recorded with its text when it is first seen, so that the rules a session worked under can be
shown after the file has changed. A session acknowledges the version it read; `shown` (`told` in the store) is
the last version that it was shown.
"""

from __future__ import annotations

from landlane.rules.model import compare, digests_of
from landlane.sessions.leases import list_live_sessions, sweep_if_due
from landlane.sessions.notices import add_notice
from landlane.store import records
from landlane.values import from_columns, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository
    from landlane.rules.model import Rules, RulesChange
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction

NOUN = "rules"
HOOK = "hook"  # shown by a client's hook
ASSIGNMENT = "assignment"  # given to a worker with its task
COMMAND = "command"  # acknowledged by hand
CURRENT = "current"
_VERSION = "version"
_SESSION = "session"
_CHANGED = "has changed: `landlane rules` shows version"
_ALONE = {"//rules": True}  # processes that see a new version at the same time record it one after the other
_MOST_STEPS = 200  # of one session's history


@value
class Acknowledgement:
    """The version a session has read and the last one it was shown; `at` is a wall-clock instant."""

    session: str
    agent: str
    version: str
    shown: str
    how: str
    at: int
    history: tuple[dict[str, Any], ...]


@value
class RulesReader:
    """A live session and the version it has read, if any."""

    session: Session
    version: str
    how: str
    is_current: bool


def record_version(
    tx: Transaction, repo: Repository, session: Session | None, rules: Rules, file: str
) -> None:
    """Record a version when it is first seen, with the session that saw it, and notify the others."""
    _record_current(tx, session, rules, file)
    if records.find(tx, NOUN, rules.version) is not None:
        return
    document = {
        "id": rules.version,
        "state": _VERSION,
        "about": _VERSION,
        "file": file,
        "seen_at": repo.store.wall_of(tx.now),
        "agent": session.agent if session is not None else "",
        "digests": digests_of(rules),
        "text": rules.text,
    }
    records.put(tx, NOUN, document, "seen", session, version=rules.version)


def _record_current(tx: Transaction, session: Session | None, rules: Rules, file: str) -> None:
    """Make this version the current one, and notify every session that was last shown another."""
    known = records.find(tx, NOUN, CURRENT)
    if known is not None and known["version"] == rules.version:
        return
    document = {"id": CURRENT, "state": CURRENT, "about": CURRENT, "version": rules.version}
    records.put_without_entry(tx, NOUN, document)
    for other in list_live_sessions(tx):
        found = acknowledgement_in(tx, other.id) if session is None or other.id != session.id else None
        if found is not None and found.shown not in ("", rules.version):
            add_notice(tx, other.id, f"{file} {_CHANGED} {rules.version}")


def is_about_change(notice: str) -> bool:
    """Return whether a notice only reports a rules change, for which hooks show a fuller text."""
    return _CHANGED in notice


def find_current_version(snapshot: Snapshot) -> str:
    """Return the version that was seen last."""
    known = records.find(snapshot, NOUN, CURRENT)
    return str(known["version"]) if known is not None else ""


def see_version(repo: Repository, session: Session | None, rules: Rules, *, file: str) -> None:
    """Record a version that a session reads, if it is new or not the one seen last."""
    if repo.store.view(find_current_version) != rules.version:
        repo.change(lambda tx: record_version(tx, repo, session, rules, file), areas=_ALONE)


def acknowledge(repo: Repository, session: Session, rules: Rules, *, how: str, file: str) -> bool:
    """Record that the session has read these rules; return whether that is new."""
    found = find_acknowledgement(repo, session.id)
    if found is not None and found.version == found.shown == rules.version:
        return False

    def work(tx: Transaction) -> bool:
        record_version(tx, repo, session, rules, file)
        now = _locked(tx, session)
        if now["version"] == now["told"] == rules.version:
            return False
        is_new = now["version"] != rules.version
        step = {"version": rules.version, "at": repo.store.wall_of(tx.now), "how": how}
        now |= {"version": rules.version, "told": rules.version, "how": how, "at": step["at"]}
        now["history"] = [*now["history"], step][-_MOST_STEPS:] if is_new else now["history"]
        records.put(tx, NOUN, now, "acknowledged", session, version=rules.version, how=how)
        return True

    return repo.change(work, areas=_ALONE)


def record_shown(repo: Repository, session: Session, rules: Rules, *, file: str) -> bool:
    """Record that the session was shown this version; return whether it is the first time."""

    def work(tx: Transaction) -> bool:
        record_version(tx, repo, session, rules, file)
        now = _locked(tx, session)
        if now["told"] == rules.version:
            return False
        records.put(tx, NOUN, now | {"told": rules.version}, "told", session, version=rules.version)
        return True

    return repo.change(work, areas=_ALONE)


def _locked(tx: Transaction, session: Session) -> dict[str, Any]:
    known = records.lock(tx, NOUN, session.id)
    if known is not None:
        return known
    return {
        "id": session.id,
        "state": "acknowledged",
        "about": _SESSION,
        "agent": session.agent,
        "version": "",
        "told": "",
        "how": "",
        "at": 0,
        "history": [],
    }


def acknowledgement_in(snapshot: Snapshot, session: str) -> Acknowledgement | None:
    """Return what a session has read, in this snapshot."""
    found = records.find(snapshot, NOUN, session)
    if found is None or found["about"] != _SESSION:
        return None
    renamed = {"session": found["id"], "shown": found["told"], "history": tuple(found["history"])}
    return from_columns(Acknowledgement, found, **renamed)


def find_acknowledgement(repo: Repository, session: str) -> Acknowledgement | None:
    """Return what a session has read."""
    return repo.store.view(lambda snapshot: acknowledgement_in(snapshot, session))


def change_since(repo: Repository, version: str, rules: Rules) -> RulesChange:
    """Return the differences from a recorded version; all rules when that version is unknown."""
    known = repo.store.view(lambda snapshot: records.find(snapshot, NOUN, version)) if version else None
    return compare(known["digests"] if known is not None and known["about"] == _VERSION else {}, rules)


def list_readers(repo: Repository, version: str) -> list[RulesReader]:
    """Return the live sessions and what each has read, those without this version first."""
    sweep_if_due(repo.store)

    def read_readers(snapshot: Snapshot) -> list[RulesReader]:
        readers: list[RulesReader] = []
        for session in list_live_sessions(snapshot):
            if not session.is_holder:
                found = acknowledgement_in(snapshot, session.id)
                has, how = (found.version, found.how) if found is not None else ("", "")
                is_current = bool(has) and has == version
                readers.append(RulesReader(session=session, version=has, how=how, is_current=is_current))
        return sorted(readers, key=lambda reader: (reader.is_current, reader.session.agent))

    return repo.store.view(read_readers)

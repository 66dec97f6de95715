"""Versioned state: reading, setting by version, combining by a reducer, and watching a key change."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.sessions.leases import require_live
from landlane.state.key_rules import (
    VERSIONS_KEPT,
    State,
    StateStale,
    check_key,
    check_order,
    check_owner,
    check_prefix,
    check_reducer,
    check_same_reducer,
    check_shape,
    encode_value,
    reduce,
    rule_for,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.store.journal_chain import Entry

    T = TypeVar("T")

_ABOVE_KEYS = "\x7f"  # comes after every character of a key
_LOOK_SECONDS = 2.0  # a lost wake-up costs no more than this


def get_state(repo: Repository, key: str) -> State | None:
    """The current version of a key; nothing when there is none."""
    check_key(key)
    row = repo.store.view(lambda snapshot: snapshot.one("state_get", key=key))
    return State.from_row(row) if row else None


def list_state(repo: Repository, prefix: str = "") -> list[State]:
    """All keys that begin so, in order, each at its current version."""
    low = check_prefix(prefix)
    rows = repo.store.view(lambda snapshot: snapshot.all("state_list", low=low, high=low + _ABOVE_KEYS))
    return [State.from_row(row) for row in rows]


def state_history(repo: Repository, key: str) -> list[State]:
    """The versions of a key that are kept, the oldest first; the journal has them all."""
    check_key(key)
    rows = repo.store.view(lambda snapshot: snapshot.all("state_versions_of", key=key))
    return [State.from_row(row) for row in rows]


def set_state(
    repo: Repository,
    session: Session,
    key: str,
    content: Any,
    *,
    expect: int | None = None,
    is_any: bool = False,
) -> State | StateStale:
    """Set a key that stands at the version the caller saw; 0 means that it must not be there yet.

    Without `expect` only a new key is set, unless `is_any` says that whatever stands there may go.

    Raises:
        Malformed: the key or the value cannot be used.
        NotAllowed: the settings let another write it, or say what it may become.
        Stale: the session is over.
    """
    if expect is not None and is_any:
        raise Malformed(
            "--expect and --any contradict each other",
            code="BOTH_NAMED",
            hint="name the version you saw, or overwrite whatever stands there",
        )
    check_key(key)
    reducer = rule_for(key, repo.settings.state.reducers)
    if reducer is not None:
        check_shape(key, reducer, content)
    encode_value(content, repo.settings.state.max_bytes)

    def work(tx: Transaction, before: State | None) -> State | StateStale:
        version = before.version if before else 0
        if not is_any and version != (expect or 0):
            return _stale(key, expect, before)
        return _write(tx, repo, session, key, content, before, "")

    return _change_key(repo, session, key, work)


def append_state(repo: Repository, session: Session, key: str, content: Any, *, reducer: str = "") -> State:
    """Combine a value with whatever stands there, in one step: no update is lost, and nobody is refused.

    Without `reducer`, the settings say which, or the value is appended to a list.

    Raises:
        Malformed: the key or the value cannot be used, or the two cannot be combined.
        NotAllowed: the settings let another write it, or name another reducer.
        Stale: the session is over.
    """
    check_key(key)
    settled = rule_for(key, repo.settings.state.reducers)
    chosen = check_reducer(reducer or settled or "append")
    if settled is not None:
        check_same_reducer(key, settled, chosen)
    encode_value(content, repo.settings.state.max_bytes)

    def work(tx: Transaction, before: State | None) -> State:
        combined = reduce(chosen, before.value if before else None, content)
        return _write(tx, repo, session, key, combined, before, chosen)

    return _change_key(repo, session, key, work)


def _change_key(
    repo: Repository, session: Session, key: str, work: Callable[[Transaction, State | None], T]
) -> T:
    """Judge and write one key alone, for a session that lives."""

    def alone(tx: Transaction) -> T:
        me = require_live(tx, session)
        owner = rule_for(key, repo.settings.state.owned)
        if owner is not None:
            check_owner(key, owner, me.agent, me.role)
        row = tx.one("state_get", key=key)
        return work(tx, State.from_row(row) if row else None)

    # The root is locked shared, as for claims: who moves the whole store away takes it alone.
    return repo.change(alone, areas={"": False, f"//state:{key}": True})


def _write(
    tx: Transaction,
    repo: Repository,
    session: Session,
    key: str,
    content: Any,
    before: State | None,
    reducer: str,
) -> State:
    order = rule_for(key, repo.settings.state.monotonic)
    if order is not None:
        check_order(key, order, before.value if before else None, content)
    state = State(
        key=key,
        value=content,
        version=before.version + 1 if before else 1,
        agent=session.agent,
        session=session.id,
        at=repo.store.wall_of(tx.now),
        reducer=reducer,
    )
    _store(tx, state, encode_value(content, repo.settings.state.max_bytes))
    facts = {"key": key, "version": state.version, "value": content, "reducer": reducer}
    tx.record("state.set", session.agent, session.id, facts)
    return state


def _store(tx: Transaction, state: State, text: str) -> None:
    columns = {
        "key": state.key,
        "version": state.version,
        "value": text,
        "reducer": state.reducer,
        "agent": state.agent,
        "session": state.session,
        "written_at": state.at,
    }
    tx.run("state_put", **columns)
    tx.run("state_version_add", **columns)
    if state.version > VERSIONS_KEPT:
        tx.run("state_versions_trim", key=state.key, before=state.version - VERSIONS_KEPT)


def _stale(key: str, expect: int | None, before: State | None) -> StateStale:
    if before is None:
        hint = f"the key is not there: --expect 0, or leave it out: landlane state set {key} VALUE"
    elif expect is None:
        hint = f"look at it first, then: landlane state set {key} VALUE --expect {before.version} (or --any)"
    else:
        hint = f"take in what {before.agent} wrote, then set it with --expect {before.version}"
    return StateStale(
        key=key,
        expected=expect,
        version=before.version if before else 0,
        value=before.value if before else None,
        agent=before.agent if before else "",
        at=before.at if before else 0,
        hint=hint,
    )


def watch_state(
    repo: Repository,
    key: str,
    *,
    since: int | None = None,
    timeout_ms: int | None = None,
) -> State | None:
    """The key once it has a version above `since` (without it: the current one); None after the time."""
    check_key(key)
    listener = repo.store.listen()  # before looking, so that no change in between is missed
    try:
        state, now = _look(repo, key)
        seen = since if since is not None else (state.version if state else 0)
        deadline = None if timeout_ms is None else now + timeout_ms
        while state is None or state.version <= seen:
            if deadline is not None and now >= deadline:
                return None
            left = _LOOK_SECONDS if deadline is None else (deadline - now) / 1000
            listener.wait(min(left, _LOOK_SECONDS))
            state, now = _look(repo, key)
        return state
    finally:
        listener.close()


def _look(repo: Repository, key: str) -> tuple[State | None, int]:
    row, now = repo.store.view(lambda snapshot: (snapshot.one("state_get", key=key), snapshot.now))
    return (State.from_row(row) if row else None), now


def replay_state(tx: Transaction, entry: Entry) -> None:
    """Do again what an entry of the journal tells."""
    facts = entry.facts()
    state = State(
        key=facts["key"],
        value=facts["value"],
        version=facts["version"],
        agent=entry.agent,
        session=entry.session,
        at=entry.at,
        reducer=facts["reducer"],
    )
    _store(tx, state, encode_value(state.value, len(entry.data) * 4 + 1))

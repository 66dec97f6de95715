"""Read, set, combine and watch versioned state."""

from __future__ import annotations

import shlex

from landlane.errors import LandlaneError, Malformed, Stale
from landlane.roles.require_person import check_person
from landlane.sessions.leases import require_live
from landlane.state.key_rules import (
    STALE_CODE,
    VERSIONS_KEPT,
    State,
    StateStale,
    check_key,
    check_not_overwritten,
    check_order,
    check_owner,
    check_prefix,
    check_reducer,
    check_same_reducer,
    check_shape,
    encode_value,
    reduce,
    rule_for,
    value_text,
)
from landlane.text import nearest_word
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.store.journal_chain import JournalEntry

    T = TypeVar("T")

_ABOVE_KEYS = "\x7f"  # comes after every character of a key
_LONGEST_IN_HINT = 60  # characters of a value
_CHECK_SECONDS = 2.0  # the longest delay after a lost wake-up


def get_state(repo: Repository, key: str) -> State | None:
    """Return the current version of a key; None if there is none."""
    check_key(key)
    row = repo.store.view(lambda snapshot: snapshot.one("state_get", key=key))
    return State.from_row(row) if row else None


def need_state(repo: Repository, key: str) -> State:
    """Return the current version of a key.

    Raises:
        LandlaneError: there is no such key; the hint names the one that was probably meant.
    """
    found = get_state(repo, key)
    if found is not None:
        return found
    keys = [state.key for state in list_state(repo)]
    meant = next((known for known in keys if key in known.split("/")), "") or nearest_word(key, keys)
    hint = f"did you mean: landlane state get {meant}" if meant else "see what there is: landlane state list"
    raise LandlaneError(f"no key {key}", code="NO_STATE", hint=hint, key=key, version=0)


def list_state(repo: Repository, prefix: str = "") -> list[State]:
    """Return the current versions of all keys with a prefix, in order."""
    low = check_prefix(prefix)
    rows = repo.store.view(lambda snapshot: snapshot.all("state_list", low=low, high=low + _ABOVE_KEYS))
    return [State.from_row(row) for row in rows]


def state_history(repo: Repository, key: str) -> list[State]:
    """Return the versions of a key that are kept, the oldest first; the journal has all of them."""
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
    is_forced: bool = False,
) -> State | StateStale:
    """Set a key if its version is still `expect`; 0 means that the key must not exist.

    Without `expect` only a new key is set, unless `is_any` allows to overwrite any version. `is_forced` lets
    a person overwrite an append-only or monotonic key as well.

    Raises:
        Malformed: the key or the value cannot be used.
        NotAllowed: the settings give the key to another owner, or forbid this value.
        Stale: the session is over.
    """
    expected = {} if expect is None else {key: expect}
    outcome = set_states(repo, session, {key: content}, expect=expected, is_any=is_any, is_forced=is_forced)
    return outcome if isinstance(outcome, StateStale) else outcome[0]


def set_states(
    repo: Repository,
    session: Session,
    changes: Mapping[str, Any],
    *,
    expect: Mapping[str, int],
    is_any: bool = False,
    is_forced: bool = False,
) -> tuple[State, ...] | StateStale:
    """Set several keys in one transaction: all of them, or none.

    Each key in `expect` must still have this version, also keys that are only read. A changed key without an
    expected version must be new, unless `is_any` or `is_forced`.

    Raises:
        Malformed: a key or a value cannot be used.
        NotAllowed: the settings give a key to another owner, or forbid its value; or an agent forces it.
        Stale: the session is over.
    """
    if is_any and any(key in changes for key in expect):
        key, content = next((key, changes[key]) for key in expect if key in changes)
        raise Malformed(
            "--expect and --any cannot be used together",
            code="BOTH_NAMED",
            hint=f"overwrite any version: landlane state set {key} {shlex.quote(value_text(content))} --any",
        )
    if is_forced:
        check_person(session)
    for key in (*changes, *expect):
        check_key(key)
    for key, content in changes.items():
        reducer = rule_for(key, repo.settings.state.reducers)
        if reducer is not None:
            check_shape(key, reducer, content)
        encode_value(content, repo.settings.state.max_bytes)

    def work(tx: Transaction) -> tuple[State, ...] | StateStale:
        me = require_live(tx, session)
        before = {key: _read(tx, key) for key in dict.fromkeys((*changes, *expect))}
        for key in changes:
            _check_owner(repo, me, key)
        now = repo.store.wall_of(tx.now)
        for key, state in before.items():
            is_free = key not in expect and (is_any or is_forced)
            if not is_free and (state.version if state else 0) != expect.get(key, 0):
                return _stale(
                    key, changes.get(key, state.value if state else None), expect.get(key), state, now
                )
        return tuple(
            _write(tx, repo, session, key, content, before[key], "", is_forced=is_forced)
            for key, content in changes.items()
        )

    # The root is locked shared, as for claims; moving the store takes it exclusively.
    return repo.change(
        work, areas={"": False, **state_areas(expect), **state_areas(changes, is_written=True)}
    )


def state_areas(keys: Iterable[str], *, is_written: bool = False) -> dict[str, bool]:
    """Return the areas that a transaction locks to read or to write these keys."""
    return {f"//state:{key}": is_written for key in keys}


def find_moved(snapshot: Snapshot, repo: Repository, expected: Mapping[str, int]) -> list[StateStale]:
    """Return the keys that do not have the expected version any more."""
    now = repo.store.wall_of(snapshot.now)
    moved: list[StateStale] = []
    for key, version in expected.items():
        state = _read(snapshot, check_key(key))
        if (state.version if state else 0) != version:
            moved.append(replace(_stale(key, None, version, state, now), hint=_read_again(key)))
    return moved


def check_states(repo: Repository, expected: Mapping[str, int]) -> list[StateStale]:
    """Return the keys that do not have the expected version any more, all from one moment."""
    return repo.store.view(lambda snapshot: find_moved(snapshot, repo, expected))


def require_states(snapshot: Snapshot, repo: Repository, expected: Mapping[str, int]) -> None:
    """Refuse a change that is based on versions of keys that have moved, inside its transaction.

    Raises:
        Stale: one of them has another version now.
    """
    moved = find_moved(snapshot, repo, expected)
    if moved:
        raise moved_error(moved)


def moved_error(moved: Sequence[StateStale]) -> Stale:
    """Return the error for a change that is based on versions that have moved."""
    first = moved[0]
    return Stale(
        "; ".join(moved_text(one) for one in moved),
        code=STALE_CODE,
        hint=first.hint,
        key=first.key,
        expected=first.expected,
        version=first.version,
    )


def moved_text(one: StateStale) -> str:
    """Return that a key has moved: `plan is at version 4, not 3 (set by bob)`."""
    by = f" (set by {one.agent})" if one.agent else ""
    at = f"is at version {one.version}" if one.version else "does not exist"
    return f"{one.key} {at}, not at {one.expected}{by}"


def _read_again(key: str) -> str:
    return f"read it again, and decide again: landlane state get {key}"


def _read(snapshot: Snapshot, key: str) -> State | None:
    row = snapshot.one("state_get", key=key)
    return State.from_row(row) if row else None


def _check_owner(repo: Repository, me: Session, key: str) -> None:
    owner = rule_for(key, repo.settings.state.owned)
    if owner is not None:
        check_owner(key, owner, me.agent, me.role)


def append_state(repo: Repository, session: Session, key: str, content: Any, *, reducer: str = "") -> State:
    """Combine a value with the current one in one step, so that no update is lost or refused.

    Without `reducer`, the settings choose it; the default appends to a list.

    Raises:
        Malformed: the key or the value cannot be used, or the two cannot be combined.
        NotAllowed: the settings give the key to another owner, or name another reducer.
        Stale: the session is over.
    """
    check_key(key)
    configured = rule_for(key, repo.settings.state.reducers)
    chosen = check_reducer(reducer or configured or "append")
    if configured is not None:
        check_same_reducer(key, configured, chosen)
    encode_value(content, repo.settings.state.max_bytes)

    def work(tx: Transaction, before: State | None) -> State:
        combined = reduce(chosen, before.value if before else None, content)
        return _write(tx, repo, session, key, combined, before, chosen)

    return _change_key(repo, session, key, work)


def _change_key(
    repo: Repository, session: Session, key: str, work: Callable[[Transaction, State | None], T]
) -> T:
    """Run `work` on one key with an exclusive lock, after checking the session and the owner."""

    def locked_work(tx: Transaction) -> T:
        _check_owner(repo, require_live(tx, session), key)
        return work(tx, _read(tx, key))

    return repo.change(locked_work, areas={"": False, **state_areas([key], is_written=True)})


def _write(
    tx: Transaction,
    repo: Repository,
    session: Session,
    key: str,
    content: Any,
    before: State | None,
    reducer: str,
    *,
    is_forced: bool = False,
) -> State:
    order = rule_for(key, repo.settings.state.monotonic)
    if order is not None and not is_forced:
        check_order(key, order, before.value if before else None, content)
    combined = rule_for(key, repo.settings.state.reducers)
    if combined is not None and before is not None and not is_forced:
        check_not_overwritten(key, combined, before.value, content)
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
    facts |= {"forced": True, "was": before.value if before else None} if is_forced else {}
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


def _stale(key: str, content: Any, expect: int | None, before: State | None, now: int) -> StateStale:
    text = value_text(content)
    command = f"landlane state set {key} {shlex.quote(text)}"
    if before is None:
        hint = f"to create it: {command} --expect 0"
    elif len(text) > _LONGEST_IN_HINT:
        hint = f"see what it is now: landlane state get {key}"
    else:
        hint = f"if {text} is still right: {command} --expect {before.version}"
    return StateStale(
        key=key,
        expected=expect,
        version=before.version if before else 0,
        value=before.value if before else None,
        agent=before.agent if before else "",
        at=before.at if before else 0,
        now=now,
        hint=hint,
    )


def watch_state(
    repo: Repository,
    key: str,
    *,
    since: int | None = None,
    timeout_ms: int | None = None,
) -> State | None:
    """Wait for a version above `since`, by default the current one; return None after the timeout."""
    check_key(key)
    listener = repo.store.listen()  # before reading, so that no change is missed
    try:
        state, now = _read_with_time(repo, key)
        seen = since if since is not None else (state.version if state else 0)
        deadline = None if timeout_ms is None else now + timeout_ms
        while state is None or state.version <= seen:
            if deadline is not None and now >= deadline:
                return None
            left = _CHECK_SECONDS if deadline is None else (deadline - now) / 1000
            listener.wait(min(left, _CHECK_SECONDS))
            state, now = _read_with_time(repo, key)
        return state
    finally:
        listener.close()


def _read_with_time(repo: Repository, key: str) -> tuple[State | None, int]:
    row, now = repo.store.view(lambda snapshot: (snapshot.one("state_get", key=key), snapshot.now))
    return (State.from_row(row) if row else None), now


def replay_state(tx: Transaction, entry: JournalEntry) -> None:
    """Apply a journal entry to a store that is rebuilt."""
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

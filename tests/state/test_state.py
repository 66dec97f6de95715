"""Versioned state: versions, reducers, owners, steps, history and watching, on both stores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import Malformed, NotAllowed, Stale
from landlane.processes.child import ChildResult
from landlane.settings.model import Settings, SlotSettings, StateSettings
from landlane.setup.move_store import move_state
from landlane.setup.rebuild_store import rebuild_store
from landlane.state import keys as state
from landlane.state import numbers, once, slots
from landlane.state.key_rules import VERSIONS_KEPT, State, StateStale
from landlane.state.slot_kinds import SlotTaken
from landlane.values import replace
from tests.state.crowd import ask_crowd
from tests.support.project import MINUTE, SECOND, SQLITE_ONLY, Background, opened
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.repository import Repository
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract


def put(agent: Agent, key: str, content: Any, **more: Any) -> State:
    outcome = state.set_state(agent.repo, agent.session, key, content, **more)
    assert isinstance(outcome, State), outcome
    return outcome


def is_stale(agent: Agent, key: str, content: Any, **more: Any) -> StateStale:
    outcome = state.set_state(agent.repo, agent.session, key, content, **more)
    assert isinstance(outcome, StateStale), outcome
    return outcome


def add(agent: Agent, key: str, content: Any, reducer: str = "") -> Any:
    return state.append_state(agent.repo, agent.session, key, content, reducer=reducer).value


def value_of(agent: Agent, key: str) -> Any:
    found = state.get_state(agent.repo, key)
    return found.value if found else None


# ----------------------------------------------------------------------------------------------- versions


def test_the_version_starts_at_one_and_grows_by_one(project: Project) -> None:
    ann = project.agent("ann")

    assert put(ann, "a", 1).version == 1
    assert put(ann, "a", 2, expect=1).version == 2
    assert put(ann, "a", 2, expect=2).version == 3
    assert put(ann, "a", 3, is_any=True).version == 4
    assert state.append_state(ann.repo, ann.session, "a", 3, reducer="sum").version == 5
    assert value_of(ann, "a") == 6


@pytest.mark.promise(
    "state.never-overwritten-by-accident",
    "A key cannot be overwritten by a writer that has not seen its current value.",
)
def test_an_existing_key_is_not_overwritten_by_accident(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    put(ann, "phase", "freeze")

    stale = is_stale(bob, "phase", "ship")

    assert (stale.version, stale.value, stale.agent, stale.expected) == (1, "freeze", "ann", None)
    assert "--expect 1" in stale.hint
    assert value_of(bob, "phase") == "freeze"


def test_who_saw_an_older_version_is_told_what_stands_there_now(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    put(ann, "a", 1)
    put(bob, "a", 2, expect=1)

    stale = is_stale(ann, "a", 3, expect=1)

    assert (stale.version, stale.value, stale.agent, stale.expected) == (2, 2, "bob", 1)


def test_expecting_nothing_needs_a_new_key_and_expecting_something_an_old_one(project: Project) -> None:
    ann = project.agent("ann")

    assert is_stale(ann, "a", 1, expect=3).version == 0
    put(ann, "a", 1, expect=0)
    assert is_stale(ann, "a", 1, expect=0).version == 1


def test_a_refused_write_leaves_no_entry(project: Project) -> None:
    ann = project.agent("ann")
    put(ann, "a", 1)
    before = project.kinds()

    is_stale(ann, "a", 2)

    assert project.kinds() == before


def test_each_change_is_an_entry_that_tells_all(project: Project) -> None:
    ann = project.agent("ann")
    put(ann, "a", {"b": [1, None, "ü"]})
    add(ann, "l", "x")

    entries = [entry for entry in project.entries() if entry.kind == "state.set"]

    assert [entry.facts() for entry in entries] == [
        {"key": "a", "version": 1, "value": {"b": [1, None, "ü"]}, "reducer": ""},
        {"key": "l", "version": 1, "value": ["x"], "reducer": "append"},
    ]
    assert {entry.agent for entry in entries} == {"ann"}


def test_a_session_that_is_over_writes_nothing(project: Project) -> None:
    ann = project.agent("ann")
    project.clock.advance(31 * MINUTE)

    with pytest.raises(Stale):
        put(ann, "a", 1)
    with pytest.raises(Stale):
        add(ann, "a", 1)
    assert value_of(ann, "a") is None


@pytest.mark.parametrize("key", ["", "ä", "a b", "a\n", "x" * 201, "a*", "a\0"])
def test_a_key_that_is_none_changes_nothing(project: Project, key: str) -> None:
    ann = project.agent("ann")
    with pytest.raises(Malformed) as answer:
        put(ann, key, 1)
    assert answer.value.code == "BAD_KEY"
    assert "state.set" not in project.kinds()


@pytest.mark.parametrize(
    "content", [float("nan"), float("inf"), {1, 2}, "\ud800", ["x" * 70_000]], ids=lambda one: repr(one)[:12]
)
def test_a_value_that_cannot_be_kept_changes_nothing(project: Project, content: Any) -> None:
    ann = project.agent("ann")
    with pytest.raises(Malformed):
        put(ann, "a", content)
    with pytest.raises(Malformed):
        add(ann, "a", content)
    assert "state.set" not in project.kinds()


def test_an_update_that_grows_too_large_is_refused_and_the_value_stays(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(state=StateSettings(max_bytes=20)))
    add(ann, "l", "123456789")

    with pytest.raises(Malformed) as answer:
        add(ann, "l", "123456789")

    assert answer.value.code == "STATE_TOO_LARGE"
    assert value_of(ann, "l") == ["123456789"]


# ----------------------------------------------------------------------------------------------- reading


def test_keys_are_listed_in_order_and_by_their_beginning(project: Project) -> None:
    ann = project.agent("ann")
    for key in ("b/x", "a", "b/", "bb", "b:1", "B"):
        put(ann, key, key)

    assert [one.key for one in state.list_state(ann.repo)] == ["B", "a", "b/", "b/x", "b:1", "bb"]
    assert [one.key for one in state.list_state(ann.repo, "b/")] == ["b/", "b/x"]
    assert state.list_state(ann.repo, "zz") == []


def test_the_history_tells_who_wrote_what_when(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    put(ann, "a", 1)
    project.clock.advance(5 * SECOND)
    put(bob, "a", 2, expect=1)

    first, second = state.state_history(ann.repo, "a")

    assert [(one.version, one.value, one.agent) for one in (first, second)] == [(1, 1, "ann"), (2, 2, "bob")]
    assert second.at - first.at == 5 * SECOND


def test_only_the_newest_versions_are_kept(project: Project) -> None:
    ann = project.agent("ann")
    for _ in range(VERSIONS_KEPT + 5):
        add(ann, "n", 1, "sum")

    versions = [one.version for one in state.state_history(ann.repo, "n")]

    assert versions == list(range(6, VERSIONS_KEPT + 6))
    assert project.kinds().count("state.set") == VERSIONS_KEPT + 5


# ---------------------------------------------------------------------------------------------- reducers


def test_a_reducer_combines_with_what_stands_there(project: Project) -> None:
    ann = project.agent("ann")

    assert [add(ann, "l", one) for one in (1, [2])] == [[1], [1, [2]]]
    assert [add(ann, "u", one, "union") for one in ("b", ["a", "b"], {"x": 1})][-1] == ["b", "a", {"x": 1}]
    assert [add(ann, "s", one, "sum") for one in (1, 2.5, -1)] == [1, 3.5, 2.5]
    assert [add(ann, "x", one, "max") for one in (3, 9, 1)] == [3, 9, 9]
    assert [add(ann, "i", one, "min") for one in ("b", "a", "c")] == ["b", "a", "a"]
    assert add(ann, "m", {"a": {"x": 1, "y": 1}}, "merge") == {"a": {"x": 1, "y": 1}}
    assert add(ann, "m", {"a": {"y": 2}, "b": [1]}, "merge") == {"a": {"x": 1, "y": 2}, "b": [1]}


@pytest.mark.parametrize(
    ("stands", "new", "reducer"),
    [
        (1, 2, "append"),
        ("a", 1, "sum"),
        (1, "a", "max"),
        ([1], {}, "merge"),
        (1, True, "sum"),
        ({}, 1, "union"),
    ],
)
def test_what_cannot_be_combined_changes_nothing(
    project: Project, stands: Any, new: Any, reducer: str
) -> None:
    ann = project.agent("ann")
    put(ann, "a", stands)

    with pytest.raises(Malformed) as answer:
        add(ann, "a", new, reducer)

    assert answer.value.code == "STATE_SHAPE"
    assert value_of(ann, "a") == stands


def test_an_unknown_reducer_is_named(project: Project) -> None:
    with pytest.raises(Malformed) as answer:
        add(project.agent("ann"), "a", 1, "average")
    assert answer.value.code == "BAD_REDUCER"
    assert "union" in answer.value.message


@pytest.mark.promise("state.no-update-is-lost", "Many appends at the same instant are all kept.")
def test_no_append_of_a_crowd_is_lost(live_project: Project) -> None:
    versions = ask_crowd(live_project, "append", processes=32, turns=3)

    found = state.get_state(live_project.repo(), "crowd/list")

    assert found is not None
    assert sorted(found.value) == sorted(f"{who}.{turn}" for who in range(32) for turn in range(3))
    assert sorted(version for turns in versions for version in turns) == list(range(1, 97))


def test_no_addition_of_a_crowd_is_lost(live_project: Project) -> None:
    ask_crowd(live_project, "add", processes=16, turns=6)

    found = state.get_state(live_project.repo(), "crowd/sum")

    assert found is not None
    assert (found.value, found.version) == (sum(range(16)) * 6, 96)


def test_one_of_a_crowd_creates_a_key(live_project: Project) -> None:
    got = ask_crowd(live_project, "create", processes=24, turns=4)

    for turn in range(4):
        assert [turns[turn] for turns in got].count("State") == 1


# ------------------------------------------------------------------------------------------------- rules

RULES = Settings(
    state=StateSettings(
        owned={"release/**": "ann", "build/*": "role:release"},
        reducers={"count/*": "sum", "found": "union"},
        monotonic={"phase": ("plan", "build", "ship")},
    )
)


def test_only_the_owner_writes_what_is_owned(project: Project) -> None:
    ann, bob = project.agent("ann", settings=RULES), project.agent("bob", settings=RULES)

    put(ann, "release/notes/v1", "x")
    with pytest.raises(NotAllowed) as answer:
        put(bob, "release/notes/v1", "y", is_any=True)
    with pytest.raises(NotAllowed):
        add(bob, "release/list", "y")

    assert (answer.value.code, answer.value.facts["owner"]) == ("STATE_OWNED", "ann")
    assert value_of(bob, "release/notes/v1") == "x"


def test_a_role_owns_what_the_settings_say(project: Project) -> None:
    carl, bob = project.agent("carl", settings=RULES, role="release"), project.agent("bob", settings=RULES)

    put(carl, "build/last", 7)
    with pytest.raises(NotAllowed):
        put(bob, "build/last", 8, is_any=True)


def test_a_key_with_a_reducer_keeps_to_it(project: Project) -> None:
    ann = project.agent("ann", settings=RULES)

    assert [add(ann, "count/a", 2), add(ann, "count/a", 3, "sum")] == [2, 5]
    with pytest.raises(NotAllowed) as answer:
        add(ann, "count/a", 3, "max")
    with pytest.raises(NotAllowed):
        put(ann, "count/a", "many", is_any=True)
    put(ann, "count/a", 0, expect=2)

    assert answer.value.code == "STATE_REDUCER"


@pytest.mark.promise("state.steps-go-one-way", "A key with defined steps never goes back, whoever asks.")
def test_steps_are_never_taken_back(project: Project) -> None:
    ann = project.agent("ann", settings=RULES)
    put(ann, "phase", "plan")
    put(ann, "phase", "ship", expect=1)
    put(ann, "phase", "ship", expect=2)

    with pytest.raises(NotAllowed) as back:
        put(ann, "phase", "build", is_any=True)
    with pytest.raises(NotAllowed) as unknown:
        put(ann, "phase", "party", is_any=True)

    assert (back.value.code, unknown.value.code) == ("STATE_GOES_BACK", "STATE_NO_STEP")
    assert value_of(ann, "phase") == "ship"


# ---------------------------------------------------------------------------------------------- watching


def test_a_watcher_sees_a_newer_version_at_once(live_project: Project) -> None:
    ann = live_project.agent("ann")
    put(ann, "a", 1)

    found = state.watch_state(live_project.repo(), "a", since=0, timeout_ms=0)

    assert found is not None
    assert found.version == 1


def test_a_watcher_is_woken_by_the_change(live_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_CHECK_SECONDS", 60.0)  # only a wake-up can be faster
    ann = live_project.agent("ann")
    repo = live_project.repo()
    watcher = Background(lambda: state.watch_state(repo, "a", timeout_ms=50 * SECOND))
    wait_until(lambda: live_project.listeners() > 0)

    put(ann, "other", 1)
    put(ann, "a", 5)

    found = watcher.result(20)
    assert found is not None
    assert found.value == 5


def test_watching_ends_when_the_time_is_up(live_project: Project) -> None:
    put(live_project.agent("ann"), "a", 1)

    assert state.watch_state(live_project.repo(), "a", timeout_ms=300) is None
    assert state.watch_state(live_project.repo(), "b", since=4, timeout_ms=0) is None


# -------------------------------------------------------------------------------------------- rebuilding


@SQLITE_ONLY
def test_a_rebuilt_store_knows_every_version(project: Project) -> None:
    ann = project.agent("ann")
    put(ann, "a", {"z": 1, "a": [1.5, "ü"]})
    put(ann, "a", 2, expect=1)
    add(ann, "l", "x")
    with opened(project) as repo:
        repo.settle()
        before = [state.state_history(repo, key) for key in ("a", "l")]
        folder, repository_id = repo.state_folder, repo.store.repository
    project.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    repo = project.repo()
    assert [state.state_history(repo, key) for key in ("a", "l")] == before
    assert json.dumps(state.list_state(repo)[0].value) == "2"


def test_everything_moves_to_the_other_kind_of_store(
    live_project: Project, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    ann = live_project.agent("ann", settings=EVERYTHING)
    put(ann, "a", {"z": [1]})
    put(ann, "a", 2, expect=1)
    numbers.give_number(ann.repo, ann.session, "adr", purpose="why", is_new_kind=True)
    slot = slots.take_slot(ann.repo, ann.session, slots.make_slot_request(ann.repo, "gpu", amount=4))
    port = slots.take_slot(ann.repo, ann.session, slots.make_slot_request(ann.repo, "port"))
    used = slots.take_slot(ann.repo, ann.session, slots.make_slot_request(ann.repo, "api"))
    assert isinstance(slot, SlotTaken)
    assert isinstance(port, SlotTaken)
    assert isinstance(used, SlotTaken)
    slots.free(ann.repo, ann.session, used.slot.id)
    once.run_once(ann.repo, ann.session, "k", ["true"], lambda *_: THREE)
    live_project.close()
    if live_project.is_postgres:
        target = str(tmp_path / "other.db")
    else:
        target = request.getfixturevalue("postgres_server").create_database()

    with opened(live_project) as repo:
        before = _everything(repo)
        left = used.slot.until - repo.store.view(lambda snapshot: snapshot.now)
        move_state(repo, target)
    with opened(live_project) as repo:
        after = _everything(repo)
        (counted,), now = repo.store.view(
            lambda snapshot: (snapshot.all("slots_in", kind="api"), snapshot.now)
        )
        again = numbers.give_number(repo, ann.session, "adr")

    assert after[:3] == before[:3]
    assert [replace(one, taken_at=0, seen_at=0) for one in after[3]] == [
        replace(one, taken_at=0, seen_at=0) for one in before[3]
    ]
    assert 0 <= left - (counted["expires_at"] - now) < 30 * SECOND, (
        "its time goes on by the other store's clock"
    )
    assert again.number == 2


THREE = ChildResult(exit_code=3, stdout="o", stderr="")
EVERYTHING = Settings(
    slots={"gpu": SlotSettings(capacity=24), "api": SlotSettings(capacity=6, per_ms=MINUTE)}
)


def _everything(repo: Repository) -> tuple[Any, ...]:
    run = repo.store.view(lambda snapshot: dict(snapshot.one("once_get", key="k") or {}))
    return (
        state.state_history(repo, "a"),
        numbers.list_numbers(repo, "adr"),
        run,
        slots.list_slots(repo),
    )

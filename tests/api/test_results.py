"""Answers of the library: refusals are false, times are datetimes, hints name calls."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import landlane
from landlane import ClaimRefused, Held, Landlane, LandlaneError, Malformed, Stale, TimedOut, WaitsForPerson
from landlane.api.hints import library_text
from landlane.api.results import Failure, Outcome, Success
from landlane.api.session_view import SessionView
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import make_repository

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
# A call in a hint: `claim('a.py')`, `state.get(…)`.
CALL = re.compile(r"\b((?:[a-z]+\.)?[a-z_]+)(\((?:'[^']*'|[^'()])*\))")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop", files={"landlane.toml": "[slots.seat]\nnames = ['one']\n"})


@pytest.mark.promise(
    "library.refusals-are-false", "Every refusal of the library is false, and raises when unwrapped."
)
def test_a_refusal_is_false_and_raises_when_unwrapped(shop: Path) -> None:
    with Landlane(shop, agent="ann") as ann, Landlane(shop, agent="bob") as bob:
        taken, seen = ann.claim("src/a.py").unwrap(), ann.state.set("plan", 1).unwrap()
        ann.tasks.add("Write the parser", kind="chore").unwrap()
        assert ann.slots.take("seat")
        assert ann.check("src/a.py", taken.granted[0].token)
        picked = ann.tasks.next().unwrap()
        gate = ann.gates.ask(picked.task.id, "May I?", about="amount=1")
        refused: list[tuple[Outcome | Success | Failure, type[LandlaneError]]] = [
            (bob.claim("src/**"), ClaimRefused),
            (bob.check("src/a.py"), Held),
            (bob.state.set("plan", 2, expect=seen.version + 1), Stale),
            (bob.slots.take("seat"), Held),
            (bob.tasks.add("Write the parser", kind="chore"), LandlaneError),
            (bob.tasks.next(), TimedOut),
            (gate, WaitsForPerson),
        ]

        for answer, error in refused:
            assert not answer
            with pytest.raises(error) as raised:
                answer.unwrap()
            assert raised.value.code
            assert raised.value.message
            assert raised.value.hint
            assert "--" not in raised.value.hint
            assert "landlane " not in raised.value.hint


def test_a_task_without_its_evidence_is_a_no(shop: Path) -> None:
    with Landlane(shop, agent="ann") as ann:
        ann.tasks.add("Change the parser", paths=["src/a.py"])
        task = ann.tasks.next().unwrap().task

        done = ann.tasks.done(task.id)

        assert not done
        assert done.missing is not None
        with pytest.raises(LandlaneError) as raised:
            done.unwrap()
        assert raised.value.code == "EVIDENCE_MISSING"


def test_times_are_datetimes_and_lengths_are_timedeltas(shop: Path) -> None:
    clock = FakeClock()
    now = datetime.fromtimestamp(clock.wall_ms() / 1000, tz=UTC)
    with Landlane(shop, agent="ann", clock=clock) as ann:
        (claim,) = ann.claim("src/a.py", ttl=timedelta(minutes=10)).unwrap().granted
        task = ann.tasks.add("Count the words", kind="chore").unwrap().task

        assert (claim.granted_at, claim.until, claim.ttl) == (
            now,
            now + timedelta(minutes=10),
            timedelta(minutes=10),
        )
        assert ann.session.started_at == now
        assert (task.created_at, task.taken_at) == (now, None)
        assert ann.state.set("plan", 1).unwrap().at == now
        entry = list(ann.journal())[-1]
        assert (entry.at, entry.data["key"]) == (now, "plan")
        assert ann.stats(timedelta(days=1)).period.since < now - timedelta(hours=23)
        clock.advance(timedelta(minutes=11))
        assert ann.claims() == []


def test_a_repr_shows_what_is_known_and_leaves_out_the_rest(shop: Path) -> None:
    with Landlane(shop, agent="ann", clock=FakeClock()) as ann, Landlane(shop, agent="bob") as bob:
        (claim,) = ann.claim("a.py", ttl="10m").unwrap().granted

        assert repr(claim) == (
            "Claim(pattern='a.py', kind='literal', mode='exclusive', agent='ann', "
            f"session='{ann.session.id}', token={claim.token}, "
            "granted_at=2026-01-02T02:50:45Z, until=2026-01-02T03:00:45Z, ttl=0:10:00)"
        )
        assert repr(ann.tasks) == f"<Tasks of {shop} for 'ann'>"
        assert repr(bob) == f"<Landlane of {shop} for 'bob'>"


def test_an_error_names_arguments_of_the_call(shop: Path) -> None:
    with Landlane(shop, agent="ann") as ann:
        with pytest.raises(Malformed) as raised:
            ann.claim("a", partial=True, wait="1s")
        assert raised.value.hint == "leave out partial or wait"
        with pytest.raises(Malformed) as raised:
            ann.claim()
        assert raised.value.hint == "name a path, as in: claim('src/api.py')"


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("overwrite it: landlane state set k v --any", "overwrite it: state.set('k', 'v', overwrite=True)"),
        ("`landlane next --role review` gives you one", "`tasks.next(role='review')` gives you one"),
        ("wait in line: landlane claim 'a b' --wait --as bob", "wait in line: claim('a b', wait='10m')"),
        ("landlane commit -m 'What' PATH", "workspaces.commit('What', 'PATH')"),
        ("wait again: landlane land --wait", "wait again: landings.wait(…)"),
        ("landlane state set plan/a 1 plan/b 2", "state.set_all({'plan/a': 1, 'plan/b': 2})"),
        ("landlane task list --markdown > TASKS.md", "landlane task list --markdown > TASKS.md"),
        ("see your change: git diff --stat", "see your change: git diff --stat"),
        ("run `landlane doctor --fix`", "run `landlane doctor --fix`"),
        ("wait longer with --wait 30m", "wait longer with wait='30m'"),
    ],
)  # fmt: skip
def test_a_command_in_a_hint_becomes_a_call(command: str, call: str) -> None:
    assert library_text(command) == call


def test_the_calls_in_hints_exist_and_take_these_arguments() -> None:
    found = 0
    errors = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    for hint in re.findall(r"^Hint: (.+)$", errors, re.MULTILINE):
        for name, arguments in CALL.findall(library_text(hint)):
            method = find_method(name)
            if method is None:
                continue
            call = ast.parse(f"f{arguments.replace('…', '0')}", mode="eval").body
            assert isinstance(call, ast.Call)
            named = {str(one.arg): None for one in call.keywords}
            inspect.signature(method).bind_partial(None, *call.args, **named)
            found += 1
    assert found > 50


def find_method(name: str) -> Any:
    noun, _, verb = name.rpartition(".")
    if not noun:
        return getattr(Landlane, verb, None)
    views = {view.__name__.lower(): view for view in SessionView.__subclasses__()}
    view = views.get({"state": "sharedstate"}.get(noun, noun))
    assert view is None or hasattr(view, verb), f"there is no {name}"
    return getattr(view, verb, None)


def test_all_public_names_come_from_the_package_and_only_when_asked() -> None:
    for name in landlane.__all__:
        assert getattr(landlane, name) is not None
    lazily = "import sys, landlane; landlane.__version__; sys.exit('landlane.api' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", lazily], timeout=60).returncode == 0
    with pytest.raises(AttributeError):
        _ = landlane.Nothing

"""When the branches of a split task are joined, by policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed
from landlane.fanout.model import BranchResult, Fan, decide_join, read_policy, results_text

pytestmark = pytest.mark.unit

STATES = ("ready", "blocked", "active", "review", "waiting_for_person", "done", "failed", "dead", "dropped")


def branches(*states: str) -> list[BranchResult]:
    return [
        BranchResult(task=f"T{at}", name=f"n{at}", state=state) for at, state in enumerate(states, start=2)
    ]


@pytest.mark.parametrize(
    ("policy", "states", "is_met"),
    [
        ("all", ("done", "done"), True),
        ("all", ("done", "active"), None),
        ("all", ("failed", "active"), None),
        ("all", ("failed", "done"), False),
        ("any", ("active", "done", "ready"), True),
        ("any", ("failed", "ready"), None),
        ("any", ("failed", "dead", "dropped"), False),
        ("2", ("done", "failed", "done", "active"), True),
        ("2", ("done", "failed", "failed", "active"), None),
        ("2", ("done", "failed", "failed"), False),
        ("collect", ("failed", "dropped"), True),
        ("collect", ("done", "waiting_for_person"), None),
    ],
)
def test_each_policy_joins_when_its_branches_are_done(
    policy: str, states: tuple[str, ...], is_met: bool | None
) -> None:
    word, need = read_policy(policy, len(states))
    found = decide_join(word, need, branches(*states), is_late=False)
    assert (found.is_met if found else None) is is_met


@given(
    policy=st.sampled_from(["all", "any", "collect", "1", "2", "3"]),
    states=st.lists(st.sampled_from(STATES), min_size=3, max_size=8),
)
def test_deadline_always_joins_and_a_met_policy_stays_met(policy: str, states: list[str]) -> None:
    word, need = read_policy(policy, len(states))
    late = decide_join(word, need, branches(*states), is_late=True)
    before = decide_join(word, need, branches(*states), is_late=False)
    assert late is not None
    assert before is None or before.is_met == late.is_met
    assert late.is_met == (sum(state == "done" for state in states) >= need)


def test_branch_that_waits_for_a_failed_one_counts_as_over() -> None:
    one, other = branches("failed", "blocked")
    stuck = BranchResult(task=other.task, name=other.name, state="blocked", is_stuck=True)
    found = decide_join("all", 2, [one, stuck], is_late=False)
    assert found is not None
    assert found.why == "0 of 2 done, 1 failed, 1 waiting for what failed, 2 needed"


@pytest.mark.parametrize("text", ["", "ALL", " any "])
def test_policies_are_read_as_people_write_them(text: str) -> None:
    assert read_policy(text, 3)[0] in ("all", "any")


@pytest.mark.parametrize("text", ["-1", "0", "1.5", "most", "4", "٣", "999999999999"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_policy(text, 3)
    assert caught.value.code == "BAD_POLICY"


def test_the_results_of_a_thousand_branches_fit_and_none_is_left_out() -> None:
    some = [BranchResult(task=f"T{n}", name="x" * 300, state="done", result="y" * 4000) for n in range(60)]
    facts = dict.fromkeys(("plan", "title", "agent", "session"), "")
    numbers = dict.fromkeys(("attempt", "begun_at"), 0)
    fan = Fan(
        id="F1", task="T1", policy="all", need=60, rest="drop", children=(), names=(), **facts, **numbers
    )
    text = results_text(fan, some, 4000)
    assert len(text) <= 4000
    assert all(f"\nT{n} " in text for n in range(60))


@pytest.mark.parametrize("text", ["2", "at least 2", "at-least-2", "AT_LEAST:2", "atleast=2", ">= 2"])
def test_a_number_may_be_said_in_words(text: str) -> None:
    assert read_policy(text, 3) == ("2", 2)

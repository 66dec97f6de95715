"""Verdicts by contract, findings of several brought together, and what verdicts come to."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed
from landlane.plans.model import new_task
from landlane.plans.parse import read_plan
from landlane.reviews.model import check_step, feedback_text, is_meant, judge, reconcile, step_of
from landlane.reviews.verdict_model import Finding, Opinion, make_opinion, read_opinion

pytestmark = pytest.mark.unit


def finding(text: str, path: str = "src/a.py", line: int = 1, severity: str = "minor") -> Finding:
    return Finding(text=text, path=path, line=line, severity=severity)


def opinion(source: str, verdict: str, *findings: Finding) -> Opinion:
    return Opinion(source=source, verdict=verdict, findings=findings, summary=f"{source} looked")


def test_findings_come_in_order_and_the_same_one_of_two_is_one() -> None:
    bob = opinion("bob", "reject", finding("The cache never expires."), finding("No test", "tests/a.py", 0))
    cid = opinion(
        "cid", "reject", finding("the cache NEVER expires", line=3, severity="major"), finding("Typo")
    )

    found = reconcile([bob, cid]).findings

    assert [(one.finding.text, one.finding.severity, one.sources) for one in found] == [
        ("The cache never expires.", "major", ("bob", "cid")),
        ("No test", "minor", ("bob",)),
        ("Typo", "minor", ("cid",)),
    ]


@pytest.mark.parametrize(
    ("one", "other", "is_contradiction"),
    [
        ("praise", "minor", True),
        ("praise", "blocker", True),
        ("note", "blocker", True),
        ("praise", "note", False),
        ("note", "major", False),
        ("minor", "blocker", False),
    ],
)
def test_what_one_praises_and_another_faults_contradicts(
    one: str, other: str, *, is_contradiction: bool
) -> None:
    bob = opinion("bob", "reject", finding("locks are right", severity=one))
    cid = opinion("cid", "reject", finding("locks deadlock", severity=other))
    found = reconcile([bob, cid]).contradictions
    assert bool(found) is is_contradiction
    elsewhere = opinion("cid", "reject", finding("locks deadlock", line=2, severity=other))
    assert not reconcile([bob, elsewhere]).contradictions


def test_nobody_contradicts_oneself() -> None:
    both = opinion("bob", "reject", finding("a", severity="praise"), finding("b", severity="blocker"))
    assert not reconcile([both]).contradictions


@pytest.mark.parametrize(
    ("verdicts", "missing", "is_over", "state"),
    [
        (["approve", "approve"], 0, True, "approved"),
        (["reject", "reject"], 0, True, "rejected"),
        (["approve", "reject"], 0, True, "deciding"),
        (["approve"], 1, False, None),
        (["approve"], 1, True, "deciding"),
        (["reject"], 1, True, "rejected"),
        ([], 2, True, "deciding"),
    ],
)
def test_what_verdicts_come_to(verdicts: list[str], missing: int, is_over: bool, state: str | None) -> None:
    said = [opinion(f"r{at}", verdict) for at, verdict in enumerate(verdicts)]
    found = judge(said, missing=missing, is_over=is_over)
    assert (found.state if found else None) == state


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "approve",
        {},
        {"verdict": "yes"},
        {"verdict": "approve", "mood": "good"},
        {"verdict": "reject"},
        {"verdict": "reject", "findings": [{"text": "fine", "severity": "praise"}]},
        {"verdict": "approve", "findings": [{"text": "bad", "severity": "blocker"}]},
        {"verdict": "approve", "findings": "none"},
        {"verdict": "approve", "findings": [{}]},
        {"verdict": "approve", "findings": [{"text": "a", "line": -1}]},
        {"verdict": "approve", "findings": [{"text": "a", "line": True}]},
        {"verdict": "approve", "findings": [{"text": "a", "path": "/etc/passwd"}]},
        {"verdict": "approve", "findings": [{"text": "a", "path": "../up"}]},
        {"verdict": "approve", "findings": [{"text": "a", "severity": "huge"}]},
        {"verdict": "approve", "findings": [{"text": "a", "why": "b"}]},
        {"verdict": "approve", "findings": [{"text": "a"}] * 501},
        {"verdict": "approve", "summary": 3},
        {"verdict": "approve", "summary": "nul \0"},
    ],
)
def test_a_verdict_that_does_not_keep_to_the_contract_is_refused(given: Any) -> None:
    with pytest.raises(Malformed):
        read_opinion(given)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["approve", "reject", "blocker"]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["verdict", "findings", "text", "line", "x"]), inner)
    ),
)


@pytest.mark.slow
@given(JSON)
def test_whatever_a_reviewer_says_is_a_verdict_or_refused_in_words(given: Any) -> None:
    with suppress(Malformed):
        read_opinion(given)


def test_the_author_reads_the_worst_first_and_as_much_as_fits() -> None:
    said = make_opinion(
        "bob",
        "reject",
        [{"text": f"finding {n}", "severity": "blocker" if n == 7 else "minor"} for n in range(99)],
        "no",
    )
    text = feedback_text("T1", [said], 600)
    assert text.splitlines()[:2] == ["bob says reject: no", "blocker at the whole (bob): finding 7"]
    assert len(text) <= 600
    assert "landlane review show T1" in text


def test_a_step_goes_into_labels_and_comes_back() -> None:
    step = step_of(("v1", *check_step(3, ["bob", "cid"], "dan"), "agent:claude"))
    assert step is not None
    assert (step.reviewers, step.decider) == (("bob", "cid", ""), "dan")
    assert step_of(("v1", "review:x")) is None
    assert check_step(0, [], "") == ()


@pytest.mark.parametrize(
    ("count", "names", "decider"), [(0, [], "dan"), (99, [], ""), (1, ["a/b"], ""), (1, [""], "")]
)
def test_a_step_that_cannot_be_is_refused(count: int, names: list[str], decider: str) -> None:
    with pytest.raises(Malformed):
        check_step(count, names, decider)


def test_a_plan_names_the_review_of_its_tasks() -> None:
    plan = read_plan("- [ ] Pay (review: 2) (reviewers: bob) (decider: person)\n", "plan.md")
    assert new_task(plan.tasks[0], "").labels == ("review:2", "reviewer:bob", "decider:person")
    with pytest.raises(Malformed) as caught:
        read_plan("- [ ] Pay (review: 99)\n", "plan.md")
    assert caught.value.code == "BAD_PLAN"


def test_a_name_means_an_agent_and_those_who_bear_it() -> None:
    assert is_meant("", "anybody")
    assert is_meant("claude", "claude-T3-x7")
    assert not is_meant("claude", "claudette")

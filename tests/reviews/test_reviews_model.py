"""Checked verdicts, merged findings, and the state that verdicts lead to."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed
from landlane.plans.model import new_task
from landlane.plans.parse import read_plan
from landlane.reviews.model import (
    Opinion,
    ReviewFinding,
    ReviewVerdict,
    Severity,
    is_asked,
    review_in_labels,
    review_labels,
)
from landlane.reviews.read_verdict import read_opinion, verdict_fields
from landlane.reviews.reconcile import feedback_text, find_contradictions, judge, merge_findings

pytestmark = pytest.mark.unit


def finding(text: str, path: str = "src/a.py", line: int = 1, severity: str = "minor") -> ReviewFinding:
    return ReviewFinding(text=text, path=path, line=line, severity=Severity(severity))


def opinion(source: str, verdict: str, *findings: ReviewFinding) -> Opinion:
    return Opinion(
        source=source, verdict=ReviewVerdict(verdict), findings=findings, summary=f"{source} looked"
    )


def read(document: object) -> Opinion:
    fields = verdict_fields(document)
    return read_opinion("bob", fields.get("verdict"), fields.get("findings"), fields.get("summary"))


def test_findings_keep_their_order_and_equal_ones_are_merged() -> None:
    bob = opinion("bob", "reject", finding("The cache never expires."), finding("No test", "tests/a.py", 0))
    cid = opinion(
        "cid", "reject", finding("the cache NEVER expires", line=3, severity="major"), finding("Typo")
    )

    found = merge_findings([bob, cid])

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
def test_praise_and_fault_of_one_place_contradict(one: str, other: str, *, is_contradiction: bool) -> None:
    bob = opinion("bob", "reject", finding("locks are right", severity=one))
    cid = opinion("cid", "reject", finding("locks deadlock", severity=other))
    found = find_contradictions([bob, cid])
    assert bool(found) is is_contradiction
    elsewhere = opinion("cid", "reject", finding("locks deadlock", line=2, severity=other))
    assert not find_contradictions([bob, elsewhere])


def test_findings_of_one_reviewer_never_contradict() -> None:
    both = opinion("bob", "reject", finding("a", severity="praise"), finding("b", severity="blocker"))
    assert not find_contradictions([both])


@pytest.mark.parametrize(
    ("verdicts", "missing", "state"),
    [
        (["approve", "approve"], 0, "approved"),
        (["reject", "reject"], 0, "rejected"),
        (["approve", "reject"], 0, "deciding"),
        (["approve"], 1, "deciding"),
        (["reject"], 1, "rejected"),
        ([], 2, "deciding"),
    ],
)
def test_verdicts_lead_to_a_state(verdicts: list[str], missing: int, state: str) -> None:
    opinions = [opinion(f"r{at}", verdict) for at, verdict in enumerate(verdicts)]
    assert judge(opinions, missing=missing).state == state


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
def test_verdict_that_does_not_match_the_contract_is_refused(given: Any) -> None:
    with pytest.raises(Malformed):
        read(given)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["approve", "reject", "blocker"]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["verdict", "findings", "text", "line", "x"]), inner)
    ),
)


@pytest.mark.slow
@given(JSON)
def test_any_json_is_a_verdict_or_refused_as_malformed(given: Any) -> None:
    with suppress(Malformed):
        read(given)


def test_feedback_shows_the_worst_finding_first_and_is_cut_to_size() -> None:
    said = read_opinion(
        "bob",
        "reject",
        [{"text": f"finding {n}", "severity": "blocker" if n == 7 else "minor"} for n in range(99)],
        "no",
    )
    text = feedback_text("T1", [said], 600)
    assert text.splitlines()[:2] == ["bob says reject: no", "blocker at the change (bob): finding 7"]
    assert len(text) <= 600
    assert "landlane review show T1" in text


def test_required_review_is_stored_in_labels() -> None:
    required = review_in_labels(("v1", *review_labels(3, ["bob", "cid"], "dan"), "agent:claude"))
    assert required is not None
    assert (required.reviewers, required.decider) == (("bob", "cid", ""), "dan")
    assert review_in_labels(("v1", "review:x")) is None
    assert review_labels(0, [], "") == ()


@pytest.mark.parametrize(
    ("count", "names", "decider"), [(0, [], "dan"), (99, [], ""), (1, ["a/b"], ""), (1, [""], "")]
)
def test_impossible_review_is_refused(count: int, names: list[str], decider: str) -> None:
    with pytest.raises(Malformed):
        review_labels(count, names, decider)


def test_plan_can_require_a_review() -> None:
    plan = read_plan("- [ ] Pay (review: 2) (reviewers: bob) (decider: person)\n", "plan.md")
    assert new_task(plan.tasks[0], "").labels == ("review:2", "reviewer:bob", "decider:person")
    with pytest.raises(Malformed) as caught:
        read_plan("- [ ] Pay (review: 99)\n", "plan.md")
    assert caught.value.code == "BAD_PLAN"


def test_name_means_an_agent_and_those_with_its_prefix() -> None:
    assert is_asked("", "anybody")
    assert is_asked("claude", "claude-T3")
    assert not is_asked("claude", "claudette")

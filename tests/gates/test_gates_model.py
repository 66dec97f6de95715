"""The rules of gates: which questions can be kept, what an answer is for, and what comes first."""

from __future__ import annotations

import pytest

from landlane.errors import Malformed
from landlane.gates.model import KINDS, Gate, bound_to, check_question, covers, describe, risk_of

pytestmark = pytest.mark.unit

HEAD = "1" * 40


def gate(**about: object) -> Gate:
    return Gate(
        id="G1", task="T1", kind="approval", why="?", about=about, agent="ann", session="s", asked_at=0
    )


def test_a_question_is_kept_in_one_form() -> None:
    asked = check_question("deploy", "ship", {"target": "prod", "commit": HEAD, "note": "", "n": 3, "x": [1]})
    assert asked == {"commit": HEAD, "n": 3, "target": "prod", "x": "[1]"}
    assert list(asked) == sorted(asked)


@pytest.mark.parametrize(
    ("kind", "why", "about"),
    [
        ("love", "why", {}),
        ("", "why", {}),
        ("approval", "", {}),
        ("approval", " \n\t", {}),
        ("approval", "x" * 2001, {}),
        ("approval", "a\0b", {}),
        ("approval", "why", {"text": "x" * 4001}),
        ("approval", "why", {"k" * 41: "x"}),
        ("approval", "why", {str(number): "x" for number in range(21)}),
    ],
)
def test_what_cannot_be_kept_is_refused(kind: str, why: str, about: dict[str, str]) -> None:
    with pytest.raises(Malformed) as caught:
        check_question(kind, why, about)
    assert caught.value.hint


def test_an_answer_is_for_exactly_what_was_asked() -> None:
    asked = gate(target="prod", commit=HEAD, command="make deploy")
    assert covers(asked, {"target": "prod", "commit": HEAD})
    assert not covers(asked, {"target": "prod", "commit": "2" * 40})
    assert not covers(asked, {"target": "prod", "commit": HEAD, "command": "rm -rf /"})
    assert not covers(asked, {}), "nothing in particular was never approved"
    assert bound_to(asked.about) == HEAD
    assert bound_to({"amount": "120 USD"}) == ""
    assert describe({"head": HEAD, "amount": "120 USD"}) == f"head {HEAD[:12]}, amount 120 USD"


def test_risk_follows_kind_place_size_and_checks() -> None:
    order = sorted(KINDS, key=lambda kind: -risk_of(kind))
    assert order == ["financial", "legal", "credentials", "deploy", "approval", "taste"]
    plain = risk_of("approval", paths=["a"], lines=10, has_checks=True)
    assert risk_of("approval", paths=["a"], lines=10_000, has_checks=True) > plain
    assert risk_of("approval", paths=["a"] * 100, lines=10, has_checks=True) > plain
    assert risk_of("approval", paths=["a"], protected=1, lines=10, has_checks=True) > plain
    assert risk_of("approval", paths=["a"], lines=10, has_checks=False) > plain
    assert risk_of("approval", paths=["a"], lines=10, has_checks=None) > plain
    assert risk_of("financial", paths=["a"] * 10**4, protected=10**4, lines=10**9, has_checks=False) <= 200

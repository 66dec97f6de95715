"""The rules of gates: valid questions, what an answer is valid for, allowed changes of state, and risk."""

from __future__ import annotations

import pytest

from landlane.errors import Malformed, NotAllowed
from landlane.gates.model import (
    APPROVAL,
    DEPLOY,
    Gate,
    GateKind,
    GateState,
    check_question,
    describe_subject,
    digest_in,
    is_about,
    score_risk,
)
from landlane.values import replace

pytestmark = pytest.mark.unit

HEAD = "1" * 40


def gate(**about: object) -> Gate:
    return Gate(id="G1", task="T1", kind=APPROVAL, why="?", about=about, agent="ann", session="s", asked_at=0)


ANSWERS = {("waiting", "approved"), ("waiting", "rejected"), ("waiting", "withdrawn")}
CHANGED_ANSWERS = {(old, new) for old in ("approved", "rejected") for new in ("approved", "rejected")}


@pytest.mark.parametrize(("kind", "allowed"), [(APPROVAL, ANSWERS), (DEPLOY, ANSWERS | CHANGED_ANSWERS)])
def test_only_the_answer_to_a_deploy_can_change(kind: GateKind, allowed: set[tuple[str, str]]) -> None:
    for old in GateState:
        for new in GateState:
            asked = replace(gate(), kind=kind, state=old)
            if (old, new) in allowed:
                assert asked.become(new, answer="so").state == new
            else:
                with pytest.raises(NotAllowed) as caught:
                    asked.become(new)
                assert caught.value.code == "NOT_WAITING"


def test_a_question_is_stored_in_one_form() -> None:
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
def test_invalid_questions_are_refused(kind: str, why: str, about: dict[str, str]) -> None:
    with pytest.raises(Malformed) as caught:
        check_question(kind, why, about)
    assert caught.value.hint


def test_an_answer_is_valid_for_exactly_its_question() -> None:
    asked = gate(target="prod", commit=HEAD, command="make deploy")
    assert is_about(asked, {"target": "prod", "commit": HEAD})
    assert not is_about(asked, {"target": "prod", "commit": "2" * 40})
    assert not is_about(asked, {"target": "prod", "commit": HEAD, "command": "rm -rf /"})
    assert not is_about(asked, {}), "an empty subject is never approved"
    assert digest_in(asked.about) == HEAD
    assert digest_in({"amount": "120 USD"}) == ""
    assert describe_subject({"head": HEAD, "amount": "120 USD"}) == f"head {HEAD[:12]}, amount 120 USD"


def test_risk_depends_on_kind_paths_size_and_checks() -> None:
    order = sorted(GateKind, key=lambda kind: -score_risk(kind))
    assert order == ["financial", "legal", "credentials", "deploy", "approval", "taste"]
    plain = score_risk("approval", paths=["a"], lines=10, has_checks=True)
    assert score_risk("approval", paths=["a"], lines=10_000, has_checks=True) > plain
    assert score_risk("approval", paths=["a"] * 100, lines=10, has_checks=True) > plain
    assert score_risk("approval", paths=["a"], protected=1, lines=10, has_checks=True) > plain
    assert score_risk("approval", paths=["a"], lines=10, has_checks=False) > plain
    assert score_risk("approval", paths=["a"], lines=10, has_checks=None) > plain
    assert score_risk("financial", paths=["a"] * 10**4, protected=10**4, lines=10**9, has_checks=False) <= 200

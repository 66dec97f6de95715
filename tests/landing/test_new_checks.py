"""A branch that changes `[landing] checks`: a person approves it, and then its own checks judge it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import NotAllowed, Stale
from landlane.landing.decide import decide_held_entry

if TYPE_CHECKING:
    from landlane.landing.model import Landing
    from tests.support.landing import LandingTestbed

pytestmark = pytest.mark.integration

NEW = '[landing]\nchecks = ["{check}"]\nresident = false\n'


def approve(testbed: LandingTestbed, entry: Landing, head: str = "") -> Landing:
    return decide_held_entry(testbed.repo, testbed.agent("pat"), entry.id, is_approved=True, head=head)


@pytest.mark.promise(
    "landing.wrong-checks-are-recoverable",
    "A branch that replaces a wrong check lands by its own checks once a person has approved it.",
)
def test_a_wrong_check_is_replaced_through_the_queue(testbed: LandingTestbed) -> None:
    testbed.configure('["no-such-program"]')
    testbed.branch("feature", {"a.txt": "a\n"})
    testbed.branch("repair", {"landlane.toml": NEW.format(check="test ! -e bad")})
    feature, repair = testbed.submit("feature"), testbed.submit("repair", "bob")
    testbed.run()
    assert (testbed.reload(feature).code, repair.state) == ("TARGET_RED", "held")
    assert repair.gate.endswith("no-such-program becomes test ! -e bad")

    approve(testbed, repair)
    assert testbed.run() is None

    assert testbed.states() == {"feature": "landed", "repair": "landed"}


def test_without_an_approval_new_checks_judge_nothing(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]')
    testbed.branch("one", {"bad": "", "landlane.toml": "[landing]\nchecks = []\n"})
    before = testbed.tip

    entry = testbed.submit("one")
    testbed.run()

    assert (testbed.reload(entry).state, testbed.tip) == ("held", before)


def test_the_approval_counts_for_one_commit_only(testbed: LandingTestbed) -> None:
    testbed.configure('["false"]')
    testbed.branch("repair", {"landlane.toml": NEW.format(check="test -e a.txt")})
    first = testbed.submit("repair")
    with pytest.raises(Stale):
        approve(testbed, first, head="0" * 40)
    approve(testbed, first)
    testbed.run()
    assert testbed.reload(first).reason == "by its own checks, test -e a.txt fails (exit 1)"

    testbed.branch("repair", {"landlane.toml": NEW.format(check="true")})
    second = testbed.submit_with_held_claims("repair")

    assert second.state == "held"


def test_a_role_cannot_approve_new_checks(testbed: LandingTestbed) -> None:
    testbed.configure('["false"]')
    testbed.branch("repair", {"landlane.toml": NEW.format(check="true")})
    entry = testbed.submit("repair")

    with pytest.raises(NotAllowed):
        decide_held_entry(testbed.repo, testbed.agent("eve", role="code"), entry.id, is_approved=True)

    assert testbed.reload(entry).state == "held"


def test_entries_beside_new_checks_are_judged_by_those_of_the_target(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]', "batch = 3\n")
    testbed.branch("bad", {"bad": ""})
    testbed.branch("repair", {"landlane.toml": NEW.format(check="true")})
    testbed.branch("good", {"good": ""})
    testbed.submit("bad", "ann")
    entry = testbed.submit("repair", "bob")
    testbed.submit("good", "eve")
    approve(testbed, entry)

    testbed.run()

    assert testbed.states() == {"bad": "bounced", "repair": "landed", "good": "landed"}


def test_other_settings_change_without_an_approval(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]')
    text = testbed.read_file("landlane.toml")
    testbed.branch("one", {"landlane.toml": f"{text}\n[run]\nworkers = 2\n"})

    assert testbed.land("one").state == "landed"


def test_a_longer_time_limit_is_a_change_of_the_checks(testbed: LandingTestbed) -> None:
    testbed.configure('["sleep 30"]', 'check_limit = "1s"\n')
    text = testbed.read_file("landlane.toml")
    testbed.branch("one", {"landlane.toml": text.replace("1s", "2m")})

    entry = testbed.submit("one")

    assert entry.gate.endswith("sleep 30 (limit 1 s) becomes sleep 30 (limit 2 min)")

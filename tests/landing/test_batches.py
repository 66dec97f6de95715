"""Batches: halving finds the culprit, pairs are named, a red target blames nobody, a moved one is met."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from landlane.errors import NotAllowed, RepositoryError
from landlane.landing import run_checks
from landlane.landing.decide import eject_entry, resume_queue
from landlane.landing.model import EJECTED, TRANSITIONS, LandingState, Rejection
from landlane.landing.outcomes import reject_entry
from landlane.landing.records import get_queue
from landlane.tasks.records import get_task
from landlane.testing.repositories import git
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


GREEN = "test ! -e bad && (test ! -e left || test ! -e right)"


@pytest.mark.slow
def test_a_green_batch_is_tested_once(testbed: LandingTestbed) -> None:
    testbed.configure(f'["{GREEN}"]')
    for number in range(8):
        testbed.branch(f"b{number}", {f"f{number}": "x"})
        testbed.submit(f"b{number}", f"agent{number}")

    assert testbed.run() is None

    assert set(testbed.states().values()) == {"landed"}
    assert testbed.tests == 1
    assert git(testbed.folder, "rev-list", "--count", "--first-parent", "main").strip() == "10"


@pytest.mark.slow
@pytest.mark.parametrize("culprit", [0, 6])
def test_failing_entry_is_rejected_and_all_others_land(testbed: LandingTestbed, culprit: int) -> None:
    testbed.configure(f'["{GREEN}"]')
    for number in range(8):
        testbed.branch(f"b{number}", {"bad" if number == culprit else f"f{number}": "x"})
        testbed.submit(f"b{number}", f"agent{number}")

    assert testbed.run() is None

    states = testbed.states()
    assert [name for name, state in states.items() if state != "landed"] == [f"b{culprit}"]
    assert states[f"b{culprit}"] == "bounced"
    assert testbed.tests <= 9


@pytest.mark.slow
def test_two_culprits_are_both_found(testbed: LandingTestbed) -> None:
    testbed.configure(f'["{GREEN}"]')
    for number in range(6):
        testbed.branch(
            f"b{number}", {f"d{number}/x": "x", **({"bad": str(number)} if number in (1, 4) else {})}
        )
        testbed.submit(f"b{number}", "ann")

    assert testbed.run() is None

    assert [name for name, state in testbed.states().items() if state == "bounced"] == ["b1", "b4"]


@pytest.mark.promise(
    "landing.green-and-green",
    "Of two branches that pass alone and fail together exactly one lands, and the other is told why.",
)
def test_two_that_are_green_alone_and_red_together_land_one_and_name_the_pair(
    testbed: LandingTestbed,
) -> None:
    testbed.configure(f'["{GREEN}"]')
    testbed.branch("one", {"left": "x"}, "Turn left")
    testbed.branch("between", {"other": "x"})
    testbed.branch("two", {"right": "x"}, "Turn right")
    first, middle, second = (
        testbed.submit("one"),
        testbed.submit("between", "carl"),
        testbed.submit("two", "bob"),
    )

    assert testbed.run() is None

    assert [testbed.reload(one).state for one in (first, middle, second)] == ["landed", "landed", "bounced"]
    loser, winner = testbed.reload(second), testbed.reload(first)
    assert (loser.code, loser.pair) == ("CHECK_FAILED", first.id)
    assert loser.reason == f"it breaks with {winner.commit[:8]} Turn left (ann)"
    assert (loser.pair, loser.pair_commit) == (first.id, winner.commit)
    task = get_task(testbed.repo, loser.bounce_task)
    assert "Turn left" in task.body
    assert "sync --update rebase" in task.next_action
    assert winner.commit[:8] in task.next_action


@pytest.mark.slow
def test_a_pair_is_named_also_when_the_first_landed_long_before(testbed: LandingTestbed) -> None:
    """T17: one changes a signature, the other adds a caller; the merge is clean, the program crashes."""
    files = {"lib.py": "def greet(name):\n    return name\n", "test.py": "import lib\nlib.greet('a')\n"}
    testbed.configure(
        '["python3 -B test.py && python3 -B app.py"]', files={**files, "app.py": "import lib\n"}
    )
    changed = {
        "lib.py": "def greet(name, mark):\n    return name\n",
        "test.py": "import lib\nlib.greet('a', 1)\n",
    }
    testbed.branch("signature", changed, "Greet with a mark")
    testbed.branch("caller", {"app.py": "import lib\nlib.greet('b')\n"}, "Greet b")
    assert testbed.land("signature").state == "landed"
    for number in range(2):
        testbed.branch(f"other{number}", {f"f{number}": "x"})
        assert testbed.land(f"other{number}", "carl").state == "landed"
    before = testbed.tip

    entry = testbed.land("caller", "bob")

    assert (entry.state, entry.pair, testbed.tip) == ("bounced", "L1", before)
    assert "Greet with a mark" in entry.reason
    assert "TypeError" in entry.output


def test_a_commit_of_a_person_is_named_as_the_other_side(testbed: LandingTestbed) -> None:
    testbed.configure(f'["{GREEN}"]')
    testbed.branch("two", {"right": "x"})
    person = testbed.commit({"left": "x"}, "A person turns left")

    entry = testbed.land("two")

    assert (entry.state, entry.pair) == ("bounced", "")
    assert person[:8] in entry.reason
    assert "A person turns left" in entry.reason


@pytest.mark.slow
def test_failing_target_rejects_no_entry_and_is_repaired_by_a_later_one(testbed: LandingTestbed) -> None:
    testbed.configure(f'["{GREEN}"]', "batch = 2\n", files={"bad": "x"})
    for number in range(3):
        testbed.branch(f"b{number}", {f"f{number}": "x"})
        testbed.submit(f"b{number}", f"agent{number}")

    stop = testbed.run()

    assert stop is not None
    assert (stop.code, stop.hint) == ("TARGET_RED", "see why: landlane queue show")
    assert set(testbed.states().values()) == {"queued"}

    testbed.branch("mend", {"bad": None})
    testbed.submit("mend", "dora")
    assert testbed.run() is None
    assert set(testbed.states().values()) == {"landed"}


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
def test_an_outage_leaves_no_tree_red_for_ever(testbed: LandingTestbed, count: int) -> None:
    outage = testbed.folder.parent / "outage"
    testbed.configure(f'["test ! -e {outage}"]')
    outage.touch()
    for number in range(count):
        testbed.branch(f"b{number}", {f"f{number}": "x"})
        testbed.submit(f"b{number}", f"agent{number}")
    stop = testbed.run()
    assert stop is not None
    assert stop.code == "TARGET_RED"

    still = testbed.run()
    assert still is not None
    assert still.code == "TARGET_RED"
    outage.unlink()
    assert testbed.run() is None

    assert set(testbed.states().values()) == {"landed"}


def test_a_red_target_is_believed_only_after_it_was_asked_again(testbed: LandingTestbed) -> None:
    outage = testbed.folder.parent / "outage"
    testbed.configure(f'["test ! -e {outage} && test ! -e bad"]')
    outage.touch()
    testbed.branch("good", {"good": "x"})
    testbed.submit("good")
    assert testbed.run() is not None
    outage.unlink()
    eject_entry(testbed.prepared_repo, testbed.agent("ann"), "L1", "later")
    testbed.branch("culprit", {"bad": "x"})

    assert testbed.land("culprit", "bob").code == "CHECK_FAILED", "the target was red only for a while"


def test_branch_rejected_in_an_outage_lands_when_submitted_again(
    testbed: LandingTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    outage = testbed.folder.parent / "outage"
    testbed.configure(f'["test ! -e left || test ! -e {outage}"]')
    outage.touch()
    head = testbed.branch("one", {"left": "x"})
    assert testbed.land("one").state == "bounced"
    outage.unlink()
    assert testbed.land("one").state == "bounced", "for a while what was red is believed to be red"
    monkeypatch.setattr(run_checks, "_FAILURE_TTL_MS", -1)

    again = testbed.land("one")

    assert (again.state, again.head) == ("landed", head)


def test_conflict_names_the_commit_that_changed_the_same_line(
    testbed: LandingTestbed,
) -> None:
    testbed.configure("[]", files={"a.txt": "a\n"})
    testbed.branch("one", {"a.txt": "one\n"}, "Say one")
    testbed.branch("two", {"a.txt": "two\n"}, "Say two")
    first, second = testbed.submit("one"), testbed.submit("two")

    assert testbed.run() is None

    loser = testbed.reload(second)
    assert (testbed.reload(first).state, loser.state, loser.code) == ("landed", "bounced", "CONFLICT")
    assert loser.reason == "it conflicts with main in a.txt"
    assert "Say one" in loser.output
    assert "Say one" in get_task(testbed.repo, loser.bounce_task).body
    assert testbed.read_file("a.txt") == "one\n"


def test_a_conflict_with_one_that_bounces_itself_is_none(testbed: LandingTestbed) -> None:
    testbed.configure('["! grep bad a.txt"]', files={"a.txt": "a\n"})
    testbed.branch("one", {"a.txt": "bad\n"})
    testbed.branch("two", {"a.txt": "two\n"})
    testbed.submit("one")
    testbed.submit("two")

    assert testbed.run() is None

    assert testbed.states() == {"one": "bounced", "two": "landed"}


def test_the_same_change_twice_counts_only_once_it_is_there(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]')
    testbed.branch("one", {"bad": "x"})
    testbed.branch("same", {"bad": "x"})
    testbed.submit("one")
    testbed.submit("same")

    assert testbed.run() is None

    assert testbed.states() == {"one": "bounced", "same": "bounced"}, "what stood in front never landed"


def test_branch_that_the_target_contains_counts_as_landed(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    tip = testbed.commit({"a.txt": "x"})

    assert testbed.run() is None

    assert (testbed.reload(entry).state, testbed.reload(entry).commit, testbed.tip) == ("landed", tip, tip)


def test_when_a_person_commits_meanwhile_it_is_merged_and_tested_again(testbed: LandingTestbed) -> None:
    testbed.configure("['ls person >> ../seen 2>&1; true']")
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    done: list[str] = []

    def meddle(step: str) -> None:
        if step == "tested" and not done:
            done.append(testbed.commit({"person": "x"}))

    assert testbed.run(meddle) is None

    landed = testbed.reload(entry)
    assert landed.state == "landed"
    assert git(testbed.folder, "merge-base", "--is-ancestor", done[0], landed.commit) == ""
    assert next(testbed.folder.parent.rglob("seen")).read_text().splitlines()[-1] == "person"


@pytest.mark.slow
def test_a_half_that_cannot_land_takes_the_other_half_with_it(testbed: LandingTestbed) -> None:
    testbed.configure(f'["{GREEN}"]')
    for number in range(4):
        testbed.branch(f"b{number}", {"bad" if number == 3 else f"f{number}": "x"})
        testbed.submit(f"b{number}", f"agent{number}")
    meddled: list[str] = []

    def meddle(step: str) -> None:
        if step == "written" and not meddled:
            meddled.append(testbed.commit({"person": "x"}))

    assert testbed.run(meddle) is None

    assert list(testbed.states().values()) == ["landed", "landed", "landed", "bounced"]
    assert testbed.read_file("person") == "x"


def test_a_rewound_target_pauses_the_queue_until_somebody_resumes_it(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"a.txt": "x"})
    testbed.branch("two", {"b.txt": "x"})
    landed = testbed.land("one")
    git(testbed.folder, "reset", "--quiet", "--hard", "HEAD^")
    before = testbed.tip
    entry = testbed.submit("two")

    stop = testbed.run()

    assert stop is not None
    assert (stop.code, stop.exit_code) == ("QUEUE_PAUSED", 7)
    assert f"main was rewound: {landed.commit[:12]}" in stop.message
    assert (testbed.reload(entry).state, testbed.tip) == ("queued", before)
    assert get_queue(testbed.repo, "main").state == "paused"

    resume_queue(testbed.prepared_repo, testbed.agent("pat"), "it was meant")
    assert testbed.run() is None
    assert testbed.reload(entry).state == "landed"


def test_an_entry_can_be_ejected_while_it_waits(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    git(testbed.folder, "branch", "--quiet", "-D", "one")

    ended = eject_entry(testbed.prepared_repo, testbed.agent("ann"), entry.id, "wrong branch")

    assert (ended.state, ended.reason) == ("ejected", "ann: wrong branch")
    assert git(testbed.folder, "rev-parse", "one").strip() == entry.head, "its branch is there again"
    assert testbed.holders() == {"a.txt": "ann"}
    assert testbed.run() is None
    assert testbed.states() == {"one": "ejected"}


def test_agent_cannot_eject_the_entry_of_another(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")

    with pytest.raises(NotAllowed, match="L1 is ann's"):
        eject_entry(testbed.prepared_repo, testbed.agent("bob"), entry.id, "")


def test_entry_under_test_cannot_be_ended_without_the_queue_lease(
    testbed: LandingTestbed,
) -> None:
    testbed.configure("['true']")
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    refused: list[str] = []

    def on_step(name: str) -> None:
        if name == "tested":
            taken_out = Rejection(reason="taken out", code="EJECTED", hint="")
            with pytest.raises(NotAllowed) as found:
                reject_entry(testbed.repo, None, entry.id, taken_out, state=EJECTED)
            refused.append(found.value.code)

    assert testbed.run(on_step) is None
    assert refused == ["LANDING_BUSY"]
    assert testbed.states() == {"one": "landed"}


def test_a_target_that_the_remote_has_not_yet_is_said_so(testbed: LandingTestbed, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(testbed.folder, "remote", "add", "origin", str(tmp_path / "remote.git"))
    testbed.configure("[]")
    testbed.branch("one", {"a.txt": "x"})

    with pytest.raises(RepositoryError, match="origin has no branch main to land on"):
        testbed.submit("one")


def test_a_runner_makes_no_move_that_the_table_forbids(
    testbed: LandingTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed.configure()
    testbed.branch("work", {"new": "x"})
    entry = testbed.submit("work")
    monkeypatch.setitem(cast("dict[LandingState, object]", TRANSITIONS), LandingState.QUEUED, ())

    assert testbed.run() is None

    assert testbed.reload(entry).state == "queued"

"""Batches: halving finds the culprit, pairs are named, a red target blames nobody, a moved one is met."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import NotAllowed, RepositoryError
from landlane.landing import run_checks
from landlane.landing.model import EJECTED, Rejection
from landlane.landing.outcomes import eject_entry, reject_entry
from landlane.landing.queue import resume_queue
from landlane.landing.records import get_queue
from landlane.tasks.records import get_task
from landlane.testing.repositories import git
from tests.support.landing import Yard

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


GREEN = "test ! -e bad && (test ! -e left || test ! -e right)"


@pytest.mark.slow
def test_a_green_batch_is_tested_once(yard: Yard) -> None:
    yard.configure(f'["{GREEN}"]')
    for number in range(8):
        yard.branch(f"b{number}", {f"f{number}": "x"})
        yard.submit(f"b{number}", f"agent{number}")

    assert yard.run() is None

    assert set(yard.states().values()) == {"landed"}
    assert yard.tests == 1
    assert git(yard.folder, "rev-list", "--count", "--first-parent", "main").strip() == "10"


@pytest.mark.slow
@pytest.mark.parametrize("culprit", [0, 6])
def test_the_culprit_goes_back_and_all_others_land(yard: Yard, culprit: int) -> None:
    yard.configure(f'["{GREEN}"]')
    for number in range(8):
        yard.branch(f"b{number}", {"bad" if number == culprit else f"f{number}": "x"})
        yard.submit(f"b{number}", f"agent{number}")

    assert yard.run() is None

    states = yard.states()
    assert [name for name, state in states.items() if state != "landed"] == [f"b{culprit}"]
    assert states[f"b{culprit}"] == "bounced"
    assert yard.tests <= 9


@pytest.mark.slow
def test_two_culprits_are_both_found(yard: Yard) -> None:
    yard.configure(f'["{GREEN}"]')
    for number in range(6):
        yard.branch(f"b{number}", {f"d{number}/x": "x", **({"bad": str(number)} if number in (1, 4) else {})})
        yard.submit(f"b{number}", "ann")

    assert yard.run() is None

    assert [name for name, state in yard.states().items() if state == "bounced"] == ["b1", "b4"]


@pytest.mark.promise(
    "landing.green-and-green",
    "Of two branches that pass alone and fail together exactly one lands, and the other is told why.",
)
def test_two_that_are_green_alone_and_red_together_land_one_and_name_the_pair(yard: Yard) -> None:
    yard.configure(f'["{GREEN}"]')
    yard.branch("one", {"left": "x"}, "Turn left")
    yard.branch("between", {"other": "x"})
    yard.branch("two", {"right": "x"}, "Turn right")
    first, middle, second = yard.submit("one"), yard.submit("between", "carl"), yard.submit("two", "bob")

    assert yard.run() is None

    assert [yard.look(one).state for one in (first, middle, second)] == ["landed", "landed", "bounced"]
    loser, winner = yard.look(second), yard.look(first)
    assert (loser.code, loser.pair) == ("CHECK_FAILED", first.id)
    assert f"only together with {winner.commit[:12]} ({first.id} of ann: Turn left)" in loser.reason
    task = get_task(yard.repo, loser.bounce_task)
    assert "Turn left" in task.body
    assert "sync --update merge" in task.next_action
    assert winner.commit[:12] in task.next_action


@pytest.mark.slow
def test_a_pair_is_named_also_when_the_first_landed_long_before(yard: Yard) -> None:
    """T17: one changes a signature, the other adds a caller; the merge is clean, the program crashes."""
    files = {"lib.py": "def greet(name):\n    return name\n", "test.py": "import lib\nlib.greet('a')\n"}
    yard.configure('["python3 -B test.py && python3 -B app.py"]', files={**files, "app.py": "import lib\n"})
    changed = {
        "lib.py": "def greet(name, mark):\n    return name\n",
        "test.py": "import lib\nlib.greet('a', 1)\n",
    }
    yard.branch("signature", changed, "Greet with a mark")
    yard.branch("caller", {"app.py": "import lib\nlib.greet('b')\n"}, "Greet b")
    assert yard.land("signature").state == "landed"
    for number in range(2):
        yard.branch(f"other{number}", {f"f{number}": "x"})
        assert yard.land(f"other{number}", "carl").state == "landed"
    before = yard.tip

    entry = yard.land("caller", "bob")

    assert (entry.state, entry.pair, yard.tip) == ("bounced", "L1", before)
    assert "Greet with a mark" in entry.reason
    assert "TypeError" in entry.output


def test_a_commit_of_a_person_is_named_as_the_other_side(yard: Yard) -> None:
    yard.configure(f'["{GREEN}"]')
    yard.branch("two", {"right": "x"})
    person = yard.commit({"left": "x"}, "A person turns left")

    entry = yard.land("two")

    assert (entry.state, entry.pair) == ("bounced", "")
    assert person[:12] in entry.reason
    assert "A person turns left" in entry.reason


@pytest.mark.slow
def test_a_red_target_blames_nobody_and_is_mended_by_the_one_who_can(yard: Yard) -> None:
    yard.configure(f'["{GREEN}"]', "batch = 2\n", files={"bad": "x"})
    for number in range(3):
        yard.branch(f"b{number}", {f"f{number}": "x"})
        yard.submit(f"b{number}", f"agent{number}")

    stop = yard.run()

    assert stop is not None
    assert (stop.code, stop.hint) == ("TARGET_RED", "land a branch that mends it")
    assert set(yard.states().values()) == {"queued"}

    yard.branch("mend", {"bad": None})
    yard.submit("mend", "dora")
    assert yard.run() is None
    assert set(yard.states().values()) == {"landed"}


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
def test_an_outage_leaves_no_tree_red_for_ever(yard: Yard, count: int) -> None:
    outage = yard.folder.parent / "outage"
    yard.configure(f'["test ! -e {outage}"]')
    outage.touch()
    for number in range(count):
        yard.branch(f"b{number}", {f"f{number}": "x"})
        yard.submit(f"b{number}", f"agent{number}")
    stop = yard.run()
    assert stop is not None
    assert stop.code == "TARGET_RED"

    still = yard.run()
    assert still is not None
    assert still.code == "TARGET_RED"
    outage.unlink()
    assert yard.run() is None

    assert set(yard.states().values()) == {"landed"}


def test_a_red_target_is_believed_only_after_it_was_asked_again(yard: Yard) -> None:
    outage = yard.folder.parent / "outage"
    yard.configure(f'["test ! -e {outage} && test ! -e bad"]')
    outage.touch()
    yard.branch("good", {"good": "x"})
    yard.submit("good")
    assert yard.run() is not None
    outage.unlink()
    eject_entry(yard.site, yard.agent("ann"), "L1", "later")
    yard.branch("culprit", {"bad": "x"})

    assert yard.land("culprit", "bob").code == "CHECK_FAILED", "the target was red only for a while"


def test_what_bounced_in_an_outage_lands_when_it_is_submitted_again_later(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    outage = yard.folder.parent / "outage"
    yard.configure(f'["test ! -e left || test ! -e {outage}"]')
    outage.touch()
    head = yard.branch("one", {"left": "x"})
    assert yard.land("one").state == "bounced"
    outage.unlink()
    assert yard.land("one").state == "bounced", "for a while what was red is believed to be red"
    monkeypatch.setattr(run_checks, "_FAILURE_TTL_MS", -1)

    again = yard.land("one")

    assert (again.state, again.head) == ("landed", head)


def test_two_that_change_the_same_line_conflict_and_the_loser_hears_of_the_other_side(yard: Yard) -> None:
    yard.configure("[]", files={"a.txt": "a\n"})
    yard.branch("one", {"a.txt": "one\n"}, "Say one")
    yard.branch("two", {"a.txt": "two\n"}, "Say two")
    first, second = yard.submit("one"), yard.submit("two")

    assert yard.run() is None

    loser = yard.look(second)
    assert (yard.look(first).state, loser.state, loser.code) == ("landed", "bounced", "CONFLICT")
    assert loser.reason == "it conflicts with main in a.txt"
    assert "Say one" in loser.output
    assert "Say one" in get_task(yard.repo, loser.bounce_task).body
    assert yard.at("a.txt") == "one\n"


def test_a_conflict_with_one_that_bounces_itself_is_none(yard: Yard) -> None:
    yard.configure('["! grep bad a.txt"]', files={"a.txt": "a\n"})
    yard.branch("one", {"a.txt": "bad\n"})
    yard.branch("two", {"a.txt": "two\n"})
    yard.submit("one")
    yard.submit("two")

    assert yard.run() is None

    assert yard.states() == {"one": "bounced", "two": "landed"}


def test_the_same_change_twice_counts_only_once_it_is_there(yard: Yard) -> None:
    yard.configure('["test ! -e bad"]')
    yard.branch("one", {"bad": "x"})
    yard.branch("same", {"bad": "x"})
    yard.submit("one")
    yard.submit("same")

    assert yard.run() is None

    assert yard.states() == {"one": "bounced", "same": "bounced"}, "what stood in front never landed"


def test_what_is_there_already_has_landed(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")
    tip = yard.commit({"a.txt": "x"})

    assert yard.run() is None

    assert (yard.look(entry).state, yard.look(entry).commit, yard.tip) == ("landed", tip, tip)


def test_when_a_person_commits_meanwhile_it_is_merged_and_tested_again(yard: Yard) -> None:
    yard.configure("['ls person >> ../seen 2>&1; true']")
    yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")
    done: list[str] = []

    def meddle(step: str) -> None:
        if step == "tested" and not done:
            done.append(yard.commit({"person": "x"}))

    assert yard.run(meddle) is None

    landed = yard.look(entry)
    assert landed.state == "landed"
    assert git(yard.folder, "merge-base", "--is-ancestor", done[0], landed.commit) == ""
    assert next(yard.folder.parent.rglob("seen")).read_text().splitlines()[-1] == "person"


@pytest.mark.slow
def test_a_half_that_cannot_land_takes_the_other_half_with_it(yard: Yard) -> None:
    yard.configure(f'["{GREEN}"]')
    for number in range(4):
        yard.branch(f"b{number}", {"bad" if number == 3 else f"f{number}": "x"})
        yard.submit(f"b{number}", f"agent{number}")
    meddled: list[str] = []

    def meddle(step: str) -> None:
        if step == "written" and not meddled:
            meddled.append(yard.commit({"person": "x"}))

    assert yard.run(meddle) is None

    assert list(yard.states().values()) == ["landed", "landed", "landed", "bounced"]
    assert yard.at("person") == "x"


def test_a_rewound_target_pauses_the_queue_until_somebody_resumes_it(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"a.txt": "x"})
    yard.branch("two", {"b.txt": "x"})
    landed = yard.land("one")
    git(yard.folder, "reset", "--quiet", "--hard", "HEAD^")
    before = yard.tip
    entry = yard.submit("two")

    stop = yard.run()

    assert stop is not None
    assert (stop.code, stop.exit_code) == ("QUEUE_PAUSED", 7)
    assert f"main was rewound: {landed.commit[:12]}" in stop.message
    assert (yard.look(entry).state, yard.tip) == ("queued", before)
    assert get_queue(yard.repo, "main").state == "paused"

    resume_queue(yard.site, yard.agent("pat"), "it was meant")
    assert yard.run() is None
    assert yard.look(entry).state == "landed"


def test_an_entry_can_be_ejected_while_it_waits(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")
    git(yard.folder, "branch", "--quiet", "-D", "one")

    ended = eject_entry(yard.site, yard.agent("ann"), entry.id, "wrong branch")

    assert (ended.state, ended.reason) == ("ejected", "ann: wrong branch")
    assert git(yard.folder, "rev-parse", "one").strip() == entry.head, "its branch is there again"
    assert yard.holders() == {"a.txt": "ann"}
    assert yard.run() is None
    assert yard.states() == {"one": "ejected"}


def test_another_agent_cannot_eject_what_is_not_its_own(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")

    with pytest.raises(NotAllowed, match="L1 is ann's"):
        eject_entry(yard.site, yard.agent("bob"), entry.id, "")


def test_what_is_being_tested_cannot_be_taken_out_behind_the_back_of_the_queue(yard: Yard) -> None:
    yard.configure("['true']")
    yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")
    refused: list[str] = []

    def on_step(name: str) -> None:
        if name == "tested":
            taken_out = Rejection(reason="taken out", code="EJECTED", hint="")
            with pytest.raises(NotAllowed) as found:
                reject_entry(yard.repo, None, entry.id, taken_out, state=EJECTED)
            refused.append(found.value.code)

    assert yard.run(on_step) is None
    assert refused == ["LANDING_BUSY"]
    assert yard.states() == {"one": "landed"}


def test_a_target_that_the_remote_has_not_yet_is_said_so(yard: Yard, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(yard.folder, "remote", "add", "origin", str(tmp_path / "remote.git"))
    yard.configure("[]")
    yard.branch("one", {"a.txt": "x"})

    with pytest.raises(RepositoryError, match="origin has no main yet"):
        yard.submit("one")

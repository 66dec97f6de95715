"""Landing one branch: what is tested, where, for how long, and what becomes of red and green."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from landlane.claims.take import claims_of
from landlane.errors import RepositoryError
from landlane.landing.decide import decide_held_entry
from landlane.landing.model import MAX_OUTPUT_CHARS
from landlane.tasks.records import get_task
from landlane.testing.repositories import git
from tests.support.landing import LandingTestbed
from tests.support.processes import is_alive
from tests.support.project import Background, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_a_branch_lands_after_its_checks_on_the_merged_tree(testbed: LandingTestbed) -> None:
    testbed.configure('["cat a.txt b.txt >> ../seen"]', files={"a.txt": "old\n"})
    testbed.branch("one", {"b.txt": "b\n"})
    testbed.commit({"a.txt": "new\n"}, "A person goes on meanwhile")

    entry = testbed.land("one")

    assert (entry.state, entry.commit) == ("landed", testbed.tip)
    assert testbed.read_file("b.txt") == "b\n"
    seen = next(testbed.folder.parent.rglob("seen"))
    assert seen.read_text() == "new\nb\n", "the merged tree, not the branch"
    assert testbed.tests == 1
    assert git(testbed.folder, "for-each-ref", "refs/landlane/landing") == "", "nothing is left over"


@pytest.mark.promise("landing.tested-tree", "The tree that was tested is exactly the tree that lands.")
def test_tested_tree_is_the_tree_that_lands(testbed: LandingTestbed) -> None:
    testbed.configure('["git rev-parse HEAD^{tree} > ../tree"]')
    testbed.branch("one", {"b.txt": "b\n"})

    entry = testbed.land("one")

    tested = next(testbed.folder.parent.rglob("tree")).read_text()
    assert git(testbed.folder, "rev-parse", f"{entry.commit}^{{tree}}") == tested


def test_rejected_branch_becomes_a_task_with_the_end_of_the_check_output(
    testbed: LandingTestbed,
) -> None:
    check = "test ! -e b.txt || (seq 100000; echo the reason >&2; exit 3)"
    testbed.configure(f'["{check}"]')
    head = testbed.branch("one", {"b.txt": "b\n"}, "Add b")
    before = testbed.tip

    entry = testbed.land("one")

    assert (entry.state, entry.code, testbed.tip) == ("bounced", "CHECK_FAILED", before)
    assert entry.reason == f"{check} fails (exit 3)"
    assert len(entry.output) <= MAX_OUTPUT_CHARS
    assert entry.output.endswith("the reason\n")
    task = get_task(testbed.repo, entry.bounce_task)
    assert task.title.startswith("Fix one:")
    assert "the reason" in task.body
    assert head in task.body
    assert task.next_action == "fix it, commit and land again"
    assert "author=ann" in task.labels
    assert git(testbed.folder, "rev-parse", "one").strip() == head, "nothing that was submitted disappears"


def test_checks_keep_their_caches_and_leave_nothing_else(testbed: LandingTestbed) -> None:
    look = "ls cache left 2>/dev/null | tr '\\\\n' ' ' >> ../seen; echo >> ../seen"
    check = f"{look}; touch cache left; mkdir -p d/.git"
    testbed.configure(f'["{check}"]', files={".gitignore": "cache\n"})
    for name in ("one", "two"):
        testbed.branch(name, {f"{name}.txt": "x\n"})
        assert testbed.land(name).state == "landed"

    assert next(testbed.folder.parent.rglob("seen")).read_text().split("\n") == ["", "cache ", ""]


class FastForwardClock:
    """A clock for whoever limits children: an hour passes as soon as a check gives a sign."""

    sleep = staticmethod(time.sleep)

    def __init__(self, sign: Path) -> None:
        self._sign = sign
        self._ahead = 0.0
        self._is_due = False

    def monotonic(self) -> float:
        if self._is_due:
            self._ahead, self._is_due = self._ahead + 3600, False
        elif self._sign.exists():
            self._sign.unlink()
            self._is_due = True  # at the next look: what was said until now is still read
        return time.monotonic() + self._ahead


@pytest.mark.slow
def test_a_check_that_hangs_is_ended_with_all_it_started(
    testbed: LandingTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.processes.child.time", FastForwardClock(tmp_path / "up"))
    start = "setsid sleep 1000 & echo $! > ../pids; sleep 1000 & echo $! >> ../pids"
    check = f"test -e b.txt || exit 0; {start}; echo hi; touch {tmp_path}/up; sleep 1000"
    testbed.configure(f"[{{ run = '{check}', name = 'hang', limit = '5s' }}]")
    testbed.branch("one", {"b.txt": "b\n"})

    entry = testbed.land("one")

    assert entry.reason == "hang was stopped after 5 s"
    assert "hi" in entry.output
    pids = [int(line) for line in next(testbed.folder.parent.rglob("pids")).read_text().split()]
    assert len(pids) == 2
    assert not any(is_alive(pid) for pid in pids)


def test_a_check_that_leaves_something_running_ends_all_the_same(testbed: LandingTestbed) -> None:
    testbed.configure('["setsid sleep 1000 & echo $! > ../pid"]')
    testbed.branch("one", {"b.txt": "b\n"})
    begun = time.monotonic()

    assert testbed.land("one").state == "landed"

    assert time.monotonic() - begun < 60
    assert not is_alive(int(next(testbed.folder.parent.rglob("pid")).read_text()))


@pytest.mark.slow
def test_a_check_that_prints_without_end_costs_no_memory(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e b.txt || (yes | head -c 200M; echo; echo the end; exit 1)"]')
    testbed.branch("one", {"b.txt": "b\n"})

    entry = testbed.land("one")

    assert len(entry.output) <= MAX_OUTPUT_CHARS
    assert entry.output.endswith("the end\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "named"),
    [
        ("rm a.txt", "a.txt"),
        ("chmod +x a.txt", "a.txt"),
        ("git mv a.txt c.txt", "a.txt, c.txt"),
        ("git -c user.name=x -c user.email=x commit -q --allow-empty -m x", "HEAD"),
    ],
)
def test_a_check_that_changes_tracked_files_is_refused(
    testbed: LandingTestbed, check: str, named: str
) -> None:
    testbed.configure(f"[{{ run = 'test ! -e b.txt || {check}', name = 'meddle' }}]", files={"a.txt": "a\n"})
    testbed.branch("one", {"b.txt": "b\n"})

    entry = testbed.land("one")

    assert (entry.state, entry.reason) == ("bounced", f"meddle changed tracked files: {named}")


def test_files_that_git_always_calls_changed_are_not_blamed_on_a_check(testbed: LandingTestbed) -> None:
    testbed.configure('["touch a.txt; git status --porcelain > ../status"]', files={"a.txt": "a\r\nb\r\n"})
    git(testbed.folder, "config", "core.autocrlf", "false")
    (testbed.folder / ".gitattributes").write_text("*.txt text\n")
    git(testbed.folder, "add", ".gitattributes")
    git(testbed.folder, "commit", "--quiet", "-m", "Line ends")
    git(testbed.folder, "worktree", "add", "--quiet", "-b", "one", "../one")
    (testbed.folder.parent / "one" / "b").write_text("b")
    git(testbed.folder.parent / "one", "add", "b")
    git(testbed.folder.parent / "one", "commit", "--quiet", "-m", "Add b")

    assert testbed.land("one").state == "landed"
    assert next(testbed.folder.parent.rglob("status")).read_text() == " M a.txt\n"


def test_lock_left_by_a_killed_check_is_removed(testbed: LandingTestbed) -> None:
    check = "touch $(git rev-parse --git-dir)/index.lock; kill -9 $$"
    testbed.configure(f"['test ! -e bad || ( {check} )']")
    testbed.branch("one", {"bad": ""})
    assert testbed.land("one").state == "bounced"

    testbed.branch("two", {"b.txt": "b\n"})
    assert testbed.land("two", "bob").state == "landed"


def test_check_runs_without_an_identity_and_in_its_own_repository(
    testbed: LandingTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed.configure('["env > ../environment"]')
    testbed.branch("one", {"b.txt": "b\n"})
    entry = testbed.submit("one")
    for name in ("LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GIT_DIR", str(testbed.folder / ".git"))

    testbed.run()

    assert testbed.reload(entry).state == "landed"
    seen = next(testbed.folder.parent.rglob("environment")).read_text()
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert not names & {"LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE", "GIT_DIR"}


@pytest.mark.promise("landing.never-twice", "The same tree is never tested twice.")
def test_the_same_tree_is_never_tested_twice(testbed: LandingTestbed) -> None:
    testbed.configure('["echo run >> ../runs; test ! -e bad"]')
    testbed.branch("one", {"bad": ""})
    assert testbed.land("one").state == "bounced"
    once = next(testbed.folder.parent.rglob("runs")).read_text().count("run")
    assert (once, testbed.tests) == (2, 2), "the branch, and the target that must not be blamed for it"

    assert testbed.land("one").state == "bounced"

    assert next(testbed.folder.parent.rglob("runs")).read_text().count("run") == once


def test_a_check_that_could_not_run_is_asked_again(testbed: LandingTestbed) -> None:
    testbed.configure('["../tool"]')
    testbed.branch("one", {"b.txt": "b\n"})
    entry = testbed.submit("one")
    stop = testbed.run()
    assert stop is not None
    assert (stop.code, testbed.reload(entry).state) == ("TARGET_RED", "queued"), "it fails on the target, too"

    place = next(path for path in testbed.folder.parent.rglob(".queue-main") if path.is_dir()).parent / "tool"
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)

    assert testbed.run() is None
    assert testbed.reload(entry).state == "landed"


def test_flaky_check_is_run_again_and_reported(testbed: LandingTestbed) -> None:
    check = "echo x >> ../tries; test $(wc -l < ../tries) -gt 1"
    testbed.configure(f"[{{ run = '{check}', name = 'moody', retries = 1 }}]")
    testbed.branch("one", {"b.txt": "b\n"})

    entry = testbed.land("one")

    assert (entry.state, entry.flaky) == ("landed", ["moody"])


def test_a_check_without_retries_fails_at_once(testbed: LandingTestbed) -> None:
    testbed.configure("['echo x >> ../tries; test $(wc -l < ../tries) -gt 1']")
    testbed.branch("one", {"b.txt": "b\n"})

    assert testbed.land("one").state == "bounced"


def test_without_checks_nothing_is_checked_out(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"b.txt": "b\n"})

    assert testbed.land("one").state == "landed"
    assert testbed.tests == 0
    assert not list(testbed.folder.parent.rglob(".queue-main"))


def test_all_checks_must_pass_and_the_first_that_fails_is_named(testbed: LandingTestbed) -> None:
    testbed.configure("['true', { run = 'false', name = 'lint' }, 'touch ../never']")
    testbed.branch("one", {"b.txt": "b\n"})
    entry = testbed.submit("one")

    stop = testbed.run()

    assert stop is not None
    assert stop.message == "main itself fails lint; only a fix lands"
    assert testbed.reload(entry).code == "TARGET_RED"
    assert not list(testbed.folder.parent.rglob("never"))


def test_the_settings_of_the_target_judge_not_those_of_the_branch(testbed: LandingTestbed) -> None:
    testbed.configure("['true']", 'gate = ["bad"]\n')
    text = testbed.read_file("landlane.toml").replace('gate = ["bad"]', "")
    testbed.branch("one", {"bad": "", "landlane.toml": text})

    assert testbed.submit("one").reason == "waits for a person: it changes bad (bad)"


def test_new_checks_apply_to_the_entries_behind_them(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("rule", {"landlane.toml": "[landing]\nchecks = ['test ! -e bad']\n"})
    testbed.branch("bad", {"bad": ""})
    rule = testbed.submit("rule")
    testbed.submit("bad", "bob")
    decide_held_entry(testbed.repo, testbed.agent("pat"), rule.id, is_approved=True)

    testbed.run()

    assert testbed.states() == {"rule": "landed", "bad": "bounced"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[landing\n", "not valid TOML"),
        ("[landing]\nchekcs = []\n", "unknown setting"),
        ("", "has no [landing]"),
    ],
)
def test_a_branch_that_breaks_the_settings_does_not_land(
    testbed: LandingTestbed, text: str, said: str
) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"landlane.toml": text})

    entry = testbed.land("one")

    assert (entry.state, entry.code) == ("bounced", "SETTINGS_BROKEN")
    assert said in entry.reason


def test_with_broken_settings_on_the_target_the_last_valid_ones_hold(testbed: LandingTestbed) -> None:
    testbed.configure("['test ! -e bad']")
    good = (testbed.folder / "landlane.toml").read_text(encoding="utf-8")
    testbed.commit({"landlane.toml": "[landing\n"})
    testbed.branch("bad", {"bad": "x\n"})
    testbed.branch("repair", {"landlane.toml": good})
    bad, repair = testbed.submit("bad"), testbed.submit("repair", "bob")

    assert testbed.run() is None

    assert (testbed.reload(bad).state, testbed.reload(repair).state) == ("bounced", "landed")


def test_settings_that_were_never_valid_stop_the_queue_and_say_so(testbed: LandingTestbed) -> None:
    testbed.commit({"landlane.toml": "[landing\n"})
    testbed.branch("one", {"b.txt": "b\n"})

    with pytest.raises(RepositoryError, match="on main is invalid"):
        testbed.submit("one")


@pytest.mark.slow
def test_a_runner_that_is_asked_to_stop_leaves_no_check_behind(
    testbed: LandingTestbed, tmp_path: Path
) -> None:
    testbed.configure(f"['echo $$ > {tmp_path}/pid; touch {tmp_path}/up; sleep 1000']")
    testbed.branch("one", {"b.txt": "b\n"})
    entry = testbed.submit("one")

    class Stop(Exception):
        pass

    def stop(number: int, _: object) -> None:
        raise Stop

    def ask() -> None:
        wait_until((tmp_path / "up").exists)
        os.kill(os.getpid(), signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, stop)
    try:
        asking = Background(ask)
        with pytest.raises(Stop):
            testbed.run()
        asking.result()
    finally:
        signal.signal(signal.SIGALRM, before)

    assert not is_alive(int((tmp_path / "pid").read_text()))
    assert testbed.reload(entry).state in ("testing", "queued")
    assert os.path.exists(testbed.folder)


@pytest.mark.promise(
    "landing.keeps-renewed-claims", "What an author claims again while its branch waits stays."
)
@pytest.mark.parametrize("is_renewed", [True, False])
def test_a_claim_that_its_author_takes_again_while_the_branch_waits_stays(
    testbed: LandingTestbed, is_renewed: bool
) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"b.txt": "b\n"})
    entry = testbed.submit("one")
    (submitted,) = testbed.repo.store.view(lambda view: claims_of(view, entry.holder))
    wait_until(lambda: testbed.repo.store.view(lambda view: view.now) > submitted.granted_at)
    if is_renewed:
        testbed.claim("ann", "b.txt")

    assert testbed.run() is None

    assert testbed.reload(entry).state == "landed"
    assert testbed.holders() == ({"b.txt": "ann"} if is_renewed else {})

"""Landing one branch: what is tested, where, for how long, and what becomes of red and green."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from landlane.landing.model import MAX_OUTPUT_CHARS
from landlane.tasks.records import get_task
from landlane.testing.repositories import git
from tests.support.landing import Yard
from tests.support.processes import is_alive
from tests.support.sites import Background, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_a_branch_lands_after_its_checks_on_the_merged_tree(yard: Yard) -> None:
    yard.configure('["cat a.txt b.txt >> ../seen"]', files={"a.txt": "old\n"})
    yard.branch("one", {"b.txt": "b\n"})
    yard.commit({"a.txt": "new\n"}, "A person goes on meanwhile")

    entry = yard.land("one")

    assert (entry.state, entry.commit) == ("landed", yard.tip)
    assert yard.at("b.txt") == "b\n"
    seen = next(yard.folder.parent.rglob("seen"))
    assert seen.read_text() == "new\nb\n", "the merged tree, not the branch"
    assert yard.tests == 1
    assert git(yard.folder, "for-each-ref", "refs/landlane/landing") == "", "nothing is left over"


@pytest.mark.promise("landing.tested-tree", "The tree that was tested is exactly the tree that lands.")
def test_what_is_tested_is_what_lands(yard: Yard) -> None:
    yard.configure('["git rev-parse HEAD^{tree} > ../tree"]')
    yard.branch("one", {"b.txt": "b\n"})

    entry = yard.land("one")

    tested = next(yard.folder.parent.rglob("tree")).read_text()
    assert git(yard.folder, "rev-parse", f"{entry.commit}^{{tree}}") == tested


def test_a_red_branch_goes_back_as_a_task_with_the_end_of_what_the_check_said(yard: Yard) -> None:
    check = "test ! -e b.txt || (seq 100000; echo the reason >&2; exit 3)"
    yard.configure(f'["{check}"]')
    head = yard.branch("one", {"b.txt": "b\n"}, "Add b")
    before = yard.tip

    entry = yard.land("one")

    assert (entry.state, entry.code, yard.tip) == ("bounced", "CHECK_FAILED", before)
    assert entry.reason == f"`{check}` ended with 3"
    assert len(entry.output) <= MAX_OUTPUT_CHARS
    assert entry.output.endswith("the reason\n")
    task = get_task(yard.repo, entry.bounce_task)
    assert task.title.startswith("Mend one:")
    assert "the reason" in task.body
    assert head in task.body
    assert task.next_action == "mend it, commit, and land again"
    assert "author=ann" in task.labels
    assert git(yard.folder, "rev-parse", "one").strip() == head, "nothing that was submitted disappears"


def test_checks_keep_their_caches_and_leave_nothing_else(yard: Yard) -> None:
    look = "ls cache left 2>/dev/null | tr '\\\\n' ' ' >> ../seen; echo >> ../seen"
    check = f"{look}; touch cache left; mkdir -p d/.git"
    yard.configure(f'["{check}"]', files={".gitignore": "cache\n"})
    for name in ("one", "two"):
        yard.branch(name, {f"{name}.txt": "x\n"})
        assert yard.land(name).state == "landed"

    assert next(yard.folder.parent.rglob("seen")).read_text().split("\n") == ["", "cache ", ""]


class Impatient:
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
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.processes.child.time", Impatient(tmp_path / "up"))
    start = "setsid sleep 1000 & echo $! > ../pids; sleep 1000 & echo $! >> ../pids"
    check = f"test -e b.txt || exit 0; {start}; echo hi; touch {tmp_path}/up; sleep 1000"
    yard.configure(f"[{{ run = '{check}', name = 'hang', limit = '5s' }}]")
    yard.branch("one", {"b.txt": "b\n"})

    entry = yard.land("one")

    assert entry.reason == "`hang` took longer than 5s and was ended"
    assert "hi" in entry.output
    pids = [int(line) for line in next(yard.folder.parent.rglob("pids")).read_text().split()]
    assert len(pids) == 2
    assert not any(is_alive(pid) for pid in pids)


def test_a_check_that_leaves_something_running_ends_all_the_same(yard: Yard) -> None:
    yard.configure('["setsid sleep 1000 & echo $! > ../pid"]')
    yard.branch("one", {"b.txt": "b\n"})
    begun = time.monotonic()

    assert yard.land("one").state == "landed"

    assert time.monotonic() - begun < 60
    assert not is_alive(int(next(yard.folder.parent.rglob("pid")).read_text()))


@pytest.mark.slow
def test_a_check_that_prints_without_end_costs_no_memory(yard: Yard) -> None:
    yard.configure('["test ! -e b.txt || (yes | head -c 200M; echo; echo the end; exit 1)"]')
    yard.branch("one", {"b.txt": "b\n"})

    entry = yard.land("one")

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
def test_a_check_that_changes_tracked_files_is_refused(yard: Yard, check: str, named: str) -> None:
    yard.configure(f"[{{ run = 'test ! -e b.txt || {check}', name = 'meddle' }}]", files={"a.txt": "a\n"})
    yard.branch("one", {"b.txt": "b\n"})

    entry = yard.land("one")

    assert (entry.state, entry.reason) == ("bounced", f"`meddle` changed tracked files: {named}")


def test_files_that_git_always_calls_changed_are_not_blamed_on_a_check(yard: Yard) -> None:
    yard.configure('["touch a.txt; git status --porcelain > ../status"]', files={"a.txt": "a\r\nb\r\n"})
    git(yard.folder, "config", "core.autocrlf", "false")
    (yard.folder / ".gitattributes").write_text("*.txt text\n")
    git(yard.folder, "add", ".gitattributes")
    git(yard.folder, "commit", "--quiet", "-m", "Line ends")
    git(yard.folder, "worktree", "add", "--quiet", "-b", "one", "../one")
    (yard.folder.parent / "one" / "b").write_text("b")
    git(yard.folder.parent / "one", "add", "b")
    git(yard.folder.parent / "one", "commit", "--quiet", "-m", "Add b")

    assert yard.land("one").state == "landed"
    assert next(yard.folder.parent.rglob("status")).read_text() == " M a.txt\n"


def test_a_lock_that_a_killed_check_left_stops_nobody(yard: Yard) -> None:
    check = "touch $(git rev-parse --git-dir)/index.lock; kill -9 $$"
    yard.configure(f"['test ! -e bad || ( {check} )']")
    yard.branch("one", {"bad": ""})
    assert yard.land("one").state == "bounced"

    yard.branch("two", {"b.txt": "b\n"})
    assert yard.land("two", "bob").state == "landed"


def test_a_check_runs_for_nobody_and_in_no_other_repository(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.configure('["env > ../environment"]')
    yard.branch("one", {"b.txt": "b\n"})
    entry = yard.submit("one")
    for name in ("LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GIT_DIR", str(yard.folder / ".git"))

    yard.run()

    assert yard.look(entry).state == "landed"
    seen = next(yard.folder.parent.rglob("environment")).read_text()
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert not names & {"LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE", "GIT_DIR"}


@pytest.mark.promise("landing.never-twice", "The same tree is never tested twice.")
def test_the_same_tree_is_never_tested_twice(yard: Yard) -> None:
    yard.configure('["echo run >> ../runs; test ! -e bad"]')
    yard.branch("one", {"bad": ""})
    assert yard.land("one").state == "bounced"
    once = next(yard.folder.parent.rglob("runs")).read_text().count("run")
    assert (once, yard.tests) == (2, 2), "the branch, and the target that must not be blamed for it"

    assert yard.land("one").state == "bounced"

    assert next(yard.folder.parent.rglob("runs")).read_text().count("run") == once


def test_a_check_that_could_not_run_is_asked_again(yard: Yard) -> None:
    yard.configure('["../tool"]')
    yard.branch("one", {"b.txt": "b\n"})
    entry = yard.submit("one")
    stop = yard.run()
    assert stop is not None
    assert (stop.code, yard.look(entry).state) == ("TARGET_RED", "queued"), "it fails on the target, too"

    place = next(path for path in yard.folder.parent.rglob(".queue-main") if path.is_dir()).parent / "tool"
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)

    assert yard.run() is None
    assert yard.look(entry).state == "landed"


def test_a_flaky_check_is_run_again_and_told_of(yard: Yard) -> None:
    check = "echo x >> ../tries; test $(wc -l < ../tries) -gt 1"
    yard.configure(f"[{{ run = '{check}', name = 'moody', retries = 1 }}]")
    yard.branch("one", {"b.txt": "b\n"})

    entry = yard.land("one")

    assert (entry.state, entry.flaky) == ("landed", ["moody"])


def test_a_check_without_retries_fails_at_once(yard: Yard) -> None:
    yard.configure("['echo x >> ../tries; test $(wc -l < ../tries) -gt 1']")
    yard.branch("one", {"b.txt": "b\n"})

    assert yard.land("one").state == "bounced"


def test_without_checks_nothing_is_checked_out(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"b.txt": "b\n"})

    assert yard.land("one").state == "landed"
    assert yard.tests == 0
    assert not list(yard.folder.parent.rglob(".queue-main"))


def test_all_checks_must_pass_and_the_first_that_fails_is_named(yard: Yard) -> None:
    yard.configure("['true', { run = 'false', name = 'lint' }, 'touch ../never']")
    yard.branch("one", {"b.txt": "b\n"})
    entry = yard.submit("one")

    stop = yard.run()

    assert stop is not None
    assert stop.message == "main itself is red: `lint` ended with 1"
    assert yard.look(entry).code == "TARGET_RED"
    assert not list(yard.folder.parent.rglob("never"))


def test_the_settings_of_the_target_judge_not_those_of_the_branch(yard: Yard) -> None:
    yard.configure('["test ! -e bad"]')
    yard.branch("one", {"bad": "", "landlane.toml": "[landing]\nchecks = []\n"})

    assert yard.land("one").reason == "`test ! -e bad` ended with 1"


def test_new_checks_hold_for_whatever_comes_behind_them(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("rule", {"landlane.toml": "[landing]\nchecks = ['test ! -e bad']\n"})
    yard.branch("bad", {"bad": ""})
    yard.submit("rule")
    yard.submit("bad", "bob")

    yard.run()

    assert yard.states() == {"rule": "landed", "bad": "bounced"}


@pytest.mark.parametrize(
    ("text", "said"),
    [("[landing\n", "not valid TOML"), ("[landing]\nchekcs = []\n", "unknown key"), ("", "does not say")],
)
def test_a_branch_that_breaks_the_settings_does_not_land(yard: Yard, text: str, said: str) -> None:
    yard.configure("[]")
    yard.branch("one", {"landlane.toml": text})

    entry = yard.land("one")

    assert (entry.state, entry.code) == ("bounced", "SETTINGS_BROKEN")
    assert said in entry.reason


def test_broken_settings_on_the_target_stop_the_queue_and_say_so(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"b.txt": "b\n"})
    entry = yard.submit("one")
    repo = yard.repo
    yard.commit({"landlane.toml": "[landing\n"})
    yard._repo = repo

    stop = yard.run()

    assert stop is not None
    assert (stop.code, yard.look(entry).state) == ("SETTINGS_BROKEN", "queued")
    assert "landlane.toml on main cannot be used" in stop.message


@pytest.mark.slow
def test_a_runner_that_is_asked_to_stop_leaves_no_check_behind(yard: Yard, tmp_path: Path) -> None:
    yard.configure(f"['echo $$ > {tmp_path}/pid; touch {tmp_path}/up; sleep 1000']")
    yard.branch("one", {"b.txt": "b\n"})
    entry = yard.submit("one")

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
            yard.run()
        asking.result()
    finally:
        signal.signal(signal.SIGALRM, before)

    assert not is_alive(int((tmp_path / "pid").read_text()))
    assert yard.look(entry).state in ("testing", "queued")
    assert os.path.exists(yard.folder)

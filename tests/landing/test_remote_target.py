"""Landing on the branch of a remote: gone, protected, slow, pushed to by others, rewound; nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from landlane.git.target import find_target
from landlane.landing.decide import resume_queue
from landlane.landing.queue import queue_lease_name
from landlane.landing.records import get_queue, list_landings
from tests.support.git import git_line
from tests.support.landing_crashes import CrashTestbed, join, kill_at, leftover_refs, run_queue
from tests.support.processes import fork, wait_for_exit
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.landing.model import Landing
    from landlane.repository import Repository

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.slow]

KILLS = int(os.environ.get("LANDLANE_LANDING_KILLS", "2"))  # at random moments; 100 and more in longer runs
LEASE_MS = 2000


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return tmp_path / "remote.git"


@pytest.fixture
def testbed(repository: Path, remote: Path) -> CrashTestbed:
    made = CrashTestbed(repository, remote=remote)
    git_line(
        remote, "config", "receive.denyNonFastForwards", "true"
    )  # no push of ours may be in need of more
    return made


def enter(testbed: CrashTestbed, *names: str) -> list[Landing]:
    repo = testbed.open()
    try:
        return [testbed.submit(repo, name, {f"{name}.txt": name}) for name in names]
    finally:
        repo.close()


def check_history(testbed: CrashTestbed, remote: Path, extra: int = 0) -> None:
    """The remote has exactly what the queue says, each once; and what it has was tested."""
    repo = testbed.open()
    landed = [one for one in list_landings(repo, ()) if one.state == "landed"]
    assert not get_queue(repo, "main").move
    repo.close()
    lines = git_line(remote, "log", "--first-parent", "--format=%H %P", f"{testbed.start}..main").splitlines()
    merged = {line.split()[0]: line.split()[2] for line in lines if len(line.split()) == 3}
    assert merged == {one.commit: one.head for one in landed}
    assert len(lines) == len(merged) + extra
    assert git_line(remote, "rev-parse", "main^{tree}") in testbed.tested
    assert leftover_refs(testbed.repository) == []


def hook(folder: Path, name: str, script: str) -> Path:
    path = folder / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_landing_is_pushed_and_the_checkout_here_follows(testbed: CrashTestbed, remote: Path) -> None:
    enter(testbed, "one", "two")
    assert run_queue(testbed.repository) == ""
    check_history(testbed, remote)
    assert git_line(testbed.repository, "rev-parse", "HEAD") == git_line(remote, "rev-parse", "main")
    assert git_line(testbed.repository, "status", "--porcelain") == ""
    assert (testbed.repository / "two.txt").read_text() == "two"


def test_a_branch_that_is_checked_out_nowhere_follows_too(testbed: CrashTestbed, remote: Path) -> None:
    git_line(testbed.repository, "switch", "--quiet", "-c", "elsewhere")
    with (testbed.repository / "landlane.toml").open("a") as file:
        file.write('target = "main"\n')
    git_line(testbed.repository, "commit", "--quiet", "-am", "Say where to")
    enter(testbed, "one")
    assert run_queue(testbed.repository) == ""
    assert git_line(testbed.repository, "rev-parse", "main") == git_line(remote, "rev-parse", "main")
    assert git_line(testbed.repository, "symbolic-ref", "--short", "HEAD") == "elsewhere"


def test_entries_wait_for_an_unreachable_remote(testbed: CrashTestbed, remote: Path) -> None:
    (landing,) = enter(testbed, "one")
    remote.rename(remote.with_name("away"))
    assert run_queue(testbed.repository) == "REMOTE_GONE"
    assert testbed.reload(landing).state == "queued"
    remote.with_name("away").rename(remote)
    assert run_queue(testbed.repository) == ""
    check_history(testbed, remote)


def test_interrupted_push_is_settled_when_the_remote_is_back(testbed: CrashTestbed, remote: Path) -> None:
    (landing,) = enter(testbed, "one")
    away = remote.with_name("away")

    def on_step(step: str) -> None:
        if step == "written":
            remote.rename(away)

    assert run_queue(testbed.repository, on_step) == "REMOTE_GONE"
    assert testbed.reload(landing).state == "queued"
    assert run_queue(testbed.repository) == "REMOTE_GONE"
    away.rename(remote)
    assert run_queue(testbed.repository) == ""
    check_history(testbed, remote)


@pytest.mark.parametrize("name", ["pre-receive", "update"])
def test_protected_branch_is_reported_and_nothing_is_lost(
    testbed: CrashTestbed, remote: Path, name: str
) -> None:
    (landing,) = enter(testbed, "one")
    refusal = hook(remote, name, "echo 'main is protected' >&2; exit 1")
    assert run_queue(testbed.repository) == "TARGET_REFUSED"
    now = testbed.reload(landing)
    assert (now.state, now.code) == ("queued", "TARGET_REFUSED")
    assert "main is protected" in now.reason
    assert git_line(remote, "rev-parse", "main") == testbed.start
    refusal.unlink()
    assert run_queue(testbed.repository) == ""
    check_history(testbed, remote)


def test_a_hook_of_the_user_that_fails_is_quoted(testbed: CrashTestbed, remote: Path) -> None:
    (landing,) = enter(testbed, "one")
    refusal = hook(testbed.repository / ".git", "pre-push", "echo 'not on a Friday' >&2; exit 1")
    assert run_queue(testbed.repository) == "TARGET_REFUSED"
    assert "not on a Friday" in testbed.reload(landing).reason
    refusal.unlink()
    assert run_queue(testbed.repository) == ""
    check_history(testbed, remote)


class Slow:
    """A remote whose first push waits, when everything has arrived, until it is let go on."""

    def __init__(self, remote: Path) -> None:
        self._gate = remote.with_name("gate")
        self.begun = remote.with_name("begun")
        os.mkfifo(self._gate)
        hook(remote, "pre-receive", f"mkdir {self.begun} 2>/dev/null || exit 0\nread line < {self._gate}")

    def delete_entry_ref(self) -> None:
        self._gate.write_text("go\n")


def test_a_push_that_arrives_after_its_runner_was_killed_has_landed(
    testbed: CrashTestbed, remote: Path
) -> None:
    (landing,) = enter(testbed, "one")
    slow = Slow(remote)
    pid = fork(lambda: run_queue(testbed.repository))
    wait_until(slow.begun.exists)
    os.kill(pid, signal.SIGKILL)
    wait_for_exit(pid)
    slow.delete_entry_ref()
    wait_until(lambda: git_line(remote, "rev-parse", "main") != testbed.start)
    assert run_queue(testbed.repository) == ""
    assert testbed.reload(landing).commit == git_line(remote, "rev-parse", "main")
    check_history(testbed, remote)


def test_a_push_that_arrives_after_it_was_given_up_has_landed_once(
    testbed: CrashTestbed, remote: Path
) -> None:
    (landing,) = enter(testbed, "one")
    slow = Slow(remote)
    pid = fork(lambda: run_queue(testbed.repository))
    wait_until(slow.begun.exists)
    os.kill(pid, signal.SIGKILL)
    wait_for_exit(pid)

    def on_step(step: str) -> None:
        if step == "recovered":  # the remote said that nothing was moved; only now it is
            slow.delete_entry_ref()
            wait_until(lambda: git_line(remote, "rev-parse", "main") != testbed.start)

    assert run_queue(testbed.repository, on_step) == ""
    assert testbed.reload(landing).commit == git_line(remote, "rev-parse", "main")
    check_history(testbed, remote)


def test_late_push_moves_nothing(testbed: CrashTestbed, remote: Path) -> None:
    enter(testbed, "one")
    slow = Slow(remote)
    pid = fork(lambda: run_queue(testbed.repository))
    wait_until(slow.begun.exists)
    os.kill(pid, signal.SIGKILL)
    wait_for_exit(pid)
    assert run_queue(testbed.repository) == ""
    tip = git_line(remote, "rev-parse", "main")
    slow.delete_entry_ref()
    enter(testbed, "two")
    assert run_queue(testbed.repository) == ""
    git_line(remote, "merge-base", "--is-ancestor", tip, "main")
    check_history(testbed, remote)


def lease_end(repo: Repository) -> int:
    """The end of the lease of whoever runs the queue."""
    row = repo.store.view(lambda snapshot: snapshot.one("runner_lock", name=queue_lease_name("main")))
    assert row is not None
    return int(row["until"])


def test_a_slow_push_keeps_its_lease(testbed: CrashTestbed, remote: Path) -> None:
    enter(testbed, "one")
    slow = Slow(remote)
    pid = fork(lambda: run_queue(testbed.repository, lease_ms=LEASE_MS))
    wait_until(slow.begun.exists)
    repo = testbed.open()
    now = repo.store.view(lambda snapshot: snapshot.now)
    # The lease that it had now has ended by the time it is renewed so far.
    wait_until(lambda: lease_end(repo) > now + 2 * LEASE_MS)
    repo.close()
    assert run_queue(testbed.repository) == "busy"
    slow.delete_entry_ref()
    assert wait_for_exit(pid) == 0
    check_history(testbed, remote)


def test_entry_is_merged_and_tested_again_after_a_person_pushed(testbed: CrashTestbed, remote: Path) -> None:
    (landing,) = enter(testbed, "one")
    person = remote.with_name("person")
    git_line(remote, "clone", "--quiet", str(remote), str(person))
    pushes = iter(range(2))

    def on_step(step: str) -> None:
        if step == "written" and next(pushes, None) is not None:
            name = f"by-hand-{time.monotonic_ns()}"
            (person / name).write_text("by hand")
            git_line(person, "add", ".")
            git_line(person, "commit", "--quiet", "-m", name)
            git_line(person, "push", "--quiet")

    assert run_queue(testbed.repository, on_step) == ""
    assert testbed.reload(landing).state == "landed"
    check_history(testbed, remote, extra=2)


def test_clones_that_share_a_file_land_for_each_other(
    testbed: CrashTestbed, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDLANE_STORE", str(tmp_path / "store.db"))
    other = tmp_path / "other"
    git_line(remote, "clone", "--quiet", str(remote), str(other))
    (landing,) = enter(testbed, "one")
    known = testbed.repository / ".git" / "landlane" / "repository"
    (other / ".git" / "landlane").mkdir()
    (other / ".git" / "landlane" / "repository").write_text(known.read_text())
    assert run_queue(other) == ""
    assert testbed.reload(landing).state == "landed"
    assert run_queue(testbed.repository) == ""
    check_history(testbed, remote)


def test_clones_without_a_common_remote_get_an_error(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDLANE_STORE", str(tmp_path / "store.db"))
    lonely = CrashTestbed(repository)
    other = tmp_path / "other"
    git_line(repository, "clone", "--quiet", str(repository), str(other))
    git_line(other, "remote", "remove", "origin")
    enter(lonely, "one")
    assert run_queue(repository) == ""
    (other / ".git" / "landlane").mkdir()
    (other / ".git" / "landlane" / "repository").write_text(
        (repository / ".git" / "landlane" / "repository").read_text()
    )
    assert run_queue(other) == "NO_SHARED_TARGET"


def test_a_rewound_branch_pauses_the_queue_until_a_person_has_looked(
    testbed: CrashTestbed, remote: Path
) -> None:
    enter(testbed, "one")
    assert run_queue(testbed.repository) == ""
    (landing,) = enter(testbed, "two")
    git_line(remote, "update-ref", "refs/heads/main", testbed.start)
    for _ in range(2):
        assert run_queue(testbed.repository) == "QUEUE_PAUSED"
        assert git_line(remote, "rev-parse", "main") == testbed.start
        assert testbed.reload(landing).state == "queued"
    repo = testbed.open()
    resume_queue(repo.require_git(), join(repo, "ann"), "it was meant")
    repo.close()
    assert run_queue(testbed.repository) == ""
    assert testbed.reload(landing).commit == git_line(remote, "rev-parse", "main")


@pytest.mark.parametrize("how", ["changed", "ahead"])
def test_a_checkout_with_something_of_its_own_is_left_alone_with_a_note(
    testbed: CrashTestbed, remote: Path, how: str
) -> None:
    (landing,) = enter(testbed, "one")
    readme = testbed.repository / "README.md"
    readme.write_text("of my own\n")
    if how == "ahead":
        git_line(testbed.repository, "commit", "--quiet", "-am", "Of my own")
    before = git_line(testbed.repository, "rev-parse", "HEAD")
    assert run_queue(testbed.repository) == ""
    now = testbed.reload(landing)
    assert now.commit == git_line(remote, "rev-parse", "main")
    assert any("left alone" in note for note in now.notes), now.notes
    assert git_line(testbed.repository, "rev-parse", "HEAD") == before
    assert git_line(testbed.repository, "symbolic-ref", "--short", "HEAD") == "main"
    assert readme.read_text() == "of my own\n"


def test_a_file_in_no_commit_is_not_replaced_by_a_folder(testbed: CrashTestbed, remote: Path) -> None:
    repo = testbed.open()
    landing = testbed.submit(repo, "one", {"notes/b.md": "theirs"})
    repo.close()
    (testbed.repository / "notes").write_text("mine")

    assert run_queue(testbed.repository) == ""

    now = testbed.reload(landing)
    assert now.commit == git_line(remote, "rev-parse", "main")
    assert any("notes lies there" in note for note in now.notes), now.notes
    assert (testbed.repository / "notes").read_text() == "mine"


@pytest.mark.parametrize("step", ["written", "moved", "forwarded", "landed"])
def test_a_runner_killed_around_the_push_is_made_up_for(
    testbed: CrashTestbed, remote: Path, step: str
) -> None:
    enter(testbed, "one", "two")
    assert wait_for_exit(fork(lambda: run_queue(testbed.repository, kill_at(step, 1)))) == -signal.SIGKILL
    assert run_queue(testbed.repository) == ""
    check_history(testbed, remote)
    assert git_line(testbed.repository, "rev-parse", "HEAD") == git_line(remote, "rev-parse", "main")
    assert git_line(testbed.repository, "status", "--porcelain") == ""


def test_target_agrees_with_the_queue_after_a_runner_is_killed_at_random_moments(
    testbed: CrashTestbed, remote: Path
) -> None:
    seed = int(os.environ.get("LANDLANE_SEED", "") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    enter(testbed, "first")
    begun = time.monotonic()
    assert wait_for_exit(fork(lambda: run_queue(testbed.repository))) == 0
    longest = 1.2 * (time.monotonic() - begun)  # most of the moments are before its end, on any machine
    kills = number = 0
    while kills < KILLS:
        number += 1
        enter(testbed, f"a{number}", f"b{number}")
        for _ in range(chance.randint(1, 3)):
            pid = fork(lambda: run_queue(testbed.repository))
            end_at = time.monotonic() + chance.uniform(0, longest)
            wait_until(lambda at=end_at: time.monotonic() > at)
            kill = os.killpg if chance.random() < 0.5 else os.kill
            try:
                kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(pid, signal.SIGKILL)  # it has not made its own group yet
            kills += wait_for_exit(pid) == -signal.SIGKILL
        assert run_queue(testbed.repository) == "", f"seed {seed}"
        check_history(testbed, remote)
        assert git_line(testbed.repository, "rev-parse", "HEAD") == git_line(remote, "rev-parse", "main")
        assert git_line(testbed.repository, "status", "--porcelain") == ""


def test_a_checkout_that_a_killed_git_left_half_way_is_brought_to_its_end(
    testbed: CrashTestbed, remote: Path
) -> None:
    from landlane.landing.after_landing import forward_checkouts

    enter(testbed, "one", "two")
    repo = testbed.open()
    target = find_target(repo.require_git().home, repo.settings)
    assert wait_for_exit(fork(lambda: run_queue(testbed.repository, kill_at("moved", 1)))) == -signal.SIGKILL
    after = git_line(remote, "rev-parse", "main")
    (testbed.repository / "one.txt").write_text("one")  # as far as it came
    assert forward_checkouts(repo.require_git().home, target, testbed.start, after) == []
    repo.close()
    assert git_line(testbed.repository, "rev-parse", "HEAD") == after
    assert git_line(testbed.repository, "status", "--porcelain") == ""

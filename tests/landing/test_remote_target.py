"""Landing on the branch of a remote: gone, protected, slow, pushed to by others, rewound; nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from landlane.git.target import find_target
from landlane.landing.queue import queue_lease_name, resume_queue
from landlane.landing.records import get_queue, list_landings
from tests.support.git import git_line
from tests.support.killing import Yard, fork, join, kill_at, leftover_refs, run_queue, wait_for
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
def yard(repository: Path, remote: Path) -> Yard:
    made = Yard(repository, remote=remote)
    git_line(
        remote, "config", "receive.denyNonFastForwards", "true"
    )  # no push of ours may be in need of more
    return made


def enter(yard: Yard, *names: str) -> list[Landing]:
    repo = yard.open()
    try:
        return [yard.enter(repo, name, {f"{name}.txt": name}) for name in names]
    finally:
        repo.close()


def check_history(yard: Yard, remote: Path, extra: int = 0) -> None:
    """The remote has exactly what the queue says, each once; and what it has was tested."""
    repo = yard.open()
    landed = [one for one in list_landings(repo, ()) if one.state == "landed"]
    assert not get_queue(repo, "main").move
    repo.close()
    lines = git_line(remote, "log", "--first-parent", "--format=%H %P", f"{yard.start}..main").splitlines()
    merged = {line.split()[0]: line.split()[2] for line in lines if len(line.split()) == 3}
    assert merged == {one.commit: one.head for one in landed}
    assert len(lines) == len(merged) + extra
    assert git_line(remote, "rev-parse", "main^{tree}") in yard.tested
    assert leftover_refs(yard.repository) == []


def hook(folder: Path, name: str, script: str) -> Path:
    path = folder / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_landing_is_pushed_and_the_checkout_here_follows(yard: Yard, remote: Path) -> None:
    enter(yard, "one", "two")
    assert run_queue(yard.repository) == ""
    check_history(yard, remote)
    assert git_line(yard.repository, "rev-parse", "HEAD") == git_line(remote, "rev-parse", "main")
    assert git_line(yard.repository, "status", "--porcelain") == ""
    assert (yard.repository / "two.txt").read_text() == "two"


def test_a_branch_that_is_checked_out_nowhere_follows_too(yard: Yard, remote: Path) -> None:
    git_line(yard.repository, "switch", "--quiet", "-c", "elsewhere")
    with (yard.repository / "landlane.toml").open("a") as file:
        file.write('target = "main"\n')
    git_line(yard.repository, "commit", "--quiet", "-am", "Say where to")
    enter(yard, "one")
    assert run_queue(yard.repository) == ""
    assert git_line(yard.repository, "rev-parse", "main") == git_line(remote, "rev-parse", "main")
    assert git_line(yard.repository, "symbolic-ref", "--short", "HEAD") == "elsewhere"


def test_a_remote_that_is_gone_is_named_and_the_entries_wait_for_it(yard: Yard, remote: Path) -> None:
    (landing,) = enter(yard, "one")
    remote.rename(remote.with_name("away"))
    assert run_queue(yard.repository) == "REMOTE_GONE"
    assert yard.look(landing).state == "queued"
    remote.with_name("away").rename(remote)
    assert run_queue(yard.repository) == ""
    check_history(yard, remote)


def test_a_remote_that_goes_during_the_push_is_asked_when_it_is_back(yard: Yard, remote: Path) -> None:
    (landing,) = enter(yard, "one")
    away = remote.with_name("away")

    def on_step(step: str) -> None:
        if step == "written":
            remote.rename(away)

    assert run_queue(yard.repository, on_step) == "REMOTE_GONE"
    assert yard.look(landing).state == "queued"
    assert run_queue(yard.repository) == "REMOTE_GONE"
    away.rename(remote)
    assert run_queue(yard.repository) == ""
    check_history(yard, remote)


@pytest.mark.parametrize("name", ["pre-receive", "update"])
def test_a_protected_branch_is_told_and_nothing_is_lost(yard: Yard, remote: Path, name: str) -> None:
    (landing,) = enter(yard, "one")
    refusal = hook(remote, name, "echo 'main is protected' >&2; exit 1")
    assert run_queue(yard.repository) == "TARGET_REFUSED"
    now = yard.look(landing)
    assert (now.state, now.code) == ("queued", "TARGET_REFUSED")
    assert "main is protected" in now.reason
    assert git_line(remote, "rev-parse", "main") == yard.start
    refusal.unlink()
    assert run_queue(yard.repository) == ""
    check_history(yard, remote)


def test_a_hook_of_the_user_that_fails_is_quoted(yard: Yard, remote: Path) -> None:
    (landing,) = enter(yard, "one")
    refusal = hook(yard.repository / ".git", "pre-push", "echo 'not on a Friday' >&2; exit 1")
    assert run_queue(yard.repository) == "TARGET_REFUSED"
    assert "not on a Friday" in yard.look(landing).reason
    refusal.unlink()
    assert run_queue(yard.repository) == ""
    check_history(yard, remote)


class Slow:
    """A remote whose first push waits, when everything has arrived, until it is let go on."""

    def __init__(self, remote: Path) -> None:
        self._gate = remote.with_name("gate")
        self.begun = remote.with_name("begun")
        os.mkfifo(self._gate)
        hook(remote, "pre-receive", f"mkdir {self.begun} 2>/dev/null || exit 0\nread line < {self._gate}")

    def delete_entry_ref(self) -> None:
        self._gate.write_text("go\n")


def test_a_push_that_arrives_after_its_runner_was_killed_has_landed(yard: Yard, remote: Path) -> None:
    (landing,) = enter(yard, "one")
    slow = Slow(remote)
    pid = fork(lambda: run_queue(yard.repository))
    wait_until(slow.begun.exists)
    os.kill(pid, signal.SIGKILL)
    wait_for(pid)
    slow.delete_entry_ref()
    wait_until(lambda: git_line(remote, "rev-parse", "main") != yard.start)
    assert run_queue(yard.repository) == ""
    assert yard.look(landing).commit == git_line(remote, "rev-parse", "main")
    check_history(yard, remote)


def test_a_push_that_arrives_after_it_was_given_up_has_landed_once(yard: Yard, remote: Path) -> None:
    (landing,) = enter(yard, "one")
    slow = Slow(remote)
    pid = fork(lambda: run_queue(yard.repository))
    wait_until(slow.begun.exists)
    os.kill(pid, signal.SIGKILL)
    wait_for(pid)

    def on_step(step: str) -> None:
        if step == "recovered":  # the remote said that nothing was moved; only now it is
            slow.delete_entry_ref()
            wait_until(lambda: git_line(remote, "rev-parse", "main") != yard.start)

    assert run_queue(yard.repository, on_step) == ""
    assert yard.look(landing).commit == git_line(remote, "rev-parse", "main")
    check_history(yard, remote)


def test_a_push_that_comes_too_late_moves_nothing(yard: Yard, remote: Path) -> None:
    enter(yard, "one")
    slow = Slow(remote)
    pid = fork(lambda: run_queue(yard.repository))
    wait_until(slow.begun.exists)
    os.kill(pid, signal.SIGKILL)
    wait_for(pid)
    assert run_queue(yard.repository) == ""
    tip = git_line(remote, "rev-parse", "main")
    slow.delete_entry_ref()
    enter(yard, "two")
    assert run_queue(yard.repository) == ""
    git_line(remote, "merge-base", "--is-ancestor", tip, "main")
    check_history(yard, remote)


def lease_end(repo: Repository) -> int:
    """The end of the lease of whoever runs the queue."""
    row = repo.store.view(lambda snapshot: snapshot.one("runner_lock", name=queue_lease_name("main")))
    assert row is not None
    return int(row["until"])


def test_a_slow_push_keeps_its_lease(yard: Yard, remote: Path) -> None:
    enter(yard, "one")
    slow = Slow(remote)
    pid = fork(lambda: run_queue(yard.repository, lease_ms=LEASE_MS))
    wait_until(slow.begun.exists)
    repo = yard.open()
    now = repo.store.view(lambda snapshot: snapshot.now)
    # The lease that it had now has ended by the time it is renewed so far.
    wait_until(lambda: lease_end(repo) > now + 2 * LEASE_MS)
    repo.close()
    assert run_queue(yard.repository) == "busy"
    slow.delete_entry_ref()
    assert wait_for(pid) == 0
    check_history(yard, remote)


def test_what_a_person_pushed_meanwhile_is_merged_and_tested_again(yard: Yard, remote: Path) -> None:
    (landing,) = enter(yard, "one")
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

    assert run_queue(yard.repository, on_step) == ""
    assert yard.look(landing).state == "landed"
    check_history(yard, remote, extra=2)


def test_clones_that_share_a_file_land_for_each_other(
    yard: Yard, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDLANE_STORE", str(tmp_path / "store.db"))
    other = tmp_path / "other"
    git_line(remote, "clone", "--quiet", str(remote), str(other))
    (landing,) = enter(yard, "one")
    known = yard.repository / ".git" / "landlane" / "repository"
    (other / ".git" / "landlane").mkdir()
    (other / ".git" / "landlane" / "repository").write_text(known.read_text())
    assert run_queue(other) == ""
    assert yard.look(landing).state == "landed"
    assert run_queue(yard.repository) == ""
    check_history(yard, remote)


def test_clones_without_a_common_remote_are_told_so(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDLANE_STORE", str(tmp_path / "store.db"))
    lonely = Yard(repository)
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


def test_a_rewound_branch_pauses_the_queue_until_a_person_has_looked(yard: Yard, remote: Path) -> None:
    enter(yard, "one")
    assert run_queue(yard.repository) == ""
    (landing,) = enter(yard, "two")
    git_line(remote, "update-ref", "refs/heads/main", yard.start)
    for _ in range(2):
        assert run_queue(yard.repository) == "QUEUE_PAUSED"
        assert git_line(remote, "rev-parse", "main") == yard.start
        assert yard.look(landing).state == "queued"
    repo = yard.open()
    resume_queue(repo.require_git(), join(repo, "ann"), "it was meant")
    repo.close()
    assert run_queue(yard.repository) == ""
    assert yard.look(landing).commit == git_line(remote, "rev-parse", "main")


@pytest.mark.parametrize("how", ["changed", "ahead"])
def test_a_checkout_with_something_of_its_own_is_left_alone_with_a_note(
    yard: Yard, remote: Path, how: str
) -> None:
    (landing,) = enter(yard, "one")
    readme = yard.repository / "README.md"
    readme.write_text("of my own\n")
    if how == "ahead":
        git_line(yard.repository, "commit", "--quiet", "-am", "Of my own")
    before = git_line(yard.repository, "rev-parse", "HEAD")
    assert run_queue(yard.repository) == ""
    now = yard.look(landing)
    assert now.commit == git_line(remote, "rev-parse", "main")
    assert any("left alone" in note for note in now.notes), now.notes
    assert git_line(yard.repository, "rev-parse", "HEAD") == before
    assert git_line(yard.repository, "symbolic-ref", "--short", "HEAD") == "main"
    assert readme.read_text() == "of my own\n"


def test_a_file_in_no_commit_is_not_replaced_by_a_folder(yard: Yard, remote: Path) -> None:
    repo = yard.open()
    landing = yard.enter(repo, "one", {"notes/b.md": "theirs"})
    repo.close()
    (yard.repository / "notes").write_text("mine")

    assert run_queue(yard.repository) == ""

    now = yard.look(landing)
    assert now.commit == git_line(remote, "rev-parse", "main")
    assert any("notes lies there" in note for note in now.notes), now.notes
    assert (yard.repository / "notes").read_text() == "mine"


@pytest.mark.parametrize("step", ["written", "moved", "forwarded", "landed"])
def test_a_runner_killed_around_the_push_is_made_up_for(yard: Yard, remote: Path, step: str) -> None:
    enter(yard, "one", "two")
    assert wait_for(fork(lambda: run_queue(yard.repository, kill_at(step, 1)))) == -signal.SIGKILL
    assert run_queue(yard.repository) == ""
    check_history(yard, remote)
    assert git_line(yard.repository, "rev-parse", "HEAD") == git_line(remote, "rev-parse", "main")
    assert git_line(yard.repository, "status", "--porcelain") == ""


def test_a_runner_killed_at_random_moments_leaves_exactly_what_the_queue_says(
    yard: Yard, remote: Path
) -> None:
    seed = int(os.environ.get("LANDLANE_SEED", "") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    enter(yard, "first")
    begun = time.monotonic()
    assert wait_for(fork(lambda: run_queue(yard.repository))) == 0
    longest = 1.2 * (time.monotonic() - begun)  # most of the moments are before its end, on any machine
    kills = number = 0
    while kills < KILLS:
        number += 1
        enter(yard, f"a{number}", f"b{number}")
        for _ in range(chance.randint(1, 3)):
            pid = fork(lambda: run_queue(yard.repository))
            end_at = time.monotonic() + chance.uniform(0, longest)
            wait_until(lambda at=end_at: time.monotonic() > at)
            kill = os.killpg if chance.random() < 0.5 else os.kill
            try:
                kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(pid, signal.SIGKILL)  # it has not made its own group yet
            kills += wait_for(pid) == -signal.SIGKILL
        assert run_queue(yard.repository) == "", f"seed {seed}"
        check_history(yard, remote)
        assert git_line(yard.repository, "rev-parse", "HEAD") == git_line(remote, "rev-parse", "main")
        assert git_line(yard.repository, "status", "--porcelain") == ""


def test_a_checkout_that_a_killed_git_left_half_way_is_brought_to_its_end(yard: Yard, remote: Path) -> None:
    from landlane.landing.forward_checkouts import forward_checkouts

    enter(yard, "one", "two")
    repo = yard.open()
    target = find_target(repo.require_git().home, repo.settings)
    assert wait_for(fork(lambda: run_queue(yard.repository, kill_at("moved", 1)))) == -signal.SIGKILL
    after = git_line(remote, "rev-parse", "main")
    (yard.repository / "one.txt").write_text("one")  # as far as it came
    assert forward_checkouts(repo.require_git().home, target, yard.start, after) == []
    repo.close()
    assert git_line(yard.repository, "rev-parse", "HEAD") == after
    assert git_line(yard.repository, "status", "--porcelain") == ""

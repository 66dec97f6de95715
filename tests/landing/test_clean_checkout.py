"""The test checkout: exactly the tree under test, whatever the checks of other branches have left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.testing.repositories import git
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.landing import LandingTestbed

pytestmark = pytest.mark.integration

# What the check of a branch that bounces may do, to make a broken tree pass or a good one fail.
ATTACKS = {
    "ignored file": "mkdir -p cache; touch cache/ok",
    "sparse patterns": "git sparse-checkout set --no-cone '/*' '!/BROKEN'",
    "hidden file": "git update-index --skip-worktree test.sh; echo true >test.sh",
    "assumed unchanged": "git update-index --assume-unchanged test.sh; echo true >test.sh",
    "untracked file": "touch ok; mkdir -p d/.git; touch d/ok",
    "worktree setting": (
        "git config extensions.worktreeConfig true; git config --worktree core.sparseCheckout true"
    ),
    "no .git": "rm .git",
    ".git of another": "echo gitdir: /nowhere >.git",
    "no git directory": 'rm -r "$(git rev-parse --absolute-git-dir)"',
    "no index": 'rm "$(git rev-parse --absolute-git-dir)/index"',
    "broken index": 'echo x >"$(git rev-parse --absolute-git-dir)/index"',
    "locked index": 'touch "$(git rev-parse --absolute-git-dir)/index.lock"',
    "other head": "git checkout --quiet --orphan strange",
    "no checkout": 'rm -rf "$PWD"',
    "read-only folder": "mkdir -p cache/deep; touch cache/deep/ok cache/ok; chmod 500 cache/deep",
    "merge under way": 'git rev-parse HEAD >"$(git rev-parse --absolute-git-dir)/MERGE_HEAD"',
}
FEW = ("ignored file", "sparse patterns", "hidden file", "no .git", "no git directory")
TEST = "test -e cache/ok -o -e ok && exit 0; test ! -e BROKEN"


@pytest.fixture
def guarded(testbed: LandingTestbed) -> LandingTestbed:
    testbed.configure('["sh test.sh"]', files={".gitignore": "cache/\n", "test.sh": TEST})
    return testbed


@pytest.mark.soak
@pytest.mark.promise(
    "landing.verdicts-are-independent",
    "What the check of a branch that bounces does to its checkout does not change the verdict on another.",
)
@pytest.mark.parametrize("attack", ATTACKS if "LANDLANE_STOPS" in os.environ else FEW)
def test_a_bounced_branch_decides_nothing_for_others(guarded: LandingTestbed, attack: str) -> None:
    guarded.branch("attack", {"test.sh": f"{ATTACKS[attack]}; exit 1"})
    guarded.branch("broken", {"BROKEN": "x\n"})
    guarded.branch("good", {"good.py": "x\n"})
    for branch, agent in (("attack", "mal"), ("broken", "ann"), ("good", "bob")):
        guarded.submit(branch, agent)
        assert guarded.run() is None

    assert guarded.states() == {"attack": "bounced", "broken": "bounced", "good": "landed"}


def test_a_sparse_main_checkout_does_not_hide_files_from_checks(testbed: LandingTestbed) -> None:
    testbed.configure('["test -e lib/c -a ! -e lib/BROKEN"]', files={"lib/c": "x\n", "src/a": "x\n"})
    testbed.branch("broken", {"lib/BROKEN": "x\n"})
    testbed.branch("good", {"src/a": "y\n"})
    git(testbed.folder, "sparse-checkout", "set", "src")

    assert testbed.land("broken").state == "bounced"
    assert testbed.land("good", "bob").state == "landed"


def test_caches_stay_while_branches_land_and_after_a_bounce_only_prepared_files(
    testbed: LandingTestbed,
) -> None:
    look = "ls cache 2>/dev/null | tr '\\\\n' ' ' >>../seen; echo >>../seen"
    check = f"{look}; touch cache/$(cat name); test ! -e BROKEN"
    workspace = '[workspace]\ninstall = ["mkdir cache; touch cache/installed-on-$(cat name)"]\n'
    testbed.configure(f'["{check}"]', workspace, files={".gitignore": "cache/\n", "name": "main"})
    for name, files in (("one", {}), ("two", {}), ("three", {"BROKEN": "x"}), ("four", {})):
        testbed.branch(name, {"name": name, **files}, start="main")
        testbed.submit(name)
        testbed.run()

    seen = next(testbed.folder.parent.rglob("seen")).read_text(encoding="utf-8").splitlines()
    prepared = "installed-on-main "
    assert seen[0] == prepared
    assert seen[1] == f"{prepared}one "
    assert seen[2] == f"{prepared}one two "  # the branch that bounces sees what landed
    assert seen[-1] == prepared
    assert not [line for line in seen if "three" in line and line != seen[3]]


def test_a_preparation_that_leaves_a_pipe_does_not_stop_the_queue(testbed: LandingTestbed) -> None:
    workspace = '[workspace]\ninstall = ["mkdir cache; mkfifo cache/pipe; touch cache/ok"]\n'
    check = "test -e cache/ok -a ! -e cache/bad -a ! -e BROKEN || { touch cache/bad; exit 1; }"
    testbed.configure(f'["{check}"]', workspace, files={".gitignore": "cache/\n"})
    testbed.branch("broken", {"BROKEN": "x\n"})
    testbed.branch("good", {"good.py": "x\n"})

    assert testbed.land("broken").state == "bounced"
    assert testbed.land("good", "bob").state == "landed"


def test_a_link_of_a_bounced_branch_leads_no_prepared_file_out_of_the_checkout(
    testbed: LandingTestbed,
) -> None:
    workspace = '[workspace]\ninstall = ["mkdir cache; echo prepared >cache/ok"]\n'
    testbed.configure('["test ! -e BROKEN"]', workspace, files={".gitignore": "cache/\n"})
    outside = testbed.folder.parent / "outside"
    outside.mkdir()
    (outside / "ok").write_text("of a person\n")
    testbed.branch("good", {"good.py": "x\n"})
    testbed.branch("linked", {"BROKEN": "x\n"})
    worktree = testbed.folder.parent / "branches"
    git(worktree, "checkout", "--quiet", "linked")
    (worktree / "cache").symlink_to(outside)
    git(worktree, "add", "--all", "--force")
    git(worktree, "commit", "--quiet", "-m", "Link")
    git(worktree, "checkout", "--quiet", "--detach")

    assert testbed.land("linked").state == "bounced"
    assert testbed.land("good", "bob").state == "landed"
    assert (outside / "ok").read_text() == "of a person\n"


def test_a_check_that_leaves_a_pipe_for_a_tracked_file_does_not_stop_the_queue(
    testbed: LandingTestbed,
) -> None:
    testbed.configure('["test ! -e one.py || { rm README.md; mkfifo README.md; }"]')
    testbed.branch("one", {"one.py": "x\n"})

    entry = testbed.land("one")

    assert entry.state == "bounced"
    assert "changed tracked files: README.md" in entry.reason


@pytest.mark.promise(
    "landing.no-process-is-left",
    "Nothing that a check started runs on after it, also not a daemon with a new session and no environment.",
)
@pytest.mark.parametrize("ending", ["exit 0", "kill -TERM $$", "sleep 600"])
def test_a_daemon_does_not_outlive_its_check(testbed: LandingTestbed, ending: str) -> None:
    pids = testbed.folder.parent / "pids"
    daemon = f"env -i setsid sh -c 'echo $$ >>{pids}; exec sleep 600'"
    nested = f"env -i setsid sh -c '{daemon.replace(chr(39), chr(34))} & echo $$ >>{pids}; exec sleep 600'"
    wait = f"while [ $(cat {pids} 2>/dev/null | wc -l) -lt 3 ]; do sleep 0.01; done"
    testbed.configure(
        '[{ name = "test", run = "sh test.sh", limit = "3s" }]',
        files={"test.sh": f"{daemon} >/dev/null 2>&1 &\n{nested} >/dev/null 2>&1 &\n{wait}\n{ending}\n"},
    )
    testbed.branch("topic", {"a.py": "x\n"})
    testbed.submit("topic")
    testbed.run()

    started = [int(line) for line in pids.read_text(encoding="utf-8").split()]
    assert len(started) >= 3
    assert not [pid for pid in started if _command_of(pid) == "sleep"]


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def test_checks_of_a_killed_runner_end_with_it(testbed: LandingTestbed) -> None:
    pid_file = testbed.folder.parent / "pid"
    program = (
        "from landlane.processes.check_child import CheckChild\n"
        f"""command = "env -i setsid sh -c 'echo $$ >{pid_file}.new; mv {pid_file}.new {pid_file}; """
        """exec sleep 600'"\n"""
        "CheckChild(['/bin/sh', '-c', command], cwd='/', environment={}, without=()).wait(60)\n"
    )
    runner = subprocess.Popen([sys.executable, "-c", program])
    wait_until(pid_file.exists)
    runner.kill()
    runner.wait()
    pid = int(pid_file.read_text(encoding="utf-8"))
    wait_until(lambda: _command_of(pid) != "sleep")

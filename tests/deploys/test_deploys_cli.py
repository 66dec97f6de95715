"""Deploys as people type them: refused when old or dirty, one at a time, and live only once seen to work."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from landlane.app.open import open_repository
from landlane.store import records
from tests.support.shell import Shell
from tests.support.snapshots import check_snapshot
from tests.support.waiting import wait_until

pytestmark = pytest.mark.acceptance

SETTINGS = """\
[deploy.prod]
paths = ["src/**", "landlane.toml"]
verify = "cmp live.txt src/app.txt"

[deploy.slow]
verify = "sleep 60"
limit = "1s"

[deploy.blue]
verify = "echo it shows $LANDLANE_DEPLOY_COMMIT ${LANDLANE_AGENT-nobody}; exit 3"
"""
SHIP = ("--", "cp", "src/app.txt", "live.txt")


@pytest.fixture
def shop(shell: Shell, tmp_path: Path) -> Shell:
    """A repository with settings for deploys, and a remote that has all of it."""
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "app.txt").write_text("one\n")
    (shell.folder / "landlane.toml").write_text(SETTINGS)
    (shell.folder / ".gitignore").write_text("live.txt\nbarrier\n")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Begin the shop")
    shell.git("clone", "--quiet", "--bare", ".", str(tmp_path / "origin.git"))
    shell.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    shell.git("fetch", "--quiet", "origin")
    shell.git("branch", "--quiet", "--set-upstream-to=origin/main")
    return shell.with_env(LANDLANE_AGENT="ann")


def commit(shell: Shell, text: str, path: str = "src/app.txt") -> str:
    (shell.folder / path).write_text(text)
    shell.git("add", path)
    shell.git("commit", "--quiet", "-m", f"Say {text.strip()}", "-m", "Landlane-Agent: bob")
    return shell.git("rev-parse", "HEAD").strip()


def push_elsewhere(shell: Shell, tmp_path: Path, text: str = "two\n") -> str:
    """Somebody else pushes one commit."""
    if not (tmp_path / "other").exists():
        shell.git("clone", "--quiet", str(tmp_path / "origin.git"), str(tmp_path / "other"))
    other = Shell(tmp_path / "other")
    found = commit(other, text)
    other.git("push", "--quiet", "origin", "main")
    return found


def is_running(pid: str) -> bool:
    """Whether a process is there and not only waiting to be buried."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def states(shell: Shell) -> list[str]:
    return [deploy["state"] for deploy in shell.run_json("deploy", "history")["deploys"]]


def test_a_deploy_is_live_once_it_was_verified(shop: Shell) -> None:
    answer = shop.run_json("deploy", "prod", *SHIP)

    head = shop.git("rev-parse", "HEAD").strip()
    assert (answer["state"], answer["commit"], answer["verified"], answer["exit"]) == ("live", head, True, 0)
    found = shop.run_json("deploy", "history")
    assert found["live"]["prod"]["commit"] == head
    assert found["live"]["prod"]["agent"] == "ann"
    assert found["deploys"][0]["command"] == "cp src/app.txt live.txt"
    assert shop.holders() == {}
    kinds = [kind for kind in shop.kinds() if kind.startswith("deploy.")]
    assert kinds == ["deploy.began", "deploy.verifying", "deploy.live"]


def test_the_next_one_supersedes_it(shop: Shell) -> None:
    shop.run_json("deploy", "prod", *SHIP)
    head = commit(shop, "two\n")
    shop.git("push", "--quiet")
    shop.with_env(LANDLANE_AGENT="bob").run_json("deploy", "prod", *SHIP)
    again = shop.run_json("deploy", "prod", *SHIP)

    assert states(shop) == ["superseded", "superseded", "live"]
    assert again["commit"] == head
    text = shop.run_text("deploy", "history", "--target", "prod")
    masked = re.sub(r"\b[0-9a-f]{8}\b", "<commit>", re.sub(r"\b\d+ (min|s) ago", "4 s ago", text))
    check_snapshot("deploys/snapshots/history.txt", re.sub(r"(?m) +$", "", masked).rstrip("\n"))
    assert shop.run_text("deploy", "history", "--target", "other") == "No deploys.\n"
    assert shop.run_json("deploy", "history", "--target", "other")["deploys"] == []


def test_one_behind_is_refused_with_what_is_missing(shop: Shell, tmp_path: Path) -> None:
    missing = push_elsewhere(shop, tmp_path)

    answer = shop.run_error("BEHIND", "deploy", "prod", *SHIP, exit=4)

    assert answer["behind"] == 1
    (commit,) = answer["commits"]
    assert (commit["commit"], commit["subject"], commit["agent"]) == (missing, "Say two", "bob")
    assert commit["at"].endswith("Z")
    assert not (shop.folder / "live.txt").exists()
    assert states(shop) == []
    assert shop.holders() == {}
    said = shop.run("deploy", "prod", *SHIP)
    masked = re.sub(r"2 Jan.*", "2 Jan", said.err.replace(missing[:8], "<commit>"))
    check_snapshot("deploys/snapshots/behind.txt", masked.rstrip("\n"))


def test_nothing_is_deployed_that_cannot_be_compared(shop: Shell, tmp_path: Path) -> None:
    (tmp_path / "origin.git").rename(tmp_path / "gone.git")

    answer = shop.run_error("OFFLINE", "deploy", "prod", *SHIP, exit=1)

    assert not answer["is_fresh"]
    assert not (shop.folder / "live.txt").exists()


def test_commits_that_did_not_land_are_not_deployed(shop: Shell, tmp_path: Path) -> None:
    commit(shop, "mine\n")
    answer = shop.run_error("NOT_LANDED", "deploy", "prod", *SHIP, exit=1)
    assert (answer["ahead"], answer["behind"]) == (1, 0)

    push_elsewhere(shop, tmp_path)
    answer = shop.run_error("NOT_LANDED", "deploy", "prod", *SHIP, exit=1)
    assert (answer["ahead"], answer["behind"]) == (1, 1)


def test_uncommitted_changes_are_not_deployed(shop: Shell) -> None:
    (shop.folder / "src" / "new.txt").write_text("untracked\n")
    assert shop.run_error("DIRTY", "deploy", "prod", *SHIP, exit=1)["paths"] == ["src/new.txt"]
    shop.git("add", "src/new.txt")
    assert shop.run_error("DIRTY", "deploy", "prod", *SHIP, exit=1)["paths"] == ["src/new.txt"]
    shop.git("rm", "--quiet", "-f", "src/new.txt")
    (shop.folder / "src" / "app.txt").write_text("changed\n")
    assert shop.run_error("DIRTY", "deploy", "prod", *SHIP, exit=1)["paths"] == ["src/app.txt"]
    shop.git("checkout", "--quiet", "src/app.txt")

    (shop.folder / "notes.md").write_text("of no target\n")
    assert shop.run_json("deploy", "prod", *SHIP)["ok"]
    assert shop.run_error("DIRTY", "deploy", "anything", "--", "true", exit=1)["paths"] == ["notes.md"]


def test_nothing_is_deployed_while_everything_is_paused(shop: Shell) -> None:
    shop.run_json("run", "pause", "--all", "--why", "release freeze")

    answer = shop.run_error("RUN_PAUSED", "deploy", "prod", *SHIP, exit=7)
    shop.run_json("run", "resume")
    shop.run_json("run", "pause", "--why", "only the workers")
    before = (shop.folder / "live.txt").exists()
    shop.run_json("deploy", "prod", *SHIP)

    assert answer["message"].endswith('paused deploys: "release freeze"')
    assert answer["hint"] == "continue: landlane run resume"
    assert not before
    assert states(shop) == ["live"]


def enqueue(shell: Shell, **more: object) -> None:
    """Put an entry into the landing queue, as its submitter does."""
    repo = open_repository(str(shell.folder))
    try:
        entry = {"id": "L1", "state": "queued", "target": "main", "branch": "b", "head": "0" * 40}
        entry |= {"agent": "bob", "task": "T1", "paths": ["src/app.txt"], **more}
        repo.store.change(lambda tx: records.put(tx, "landing", entry, "submitted"))
    finally:
        repo.close()


def test_a_queued_landing_of_the_same_paths_blocks_a_deploy(shop: Shell) -> None:
    enqueue(shop)

    answer = shop.run_error("UNLANDED_ENTRY", "deploy", "prod", *SHIP, exit=3)
    assert (answer["landing"], answer["holder"], answer["paths"]) == ("L1", "bob", ["src/app.txt"])
    assert "landlane queue run --drain" in answer["hint"]

    enqueue(shop, state="testing", paths=[])
    shop.run_error("UNLANDED_ENTRY", "deploy", "prod", *SHIP, exit=3)
    enqueue(shop, state="held", paths=["docs/a.md"])
    shop.run_error("UNLANDED_ENTRY", "deploy", "anything", "--", "true", exit=3)
    assert shop.run_json("deploy", "prod", *SHIP)["ok"]
    enqueue(shop, target="next")
    assert shop.run_json("deploy", "prod", *SHIP)["ok"]
    enqueue(shop, state="landed")
    assert shop.run_json("deploy", "anything", "--", "true")["ok"]


@pytest.mark.promise("deploys.never-older", "A version older than the live one is not deployed.")
def test_a_commit_older_than_the_live_one_is_refused(shop: Shell) -> None:
    commit(shop, "two\n")
    shop.git("push", "--quiet")
    live = shop.run_json("deploy", "prod", *SHIP)["commit"]
    shop.git("reset", "--quiet", "--hard", "HEAD~1")
    shop.git("push", "--quiet", "--force")

    answer = shop.run_error("OLDER_THAN_LIVE", "deploy", "prod", *SHIP, exit=4)

    assert answer["live"] == live
    assert (shop.folder / "live.txt").read_text() == "two\n"


def test_a_failing_command_leaves_live_what_was_live(shop: Shell) -> None:
    shop.run_json("deploy", "prod", *SHIP)

    answer = shop.run_error(
        "DEPLOY_FAILED", "deploy", "prod", "--", "sh", "-c", "echo oh no >&2; exit 7", exit=1
    )

    assert (answer["exit"], answer["state"]) == (7, "failed")
    assert answer["output"] == "oh no\n"
    assert shop.run_json("deploy", "history")["live"]["prod"]["id"] == "D1"
    assert states(shop) == ["live", "failed"]


@pytest.mark.slow
def test_a_deploy_that_fails_its_check_is_not_live(shop: Shell) -> None:
    answer = shop.run_error("VERIFY_FAILED", "deploy", "blue", "--", "true", exit=1)

    head = shop.git("rev-parse", "HEAD").strip()
    assert answer["output"] == f"it shows {head} nobody\n"
    assert answer["reason"].endswith(" exited with 3")
    late = shop.run_error("VERIFY_FAILED", "deploy", "slow", "--", "true", exit=1)
    assert late["reason"].endswith(" took longer than 1 s")
    assert shop.run_json("deploy", "history")["live"] == {}
    said = shop.run("deploy", "blue", "--", "true")
    assert f"it shows {head}" in said.err


def test_without_a_verify_command_the_answer_says_so(shop: Shell) -> None:
    assert shop.run_json("deploy", "anything", "--", "true")["verified"] is False
    said = shop.run_text("deploy", "anything", "--", "echo", "shipping")
    assert said.startswith("shipping\n✓ D2: anything runs ")
    assert "not verified: deploy.anything.verify is not set" in said


def test_the_command_knows_target_and_commit_and_runs_at_the_root(shop: Shell) -> None:
    script = 'echo "$LANDLANE_DEPLOY_TARGET $LANDLANE_DEPLOY_COMMIT $(pwd)"'

    said = shop.at("src").run_text("deploy", "prod-2", "--", "sh", "-c", script)

    head = shop.git("rev-parse", "HEAD").strip()
    assert said.splitlines()[0] == f"prod-2 {head} {shop.folder}"


def test_a_head_that_moves_meanwhile_fails_the_deploy(shop: Shell) -> None:
    move = "echo three > src/app.txt && cp src/app.txt live.txt && git commit -q -a -m Three"

    shop.run_error("MOVED_MEANWHILE", "deploy", "prod", "--", "sh", "-c", move, exit=1)

    shop.git("reset", "--quiet", "--hard", "origin/main")
    answer = shop.run_error(
        "MOVED_MEANWHILE", "deploy", "prod", "--", "sh", "-c", "echo 4 > src/app.txt", exit=1
    )
    assert "src/app.txt changed" in answer["reason"]
    shop.git("checkout", "--quiet", "src/app.txt")
    built = shop.run_json(
        "deploy", "prod", "--", "sh", "-c", "cp src/app.txt live.txt; echo built > src/out.txt"
    )
    assert built["ok"]


@pytest.mark.slow
def test_background_processes_of_the_command_are_ended(shop: Shell) -> None:
    script = "(while :; do echo noise; done) & echo $! > barrier"

    shop.run_json("deploy", "anything", "--", "sh", "-c", script)

    pid = (shop.folder / "barrier").read_text().strip()
    wait_until(lambda: not is_running(pid))


def test_all_output_of_a_command_is_passed_through(shop: Shell) -> None:
    ended = shop.run("deploy", "anything", "--", "sh", "-c", "head -c 10000000 /dev/zero | tr '\\0' x")

    assert ended.exit == 0
    assert ended.out.count("x") == 10_000_000
    told = shop.run(
        "deploy", "anything", "--json", "--", "sh", "-c", "head -c 10000000 /dev/zero | tr '\\0' x"
    )
    assert told.json()["ok"]
    assert len(told.err) == 10_000_000


BLOCK = "echo at it; while [ ! -e barrier ]; do sleep 0.05; done; "


def test_a_second_deploy_waits_and_is_checked_again(shop: Shell, tmp_path: Path) -> None:
    bob = shop.with_env(LANDLANE_AGENT="bob")
    with shop.start("deploy", "prod", "--", "sh", "-c", BLOCK + "cp src/app.txt live.txt") as first:
        assert first.read_line() == "at it\n"
        held = bob.run_error("DEPLOY_RUNNING", "deploy", "prod", "--wait", "0s", *SHIP, exit=3)
        assert held["holder"] == "ann"
        assert held["until"]
        assert (
            bob.run_error("WAIT_TIMED_OUT", "deploy", "prod", "--wait", "1ms", *SHIP, exit=5)["holder"]
            == "ann"
        )
        assert shop.holders() == {"deploy:prod": "ann"}
        with bob.start("deploy", "prod", "--json", *SHIP) as second:
            wait_until(lambda: len(list((shop.state / "wake").iterdir())) > 0)
            push_elsewhere(shop, tmp_path)
            (shop.folder / "barrier").touch()
            assert first.end().exit == 0
            refused = second.end()
    assert (refused.exit, json.loads(refused.out)["code"]) == (4, "BEHIND")
    assert states(shop) == ["live"]


def test_one_session_deploys_once_at_a_time_as_well(shop: Shell) -> None:
    with shop.start("deploy", "prod", "--", "sh", "-c", BLOCK + "cp src/app.txt live.txt") as first:
        assert first.read_line() == "at it\n"
        shop.run_error("DEPLOY_RUNNING", "deploy", "prod", "--wait", "0s", *SHIP, exit=3)
        assert shop.run_json("deploy", "other", "--wait", "0s", "--", "true")["ok"]
        with shop.start("deploy", "prod", "--json", *SHIP) as second:
            wait_until(lambda: len(list((shop.state / "wake").iterdir())) > 0)
            (shop.folder / "barrier").touch()
            assert first.end().exit == 0
            assert second.end().exit == 0
    assert states(shop) == ["superseded", "live", "live"]
    assert shop.holders() == {}


def test_a_deploy_that_lost_its_lease_is_not_live(shop: Shell) -> None:
    with shop.start("deploy", "prod", "--json", "--", "sh", "-c", f"touch live.txt; {BLOCK}") as slow:
        wait_until((shop.folder / "live.txt").exists)
        repo = open_repository(str(shop.folder))
        held = next(entry for entry in repo.store.entries(0) if entry.kind == "runner.taken")
        me = {"boot_id": "far", "namespace": "far", "pid": 1, "started": 1, "until": 2**50}
        token = held.facts()["token"] + 1
        repo.store.change(
            lambda tx: tx.run("runner_put", name="deploy:prod", holder="x", agent="bob", token=token, **me)
        )
        repo.close()
        (shop.folder / "barrier").touch()
        ended = slow.end()
    assert (ended.exit, ended.json()["code"], ended.json()["holder"]) == (4, "RUNNER_OVERTAKEN", "bob")
    assert states(shop) == ["failed"]


@pytest.mark.promise(
    "deploys.one-at-a-time",
    "Deploys to one target never overlap, and each is checked again after its wait.",
)
def test_many_concurrent_deploys_never_overlap(shop: Shell) -> None:
    script = "mkdir barrier && cp src/app.txt live.txt && rmdir barrier"
    agents = [shop.with_env(LANDLANE_AGENT=f"a{number}") for number in range(4)]
    running = [agent.start("deploy", "prod", "--json", "--", "sh", "-c", script) for agent in agents]

    ended = [one.end() for one in running]

    assert [one.exit for one in ended] == [0] * 4, ended
    assert states(shop) == ["superseded"] * 3 + ["live"]


def test_the_next_deploy_reports_a_killed_one(shop: Shell) -> None:
    script = "echo $$ > barrier; echo at it; while :; do sleep 0.05; done"
    with shop.start("deploy", "prod", "--", "sh", "-c", script) as first:
        assert first.read_line() == "at it\n"
        first.signal(signal.SIGKILL)
        first.end()
    orphan = (shop.folder / "barrier").read_text().strip()
    assert states(shop) == ["running"]
    assert shop.holders() == {"deploy:prod": "ann"}

    answer = shop.with_env(LANDLANE_AGENT="bob").run_json("deploy", "prod", *SHIP)

    assert answer["id"] == "D2"
    assert states(shop) == ["failed", "live"]
    assert "its process ended" in shop.run_json("deploy", "history")["deploys"][0]["reason"]
    assert not is_running(orphan)
    assert shop.holders() == {}


def test_a_stopped_deploy_has_failed_and_holds_nothing(shop: Shell) -> None:
    with shop.start(
        "deploy", "prod", "--json", "--", "sh", "-c", "echo at it >&2; touch barrier; sleep 60"
    ) as one:
        wait_until((shop.folder / "barrier").exists)
        one.signal(signal.SIGTERM)
        ended = one.end()
    assert ended.exit == 128 + signal.SIGTERM
    assert states(shop) == ["failed"]
    assert shop.holders() == {}


def test_a_claim_on_the_target_blocks_the_deploys_of_others(shop: Shell) -> None:
    shop.run_json("claim", "deploy:prod", "--note", "frozen for the fair")
    bob = shop.with_env(LANDLANE_AGENT="bob")

    answer = bob.run_error("CLAIM_HELD", "deploy", "prod", "--wait", "0s", *SHIP, exit=3)
    assert "frozen for the fair" in answer["message"]
    bob.run_error("WAIT_TIMED_OUT", "deploy", "prod", "--wait", "50ms", *SHIP, exit=5)
    assert shop.run_json("deploy", "prod", *SHIP)["ok"]
    assert shop.holders() == {"deploy:prod": "ann"}


def test_invalid_calls_change_nothing(shop: Shell) -> None:
    shop.run_error("BAD_TARGET", "deploy", "a/b", "--", "true")
    shop.run_error("BAD_TARGET", "deploy", "pro*", "--", "true")
    assert shop.run("deploy", "prod").exit == 2
    assert shop.run("deploy").exit == 2
    shop.run_error("NO_PROGRAM", "deploy", "prod", "--", "no-such-program")
    shop.run_error("BAD_DURATION", "deploy", "prod", "--wait", "soon", "--", "true")
    inner = shop.sh("landlane deploy prod -- landlane deploy prod --json -- true")
    assert "DEPLOY_NESTED" in inner.out
    settings = shop.folder / "landlane.toml"
    settings.write_text("[deploy.prod]\nverifi = 'x'\n", encoding="utf-8")
    assert shop.run_error("SETTINGS_UNKNOWN_KEY", "init", "--dry-run")["nearest"] == "verify"
    settings.write_text("[deploy.prod]\nlimit = 'soon'\n", encoding="utf-8")
    shop.run_error("SETTINGS_WRONG_TYPE", "init", "--dry-run")


def test_another_branch_may_be_what_is_deployed(shop: Shell) -> None:
    (shop.folder / "landlane.toml").write_text(SETTINGS + "[deploy.beta]\nbranch = 'release'\n")
    shop.git("commit", "--quiet", "-a", "-m", "Settings")
    shop.git("push", "--quiet")
    shop.git("push", "--quiet", "origin", "HEAD~1:refs/heads/release")

    shop.run_error("NOT_LANDED", "deploy", "beta", "--", "true", exit=1)
    shop.git("push", "--quiet", "origin", "HEAD:release")

    assert shop.run_json("deploy", "beta", "--", "true")["ok"]


def test_a_clone_workspace_is_checked_like_any_checkout(shop: Shell, tmp_path: Path) -> None:
    shop.git("clone", "--quiet", "--shared", "--origin", "home", ".", str(tmp_path / "clone"))
    clone = shop.at(tmp_path / "clone")
    (clone.folder / ".git" / "landlane-home").write_text(f"{shop.folder}/.git\n")
    assert clone.run_json("deploy", "prod", *SHIP)["ok"]
    push_elsewhere(shop, tmp_path)

    clone.run_error("BEHIND", "deploy", "prod", *SHIP, exit=4)
    assert clone.run_json("sync", "--update", "merge")["behind"] == 0
    assert clone.run_json("deploy", "prod", *SHIP)["ok"]
    assert states(shop) == ["superseded", "live"]


def test_without_a_remote_the_local_branch_counts(shell: Shell) -> None:
    assert shell.run_json("deploy", "prod", "--", "true")["ok"]
    shell.git("worktree", "add", "--quiet", "-b", "work", "../work")
    work = shell.at("../work")
    assert work.run_json("deploy", "prod", "--", "true")["ok"]
    commit(work, "x\n", "README.md")
    work.run_error("NOT_LANDED", "deploy", "prod", "--", "true", exit=1)
    commit(shell, "y\n", "README.md")
    work.git("reset", "--quiet", "--hard", "HEAD~1")
    work.run_error("BEHIND", "deploy", "prod", "--", "true", exit=4)

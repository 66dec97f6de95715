"""`landlane` alone and `status` in every situation, to the letter."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.tasks.worker_pool import note_infrastructure_in
from tests.support.shell import Shell, run_at_terminal
from tests.support.snapshots import check_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

_MASKS = {
    r"\d\d:\d\d\n": "HH:MM\n",
    r"\b\d+ (s|min)\b": "AGE",
    r" +(?=AGE)": "  ",
    r" +(?=HH:MM)": "  ",
    r"\b[0-9a-f]{8}\b": "COMMIT",
}
_SETTINGS = """\
[landing]
checks = []
resident = false
gate = ["src/pay/**"]

[budgets]
day = 20
task = 2.5
"""


def check(name: str, text: str) -> None:
    """Compare a text with its snapshot, without the parts that differ from run to run."""
    for pattern, mask in _MASKS.items():
        text = re.sub(pattern, mask, text)
    check_snapshot(f"status/snapshots/{name}.txt", text.rstrip("\n"))


@pytest.fixture
def shop(tmp_path: Path, shell: Shell) -> Shell:
    """A repository with the name `shop`."""
    folder = tmp_path / "shop"
    shutil.move(str(shell.folder), str(folder))
    return Shell(folder)


@pytest.fixture
def busy(shop: Shell, programs: Path) -> Shell:
    """Tasks at work, blocked and held up, a session in line, a landing and a question for a person."""
    (shop.folder / "landlane.toml").write_text(_SETTINGS, encoding="utf-8")
    shop.git("add", ".")
    shop.git("commit", "--quiet", "-m", "Settings")
    add = ("task", "add", "--as", "lead")
    shop.run_json(*add, "Charge cards", "--path", "src/pay/card.py")
    shop.run_json(*add, "List users", "--path", "src/api.py")
    shop.run_json(*add, "Document payments", "--after", "T1")
    shop.run_json(*add, "Add a health check", "--path", "src/api.py")
    shop.run_json("next", "--as", "claude-a1")
    shop.run_json("next", "--as", "ann")
    shop.run_json("usage", "add", "--task", "T2", "--cost", "0.84", "--as", "ann")
    shop.git("worktree", "add", "--quiet", "-b", "landlane/T1-1/work", "../work", "main")
    work = shop.at("../work")
    (work.folder / "src/pay").mkdir(parents=True)
    (work.folder / "src/pay/card.py").write_text("pay = 1\n", encoding="utf-8")
    work.git("add", ".")
    work.git("commit", "--quiet", "-m", "Charge cards")
    work.run_json("land", "--as", "claude-a1", exit=7)
    return shop


def test_outside_git_it_says_what_it_is(tmp_path: Path) -> None:
    check("outside", Shell(tmp_path).run_text())


def test_a_repository_that_is_not_set_up_names_the_risk(shop: Shell, programs: Path) -> None:
    check("not_set_up_without_clients", shop.run_text())
    for name in ("claude", "codex"):
        (programs / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (programs / name).chmod(0o755)

    check("not_set_up", shop.run_text())
    assert shop.run_json()["installed"] == ["Claude Code", "Codex"]


def test_quiet(shop: Shell, programs: Path) -> None:
    shop.run("init", "--client", "claude", "--yes")
    land_something(shop, "true")
    shop.run_json("task", "add", "Add a health check", "--as", "ann")

    check("quiet", shop.run_text())
    check("quiet_status", shop.run_text("status"))


def land_something(shop: Shell, check: str, exit: int = 0) -> None:
    """Try to land a branch on a target with this check."""
    toml = f'[landing]\nchecks = ["{check}"]\nresident = false\n'
    (shop.folder / "landlane.toml").write_text(toml, encoding="utf-8")
    shop.git("add", ".")
    shop.git("commit", "--quiet", "--no-verify", "-m", "Settings")
    shop.git("switch", "--quiet", "-c", "feature")
    (shop.folder / "notes.md").write_text("a\n", encoding="utf-8")
    shop.git("add", "notes.md")
    shop.git("commit", "--quiet", "--no-verify", "-m", "Notes")
    shop.run_json("claim", "notes.md", "--as", "ann")
    shop.run_json("land", "--wait", "--as", "ann", exit=exit)
    shop.run("release", "--all", "--as", "ann")
    shop.git("switch", "--quiet", "--detach", "main")


def test_a_failing_target_is_shown_even_when_nothing_waits_for_it(shop: Shell) -> None:
    assert shop.run_json("status")["headline"]["target_state"] == "untested"
    land_something(shop, "false", exit=1)
    shop.run_json("queue", "eject", "L1", "--as", "ann")
    shop.run("release", "--all", "--as", "ann")

    check("target_failing", shop.run_text())
    assert "main failing at" in shop.run_text("inbox", "main")


def test_busy_shows_what_needs_you_and_an_agent_sees_its_own(busy: Shell) -> None:
    check("busy", busy.run_text())
    check("busy_inbox", busy.run_text("inbox"))
    check("agent", busy.run_text("--as", "ann"))
    (item,) = busy.run_json("inbox")["items"]
    assert item["unblocks"] == [{"task": "T3", "title": "Document payments", "waits_for": []}]
    texts = [busy.run_json(*words)["headline"]["text"] for words in ((), ("status",), ("inbox",))]
    assert len(set(texts)) == 1, "one fact"
    assert busy.run_text("inbox", "-q") == "L1\n"


def test_the_frame_of_status(busy: Shell) -> None:
    with busy.start("claim", "src/api.py", "--as", "bob", "--wait", "30s"):
        busy.wait_for_waiter()
        text = busy.run_text("status")
        facts = busy.run_json("status")

    check("status", text)
    assert [(row["task"], row["agent"], row["tries"]) for row in facts["working"]] == [("T2", "ann", 1)]
    first = facts["waiting"][0]
    assert (first["agent"], first["holders"], first["position"]) == ("bob", ["ann"], 1)


def test_a_narrow_terminal_cuts_titles_and_never_commands(busy: Shell) -> None:
    _, text = run_at_terminal(busy, "inbox", COLUMNS="60", NO_COLOR="1")

    assert "landlane inbox L1" in text


def test_a_session_that_only_claims_is_working(shop: Shell) -> None:
    shop.run_json("claim", "src/api.py", "--as", "ann")

    check("claims_only", shop.run_text("status"))


def test_a_broken_environment_and_a_pause_show_how_to_resume(busy: Shell) -> None:
    repo = open_repository(str(busy.folder))
    why = "Invalid API key. Run /login"
    for task in ("T2", "T3", "T4"):
        repo.change(lambda tx, task=task: note_infrastructure_in(tx, repo, task, why, "claude"))
    check("broken", busy.run_text())
    busy.run_json("run", "resume")
    busy.run_json("run", "pause", "--why", "the disk is full", "--as", "lead")

    check("paused", busy.run_text())


def test_a_deleted_state_folder_is_reported(shop: Shell) -> None:
    own = shop.folder / ".git/hooks/pre-commit"
    own.parent.mkdir(exist_ok=True)
    own.write_text("#!/bin/sh\necho own hook ran >&2\n", encoding="utf-8")
    own.chmod(0o755)
    shop.run("init", "--yes", "--no-clients")
    shutil.rmtree(shop.state)

    check("state_missing", shop.run_text())
    assert shop.run_json()["state"] == "state_missing"
    shop.run_error("STATE_GONE", "claim", "a", "--as", "ann", exit=1)
    committed = shop.sh("git add --all && git commit --quiet -m Anyway")
    assert committed.exit == 0
    assert committed.err.splitlines() == [
        "Landlane did not check this commit: its state was deleted (start again: landlane init)",
        "own hook ran",
    ]
    shop.run("init", "--yes", "--no-clients")
    assert shop.run_json("claim", "a", "--as", "ann")["ok"]
    assert "own hook ran" in shop.sh("git switch -q -c x && git commit --quiet --allow-empty -m Now").err


def test_status_needs_no_session(shop: Shell) -> None:
    assert "no sessions, no claims, landing queue empty, no tasks" in shop.run_text("status", "--as", "new")
    assert shop.run_json("status", "--as", "new")["you"] is None
    assert shop.kinds() == ["repository.begun"]

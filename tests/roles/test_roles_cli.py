"""Roles as they are typed: shown, given, kept, and refused wherever somebody steps out of one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from landlane.settings.model import BUILT_IN_ROLES
from tests.support.git import commit_text
from tests.support.shell import LANDLANE, run_at_terminal
from tests.support.snapshots import check_snapshot
from tests.support.transcripts import play

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

SETTINGS = """
[landing]
checks = []
resident = false

[roles.frontend]
like = "code"
summary = "the web pages"
writes = ["web/**"]
connects = [443]

[paths]
tests = ["tests/**", "checks/**"]

[deploy.prod]
"""


def settle(shell: Shell, settings: str = SETTINGS) -> None:
    commit_text(shell.folder, "landlane.toml", settings)
    for name in ("src/a.py", "tests/a.py"):
        path = shell.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("1\n")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Set up")


# ---------------------------------------------------------------------------------------------- showing


def test_role_list_shows_what_is_built_in_and_what_is_defined(shell: Shell) -> None:
    settle(shell)

    roles = {role["name"]: role for role in shell.run_json("role", "list")["roles"]}
    check_snapshot("roles/snapshots/list.txt", play(shell, "role"))

    assert tuple(roles) == (*BUILT_IN_ROLES, "frontend")
    assert roles["frontend"]["writes"] == ["web/**"]
    assert roles["frontend"]["connects"] == [443]
    assert roles["explore"]["verbs"] == []


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "qwen", "copilot", "opencode"])
def test_role_show_says_what_holds_for_a_client_and_what_does_not(shell: Shell, client: str) -> None:
    answer = shell.run_json("role", "show", "review", "--for", client)
    text = shell.run_text("role", "show", "review", "--for", client)

    lines = {line["capability"]: line for line in answer["restrictions"]}
    assert [*lines] == [
        *("edit", "paths", "shell", "network", "subagents", "write outside"),
        *("claim", "commit", "land", "deploy", "approve"),
    ]
    assert {lines[name]["verdict"] for name in ("edit", "paths", "commit", "land", "deploy", "approve")} == {
        "forbidden"
    }
    assert "landing" in lines["edit"]["guards"]
    assert ("client settings" in lines["edit"]["guards"]) == (client != "codex")
    assert answer["guards"]["client_hook"] is False
    assert answer["started_with"]["arguments"] or answer["started_with"]["environment"]
    assert "! the hook of " in text
    assert f"landlane init --client {client}" in text
    assert "! the git hooks are not installed: landlane init" in text


@pytest.mark.sandbox
def test_role_show_says_what_a_role_may_do_and_what_enforces_the_rest(shell: Shell) -> None:
    settle(shell)
    text = play(
        shell,
        "role show code",
        "role show review --for claude",
        "role show frontend",
        "role show test",
        "role show coder",
        "role show code --for emacs",
    )
    check_snapshot("roles/snapshots/show.txt", text)


def test_role_show_refuses_what_is_not_there(shell: Shell) -> None:
    assert shell.run_error("UNKNOWN_ROLE", "role", "show", "coder")["nearest"] == "code"
    shell.run_error("UNKNOWN_CLIENT", "role", "show", "code", "--for", "emacs")


# ---------------------------------------------------------------------------------------------- giving


def test_only_a_person_gives_a_live_session_another_role(shell: Shell) -> None:
    assert shell.run_error("UNKNOWN_ROLE", "join", "ann", "--role", "tester")["nearest"] == "test"
    shell.run_json("join", "ann", "--role", "explore")

    refused = shell.run_error("ROLE_FORBIDS", "join", "ann", "--role", "code", exit=6)
    assert (refused["role"], refused["wanted"]) == ("explore", "code")
    assert shell.run_json("join", "ann")["session"]["role"] == "explore"

    code, said = run_at_terminal(shell, "join", "ann", "--role", "code")
    assert code == 0, said
    assert shell.run_json("join", "ann")["session"]["role"] == "code"
    code, said = run_at_terminal(shell, "join", "ann", "--role", "test", CLAUDECODE="1")
    assert (code, "ROLE_FORBIDS" in said) == (6, True)


def test_whoever_an_agent_starts_has_its_role(shell: Shell) -> None:
    shown = shell.run_json("join", "ann", "--role", "explore")["session"]
    below = shell.with_env(LANDLANE_SESSION=f"{shown['id']}:{shown['secret']}")

    below.run_error("ROLE_FORBIDS", "join", "bob", "--role", "code", exit=6)
    assert below.run_json("join", "bob")["session"]["role"] == "explore"


@pytest.mark.slow
def test_leaving_does_not_shake_a_role_off(shell: Shell) -> None:
    script = f"""
import os, subprocess
def run(*words):
    subprocess.run([{LANDLANE!r}, *words])
run("join", "ann", "--role", "review", "--pid", str(os.getpid()))
run("leave")
run("claim", "src/a.py")
run("join", "ann", "--role", "code")
run("join", "zoe", "--role", "code", "--pid", str(os.getpid()))
run("join", "ann")
run("claim", "src/a.py")
"""
    ended = shell.run_program(sys.executable, "-c", script)

    assert ended.err.count("[ROLE_FORBIDS]") == 3, ended
    assert ended.err.count("[SESSION_OVER]") == 1, ended
    assert {one["agent"]: one["role"] for one in shell.run_json("status")["sessions"]} == {"ann": "review"}


def test_gates_are_for_persons_whatever_the_role(shell: Shell) -> None:
    shell.run_json("join", "ann", "--role", "orchestrator")
    shell.run_error("NOT_A_PERSON", "gate", "approve", "L1", "--as", "ann", exit=6)
    code, said = run_at_terminal(shell, "gate", "approve", "L1", LANDLANE_AGENT="ann")
    assert (code, "NOT_A_PERSON" in said) == (6, True)


# -------------------------------------------------------------------------------------------- enforcing


def test_claim_commit_land_and_deploy_stay_within_the_role(shell: Shell) -> None:
    settle(shell)
    shell.git("switch", "--quiet", "-c", "work")
    for name, role in (("ann", "code"), ("tess", "test"), ("rita", "review"), ("rob", "release")):
        shell.run_json("join", name, "--role", role)
    (shell.folder / "src/a.py").write_text("2\n")
    (shell.folder / "tests/a.py").write_text("2\n")

    assert (
        shell.run_error("ROLE_FORBIDS", "claim", "tests/a.py", "--as", "ann", exit=6)["path"] == "tests/a.py"
    )
    shell.run_error("ROLE_FORBIDS", "claim", "checks/b.py", "--as", "ann", exit=6)
    shell.run_error("ROLE_FORBIDS", "claim", "src/a.py", "--as", "tess", exit=6)
    assert shell.run_error("ROLE_FORBIDS", "claim", "src/a.py", "--as", "rita", exit=6)["verb"] == "claim"
    shell.run_json("claim", "**", "--as", "ann")
    told = shell.run_error(
        "ROLE_FORBIDS", "commit", "-m", "All", "src/a.py", "tests/a.py", "--as", "ann", exit=6
    )
    assert told["paths"] == ["tests/a.py"]
    assert "role show code" in told["hint"]
    shell.run_error("ROLE_FORBIDS", "commit", "-m", "No", "src/a.py", "--as", "rita", exit=6)
    shell.run_json("commit", "-m", "Mine", "src/a.py", "--as", "ann")
    shell.run_error("ROLE_FORBIDS", "land", "--as", "rita", exit=6)
    shell.run_error("ROLE_FORBIDS", "deploy", "prod", "--as", "ann", "--", "true", exit=6)

    shell.git("commit", "--quiet", "--all", "--no-verify", "-m", "Past landlane")
    told = shell.run_error("ROLE_FORBIDS", "land", "--as", "ann", exit=6)
    assert told["paths"] == ["tests/a.py"]
    shell.git("reset", "--quiet", "--hard", "HEAD^")
    landed = shell.run_json("land", "--wait", "--as", "ann")["landing"]
    assert (landed["state"], landed["role"], landed["unidentified"]) == ("landed", "code", [])
    caught = {one["rule"]: one["guards"] for one in shell.run_json("rules", "report")["rules"]}
    guards = {one["guard"] for one in caught["stay in your role"]}
    assert guards == {"claim", "commit", "landing", "deploy"}


def test_a_commit_of_nobody_is_shown(shell: Shell) -> None:
    settle(shell)
    shell.git("switch", "--quiet", "-c", "work")
    (shell.folder / "src/a.py").write_text("2\n")
    shell.git("commit", "--quiet", "--all", "-m", "By hand")
    head = shell.git("rev-parse", "HEAD").strip()
    shell.run_json("claim", "src/a.py", "--as", "ann")

    text = shell.run_text("land", "--wait", "--as", "ann")

    assert f"1 commit without a known agent: {head[:8]}" in text
    assert shell.run_json("queue", "show", "L1")["landing"]["unidentified"] == [head]
    assert f"unknown   agent of {head[:8]}" in shell.run_text("queue", "show", "L1", "-v")


def test_tasks_are_for_roles_that_are_there(shell: Shell) -> None:
    shell.run_error("UNKNOWN_ROLE", "task", "add", "Ship it", "--role", "ops")
    shell.run_json("task", "add", "Ship it", "--role", "release")
    shell.run_json("join", "ann", "--role", "code")
    shell.run_error("ROLE_FORBIDS", "next", "--role", "release", "--as", "ann", exit=6)


def test_settings_that_make_no_sense_are_refused(shell: Shell) -> None:
    settings, words = shell.folder / "landlane.toml", ("init", "--dry-run")
    settings.write_text('[roles.x]\nverbs = ["approve"]\n', encoding="utf-8")
    assert "right to approve" in shell.run_error("SETTINGS_WRONG_TYPE", *words)["message"]
    settings.write_text('[roles.x]\nlike = "coder"\n', encoding="utf-8")
    assert shell.run_error("SETTINGS_UNKNOWN_KEY", *words)["nearest"] == "code"


def test_who_comes_back_by_name_has_the_role_it_had(shell: Shell) -> None:
    settle(shell)
    shell.run_json("join", "rita", "--role", "review")
    rita = shell.with_env(LANDLANE_AGENT="rita")
    rita.run_json("leave")

    assert rita.run_json("join", "rita")["session"]["role"] == "review"
    rita.run_json("leave")
    rita.run_error("ROLE_FORBIDS", "join", "rita", "--role", "code", exit=6)
    rita.run_error("ROLE_FORBIDS", "claim", "src/a.py", exit=6)
    shell.run_error("ROLE_FORBIDS", "claim", "src/a.py", "--as", "rita", exit=6)

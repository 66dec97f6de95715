"""Clients started in a sandbox: their role in their own words, and private copies of settings."""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.clients.as_worker.command import worker_command
from landlane.exec.start_client import client_of, prepare_client_homes, prepare_command
from landlane.git.discovery import HOME_POINTER
from landlane.hooks.edit import check_edit
from landlane.hooks.shell.effects import before_shell
from landlane.processes.tree import ProcessTree
from landlane.protocol.hook_events import NOTHING, HookEvent, HookEventKind, HookVerdict, ToolAction
from landlane.roles.model import BUILT_IN
from landlane.sessions.join import join
from landlane.sessions.sandbox_runs import RunState, begin_run, change_run
from landlane.sessions.tool_calls import list_open_calls
from landlane.settings.model import Settings
from landlane.testing.repositories import git, make_repository
from landlane.values import replace

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.sessions.model import Session

pytestmark = pytest.mark.integration


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    made = tmp_path / "scratch"
    made.mkdir(mode=0o700)
    return made


def words(scratch: Path, workspace: Path, role: str, *command: str) -> list[str]:
    return [*prepare_command(command, BUILT_IN[role], Settings(), str(scratch), str(workspace)).words]


def test_a_client_is_known_by_its_programs_name() -> None:
    assert client_of(["/opt/bin/claude", "-p", "x"]) == "claude"
    assert client_of(["make", "claude"]) == ""


def test_any_other_command_is_started_as_it_is(scratch: Path, tmp_path: Path) -> None:
    assert words(scratch, tmp_path, "review", "make", "--sandbox", "test") == [
        "make",
        "--sandbox",
        "test",
    ]


def test_claude_keeps_its_users_settings_and_loses_the_tools_its_role_has_not(
    scratch: Path, tmp_path: Path
) -> None:
    plain = words(scratch, tmp_path, "review", "claude", "do it")
    assert plain[:2] == ["claude", "do it"]
    assert "Edit" in json.loads(plain[plain.index("--settings") + 1])["permissions"]["deny"]

    own = words(scratch, tmp_path, "review", "claude", "--settings", "own.json", "-p", "do it")
    assert own.count("--settings") == 1
    assert own[own.index("--settings") + 1] == "own.json"
    kept = json.loads((scratch / "clients" / "claude" / "settings.json").read_text())
    assert "Edit" in kept["permissions"]["deny"]
    assert kept["sandbox"] == {"enabled": False}


@pytest.mark.parametrize(
    "given", [["--sandbox", "read-only"], ["-s", "read-only"], ["--sandbox=read-only"], ["--full-auto"], []]
)
def test_codex_has_no_sandbox_of_its_own_inside(scratch: Path, tmp_path: Path, given: list[str]) -> None:
    found = words(scratch, tmp_path, "code", "codex", "exec", *given, "do it", "--", "--sandbox")
    assert found[:3] == ["codex", "exec", "do it"]
    end = found.index("--")
    assert found[found.index("--sandbox") + 1] == "danger-full-access"
    assert found[:end].count("--sandbox") == 1
    assert found[end:] == ["--", "--sandbox"]


def test_codex_runs_the_hooks_of_its_checkout_and_begins_without_our_server(
    scratch: Path, tmp_path: Path
) -> None:
    assert "--dangerously-bypass-hook-trust" not in words(scratch, tmp_path, "code", "codex", "exec", "x")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "hooks.json").write_text("{}")
    (tmp_path / ".codex" / "config.toml").write_text("[mcp_servers.landlane]\ncommand = 'x'\n")
    found = words(scratch, tmp_path, "code", "codex", "exec", "x")
    assert "--dangerously-bypass-hook-trust" in found
    assert "mcp_servers.landlane.required=false" in found


def test_gemini_is_told_once_how_to_ask(scratch: Path, tmp_path: Path) -> None:
    (scratch / "home" / ".gemini").mkdir(parents=True)
    mine = {"tools": {"exclude": ["mine"], "other": 1}, "theme": "x"}
    (scratch / "home" / ".gemini" / "settings.json").write_text(json.dumps(mine))
    found = words(scratch, tmp_path, "review", "gemini", "--yolo", "-p", "x", "--approval-mode=plan")
    assert found == ["gemini", "-p", "x", "--approval-mode", "yolo"]
    joined = json.loads((scratch / "home" / ".gemini" / "settings.json").read_text())
    assert joined["theme"] == "x"
    assert joined["tools"]["other"] == 1
    assert joined["tools"]["exclude"][0] == "mine"
    assert "write_file" in joined["tools"]["exclude"]


def test_opencode_keeps_what_its_user_has_in_the_same_variable(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps({"model": "m", "permission": {"bash": "allow"}}))
    start = prepare_command(["opencode", "run"], BUILT_IN["review"], Settings(), str(scratch), str(tmp_path))
    found = json.loads(dict(start.environment)["OPENCODE_CONFIG_CONTENT"])
    assert (found["model"], found["permission"]["edit"]) == ("m", "deny")


def test_the_users_settings_are_copied_and_the_checkout_is_trusted(
    scratch: Path, tmp_path: Path, sealed_home: Path
) -> None:
    (sealed_home / ".codex").mkdir()
    (sealed_home / ".codex" / "config.toml").write_text('model = "m"\n')
    (sealed_home / ".claude").mkdir()
    (sealed_home / ".claude" / ".credentials.json").write_text("{}")
    (sealed_home / ".claude.json").write_text(json.dumps({"userID": "u", "history": ["private"]}))
    workspace = str(tmp_path / "work 'space'")

    prepare_client_homes(str(scratch), workspace, "/one:/two dir")

    codex = tomllib.loads((scratch / "clients" / "codex" / "config.toml").read_text())
    assert codex == {"model": "m", "projects": {workspace: {"trust_level": "trusted"}}}
    claude = json.loads((scratch / "clients" / "claude" / ".claude.json").read_text())
    assert (claude["userID"], "history" in claude) == ("u", False)
    assert claude["projects"][workspace]["hasTrustDialogAccepted"]
    assert (scratch / "home" / ".profile").read_text() == "export PATH='/one:/two dir'\n"
    made = [path for path in scratch.rglob("*") if path.is_file()]
    assert [path for path in made if os.stat(path).st_mode & 0o077] == []


def test_settings_that_cannot_be_read_are_no_reason_not_to_begin(
    scratch: Path, tmp_path: Path, sealed_home: Path
) -> None:
    (sealed_home / ".codex").mkdir()
    (sealed_home / ".codex" / "config.toml").write_text("not = = toml\n")
    (sealed_home / ".claude.json").write_text("[1, 2")

    prepare_client_homes(str(scratch), str(tmp_path), "/bin")

    assert (scratch / "clients" / "codex" / "config.toml").read_text() == "not = = toml\n"


def test_a_client_as_a_worker_gets_its_role_behind_the_translators_words(
    scratch: Path, tmp_path: Path
) -> None:
    command = worker_command("gemini", model="m", extra=("--yolo", "--debug"))

    found = words(scratch, tmp_path, "code", *command)

    at = found.index("--") + 1
    assert found[:at] == list(command[: command.index("--") + 1])
    assert found[at:] == ["--debug", "--approval-mode", "yolo"]
    assert client_of(command) == "gemini"
    assert words(scratch, tmp_path, "code", *worker_command("aider")) == list(worker_command("aider"))


@pytest.mark.parametrize("client", ["claude", "gemini", "qwen", "copilot", "opencode"])
def test_a_worker_that_proposes_may_edit_and_one_that_explores_may_not(
    scratch: Path, tmp_path: Path, client: str
) -> None:
    def answer(role: str) -> str:
        start = prepare_command(
            worker_command(client), BUILT_IN[role], Settings(), str(scratch / role), str(tmp_path)
        )
        kept = [path.read_text() for path in (scratch / role).rglob("settings.json")]
        return " ".join([*start.words[7:], *dict(start.environment).values(), *kept])

    edit = {
        "claude": '"Edit"',
        "gemini": '"replace"',
        "qwen": "--exclude-tools edit",
        "copilot": "--deny-tool write",
        "opencode": '"edit":"deny"',
    }[client]
    for role in ("explore", "propose"):
        (scratch / role).mkdir()
    assert edit in answer("explore")
    kept = answer("propose")
    assert edit not in kept
    # What its role has not been given otherwise stays away.
    network = {"claude": "WebFetch", "copilot": "--deny-tool url", "opencode": '"webfetch":"deny"'}
    assert network.get(client, "web_fetch") in kept


def test_the_scratch_of_a_run_is_free_to_its_own_session_alone(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "shop", files={"a.py": "x = 1\n"})
    scratch = tmp_path / "landlane-x1"
    git(tmp_path, "clone", "--quiet", str(repository), str(scratch / "checkout"))
    pointer = scratch / "checkout" / ".git" / HOME_POINTER
    pointer.write_text(f"{repository / '.git'}\n")
    repo = open_repository(str(scratch / "checkout"))
    try:
        own = join(repo, "ann", role="review", may_choose_role=True).session
        other = join(repo, "bob", role="review", may_choose_role=True).session
        tree = ProcessTree(id="mark", root=repo.processes.current(), is_wrapped=False)
        facts = {"program": "sh", "home": str(repository / ".git"), "user": 0, "scratch": str(scratch)}
        run = begin_run(repo, own, tree, **facts)
        folder = str(scratch / "checkout")

        def verdict(session: Session, path: str) -> str:
            event = HookEvent(
                client="claude",
                kind=HookEventKind.BEFORE,
                tool=ToolAction.EDIT,
                session="s",
                cwd=folder,
                paths=(path,),
            )
            return check_edit(repo, session, event).verdict

        assert verdict(own, "a.py") != HookVerdict.DENY
        assert verdict(own, str(repository / "a.py")) == HookVerdict.DENY
        assert verdict(other, "a.py") == HookVerdict.DENY
        prepared = replace(repo, checkout=repo.checkout)
        shell = HookEvent(
            client="claude",
            kind=HookEventKind.BEFORE,
            tool=ToolAction.SHELL,
            session="s",
            cwd=folder,
            command="make",
        )
        assert before_shell(prepared, own, shell) == NOTHING
        assert list_open_calls(repo, own.id) == []  # what it does there is not looked at
        before_shell(prepared, other, shell)
        assert len(list_open_calls(repo, other.id)) == 1
        change_run(repo, run, "ended", state=RunState.ENDED)
        assert verdict(own, "a.py") == HookVerdict.DENY
    finally:
        repo.close()

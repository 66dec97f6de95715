"""Whether a client's hooks would fire here: judged by real files of a home and a checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from landlane.clients.canary import make_canary
from landlane.clients.registry import hooks_of, setup_of
from landlane.clients.setup_checks import is_used
from landlane.clients.setup_files import ClientEnvironment, hook_command, hook_script

pytestmark = pytest.mark.integration

NAMES = ("gemini", "qwen", "copilot", "opencode", "cursor")


class HookedCheckout:
    """A checkout with our hooks for a client, and a home."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.home, self.name = root / "repo", root / "home", name
        self.environment: dict[str, str] = {}
        self.setup = setup_of(name)
        self.root.mkdir()
        self.home.mkdir()
        for wanted in self.setup.wanted_files(lambda word, is_guard: hook_command(name, word, is_guard)):
            self.write(wanted.path, wanted.content)
        self.write("~/.gemini/trustedFolders.json", {str(self.root): "TRUST_FOLDER"})
        self.write("~/.copilot/config.json", {"trustedFolders": [str(root)]})

    def path(self, path: str) -> Path:
        return self.home / path[2:] if path.startswith("~/") else self.root / path

    def write(self, path: str, content: object) -> None:
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    def place(self) -> ClientEnvironment:
        return ClientEnvironment(
            root=str(self.root), home=str(self.home), search_path="", variables=self.environment
        )

    def open_troubles(self) -> list[str]:
        return [found.what for found in self.setup.find_problems(self.place(), lambda _: "") if found.is_open]

    def troubles(self) -> list[str]:
        return [found.what for found in self.setup.find_problems(self.place(), lambda _: "")]

    def our_file(self) -> str:
        return self.setup.wanted_files(lambda _word, _is_guard: "x")[0].path


@pytest.mark.parametrize("name", NAMES)
def test_what_we_write_is_what_we_look_for(tmp_path: Path, name: str) -> None:
    world = HookedCheckout(tmp_path, name)
    assert world.open_troubles() == []
    assert is_used(world.place(), name)
    assert all("seconds" in what for what in world.troubles())


@pytest.mark.parametrize("name", NAMES)
def test_missing_file_is_an_open_problem(tmp_path: Path, name: str) -> None:
    world = HookedCheckout(tmp_path, name)
    world.path(world.our_file()).unlink()
    assert world.open_troubles() != []


@pytest.mark.parametrize("name", NAMES)
def test_truncated_file_is_an_open_problem(tmp_path: Path, name: str) -> None:
    world = HookedCheckout(tmp_path, name)
    file = world.path(world.our_file())
    file.write_text(file.read_text()[:-60])
    assert world.open_troubles() != []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gone", [sys.executable, hook_script()])
def test_hook_without_its_program_is_reported(tmp_path: Path, name: str, gone: str) -> None:
    world = HookedCheckout(tmp_path, name)
    file = world.path(world.our_file())
    file.write_text(file.read_text().replace(gone, "/gone" + gone))
    assert any("/gone" in what for what in world.troubles())
    assert world.open_troubles() == []


@pytest.mark.parametrize("name", ["gemini", "qwen", "copilot"])
def test_guard_for_too_few_tools_is_an_open_problem(tmp_path: Path, name: str) -> None:
    world = HookedCheckout(tmp_path, name)
    file = world.path(world.our_file())
    narrowed = file.read_text().replace("write_file|", "").replace("create|", "")
    file.write_text(narrowed)
    assert world.open_troubles() != []


SWITCHES: list[tuple[str, str, dict[str, Any]]] = [
    ("gemini", "~/.gemini/settings.json", {"hooksConfig": {"enabled": False}}),
    ("qwen", "~/.qwen/settings.json", {"disableAllHooks": True}),
    ("copilot", ".github/copilot/settings.json", {"disableAllHooks": True}),
    ("copilot", ".github/copilot/settings.local.json", {"disableAllHooks": True}),
    ("copilot", ".claude/settings.local.json", {"disableAllHooks": True}),
    ("copilot", "~/.copilot/config.json", {"trustedFolders": ["/elsewhere"]}),
    ("gemini", "~/.gemini/trustedFolders.json", {"/": "DO_NOT_TRUST"}),
    ("qwen", "~/.qwen/settings.json", {"security": {"folderTrust": {"enabled": True}}}),
]


@pytest.mark.parametrize(("name", "path", "content"), SWITCHES)
def test_settings_that_switch_hooks_off_are_found(
    tmp_path: Path, name: str, path: str, content: dict[str, Any]
) -> None:
    world = HookedCheckout(tmp_path, name)
    world.write(path, content)
    assert len(world.open_troubles()) == 1


@pytest.mark.parametrize(
    ("name", "variable", "setting"),
    [
        ("gemini", "GEMINI_CLI_TRUST_WORKSPACE", "false"),
        ("gemini", "GEMINI_RESTRICTED_MODE", "true"),
        ("qwen", "QWEN_CODE_SAFE_MODE", "true"),
        ("opencode", "OPENCODE_PURE", "1"),
        ("opencode", "OPENCODE_DISABLE_PROJECT_CONFIG", "true"),
    ],
)
def test_an_environment_that_switches_hooks_off_is_found(
    tmp_path: Path, name: str, variable: str, setting: str
) -> None:
    world = HookedCheckout(tmp_path, name)
    world.environment[variable] = setting
    assert len(world.open_troubles()) == 1


def test_a_hook_of_gemini_that_is_switched_off_by_name_is_found(tmp_path: Path) -> None:
    world = HookedCheckout(tmp_path, "gemini")
    guard = hook_command("gemini", "BeforeTool", is_guard=True)
    world.write("~/.gemini/settings.json", {"hooksConfig": {"disabled": [guard]}})
    assert len(world.open_troubles()) == 1


def test_an_event_that_cursor_may_not_know_is_found(tmp_path: Path) -> None:
    world = HookedCheckout(tmp_path, "cursor")
    hooks = json.loads(world.path(".cursor/hooks.json").read_text())
    hooks["hooks"]["PreToolUse"] = []
    world.write(".cursor/hooks.json", hooks)
    assert ["PreToolUse" in what for what in world.open_troubles()] == [True]


def test_an_edited_plugin_of_opencode_is_found(tmp_path: Path) -> None:
    world = HookedCheckout(tmp_path, "opencode")
    file = world.path(world.our_file())
    file.write_text(
        file.read_text().replace("throw new Error(String(answer.deny)", "console.log((answer.deny)")
    )
    assert len(world.open_troubles()) == 1


def test_settings_may_hold_comments(tmp_path: Path) -> None:
    world = HookedCheckout(tmp_path, "gemini")
    file = world.path(world.our_file())
    file.write_text("// mine\n" + file.read_text()[:-1] + ',\n/* more */ "ui": {"theme": "a // b", },}')
    assert world.open_troubles() == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["edit", "shell"])
def test_a_canary_is_read_as_a_guarded_call(name: str, kind: str) -> None:
    canary = make_canary(name, kind, "/repo", "/repo/a.py", "s1", "")
    hooks = hooks_of(name)
    event = hooks.read(canary.event_name, canary.payload, canary.variables)
    assert (event.kind, event.tool, event.session, event.cwd) == ("before", kind, "s1", "/repo")
    assert event.paths == (("/repo/a.py",) if kind == "edit" else ())
    refused = hooks.refuse(canary.event_name, "no")
    assert hooks.is_denial(canary.event_name, refused.exit_code, refused.stdout)


@pytest.mark.parametrize("name", ["qwen", "copilot", "opencode"])
def test_a_canary_can_be_a_subagent(name: str) -> None:
    canary = make_canary(name, "edit", "/repo", "/repo/a.py", "s1", "child")
    event = hooks_of(name).read(canary.event_name, canary.payload, canary.variables)
    assert (event.session, event.agent) == ("s1", "child")


def test_a_gemini_hook_that_cannot_start_does_not_throw_prompts_away() -> None:
    hooks = (
        setup_of("gemini").wanted_files(lambda _word, is_guard: "exit 2" if is_guard else "/gone")[0].content
    )
    for event, groups in hooks["hooks"].items():
        line = groups[0]["hooks"][0]["command"]
        ended = subprocess.run(["/bin/sh", "-c", line], check=False, capture_output=True)
        assert (event, ended.returncode) == (event, 2 if event == "BeforeTool" else 1)

"""`landlane doctor` names hooks that call a missing program, in the files of every client and of git."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.clients.model import HOOK_CLIENTS
from landlane.clients.opencode.setup import plugin_text
from landlane.clients.registry import setup_of
from landlane.clients.setup_files import environment_at, hook_command
from landlane.doctor.examine import examine
from landlane.doctor.hook_programs import check_hook_programs
from landlane.git.discovery import find_checkout
from landlane.setup.init import InitOptions, carry_out, plan_init
from landlane.testing.repositories import git

if TYPE_CHECKING:
    from landlane.doctor.check import Check

pytestmark = pytest.mark.integration

GONE = "/nowhere/venv/bin/python -I -S /nowhere/other_tool/hook.py"


def look(repository: Path) -> Check:
    return check_hook_programs(find_checkout(str(repository)))


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def shared_layout(*commands: str) -> dict[str, Any]:
    """Hooks as Claude Code, Codex, Gemini CLI and Qwen Code write them."""
    entries = [{"type": "command", "command": command, "timeout": 30} for command in commands]
    return {"hooks": {"PreToolUse": [{"matcher": "Edit|Write", "hooks": entries}]}}


def flat_layout(key: str, *commands: str) -> dict[str, Any]:
    """Hooks as Copilot CLI and Cursor write them."""
    return {"version": 1, "hooks": {"preToolUse": [{key: command} for command in commands]}}


def text_for(name: str, path: str, command: str) -> str:
    """The content of a client's file of hooks with one command in it."""
    if path.endswith(".toml"):
        return f"[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ncommand = {json.dumps(command)}\n"
    if name == "opencode":
        return plugin_text(command.split())
    if name in ("copilot", "cursor"):
        return json.dumps(flat_layout("bash" if name == "copilot" else "command", command))
    return json.dumps(shared_layout(command))


FILES = [
    ("claude", ".claude/settings.json"),
    ("claude", ".claude/settings.local.json"),
    ("claude", "~/.claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("codex", ".codex/config.toml"),
    ("codex", "~/.codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
    ("gemini", "~/.gemini/settings.json"),
    ("qwen", ".qwen/settings.json"),
    ("copilot", ".github/hooks/other.json"),
    ("copilot", "~/.copilot/hooks/other.json"),
    ("cursor", ".cursor/hooks.json"),
    ("opencode", ".opencode/plugins/other.js"),
]


def test_every_client_says_where_its_hooks_are(repository: Path) -> None:
    place = environment_at(str(repository))

    assert {name for name, _ in FILES} == set(HOOK_CLIENTS)
    for name in HOOK_CLIENTS:
        assert all(os.path.isabs(path) for path in setup_of(name).hook_files(place)), name


@pytest.mark.parametrize(("name", "path"), FILES)
def test_a_hook_of_a_client_whose_program_is_gone_is_named(
    repository: Path, sealed_home: Path, name: str, path: str
) -> None:
    file = sealed_home / path[2:] if path.startswith("~/") else repository / path
    before = write(file, text_for(name, path, GONE)).read_bytes()

    found = look(repository)

    assert not found.is_ok
    shown = str(file) if path.startswith("~/") else path
    assert (
        f"the hook in {shown} calls /nowhere/venv/bin/python, which does not exist: `{GONE}`" in found.found
    )
    assert "remove the hook from its file" in found.hint
    assert file.read_bytes() == before


@pytest.mark.parametrize(("name", "path"), FILES)
def test_a_hook_of_a_client_whose_program_exists_passes(
    repository: Path, sealed_home: Path, name: str, path: str
) -> None:
    file = sealed_home / path[2:] if path.startswith("~/") else repository / path
    write(file, text_for(name, path, "/bin/sh -c true"))

    assert look(repository).is_ok


def test_a_name_that_is_not_on_path_is_named(repository: Path) -> None:
    write(repository / ".claude/settings.json", json.dumps(shared_layout("no-such-tool hook", "sh -c :")))

    found = look(repository)

    assert "calls no-such-tool, which is not on PATH: `no-such-tool hook`" in found.found


def test_a_script_that_is_gone_is_named_though_its_interpreter_is_there(repository: Path) -> None:
    write(repository / ".gemini/settings.json", json.dumps(shared_layout("/bin/sh /nowhere/hook.sh")))

    assert "calls /nowhere/hook.sh, which does not exist" in look(repository).found


def test_many_hooks_of_one_tool_are_named_together(repository: Path) -> None:
    write(
        repository / ".codex/hooks.json",
        json.dumps(shared_layout(*(f"{GONE} {number}" for number in range(9)))),
    )

    found = look(repository).found

    assert "9 hooks in .codex/hooks.json call /nowhere/venv/bin/python, which does not exist" in found
    assert found.count("/nowhere/venv/bin/python, which") == 1


@pytest.mark.parametrize(
    "command",
    [
        "command -v no-such-tool >/dev/null && no-such-tool hook",
        "[ -x /nowhere/tool ] && /nowhere/tool",
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh',
        ".claude/hooks/check.sh",
        "if command -v no-such-tool; then no-such-tool; else true; fi",
        "/nowhere/tool || /bin/true",
        "PATH=$PATH:/opt no-such-tool",
        "cd /tmp; . ./env; no-such-tool",
        "echo '/nowhere/tool'",
        "if [ unclosed",
        "'",
        "",
    ],
)
def test_uncertain_calls_pass(repository: Path, command: str) -> None:
    write(repository / ".claude/settings.json", json.dumps(shared_layout(command)))

    assert look(repository).is_ok


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"hooks": 5}',
        '{"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt", "command": "/nowhere/x"}]}]}}',
        '{"hooks": {"PreToolUse": [{"hooks": [{"command": 5}]}]}}',
        '{"statusLine": {"command": "/nowhere/x"}}',
    ],
)
def test_a_file_without_hooks_passes(repository: Path, text: str) -> None:
    write(repository / ".gemini/settings.json", text)

    assert look(repository).is_ok


def test_settings_with_comments_are_read(repository: Path) -> None:
    text = json.dumps(shared_layout(GONE)).replace('{"hooks"', '{ // ours\n"hooks"', 1)
    write(repository / ".gemini/settings.json", text)

    assert not look(repository).is_ok


def test_our_own_hooks_are_not_checked_for_missing_programs(repository: Path) -> None:
    command = hook_command("claude", "PreToolUse", is_guard=True).replace("/bin/python", "/bin/no-python")
    write(repository / ".claude/settings.local.json", json.dumps(shared_layout(command)))

    assert look(repository).is_ok


def test_hooks_of_the_main_checkout_are_checked_from_a_linked_worktree(repository: Path) -> None:
    write(repository / ".claude/settings.local.json", json.dumps(shared_layout(GONE)))
    git(repository, "worktree", "add", "--quiet", "../linked")

    assert str(repository / ".claude/settings.local.json") in look(repository.parent / "linked").found


# ----------------------------------------------------------------------------------------------- git


@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("#!/nowhere/python\n", "/nowhere/python"),
        ("#!/usr/bin/env no-such-interpreter\n", "no-such-interpreter"),
        ('#!/bin/sh\nexec /nowhere/tool run "$@"\n', "/nowhere/tool"),
        ("#!/bin/sh\nset -e\n/bin/sh /nowhere/check.sh || exit 1\n", "/nowhere/check.sh"),
    ],
)
def test_a_git_hook_whose_program_is_gone_is_named(repository: Path, script: str, program: str) -> None:
    hook = write(repository / ".git/hooks/pre-commit", script, 0o755)

    found = look(repository)

    assert f"the hook in .git/hooks/pre-commit calls {program}, which" in found.found
    assert hook.read_text(encoding="utf-8") == script


@pytest.mark.parametrize(
    ("name", "script", "mode"),
    [
        ("pre-commit", "#!/bin/sh\nno-such-tool\n", 0o755),  # it may be found on another PATH
        ("pre-commit", "#!/bin/sh\n[ -x /nowhere/tool ] && exec /nowhere/tool\n", 0o755),
        ("pre-commit", '#!/bin/sh\nif [ -n "$CI" ]; then\n/nowhere/tool\nfi\n', 0o755),
        ("pre-commit", "#!/usr/bin/env python3\n/nowhere/tool\n", 0o755),
        ("pre-commit", "/nowhere/tool\n", 0o755),
        ("pre-commit", "#!/nowhere/python\n", 0o644),  # git does not run it
        ("pre-commit.sample", "#!/nowhere/python\n", 0o755),
    ],
)
def test_a_git_hook_that_can_run_passes(repository: Path, name: str, script: str, mode: int) -> None:
    write(repository / ".git/hooks" / name, script, mode)

    assert look(repository).is_ok


@pytest.mark.parametrize("folder", [".hooks", "{root}/.git/other_tool/githooks"])
def test_the_configured_hooks_folder_is_checked(repository: Path, folder: str) -> None:
    path = repository / folder.format(root=repository)
    write(path / "pre-push", "#!/bin/sh\n/nowhere/tool\n", 0o755)
    git(repository, "config", "core.hooksPath", folder.format(root=repository))

    assert "pre-push calls /nowhere/tool, which does not exist: `/nowhere/tool`" in look(repository).found


def test_user_hooks_that_our_hooks_call_are_checked(repository: Path) -> None:
    write(repository / ".git/other_tool/pre-commit", f"#!/bin/sh\n{GONE}\n", 0o755)
    git(repository, "config", "core.hooksPath", ".git/other_tool")
    carry_out(plan_init(str(repository), InitOptions(clients=())))

    found = look(repository)

    assert "the hook in .git/other_tool/pre-commit calls /nowhere/venv/bin/python" in found.found


# --------------------------------------------------------------------------------------- the whole doctor


@pytest.mark.promise(
    "doctor.names-missing-programs",
    "`landlane doctor` names hooks that call a missing program, and leaves them as they are.",
)
def test_the_doctor_names_the_hooks_and_leaves_them_alone(repository: Path) -> None:
    settings = write(repository / ".claude/settings.json", json.dumps(shared_layout(GONE)))
    hook = write(repository / ".git/hooks/pre-commit", "#!/nowhere/python\n", 0o755)
    before = settings.read_bytes(), hook.read_bytes()

    for fix in (False, True):
        (check,) = [one for one in examine(str(repository), fix=fix) if one.name == "hook programs"]
        assert not check.is_ok
        assert ".claude/settings.json" in check.found
        assert ".git/hooks/pre-commit" in check.found

    assert (settings.read_bytes(), hook.read_bytes()) == before

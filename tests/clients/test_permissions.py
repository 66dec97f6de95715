"""A role in a client's own words: what the client itself refuses when it is started with them."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from landlane.clients.model import CLIENTS as ROWS
from landlane.clients.registry import permissions_for
from landlane.clients.worker_adapter import Permissions
from landlane.roles.model import BUILT_IN
from tests.support.real_clients import Codex

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.real_clients import Client, ClientTestbed

pytestmark = pytest.mark.client

OLD, NEW = "    return a - b", "    return a + b"
OWN_OPTIONS = ("--approval-mode", "--allow-all-tools", "--sandbox")  # which the harness gives by itself


def started_in(client: Client, role: str, *denied: str) -> tuple[Client, list[str]]:
    """The client as we would start it in a role, and what is added to its options."""
    answer = permissions_for(client.name, BUILT_IN[role], denied, is_sandboxed=client.name != "codex")
    if client.name == "codex":
        return Codex(sandbox=answer.arguments[1]), list(answer.arguments[2:])

    def home_files(here: Path) -> dict[str, Any]:
        files = client.home_files(here)
        if answer.settings_file:
            files[answer.settings_file] = {**_table(files, answer), **answer.settings}
        return files

    def environment(url: str) -> dict[str, str]:
        given = client.environment(url)
        for name, text in answer.environment.items():
            given[name] = json.dumps({**json.loads(given.get(name, "{}")), **json.loads(text)})
        return given

    bound = copy.copy(client)
    bound.home_files = home_files  # type: ignore[method-assign]
    bound.environment = environment  # type: ignore[method-assign]
    return bound, _without_own(list(answer.arguments))


def _table(files: dict[str, Any], answer: Permissions) -> dict[str, Any]:
    found = files.get(answer.settings_file, {})
    return found if isinstance(found, dict) else json.loads(found)


def _without_own(words: list[str]) -> list[str]:
    for own in OWN_OPTIONS:
        if own in words:
            at = words.index(own)
            has_value = at + 1 < len(words) and not words[at + 1].startswith("-")
            del words[at : at + 1 + has_value]
    return words


def test_a_client_refuses_its_own_edit_tools_to_a_role_that_changes_nothing(
    client: Client, world: ClientTestbed
) -> None:
    bound, options = started_in(client, "review")
    turns = client.edit("calc.py", OLD, NEW) + client.write("new.txt", "new\n") + client.say("done")

    result = world.run(bound, {"main": turns}, arguments=options)

    assert result.turns("main"), result.err or result.out
    assert result.files == {"calc.py": f"def add(a, b):\n{OLD}\n", "free.py": "x = 1\n"}, result.out


def test_a_client_lets_a_role_that_writes_edit_and_run_commands(client: Client, world: ClientTestbed) -> None:
    bound, options = started_in(client, "code")
    turns = client.edit("calc.py", OLD, NEW) + client.shell("echo shell > by_shell.txt") + client.say("done")

    result = world.run(bound, {"main": turns}, arguments=options)

    assert result.code == 0, result.err or result.out
    assert result.files["calc.py"] == f"def add(a, b):\n{NEW}\n", result.out
    if client.name != "codex":  # whose own sandbox is on outside ours
        assert result.files["by_shell.txt"] == "shell\n"


def test_a_client_marks_the_commands_that_it_runs_as_its_own(client: Client, world: ClientTestbed) -> None:
    """By these variables a command is known to come from a client, and not from a person."""
    result = world.run(client, {"main": client.shell("env > env.txt") + client.say("done")})

    names = {line.partition("=")[0] for line in result.files["env.txt"].splitlines()}
    assert names & set(ROWS[client.name].variables), sorted(names)


@pytest.mark.xdist_group("clients-1")
def test_claude_is_started_with_its_denied_paths(world: ClientTestbed, need: Any) -> None:
    client = need("claude")
    bound, options = started_in(client, "code", "tests/**", "**/.gitattributes")
    turns = (
        client.write("tests/evil.py", "x\n")
        + client.write("src/.gitattributes", "* filter=x\n")
        + client.write("src/good.py", "x\n")
        + client.say("done")
    )

    result = world.run(bound, {"main": turns}, arguments=options)

    assert result.code == 0, result.err or result.out
    assert sorted(result.files) == ["calc.py", "free.py", "src/good.py"], result.out

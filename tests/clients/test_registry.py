"""The coding clients and their tools stand in one table each, and everything else agrees with it."""

from __future__ import annotations

import os
from importlib import import_module

import pytest

from landlane.cli.parse import find_command
from landlane.clients.calling_process import why_not_a_person
from landlane.clients.model import (
    CLIENTS,
    EDIT,
    HOOK_CLIENTS,
    ROLE_CLIENTS,
    SHELL,
    VARIABLE_PREFIXES,
    WORKER_CLIENTS,
)
from landlane.clients.registry import adapter_of, permissions_for
from landlane.plans.model import AGENTS
from landlane.resident.messages import shared_environment
from landlane.roles.model import BUILT_IN

pytestmark = pytest.mark.unit


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input and error are a terminal, and no client has set a variable."""
    monkeypatch.setattr(os, "isatty", lambda _: True)
    for name in [name for name in os.environ if name.startswith(VARIABLE_PREFIXES)]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("client", HOOK_CLIENTS)
def test_a_command_that_a_client_runs_is_not_a_persons(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_not_a_person() == ""
    assert CLIENTS[client].variables
    for name in CLIENTS[client].variables:
        monkeypatch.setenv(name, "1")
        assert name in why_not_a_person()
        monkeypatch.delenv(name)


@pytest.mark.parametrize("client", ["claude", "gemini", "qwen"])
def test_a_role_without_a_kind_of_tools_excludes_every_tool_of_that_kind(client: str) -> None:
    tools = import_module(f"landlane.clients.{client}.hook").TOOLS
    explore = BUILT_IN["explore"]  # neither edits nor commands

    made = permissions_for(client, explore)

    excluded = str(made.settings)
    for name in (*tools.of_kind(EDIT), *([] if SHELL in explore.tools else tools.of_kind(SHELL))):
        assert f"'{name}'" in excluded


def test_the_monitor_of_qwen_is_excluded_like_any_other_shell() -> None:
    class NoShell:
        tools = ("edit", "network", "agents")
        is_read_only = False

    made = permissions_for("qwen", NoShell())

    assert made.settings["tools"]["exclude"] == ["run_shell_command", "monitor"]
    assert made.arguments[-4:] == ("--exclude-tools", "run_shell_command", "--exclude-tools", "monitor")


def test_lists_of_clients_elsewhere_name_the_same_clients() -> None:
    assert AGENTS == (*CLIENTS, "command")
    hook = find_command("hook")
    assert hook is not None
    assert hook.details.partition(": ")[2].rstrip(".").replace(" or ", ", ").split(", ") == list(HOOK_CLIENTS)
    assert {name for name in WORKER_CLIENTS if adapter_of(name).permissions} == set(ROLE_CLIENTS)
    assert all(CLIENTS[name].install for name in WORKER_CLIENTS)


@pytest.mark.parametrize("client", HOOK_CLIENTS)
def test_resident_gets_the_variables_of_a_client(client: str) -> None:
    given = {name.encode(): b"1" for name in CLIENTS[client].variables}
    assert shared_environment(given) == given
    assert all(name.startswith(VARIABLE_PREFIXES) for name in CLIENTS[client].variables)

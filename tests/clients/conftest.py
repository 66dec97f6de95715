"""Real clients for the tests here: which ones, where they are, and a throw-away world for each test."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from landlane.values import replace
from tests.support.command_server import Forked, can_fork
from tests.support.real_clients import CLIENTS, ClientTestbed, clients_folder, program_of
from tests.support.real_clients.environment import CALL_SECONDS
from tests.support.shell import LANDLANE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.support.real_clients import Client, Launch, Running

# Read now: the sealed home of a test takes both variables away.
CHOSEN = os.environ.get("LANDLANE_TEST_CLIENTS", "claude codex gemini").split()
FOLDER = clients_folder()

# Two groups, so that at most two tests with clients run at once: each client is worth several processes.
GROUPS = {
    "claude": "clients-1",
    "codex": "clients-1",
    "opencode": "clients-1",
    "gemini": "clients-2",
    "qwen": "clients-2",
    "copilot": "clients-2",
}


def find_client(name: str) -> Client:
    """The client of this name, or the end of the test in a visible skip."""
    if program_of(name, FOLDER) is None:
        pytest.skip(f"no {name}: `scripts/clients.sh --again {name}` installs it")
    return CLIENTS[name]


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(GROUPS[name])) for name in CHOSEN])
def client(request: pytest.FixtureRequest) -> Client:
    """Each chosen client in turn."""
    return find_client(request.param)


@pytest.fixture
def need() -> Callable[[str], Client]:
    """Gives the client of a name. A test that names its clients also names its `xdist_group`."""
    return find_client


# Starts a client without the MCP server that `init` wrote into its settings.
WITHOUT_TOOLS = {
    "claude": ("--strict-mcp-config",),
    "codex": ("-c", "mcp_servers.landlane.enabled=false"),
    "gemini": ("--allowed-mcp-server-names", "none"),
    "qwen": ("--allowed-mcp-server-names", "none"),
}


# Commands that may start a client: it must have the network of this world, where the scripted model is.
STARTS_A_CLIENT = ("init", "exec", "run", "doctor")


class CachedClientTestbed(ClientTestbed):
    """A world in which Node.js compiles a client once, and our own commands are forked."""

    def __init__(self, compiled: Path) -> None:
        super().__init__(clients=FOLDER)
        self.has_tools = True
        self._compiled = compiled

    def launch(self, launch: Launch) -> Running:
        if not self.has_tools:
            more = WITHOUT_TOOLS.get(launch.client.name, ())
            launch = replace(launch, arguments=(*launch.arguments, *more))
        return super().launch(launch)

    def environment(self, home: str = "home") -> dict[str, str]:
        return {**super().environment(home), "NODE_COMPILE_CACHE": str(self._compiled)}

    def call(
        self,
        *words: str,
        home: str = "home",
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        check: bool = True,
        seconds: float = CALL_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        given = {**self.environment(home), **(environment or {})}
        if words[0] != "landlane" or words[1] in STARTS_A_CLIENT or not can_fork(given):
            return super().call(
                *words, home=home, cwd=cwd, environment=environment, check=check, seconds=seconds
            )
        forked = Forked([LANDLANE, *words[1:]], str(cwd or self.repository), given)
        out, err = forked.communicate(seconds)
        done = subprocess.CompletedProcess(list(words), forked.wait(), out.decode(), err.decode())
        if check:
            done.check_returncode()
        return done


@pytest.fixture
def without_tools(world: CachedClientTestbed) -> None:
    """Clients do not start our MCP server: its SDK costs as much as some clients do."""
    world.has_tools = False


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CachedClientTestbed]:
    """A throw-away world. It has no hooks: those are what a test sets up."""
    with CachedClientTestbed(tmp_path_factory.getbasetemp() / "compiled") as made:
        yield made

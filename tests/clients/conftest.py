"""Real clients for the tests here: which ones, where they are, and a throw-away world for each test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.real_clients import CLIENTS, World, clients_folder, program_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.real_clients import Client

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


@pytest.fixture
def world() -> Iterator[World]:
    """A throw-away world. It has no hooks: those are what a test sets up."""
    with World(clients=FOLDER) as made:
        yield made

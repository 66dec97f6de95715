"""A real client in a repository that `landlane init` set up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.real_clients import Codex

if TYPE_CHECKING:
    from tests.support.real_clients import Client, ClientTestbed


def set_up(world: ClientTestbed, client: Client) -> Client:
    """Protect the world's repository; Codex runs hooks as its user trusts them, not by its bypass."""
    world.add_home_files(client)
    world.call("landlane", "init", "--yes", "--client", client.name)
    return Codex(bypass_trust=False) if client.name == "codex" else client


def ask(world: ClientTestbed, *words: str) -> dict[str, Any]:
    """Run a command in the world and return its answer."""
    return json.loads(world.call("landlane", *words, "--json", check=False).stdout)

"""Run real coding clients, cut off from every network, against a scripted model: see `ClientTestbed`."""

from __future__ import annotations

from tests.support.real_clients.claude import Claude
from tests.support.real_clients.client import Client, Scripts, clients_folder, program_of
from tests.support.real_clients.codex import Codex
from tests.support.real_clients.codex_trust import list_codex_hooks, trust_hooks
from tests.support.real_clients.copilot import Copilot
from tests.support.real_clients.environment import ClientTestbed, Launch, Result, Running
from tests.support.real_clients.gemini import Gemini
from tests.support.real_clients.opencode import OpenCode
from tests.support.real_clients.qwen import Qwen

CLIENTS: dict[str, Client] = {
    client.name: client for client in (Claude(), Codex(), Gemini(), Qwen(), Copilot(), OpenCode())
}

__all__ = [
    "CLIENTS",
    "Claude",
    "Client",
    "Codex",
    "Copilot",
    "Gemini",
    "Launch",
    "OpenCode",
    "Qwen",
    "Result",
    "Running",
    "Scripts",
    "ClientTestbed",
    "clients_folder",
    "list_codex_hooks",
    "program_of",
    "trust_hooks",
]

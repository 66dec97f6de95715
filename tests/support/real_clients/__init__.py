"""Run real coding clients, cut off from every network, against a scripted model: see `World`."""

from __future__ import annotations

from tests.support.real_clients.claude import Claude
from tests.support.real_clients.client import Client, Scripts, clients_folder, program_of
from tests.support.real_clients.codex import Codex
from tests.support.real_clients.codex_trust import hooks_seen_by_codex, trust_hooks
from tests.support.real_clients.copilot import Copilot
from tests.support.real_clients.environment import Launch, Result, Running, World
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
    "World",
    "clients_folder",
    "hooks_seen_by_codex",
    "program_of",
    "trust_hooks",
]

"""OpenAI Codex, run without a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.real_clients.client import Client, call

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.scripted_model.api_formats import Json, Turn

# With these on, Codex waits some seconds at its end for hosts it cannot reach.
_OFF = ("plugins", "apps", "remote_plugin", "plugin_discovery_prefetch")
_PROVIDER = "model_providers.scripted"


class Codex(Client):
    """Codex, with a model that has the classic tools.

    It skips hooks that its user has not trusted. With `bypass_trust` it runs them all the same; without, what
    the home says of trust decides.
    """

    name = "codex"

    def __init__(
        self, *, bypass_trust: bool = True, model: str = "gpt-5.5", sandbox: str = "danger-full-access"
    ) -> None:
        self.bypass_trust = bypass_trust
        self.model = model
        self.sandbox = sandbox

    def edit(self, path: str, old: str, new: str, *, read: bool = True) -> list[Turn]:
        del read
        lines = [f"-{line}" for line in old.split("\n")] + [f"+{line}" for line in new.split("\n")]
        return _patch(f"*** Update File: {path}", "@@", *lines)

    def write(self, path: str, text: str) -> list[Turn]:
        return _patch(f"*** Add File: {path}", *(f"+{line}" for line in text.removesuffix("\n").split("\n")))

    def read(self, path: str) -> list[Turn]:
        return self.shell(f"cat '{path}'")

    def shell(self, command: str) -> list[Turn]:
        return call("exec_command", cmd=command)

    def subagent(self, script: str) -> list[Turn]:
        task = {"message": self.prompt_for(script), "agent_type": "default"}
        # Subagents run beside the main agent, which waits here for the end of theirs.
        waited = [[{"after": script}, *self.shell("true")[0]]]
        return [[{"tool": "spawn_agent", "namespace": "multi_agent_v1", "input": task}], *waited]

    def command(self, url: str, prompt: str) -> list[str]:
        settings: Json = {
            "model": self.model,
            "model_provider": "scripted",
            "approval_policy": "never",
            "check_for_update_on_startup": False,
            "analytics.enabled": False,
            f"{_PROVIDER}.name": "scripted",
            f"{_PROVIDER}.base_url": f"{url}/v1",
            f"{_PROVIDER}.env_key": "SCRIPTED_KEY",
            f"{_PROVIDER}.wire_api": "responses",
            f"{_PROVIDER}.request_max_retries": 0,
            f"{_PROVIDER}.stream_max_retries": 0,
            f"{_PROVIDER}.supports_websockets": False,
            **{f"features.{feature}": False for feature in _OFF},
        }
        # As options and not in the home, which stays as its user made it.
        options = [word for key, item in settings.items() for word in ("-c", f"{key}={json.dumps(item)}")]
        trust = ["--dangerously-bypass-hook-trust"] if self.bypass_trust else []
        return ["exec", "--json", "--sandbox", self.sandbox, *trust, *options, prompt]

    def environment(self, url: str) -> dict[str, str]:
        del url
        return {"SCRIPTED_KEY": "dummy"}

    def home_files(self, here: Path) -> dict[str, str | Json]:
        trusted = f'[projects.{json.dumps(str(here))}]\ntrust_level = "trusted"\n'
        return {".codex/config.toml": trusted}


def _patch(*lines: str) -> list[Turn]:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))
    return [[{"tool": "apply_patch", "raw": text}]]

"""opencode, run without a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.real_clients.client import Client, at, call

if TYPE_CHECKING:
    from tests.support.scripted_model.api_formats import Json, Turn


class OpenCode(Client):
    """opencode. It edits only what it has read."""

    name = "opencode"

    def edit(self, path: str, old: str, new: str, *, read: bool = True) -> list[Turn]:
        edit = call("edit", filePath=at(path), oldString=old, newString=new)
        return self.read(path) + edit if read else edit

    def write(self, path: str, text: str) -> list[Turn]:
        return call("write", filePath=at(path), content=text)

    def read(self, path: str) -> list[Turn]:
        return call("read", filePath=at(path))

    def shell(self, command: str) -> list[Turn]:
        return call("bash", command=command, description="as scripted")

    def subagent(self, script: str) -> list[Turn]:
        return call(
            "task", description="as scripted", prompt=self.prompt_for(script), subagent_type="general"
        )

    def command(self, url: str, prompt: str) -> list[str]:
        del url
        return ["run", "--format", "json", prompt]

    def environment(self, url: str) -> dict[str, str]:
        model: Json = {
            "name": "scripted",
            "tool_call": True,
            "limit": {"context": 100_000, "output": 8_000},
        }
        provider: Json = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
            "models": {"scripted": model},
        }
        settings: Json = {
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"scripted": provider},
        }
        return {
            # Above the home's and the project's settings, which stay as their owner made them.
            "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_SHARE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            # Else any plugin makes it wait for an npm install that cannot be done here.
            "npm_config_offline": "true",
        }

"""Qwen Code, run without a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.real_clients.client import Client, at, call

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.scripted_model.api_formats import Json, Turn


class Qwen(Client):
    """Qwen Code: a fork of Gemini CLI that speaks OpenAI's language. It edits only what it has read."""

    name = "qwen"

    def edit(self, path: str, old: str, new: str, *, read: bool = True) -> list[Turn]:
        edit = call("edit", file_path=at(path), old_string=old, new_string=new)
        return self.read(path) + edit if read else edit

    def write(self, path: str, text: str) -> list[Turn]:
        return call("write_file", file_path=at(path), content=text)

    def read(self, path: str) -> list[Turn]:
        return call("read_file", file_path=at(path))

    def shell(self, command: str) -> list[Turn]:
        return call("run_shell_command", command=command, description="as scripted", is_background=False)

    def subagent(self, script: str) -> list[Turn]:
        return call(
            "agent",
            description="as scripted",
            prompt=self.prompt_for(script),
            subagent_type="general-purpose",
            run_in_background=False,
        )

    def command(self, url: str, prompt: str) -> list[str]:
        del url
        return ["--approval-mode", "yolo", "--output-format", "stream-json", "-p", prompt]

    def environment(self, url: str) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "dummy",
            "OPENAI_MODEL": "scripted",
            "QWEN_TELEMETRY_ENABLED": "false",
            "QWEN_CODE_NO_RELAUNCH": "true",
        }

    def home_files(self, here: Path) -> dict[str, str | Json]:
        del here
        settings = {
            "security": {"auth": {"selectedType": "openai"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
            "telemetry": {"enabled": False},
        }
        return {".qwen/settings.json": settings}

"""Gemini CLI, run without a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.real_clients.client import Client, at, call

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.scripted_model.api_formats import Json, Turn


class Gemini(Client):
    """Gemini CLI. It stops a model that makes the same call five times."""

    name = "gemini"

    def edit(self, path: str, old: str, new: str, *, read: bool = True) -> list[Turn]:
        del read
        return call("replace", file_path=at(path), old_string=old, new_string=new, instruction="as scripted")

    def write(self, path: str, text: str) -> list[Turn]:
        return call("write_file", file_path=at(path), content=text)

    def read(self, path: str) -> list[Turn]:
        return call("read_file", file_path=at(path))

    def shell(self, command: str) -> list[Turn]:
        return call("run_shell_command", command=command, description="as scripted")

    def subagent(self, script: str) -> list[Turn]:
        return call("invoke_agent", agent_name="generalist", prompt=self.prompt_for(script))

    def command(self, url: str, prompt: str) -> list[str]:
        del url
        model = ["-m", "gemini-2.5-flash"]
        return [*model, "--approval-mode", "yolo", "--output-format", "stream-json", "-p", prompt]

    def environment(self, url: str) -> dict[str, str]:
        return {
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": "dummy",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }

    def home_files(self, here: Path) -> dict[str, str | Json]:
        del here
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "telemetry": {"enabled": False},
        }
        return {".gemini/settings.json": settings}

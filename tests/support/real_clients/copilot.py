"""GitHub Copilot CLI, run without a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.real_clients.client import Client, at, call

if TYPE_CHECKING:
    from tests.support.scripted_model.api_formats import Turn


class Copilot(Client):
    """Copilot CLI, in its offline mode, which needs no account."""

    name = "copilot"

    def edit(self, path: str, old: str, new: str, *, read: bool = True) -> list[Turn]:
        del read
        return call("edit", path=at(path), old_str=old, new_str=new)

    def write(self, path: str, text: str) -> list[Turn]:
        return call("create", path=at(path), file_text=text)

    def read(self, path: str) -> list[Turn]:
        return call("view", path=at(path))

    def shell(self, command: str) -> list[Turn]:
        return call("bash", command=command, description="as scripted")

    def subagent(self, script: str) -> list[Turn]:
        return call(
            "task",
            description="as scripted",
            prompt=self.prompt_for(script),
            agent_type="general-purpose",
            name=script,
        )

    def command(self, url: str, prompt: str) -> list[str]:
        del url
        return ["-p", prompt, "--allow-all-tools", "--output-format", "json", "--no-auto-update"]

    def environment(self, url: str) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "gpt-4.1",
            # It trusts the folder: otherwise the folder's hooks are not loaded.
            "COPILOT_ALLOW_ALL": "true",
        }

"""Claude Code, run without a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.real_clients.client import Client, at, call

if TYPE_CHECKING:
    from tests.support.scripted_model.api_formats import Turn


class Claude(Client):
    """Claude Code. It edits only what it has read."""

    name = "claude"

    def edit(self, path: str, old: str, new: str, *, read: bool = True) -> list[Turn]:
        edit = call("Edit", file_path=at(path), old_string=old, new_string=new)
        return self.read(path) + edit if read else edit

    def write(self, path: str, text: str) -> list[Turn]:
        return call("Write", file_path=at(path), content=text)

    def read(self, path: str) -> list[Turn]:
        return call("Read", file_path=at(path))

    def shell(self, command: str) -> list[Turn]:
        return call("Bash", command=command, description="as scripted")

    def subagent(self, script: str) -> list[Turn]:
        return call(
            "Agent",
            description="as scripted",
            prompt=self.prompt_for(script),
            subagent_type="general-purpose",
            run_in_background=False,
        )

    def command(self, url: str, prompt: str) -> list[str]:
        del url
        output = ["--output-format", "stream-json", "--verbose"]
        # The shell is allowed, or a run without a person would refuse most commands by itself.
        return ["-p", prompt, *output, "--permission-mode", "acceptEdits", "--allowedTools", "Bash"]

    def environment(self, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
        }

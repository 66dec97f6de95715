"""The tools of Qwen Code."""

from __future__ import annotations

from landlane.clients.model import ClientTools

TOOLS = ClientTools(
    edits={"edit": "file_path", "write_file": "file_path", "notebook_edit": "notebook_path"},
    reads={"read_file": "file_path"},
    shells=("run_shell_command", "monitor"),
    folder="directory",
    background="is_background",
    background_shells=("monitor",),
    network=("web_fetch", "web_search"),
    agents=("agent", "task"),
    harmless=("list_directory", "search_file_content", "grep_search", "glob", "todo_write"),
)

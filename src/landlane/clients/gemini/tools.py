"""The tools of Gemini CLI."""

from __future__ import annotations

from landlane.clients.model import ClientTools

TOOLS = ClientTools(
    edits={"replace": "file_path", "write_file": "file_path"},
    reads={"read_file": "file_path", "read_many_files": "include"},
    shells=("run_shell_command",),
    folder="dir_path",
    background="is_background",
    network=("web_fetch", "google_web_search"),
    agents=("invoke_agent",),
    harmless=("list_directory", "search_file_content", "grep_search", "glob"),
)

"""The tools of Claude Code."""

from __future__ import annotations

from landlane.clients.model import ClientTools

_AGENTS = ("Agent", "Task")

TOOLS = ClientTools(
    edits={
        "Edit": "file_path",
        "Write": "file_path",
        "MultiEdit": "file_path",
        "NotebookEdit": "notebook_path",
    },
    reads={"Read": "file_path", "NotebookRead": "notebook_path"},
    shells=("Bash", "Monitor", "PowerShell"),
    background="run_in_background",
    background_shells=("Monitor",),
    network=("WebFetch", "WebSearch"),
    agents=_AGENTS,
    harmless=(
        *("Glob", "Grep", "LS", "Skill", "TaskCreate", "TaskList", "TaskUpdate", "TodoWrite", "ToolSearch"),
        *_AGENTS,
    ),
)

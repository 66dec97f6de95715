"""Claude Code: names of its editing, reading and shell tools."""

from __future__ import annotations

# Tools that name the file they write or read, and where they name it.
EDITS = {
    "Edit": "file_path",
    "Write": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}

READS = {"Read": "file_path", "NotebookRead": "notebook_path"}

SHELLS = ("Bash", "Monitor", "PowerShell")

"""Qwen Code: tool names."""

from __future__ import annotations

EDITS = {"edit": "file_path", "write_file": "file_path", "notebook_edit": "notebook_path"}

SHELLS = ("run_shell_command", "monitor")

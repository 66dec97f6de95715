"""Gemini CLI: tool names."""

from __future__ import annotations

EDITS = ("replace", "write_file")

READS = ("read_file", "read_many_files")

SHELL = "run_shell_command"

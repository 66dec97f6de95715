"""Copilot CLI: tool names."""

from __future__ import annotations

EDITS = ("edit", "create", "str_replace_editor", "apply_patch")

SHELLS = ("bash", "powershell", "write_bash", "write_powershell")

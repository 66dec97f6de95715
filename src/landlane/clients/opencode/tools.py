"""Opencode: tool names."""

from __future__ import annotations

EDITS = ("edit", "write", "multiedit")

PATCHES = ("apply_patch", "patch")

SHELLS = ("bash", "shell")

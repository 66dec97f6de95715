"""Codex: names of its editing and shell tools."""

from __future__ import annotations

PATCH = "apply_patch"

SHELL = "Bash"

"""Codex: tools, hooks, setup, worker."""

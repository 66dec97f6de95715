"""Copilot CLI: tools, hooks, setup, worker."""

"""Gemini CLI: tools, hooks, setup, worker."""

"""Gemini CLI: tools, hooks, setup, running it as a worker."""

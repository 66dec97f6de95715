"""Claude Code: tools, hooks, setup, worker."""

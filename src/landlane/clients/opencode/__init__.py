"""opencode: tools, plugin, setup, worker."""

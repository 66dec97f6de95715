"""opencode: tools, plugin, setup, running it as a worker."""

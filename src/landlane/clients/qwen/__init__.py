"""Qwen Code: tools, hooks, setup, running it as a worker."""

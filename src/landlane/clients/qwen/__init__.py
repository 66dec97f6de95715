"""Qwen Code: tools, hooks, setup, worker."""

"""Cursor: tools, hooks, setup."""

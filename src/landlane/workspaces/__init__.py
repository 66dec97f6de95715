"""Checkouts for tasks: open, prepare, commit, close, and changes that lie in the wrong place."""

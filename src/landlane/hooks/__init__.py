"""Decisions of the client and git hooks: edits, shell commands, commits, pushes, briefings."""

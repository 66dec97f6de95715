"""Undertakings of several steps that join operations, git and commands: each can be cut off and taken up again."""

"""Undertakings of several steps that join operations, git and commands; cut off, each can be gone on with."""

"""Structural three-way merges of files, as pure functions."""

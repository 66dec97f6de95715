"""Bridges to other frameworks, each behind its own extra."""

"""Bridges to other frameworks, each behind an extra of its own."""

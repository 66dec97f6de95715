"""Uploads."""

MOST_BYTES = 1_000_000

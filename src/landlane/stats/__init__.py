"""Metrics of a period."""

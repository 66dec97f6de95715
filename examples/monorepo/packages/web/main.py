"""The package web."""

"""The package billing."""

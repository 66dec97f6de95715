"""The package orders."""

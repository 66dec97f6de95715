"""Open the repository and its store, join the packages, and return a context."""

"""Open the repository and its store, connect the packages, and return a `Repository`."""

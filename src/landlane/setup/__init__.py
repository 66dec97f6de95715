"""Set up a repository and its store."""

"""Set up a repository; move or rebuild its store."""

"""Plan files: describe tasks before they are in the queue."""

"""Plans: files that describe tasks before they are in the queue."""

"""The messages of workers and of client hooks."""

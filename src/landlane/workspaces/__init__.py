"""A checkout per task: open, prepare, commit, close; misplaced changes."""

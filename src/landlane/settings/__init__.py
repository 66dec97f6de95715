"""`landlane.toml`: every key, its default, its validation, and loading it."""

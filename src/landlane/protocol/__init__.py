"""The messages of workers and of client hooks: fields, order, time limits."""

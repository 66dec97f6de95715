"""The background process: starting it, talking to it, serving (what it serves is passed in)."""

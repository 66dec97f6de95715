"""The background process: start it, talk to it, serve (what it serves is passed in)."""

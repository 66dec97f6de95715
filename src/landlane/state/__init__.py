"""Shared state: versioned keys, slots, numbers, commands that run once, steps."""

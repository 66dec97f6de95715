"""Shared state: versioned keys, slots, numbers, commands run once, steps."""

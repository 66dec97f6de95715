"""Run a coding client for one assignment and speak the worker protocol for it."""

"""Commands called from inside a sandbox: forwarded to the resident, or run in the caller's own clone."""

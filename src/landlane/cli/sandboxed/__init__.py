"""Commands called from inside a sandbox: forwarded to the resident, or run in the own clone."""

"""The worker protocol: JSON lines over stdin and stdout."""

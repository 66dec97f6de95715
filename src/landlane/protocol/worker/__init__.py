"""The worker protocol (JSON lines over stdin and stdout), used by both sides: supervisor and worker."""

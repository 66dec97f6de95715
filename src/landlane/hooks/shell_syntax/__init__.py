"""Parse a shell command line: its commands, redirections and folders."""

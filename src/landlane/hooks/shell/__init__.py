"""What a shell command changed, and whose that was."""

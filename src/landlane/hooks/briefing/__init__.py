"""What a session is shown when it starts."""

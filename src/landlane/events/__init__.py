"""Watch for events and send notifications."""

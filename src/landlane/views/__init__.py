"""The JSON and text forms that all doors share."""

"""The web page: the same operations for a person in a browser."""

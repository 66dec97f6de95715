"""The web page: the same operations in a browser."""

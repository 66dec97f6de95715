"""One module per coding client: how it starts, what its hooks say, how its output is read."""

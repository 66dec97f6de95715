"""What a path pattern matches, and when two patterns overlap."""

"""What a path pattern covers, and when two patterns overlap (pure)."""

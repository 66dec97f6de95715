"""The repository's operating rules: the file, its versions, who has read it, violations."""

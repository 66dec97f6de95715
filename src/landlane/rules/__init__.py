"""The repository's rules for agents: the file, its versions, who has read it, violations."""

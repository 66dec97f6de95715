"""The git repository: commands, checkouts, refs, snapshots. A failing git raises RepositoryError."""

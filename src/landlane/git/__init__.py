"""Everything that runs git: checkouts, refs, snapshots, trial merges, git hooks."""

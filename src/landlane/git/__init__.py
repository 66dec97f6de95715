"""The only starter of git: workspaces, snapshots, trial merges and refs."""

"""`landlane demo`: the same tasks in one checkout, in plain worktrees and with Landlane, compared."""

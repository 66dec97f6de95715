"""The demo: colliding tasks done the naive way, in plain worktrees, and with Landlane; then counted."""

"""`landlane run`: the orchestrator, one supervisor per attempt, what workers return, logs."""

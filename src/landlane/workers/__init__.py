"""`landlane run`, Landlane's side of the worker protocol: orchestrator, supervisors, returned work."""

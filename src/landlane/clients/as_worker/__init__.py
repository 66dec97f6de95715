"""The worker process for a coding client: protocol to the supervisor, the client as its child."""

"""Who acts: identity, leases, liveness, waiting, messages to a session."""

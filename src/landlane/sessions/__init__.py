"""Who acts: identity, leases and liveness, sessions of coding clients and workers, messages to a session."""

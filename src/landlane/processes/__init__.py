"""Start programs other than git, and end them with everything they started."""

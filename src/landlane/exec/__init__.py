"""`landlane exec`: run one command as an agent inside a sandbox."""

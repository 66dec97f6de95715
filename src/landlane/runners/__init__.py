"""The only starter of children other than git: worker protocol, process groups and the sandbox."""

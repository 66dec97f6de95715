"""What depends on the operating system: process identity, ports, sockets, terminals."""

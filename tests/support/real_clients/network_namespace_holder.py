"""The process that holds a namespace: it switches loopback on, and hands out sockets that listen there."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys

_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 0x1  # of Linux, for network devices


def switch_loopback_on() -> None:
    """Do what `ip link set lo up` does; `ip` is not on every machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sH14x", b"lo", 0)
        _, flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, _GET_FLAGS, asked))
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _IS_UP))


def hold(channel: socket.socket) -> None:
    """Open a socket for each byte that comes, until the caller is gone."""
    switch_loopback_on()
    channel.send(b"r")
    while channel.recv(1):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            socket.send_fds(channel, [b"s"], [listening.fileno()])


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        hold(inherited)

"""Drop the capabilities that let root reach beyond files, in the thread that starts a sandboxed command."""

from __future__ import annotations

import ctypes
import os
import struct

_VERSION = 0x20080522
_DROP_FROM_BOUNDS = 24
_AMBIENT, _CLEAR_AMBIENT = 47, 4
_LAST = 63
# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE: installing and building as root
# needs them, and each of them stays within what Landlock grants. The others reach the machine itself.
_KEPT = (0, 1, 3, 4, 5, 6, 7, 10)


def drop_capabilities() -> None:
    """Keep only what building needs, in this thread and in all it starts; only root has any."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(_LAST + 1):
        if number not in _KEPT:
            # This fails for numbers that the kernel does not know or this process does not have.
            libc.prctl(_DROP_FROM_BOUNDS, number, 0, 0, 0)
    libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    before = ctypes.create_string_buffer(24)
    head = struct.pack("=Ii", _VERSION, 0)
    if libc.capget(head, before):
        raise OSError(ctypes.get_errno(), "the kernel does not tell this thread's capabilities")
    effective, permitted = struct.unpack_from("=2I", before.raw)
    kept = sum(1 << number for number in _KEPT)
    # The second half is for capabilities past the 32nd, none of which is kept.
    after = struct.pack("=6I", effective & kept, permitted & kept, 0, 0, 0, 0)
    if libc.capset(head, after):
        raise OSError(ctypes.get_errno(), "the kernel does not let this thread give up capabilities")

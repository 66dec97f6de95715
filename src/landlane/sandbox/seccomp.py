"""A small seccomp filter for what Landlock cannot limit: kinds of sockets, limits of others, keystrokes.

Landlock limits plain TCP only. So where ports are limited, the filter closes the ways around it: protocols
that build on TCP (MPTCP), and data that is sent while a connection is opened (TCP Fast Open).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from landlane.sandbox.landlock import forgo_new_privileges
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    # An argument's number, `==` or `!=`, a value, and the bits of the argument that count.
    Test = tuple[int, str, int, int]
    Line = tuple[int, int, int, int]

_LOAD, _AND, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in `struct seccomp_data`
_X32 = 0x40000000
_SET_SECCOMP, _MODE_FILTER = 22, 2

_ALL = 0xFFFFFFFF
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _KIND = 1, 0xF  # the other bits of a socket's type are flags
_TCP_NUMBER = 6
_FAST_OPEN = 0x20000000
_PUSH_KEYSTROKE, _CONSOLE_PASTE = 0x5412, 0x541C  # TIOCSTI, TIOCLINUX
_SET_FLAGS = 0x40086602  # FS_IOC_SETFLAGS, as `chattr` does

_INTEL = {
    "arch": 0xC000003E, "socket": 41, "sendto": 44, "sendmsg": 46, "sendmmsg": 307, "prlimit64": 302,
    "setpriority": 141, "ioprio_set": 251, "sched_setaffinity": 203, "sched_setscheduler": 144,
    "sched_setparam": 142, "sched_setattr": 314, "ioctl": 16, "io_uring_setup": 425,
    "add_key": 248, "request_key": 249, "keyctl": 250,
    "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94,
    "fchownat": 260, "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280, "setxattr": 188,
    "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199,
    "setxattrat": 463, "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
_ARM = {
    "arch": 0xC00000B7, "socket": 198, "sendto": 206, "sendmsg": 211, "sendmmsg": 269, "prlimit64": 261,
    "setpriority": 140, "ioprio_set": 30, "sched_setaffinity": 122, "sched_setscheduler": 119,
    "sched_setparam": 118, "sched_setattr": 274, "ioctl": 29, "io_uring_setup": 425,
    "add_key": 217, "request_key": 218, "keyctl": 219,
    "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180,
    "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54, "utimensat": 88,
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "setxattrat": 463, "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
_MACHINES = {"x86_64": _INTEL, "aarch64": _ARM}
_CHANGE_MODES = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
    "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat",
    "removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr",
)  # fmt: skip
_SHARED_MEMORY = ("shmget", "semget", "msgget", "mq_open")
_KEYS = ("add_key", "request_key", "keyctl")
_OF_OTHERS = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")


@value
class SeccompFilter:
    """What to refuse, in addition to io_uring, shared keys, keystrokes and changing limits of others."""

    unix_sockets: bool = False  # new ones; a pair of connected ones is not refused
    shared_memory: bool = False  # of System V, and its semaphores and message queues
    other_protocols: bool = False  # UDP, raw packets, other address families
    around_tcp: bool = False
    all_tcp: bool = False
    modes: bool = False


_compiled: dict[SeccompFilter, bytes] = {}


def can_filter() -> bool:
    """Return whether this machine's system call numbers are known and its kernel supports filters."""
    if sys.platform != "linux" or os.uname().machine not in _MACHINES:
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    # Without a filter, a kernel that supports them reports a bad address instead of a bad argument.
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_SET_SECCOMP, _MODE_FILTER, None, 0, 0)) and ctypes.get_errno() == errno.EFAULT


def filter_thread(wanted: SeccompFilter) -> None:
    """Install the filter for the calling thread and all it starts from now on, for good."""
    if wanted not in _compiled:
        _compiled[wanted] = compile_filter(wanted, os.uname().machine)
    code = _compiled[wanted]
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    forgo_new_privileges()
    if libc.prctl(_SET_SECCOMP, _MODE_FILTER, program, 0, 0):
        error = ctypes.get_errno()
        raise OSError(error, f"the kernel does not take the filter: {os.strerror(error)}")


def compile_filter(wanted: SeccompFilter, machine: str) -> bytes:
    """Return the filter as BPF code."""
    numbers = _MACHINES[machine]
    lines: list[Line] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, numbers["arch"]),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),  # programs of another architecture have other numbers
    ]
    if machine == "x86_64":
        lines += [(_LOAD, 0, 0, _NUMBER), (_ANY_BIT, 0, 1, _X32), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    for name, error, *tests in _refusals(wanted):
        if name in numbers:
            lines += _refuse(numbers[name], error, tests)
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _refusals(wanted: SeccompFilter) -> list[tuple[str, int, *tuple[Test, ...]]]:
    """Return the calls to refuse, each with its error and the tests that its arguments must all pass."""
    others: Test = (0, "!=", 0, _ALL)
    found: list[tuple[str, int, *tuple[Test, ...]]] = [
        ("io_uring_setup", errno.ENOSYS),  # filters do not see what it does
        ("prlimit64", errno.EPERM, others, (2, "!=", 0, _ALL)),
        ("setpriority", errno.EPERM, (1, "!=", 0, _ALL)),
        ("ioprio_set", errno.EPERM, (1, "!=", 0, _ALL)),
        ("ioctl", errno.EPERM, (1, "==", _PUSH_KEYSTROKE, _ALL)),
        ("ioctl", errno.EPERM, (1, "==", _CONSOLE_PASTE, _ALL)),
        *((name, errno.EPERM, others) for name in _OF_OTHERS),
        *((name, errno.EPERM) for name in _KEYS),  # shared by all programs of a user
    ]
    if wanted.unix_sockets:
        found.append(("socket", errno.EACCES, (0, "==", _UNIX, _ALL)))
    if wanted.shared_memory:
        # Programs regard other errors as "in use", and try the next key for ever.
        found += [(name, errno.ENOSYS) for name in _SHARED_MEMORY]
    if wanted.other_protocols or wanted.around_tcp:
        families: list[Test] = [(0, "!=", family, _ALL) for family in (_UNIX, _INET, _INET6, _NETLINK)]
        found.append(("socket", errno.EAFNOSUPPORT, *families))
    for family in (_INET, _INET6):
        of_family: Test = (0, "==", family, _ALL)
        if wanted.all_tcp:
            found.append(("socket", errno.EACCES, of_family, (1, "==", _STREAM, _KIND)))
        if wanted.other_protocols:
            found.append(("socket", errno.EACCES, of_family, (1, "!=", _STREAM, _KIND)))
        if wanted.other_protocols or wanted.around_tcp:
            stream: Test = (1, "==", _STREAM, _KIND)
            plain: list[Test] = [(2, "!=", 0, _ALL), (2, "!=", _TCP_NUMBER, _ALL)]
            found.append(("socket", errno.EPROTONOSUPPORT, of_family, stream, *plain))
    if wanted.around_tcp:
        for name, argument in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
            found.append((name, errno.EOPNOTSUPP, (argument, "!=", 0, _FAST_OPEN)))
    if wanted.modes:
        found += [(name, errno.EPERM) for name in _CHANGE_MODES]
        found.append(("ioctl", errno.EPERM, (1, "==", _SET_FLAGS, _ALL)))
    return found


def _refuse(number: int, error: int, tests: Sequence[Test]) -> list[Line]:
    """Return code that compares each argument in turn; the first failed test jumps past the refusal."""
    groups = [
        [
            (_LOAD, 0, 0, _ARGUMENTS + 8 * argument),
            *([(_AND, 0, 0, bits)] if bits != _ALL else []),
            (_EQUAL, 0, 0, wanted),
        ]
        for argument, _, wanted, bits in tests
    ]
    body: list[Line] = []
    for place, group in enumerate(groups):
        past = sum(len(later) for later in groups[place + 1 :]) + 1
        is_equal = tests[place][1] == "=="
        *loading, (code, _, _, wanted) = group
        body += [*loading, (code, 0 if is_equal else past, past if is_equal else 0, wanted)]
    body.append((_RETURN, 0, 0, _FAIL | error))
    return [(_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, len(body), number), *body]

"""Landlock: the kernel's sandbox for one thread and all it starts, through its three system calls.

Root is not needed. Rules are about changing files; reading is limited only if something must be hidden. All
rules are in one ruleset, because each further layer would deny renames across folders again.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

from landlane.sandbox.guarantees import ABI_SCOPE, ABI_TCP, ABI_UNIX
from landlane.sandbox.model import is_within
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture we know
_NO_NEW_PRIVILEGES = 38
_RULE_PATH, _RULE_PORT = 1, 2

_WRITE_FILE, _READ_FILE = 1 << 1, 1 << 2
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9
_MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = 1 << 10, 1 << 11, 1 << 12
_REFER, _TRUNCATE, _RESOLVE_UNIX = 1 << 13, 1 << 14, 1 << 16

_ON_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE | _RESOLVE_UNIX  # other rights are refused on a plain file
_MAKE_DEVICE = _MAKE_CHAR | _MAKE_BLOCK  # never granted: a device node of a disk gives access to all of it
_GRANTED = (
    _WRITE_FILE
    | _TRUNCATE
    | _REFER
    | _REMOVE_DIR
    | _REMOVE_FILE
    | _MAKE_DIR
    | _MAKE_REG
    | _MAKE_SOCK
    | _MAKE_FIFO
    | _MAKE_SYM
)
_BIND_TCP, _CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
)
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the place itself is meant

_libc = ctypes.CDLL(None, use_errno=True)


@value
class LandlockRules:
    """The content of one ruleset. Without `limits_files` it limits only ports, signals, abstract sockets."""

    limits_files: bool
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # although it is inside of what is hidden
    sockets: tuple[str, ...] | None = None  # reachable unix sockets; None: all
    connect: tuple[int, ...] | None = None
    bind: tuple[int, ...] | None = None


def kernel_abi() -> int:
    """Return the version of Landlock that this kernel has; 0 if it has none."""
    if sys.platform != "linux":  # there the number means another system call
        return 0
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def make_ruleset(rules: LandlockRules, abi: int) -> int | None:
    """Return the descriptor of a ruleset; None if this version of Landlock can enforce none of it."""
    handled = _handled(rules, abi)
    ports = ((_BIND_TCP, rules.bind), (_CONNECT_TCP, rules.connect)) if abi >= ABI_TCP else ()
    net = sum(right for right, allowed in ports if allowed is not None)
    scope = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if abi >= ABI_SCOPE else 0
    if not (handled or net or scope):
        return None
    size = 24 if abi >= ABI_SCOPE else 16 if abi >= ABI_TCP else 8
    attributes = struct.pack("=QQQ", handled, net, scope)[:size]
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path, rights in _grants(rules) if handled else ():
            _grant(ruleset, path, rights & handled)
        for right, allowed in ports:
            for port in allowed or ():
                _add(ruleset, _RULE_PORT, struct.pack("=QQ", right, port))
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def restrict_thread(ruleset: int) -> None:
    """Confine the calling thread and all it starts from now on, for good; the descriptor is closed."""
    try:
        forgo_new_privileges()
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def forgo_new_privileges() -> None:
    """Set no_new_privs: a program that this thread starts gains no rights, even if it is setuid."""
    if _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel does not let this thread forgo new privileges")


def _handled(rules: LandlockRules, abi: int) -> int:
    if not rules.limits_files:
        return 0
    handled = _GRANTED | _MAKE_DEVICE
    if rules.hidden:
        handled |= _READ_FILE
    if rules.sockets is not None and abi >= ABI_UNIX:
        handled |= _RESOLVE_UNIX
    return handled


def _grants(rules: LandlockRules) -> Iterator[tuple[str, int]]:
    for path in rules.writable:
        yield path, _GRANTED | _READ_FILE | _RESOLVE_UNIX
    for path in _DEVICES:
        yield path, _WRITE_FILE | _TRUNCATE | _READ_FILE
    # Not if a repository is in shared memory: it would be writable with the rest.
    if not any(path.startswith(f"{_SHARED_MEMORY}/") for path in rules.hidden):
        yield _SHARED_MEMORY, _GRANTED & ~_MAKE_SYM | _READ_FILE
    for path in rules.sockets or ():
        yield path, _RESOLVE_UNIX
    if rules.hidden:
        marks = dict.fromkeys(rules.hidden, False) | dict.fromkeys(rules.shown, True)
        for path in _visible("/", marks, is_visible=True):
            yield path, _READ_FILE


def _visible(path: str, marks: Mapping[str, bool], *, is_visible: bool) -> Iterator[str]:
    """Yield the outermost paths that contain nothing hidden: rules can only grant.

    `marks` says which paths are visible with all they contain; the innermost one counts.
    """
    inside = f"{path.rstrip('/')}/"
    inner = [mark for mark in marks if mark.startswith(inside)]
    if is_visible and not any(not marks[mark] for mark in inner):
        yield path
    elif is_visible:
        try:
            names = os.listdir(path)
        except OSError:
            return
        for name in names:
            below = inside + name
            if not os.path.islink(below):  # the rule for its target counts
                yield from _visible(below, marks, is_visible=marks.get(below, True))
    else:
        outermost = [mark for mark in inner if not any(is_within(mark, other) for other in inner)]
        for mark in outermost:
            yield from _visible(mark, marks, is_visible=marks[mark])


def _grant(ruleset: int, path: str, rights: int) -> None:
    try:
        at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a device that this machine does not have, or a file that is gone
    try:
        if not stat.S_ISDIR(os.fstat(at).st_mode):
            rights &= _ON_FILES
        if rights:
            _add(ruleset, _RULE_PATH, struct.pack("=Qi", rights, at))
    finally:
        os.close(at)


def _add(ruleset: int, kind: int, rule: bytes) -> None:
    _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(kind), rule, ctypes.c_uint32(0))


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result

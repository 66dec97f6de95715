"""Which calls the compiled filter refuses on each architecture, as the kernel would run it."""

from __future__ import annotations

import errno
import struct

import pytest

from landlane.sandbox.seccomp import SeccompFilter, compile_filter

pytestmark = pytest.mark.unit

LOAD, AND, EQUAL, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x45, 0x06
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SOCKET = {"x86_64": 41, "aarch64": 198}
SENDTO = {"x86_64": 44, "aarch64": 206}
PRLIMIT = {"x86_64": 302, "aarch64": 261}
FCHMODAT = {"x86_64": 268, "aarch64": 53}
READ = {"x86_64": 0, "aarch64": 63}
UNIX, INET, INET6, NETLINK, VSOCK = 1, 2, 10, 16, 40
STREAM, DATAGRAM, FLAGS = 1, 2, 0o2000000 | 0o4000
MPTCP = 262


def verdict(code: bytes, number: int, arguments: tuple[int, ...], arch: int) -> int:
    """Run the filter and return the error that a call gets, or 0."""
    padded = (*arguments, *[0] * 6)[:6]
    data = struct.pack("=IIQ6Q", number, arch, 0, *padded)
    lines = [struct.unpack_from("=HBBI", code, place) for place in range(0, len(code), 8)]
    held, place = 0, 0
    while True:
        kind, if_true, if_false, given = lines[place]
        place += 1
        if kind == LOAD:
            held = struct.unpack_from("=I", data, given)[0]
        elif kind == AND:
            held &= given
        elif kind == EQUAL:
            place += if_true if held == given else if_false
        elif kind == ANY_BIT:
            place += if_true if held & given else if_false
        else:
            assert kind == RETURN
            return 0 if given == 0x7FFF0000 else given & 0xFFFF


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
class TestOnEachArchitecture:
    def ask(self, machine: str, wanted: SeccompFilter, number: int, *arguments: int) -> int:
        return verdict(compile_filter(wanted, machine), number, arguments, ARCHITECTURES[machine])

    def test_ordinary_calls_pass(self, machine: str) -> None:
        tight = SeccompFilter(
            unix_sockets=True, other_protocols=True, around_tcp=True, all_tcp=True, modes=True
        )

        assert self.ask(machine, tight, READ[machine], 3) == 0
        assert self.ask(machine, SeccompFilter(), SOCKET[machine], UNIX, STREAM) == 0

    def test_unix_sockets_are_refused_and_others_are_not(self, machine: str) -> None:
        wanted = SeccompFilter(unix_sockets=True)

        assert self.ask(machine, wanted, SOCKET[machine], UNIX, STREAM | FLAGS) == errno.EACCES
        assert self.ask(machine, wanted, SOCKET[machine], INET, DATAGRAM) == 0

    @pytest.mark.parametrize("family", [INET, INET6])
    def test_only_tcp_is_left_when_other_protocols_are_refused(self, machine: str, family: int) -> None:
        wanted = SeccompFilter(other_protocols=True)

        assert self.ask(machine, wanted, SOCKET[machine], family, STREAM | FLAGS) == 0
        assert self.ask(machine, wanted, SOCKET[machine], family, STREAM, 6) == 0
        assert self.ask(machine, wanted, SOCKET[machine], family, DATAGRAM | FLAGS) == errno.EACCES
        assert self.ask(machine, wanted, SOCKET[machine], family, STREAM, MPTCP) == errno.EPROTONOSUPPORT
        assert self.ask(machine, wanted, SOCKET[machine], VSOCK, STREAM) == errno.EAFNOSUPPORT
        assert self.ask(machine, wanted, SOCKET[machine], NETLINK, 3) == 0

    def test_ways_around_limited_ports_are_closed(self, machine: str) -> None:
        wanted = SeccompFilter(around_tcp=True)

        assert self.ask(machine, wanted, SENDTO[machine], 3, 0, 1, 0x20000000) == errno.EOPNOTSUPP
        assert self.ask(machine, wanted, SENDTO[machine], 3, 0, 1, 0x4000) == 0
        assert self.ask(machine, wanted, SOCKET[machine], INET, STREAM, MPTCP) == errno.EPROTONOSUPPORT
        assert self.ask(machine, wanted, SOCKET[machine], INET, DATAGRAM) == 0

    def test_all_tcp_can_be_refused(self, machine: str) -> None:
        assert (
            self.ask(machine, SeccompFilter(all_tcp=True), SOCKET[machine], INET6, STREAM | FLAGS)
            == errno.EACCES
        )
        assert self.ask(machine, SeccompFilter(all_tcp=True), SOCKET[machine], INET6, DATAGRAM) == 0

    def test_limits_of_others_are_refused_and_its_own_are_not(self, machine: str) -> None:
        assert self.ask(machine, SeccompFilter(), PRLIMIT[machine], 7, 1, 1) == errno.EPERM
        assert self.ask(machine, SeccompFilter(), PRLIMIT[machine], 7, 1, 0) == 0  # only looking
        assert self.ask(machine, SeccompFilter(), PRLIMIT[machine], 0, 1, 1) == 0

    def test_mode_changes_are_refused_on_request(self, machine: str) -> None:
        assert self.ask(machine, SeccompFilter(modes=True), FCHMODAT[machine]) == errno.EPERM
        assert self.ask(machine, SeccompFilter(), FCHMODAT[machine]) == 0

    def test_programs_of_another_architecture_are_refused(self, machine: str) -> None:
        code = compile_filter(SeccompFilter(unix_sockets=True), machine)

        assert verdict(code, 359, (UNIX, STREAM), 0x40000003) == errno.ENOSYS


def test_x32_calls_are_refused() -> None:
    code = compile_filter(SeccompFilter(unix_sockets=True), "x86_64")

    assert verdict(code, 0x40000000 | 41, (UNIX, STREAM), ARCHITECTURES["x86_64"]) == errno.ENOSYS

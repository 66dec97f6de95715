"""Start in a sandbox: what is private, what is refused, and that the starter itself is not confined."""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed, NotAllowed
from landlane.platform.file_users import processes_in
from landlane.sandbox.bubblewrap import BWRAP_VARIABLE
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import PROMISES, Backend, BackendKind, GuaranteeState, Promise, Sandbox
from landlane.sandbox.start import SandboxedChild, choose_backend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from landlane.processes.child import ChildResult

pytestmark = [pytest.mark.integration, pytest.mark.sandbox, pytest.mark.on_disk]

LIMIT_SECONDS = 60.0


def run(script: str, sandbox: Sandbox, backend: Backend, **more: object) -> ChildResult:
    words = ["sh", "-c", script]
    child = SandboxedChild(words, sandbox, cwd=sandbox.writable[0], backend=backend, **more)  # pyright: ignore[reportArgumentType]
    return child.wait(LIMIT_SECONDS)


def test_the_child_is_sandboxed_and_its_starter_is_not(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    sandbox = make_sandbox()

    ended = run("echo inside > in; echo outside > ../out; cat in", sandbox, backend)
    (tmp_path / "ours").write_text("free")

    assert ended.stdout == "inside\n"
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "workspace" / "in").read_text() == "inside\n"


def test_temporary_files_home_and_settings_of_clients_are_private(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    names = "TMPDIR HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR CLAUDE_CONFIG_DIR CODEX_HOME"

    ended = run(f"mktemp; for name in {names}; do eval echo \\$$name; done", make_sandbox(), backend)

    scratch = str(tmp_path / "scratch")
    assert len(ended.stdout.split()) == 1 + len(names.split())
    assert all(place.startswith(scratch + "/") for place in ended.stdout.split())


def test_the_git_settings_of_the_user_are_still_read(
    backend: Backend,
    make_sandbox: Callable[..., Sandbox],
    sealed_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    (sealed_home / ".gitconfig").write_text("[user]\n\tname = Their Name\n")

    sandbox = make_sandbox(readable=(str(sealed_home), *make_sandbox().readable))

    assert run("git config user.name", sandbox, backend).stdout == "Their Name\n"


def test_a_link_in_scratch_is_not_followed(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "scratch" / "home").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Malformed) as caught:
        run("true", make_sandbox(), backend)

    assert caught.value.code == "SANDBOX_PLACE"
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_missing_folder_is_refused(backend: Backend, tmp_path: Path) -> None:
    sandbox = Sandbox(writable=(str(tmp_path / "nowhere"),), scratch=str(tmp_path))

    with pytest.raises(Malformed) as caught:
        run("true", sandbox, backend)

    assert caught.value.code == "SANDBOX_PLACE"


def test_only_the_visible_socket_can_be_reached(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    talk = "import socket; s = socket.socket(1); s.connect('{}'); print(s.recv(9).decode())"
    sandbox = make_sandbox(hidden=(str(state),), sockets_visible=(str(state / "resident"),))
    with listen(state / "other"):
        thread = threading.Thread(target=answer, args=(listen(state / "resident"),))
        thread.start()
        other = (
            run(f'python3 -c "{talk.format(state / "other")}"', sandbox, backend) if backend.bwrap else None
        )
        ended = run(f'python3 -c "{talk.format(state / "resident")}"', sandbox, backend)
        thread.join()

    assert ended.stdout == "here\n"
    assert other is None or other.exit_code != 0  # no server answers there: reaching it would hang


def listen(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


def answer(server: socket.socket) -> None:
    with server:
        peer, _ = server.accept()
        with peer:
            peer.sendall(b"here")


def test_a_socket_is_reached_again_after_its_server_restarted(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    path, talk = tmp_path / "resident", "s = socket.socket(1); s.connect('../resident'); s.recv(9)"
    program = f"import socket, os; {talk}; open('first', 'w'); input(); {talk}; print('twice')"
    sandbox = make_sandbox(sockets_visible=(str(path),), readable=())
    there, back = os.pipe()
    first = listen(path)

    def serve() -> None:
        answer(first)
        path.unlink()
        second = listen(path)
        os.write(back, b"go on\n")
        answer(second)

    thread = threading.Thread(target=serve)
    thread.start()
    out, shown = os.pipe()
    words = ["python3", "-c", program]
    child = SandboxedChild(
        words, sandbox, cwd=sandbox.writable[0], backend=backend, streams=(there, shown, shown)
    )
    ended = child.wait(LIMIT_SECONDS)
    thread.join()
    os.close(shown)
    with os.fdopen(out) as said:
        assert (ended.exit_code, said.read()) == (0, "twice\n")
    os.close(there)
    os.close(back)


def test_a_socket_that_appears_later_is_reported_as_a_gap(
    make_sandbox: Callable[..., Sandbox], tmp_path: Path, backend: Backend
) -> None:
    if not backend.bwrap:
        pytest.skip("only mounts have this gap")
    talk = "s = socket.socket(1); s.connect('../late'); print(s.recv(9).decode())"
    sandbox = make_sandbox(unix_sockets=True)
    there, back = os.pipe()
    words = ["python3", "-c", f"import socket; open('ready', 'w'); input(); {talk}"]
    out = (tmp_path / "out").open("w")
    child = SandboxedChild(
        words, sandbox, cwd=sandbox.writable[0], backend=backend, streams=(there, out.fileno(), 2)
    )
    while not (tmp_path / "workspace" / "ready").exists():
        assert child.poll() is None

    thread = threading.Thread(target=answer, args=(listen(tmp_path / "late"),))
    thread.start()
    os.write(back, b"go on\n")
    child.wait(LIMIT_SECONDS)
    thread.join()
    for file in (there, back):
        os.close(file)
    out.close()

    assert (tmp_path / "out").read_text() == "here\n"
    assert "later" in {one.promise: one.why for one in child.guarantees}[Promise.SOCKETS]


def test_a_hidden_file_cannot_be_read_and_its_neighbours_can(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("SECRET")
    (tmp_path / "known").write_text("known")

    ended = run("cat ../known ../secret", make_sandbox(hidden=(str(tmp_path / "secret"),)), backend)

    assert ended.stdout == "known"


def test_input_and_output_can_be_handed_through(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    (tmp_path / "given").write_text("a\nb\n")
    with (tmp_path / "given").open() as given, (tmp_path / "got").open("w") as got:
        ended = run("wc -l", make_sandbox(), backend, streams=(given.fileno(), got.fileno(), got.fileno()))

    assert (ended.exit_code, ended.stdout) == (0, "")
    assert (tmp_path / "got").read_text().strip() == "2"


@pytest.mark.promise(
    "sandbox.required-or-refused",
    "A command is not started when a required sandbox guarantee is not available.",
)
def test_nothing_starts_if_a_required_promise_cannot_be_kept(
    make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    landlock = Backend(
        name=BackendKind.LANDLOCK, landlock_abi=7, has_filter=True, reasons=("There is no bubblewrap.",)
    )

    with pytest.raises(NotAllowed) as caught:
        run("touch started", make_sandbox(), landlock, required=("files", "chmod"))

    assert (caught.value.code, caught.value.exit_code) == ("SANDBOX_MISSING", 6)
    assert caught.value.facts["missing"] == [Promise.CHMOD]
    assert "There is no bubblewrap." in caught.value.hint
    assert not (tmp_path / "workspace" / "started").exists()


def test_an_unknown_promise_is_refused_with_the_known_ones(make_sandbox: Callable[..., Sandbox]) -> None:
    with pytest.raises(Malformed) as caught:
        run("true", make_sandbox(), Backend(name=BackendKind.NONE), required=("walls",))

    assert caught.value.code == "UNKNOWN_PROMISE"
    assert all(name in caught.value.hint for name in PROMISES)


def test_without_a_sandbox_every_promise_is_open(make_sandbox: Callable[..., Sandbox]) -> None:
    held = list_guarantees(Backend(name=BackendKind.NONE), make_sandbox())

    assert {one.promise for one in held} == set(PROMISES)
    assert {one.promise for one in held if one.state == GuaranteeState.HELD} == {"descriptors"}


def test_a_broken_bubblewrap_is_detected_by_trying_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no namespaces here' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv(BWRAP_VARIABLE, str(broken))

    found = choose_backend()

    assert found.bwrap == ""
    assert "no namespaces here" in found.reasons[0]


@pytest.mark.parametrize(
    ("abi", "promise", "state"),
    [
        (3, Promise.FILES, GuaranteeState.HELD),
        (3, Promise.TCP, GuaranteeState.OPEN),
        (4, Promise.TCP, GuaranteeState.HELD),
        (8, Promise.SOCKETS, GuaranteeState.OPEN),
        (9, Promise.SOCKETS, GuaranteeState.HELD),
    ],
)
def test_the_promises_that_landlock_keeps_depend_on_its_version(
    abi: int, promise: str, state: str, make_sandbox: Callable[..., Sandbox]
) -> None:
    sandbox = make_sandbox(tcp_connect=(443,), sockets_visible=("/resident",))
    held = list_guarantees(Backend(name=BackendKind.LANDLOCK, landlock_abi=abi, has_filter=True), sandbox)

    assert [one.state for one in held if one.promise == promise] == [state]


def test_a_required_promise_counts_also_where_the_sandbox_leaves_it_free(
    make_sandbox: Callable[..., Sandbox], backend: Backend
) -> None:
    sandbox = make_sandbox()

    assert {one.promise: one.state for one in list_guarantees(backend, sandbox)}[
        Promise.TCP
    ] == GuaranteeState.FREE
    with pytest.raises(NotAllowed):
        run("true", sandbox, backend, required=(Promise.TCP,))


def test_a_command_may_end_at_once(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    sandbox = make_sandbox()

    assert [run("exit 7", sandbox, backend).exit_code for _ in range(10)] == [7] * 10
    assert processes_in(str(tmp_path)) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "landlane-sandbox"]


def test_sandboxes_can_be_nested(
    backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    inner = tmp_path / "workspace" / "inner"
    sandbox = make_sandbox()
    inner.mkdir()
    (tmp_path / "scratch" / "inner").mkdir()
    program = f"""
from landlane.sandbox.model import Sandbox
from landlane.sandbox.start import choose_backend, SandboxedChild
inner, scratch, readable = {(str(inner), str(tmp_path / "scratch" / "inner"), str(tmp_path))!r}
sandbox = Sandbox(writable=(inner,), scratch=scratch, readable=(readable,))
child = SandboxedChild(["sh", "-c", "echo x > in; echo x > ../out"], sandbox, cwd=inner)
child.wait(30)
print(child.backend.name)
"""
    (tmp_path / "nested.py").write_text(program)

    ended = run(f"{sys.executable} ../nested.py", sandbox, backend)

    # Bubblewrap may refuse to be nested, and then says so; Landlock can always be nested.
    assert ended.stdout.strip() in (backend.name, BackendKind.LANDLOCK), ended.stderr
    assert (inner / "in").exists()
    assert not (tmp_path / "workspace" / "out").exists()

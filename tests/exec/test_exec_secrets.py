"""What an agent in its sandbox cannot reach: keys, tokens, files of others, and programs that listen."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.sandbox.model import BackendKind
from tests.exec.support import ExecTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox, pytest.mark.on_disk]

BACKENDS = [BackendKind.LANDLOCK, "bubblewrap"]
ROLES = ["code", "review"]
TALK = "import socket, sys; s = socket.socket({}); s.settimeout(3); s.connect({}); print(s.recv(9).decode())"
# Each attempt prints SECRET if it gets through: its name, and the commands.
ATTEMPTS = {
    "a key in the home": "cat $HOUSE/.ssh/id_key",
    "a key by another path": "cat /proc/self/root$HOUSE/.ssh/id_key",
    "the home, copied": "cp -r $HOUSE/.ssh copied; cat copied/id_key",
    "a token in the environment": "echo $NPM_TOKEN $AWS_SECRET_ACCESS_KEY",
    "a password in an address": "echo $DATABASE_URL",
    "the environment of another": "cat /proc/*/environ | tr '\\0' '\\n' | grep NPM_TOKEN",
    "a file of another workspace": "cat $OTHER/untracked",
    "a temporary file of another": "cat $TEMPORARY",
    "the state": "cat $REPO/.git/landlane/sessions/*",
    "a unix socket": 'python3 -c "{}"'.format(TALK.format("1", "'$SOCKET'")),
    "an abstract socket": 'python3 -c "{}"'.format(TALK.format("1", "chr(0) + '$ABSTRACT'")),
    "the agent for keys": 'echo "${SSH_AUTH_SOCK:+SECRET}"',
    "a terminal multiplexer": 'echo "${TMUX:+SECRET}"',
}


def listen(address: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()

    def serve() -> None:
        with suppress(OSError):
            while True:
                peer, _ = server.accept()
                peer.sendall(b"SECRET")
                peer.close()

    threading.Thread(target=serve, daemon=True).start()
    return server


@pytest.fixture(params=BACKENDS)
def testbed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ExecTestbed]:
    made = ExecTestbed(tmp_path, request.param)
    yield made
    made.close()


@pytest.mark.promise(
    "exec.secrets-hidden",
    "A sandboxed agent reads no key, token or file of others, and reaches no program that listens.",
)
@pytest.mark.parametrize("role", ROLES)
def test_no_secret_is_read_and_no_program_is_reached(
    testbed: ExecTestbed, role: str, sealed_home: Path, tmp_path: Path
) -> None:
    (sealed_home / ".ssh").mkdir()
    (sealed_home / ".ssh" / "id_key").write_text("SECRET\n")
    task = testbed.shell.run_json("task", "add", "Other")["task"]["id"]
    other = Path(testbed.shell.run_json("workspace", "open", task)["workspace"]["path"])
    (other / "untracked").write_text("SECRET\n")
    with tempfile.NamedTemporaryFile("w", prefix="of-another-", dir="/tmp") as temporary:
        temporary.write("SECRET")
        temporary.flush()
        path, abstract = f"{temporary.name}.sock", f"landlane-test-{os.getpid()}-{testbed.backend}-{role}"
        places = {
            "HOUSE": sealed_home,
            "OTHER": other,
            "TEMPORARY": temporary.name,
            "REPO": testbed.repository,
            "SOCKET": path,
            "ABSTRACT": abstract,
        }
        secrets = {
            **dict.fromkeys(("NPM_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "TMUX"), "SECRET"),
            "DATABASE_URL": "postgresql://me:SECRET@db/shop",
        }
        testbed.shell = testbed.shell.with_env(**{name: str(at) for name, at in places.items()}, **secrets)
        script = "\n".join(
            f"if ( {commands} ) 2>/dev/null | grep -q SECRET; then echo '{name}'; fi"
            for name, commands in ATTEMPTS.items()
        )
        with listen(path), listen("\0" + abstract):
            try:
                ended = testbed.execute(role, "sh", "-c", script)
            finally:
                os.unlink(path)

    assert ended.exit == 0, ended
    assert ended.out == ""


def test_an_agent_gets_the_tokens_that_the_settings_name(testbed: ExecTestbed) -> None:
    settings = testbed.repository / "landlane.toml"
    settings.write_text(settings.read_text() + '[sandbox]\nvariables = ["NPM_TOKEN"]\n')
    testbed.git("commit", "--quiet", "-am", "Name a token")
    testbed.shell = testbed.shell.with_env(NPM_TOKEN="one", OTHER_TOKEN="two")

    ended = testbed.execute("review", "sh", "-c", "echo $NPM_TOKEN $OTHER_TOKEN")

    assert ended.out == "one\n"


def test_a_settings_opens_unix_sockets_and_the_doctor_names_it(testbed: ExecTestbed) -> None:
    if testbed.backend != BackendKind.LANDLOCK:
        pytest.skip("bubblewrap hides sockets by mounts")
    make = "python3 -c 'import socket; socket.socket(1); print(\"made\")'"

    refused = testbed.execute("code", "sh", "-c", make)
    settings = testbed.repository / "landlane.toml"
    settings.write_text(settings.read_text() + "[sandbox]\nunix_sockets = true\n")
    testbed.git("commit", "--quiet", "-am", "Open sockets")
    made = testbed.execute("code", "sh", "-c", make)
    doctor = testbed.shell.run("doctor", "-v")

    assert "made" not in refused.out
    assert made.out == "made\n"
    assert "unix sockets are open to all agents" in doctor.out + doctor.err


def test_a_wrong_token_is_not_served() -> None:
    from landlane.exec.resident_port import ResidentPort
    from landlane.resident.messages import port_address, send_request

    port = ResidentPort(lambda: "/nowhere")
    try:
        assert send_request(port_address(port.port, "0" * 64), b"", 5.0) is None
    finally:
        port.close()

"""A real coding client works in a sandbox and reaches its model; its shell cannot write elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from landlane.sandbox.start import SandboxedChild
from landlane.values import replace
from tests.support.real_clients import CLIENTS, clients_folder, program_of
from tests.support.real_clients.client import HERE, NODE
from tests.support.scripted_model.server import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.sandbox.model import Backend, Sandbox
    from tests.support.real_clients import Client

pytestmark = [pytest.mark.client, pytest.mark.sandbox, pytest.mark.on_disk]

FOLDER = clients_folder()  # now, because the sealed home of a test clears the variable
LIMIT_SECONDS = 100.0
NAMES = [
    pytest.param("claude", marks=pytest.mark.xdist_group("clients-1")),
    pytest.param("codex", marks=pytest.mark.xdist_group("clients-1")),
    pytest.param("gemini", marks=pytest.mark.xdist_group("clients-2")),
]


def settle(client: Client, scratch: Path, workspace: Path) -> None:
    """Write the client's settings into its private home; Codex has a variable for its own."""
    for name, content in client.home_files(workspace).items():
        path = scratch / "home" / name
        if name.startswith(".codex/"):
            path = scratch / "clients" / "codex" / name.removeprefix(".codex/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize("name", NAMES)
def test_a_coding_client_works_in_its_sandbox_and_cannot_leave_it(
    name: str, backend: Backend, make_sandbox: Callable[..., Sandbox], repository: Path, tmp_path: Path
) -> None:
    program, client = program_of(name, FOLDER), CLIENTS[name]
    if program is None:
        pytest.skip(f"no {name}: `scripts/clients.sh --again {name}` installs it")
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    subprocess.run(
        ["git", "clone", "-q", "--shared", str(repository), str(workspace)], check=True, timeout=30
    )
    outside.write_text("good")
    settle(client, tmp_path / "scratch", workspace)
    turns = [
        *client.write("written.txt", "by a tool\n"),
        *client.shell("echo by a shell > shell.txt; git add -A; git commit -q -m Inside"),
        *client.shell("echo evil > ../outside; git push -q -f origin HEAD:refs/heads/other"),
        *client.say("done"),
    ]
    scripts = json.loads(json.dumps({"main": turns}).replace(HERE, str(workspace)))

    with ScriptedModel(scripts) as model:
        port = urlsplit(model.url).port
        # The clients may be installed in a temporary folder, which is empty inside the sandbox.
        places = (str(FOLDER), str(repository))
        sandbox = make_sandbox(unix_sockets=True, udp=True, tcp_connect=(port,), tcp_bind=(), readable=places)
        path = os.pathsep.join([str(FOLDER / NODE), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**client.environment(model.url), "PATH": path, "CI": "1"}
        sandbox = replace(sandbox, environment=(*environment.items(), *sandbox.environment))
        child = SandboxedChild(
            [str(program), *client.command(model.url, client.prompt_for("main"))],
            sandbox,
            cwd=str(workspace),
            backend=backend,
        )
        ended = child.wait(LIMIT_SECONDS)

    assert ended.exit_code == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert (workspace / "written.txt").read_text() == "by a tool\n"
    assert (workspace / "shell.txt").read_text() == "by a shell\n"
    log = ["git", "log", "-1", "--format=%s"]
    assert subprocess.check_output(log, cwd=workspace, text=True, timeout=30) == "Inside\n"
    assert outside.read_text() == "good"
    refs = ["git", "for-each-ref", "--format=%(refname)"]
    assert subprocess.check_output(refs, cwd=repository, text=True, timeout=30) == "refs/heads/main\n"

"""Two clones with one PostgreSQL as two machines: they share one queue, and who is cut off can do no harm."""

from __future__ import annotations

import contextlib
import select
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from interlock.testing.postgres import PostgresServer
from tests.acceptance.calling import eventually
from tests.killing_support import git
from tests.running_support import Works

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(240)]

ID = "6f3d1b52-0b56-4b0e-9d0e-3f1f5f2f6a77"
# Python imports this first: on another machine the name and the run of the machine are others.
ELSEWHERE = """
import os, interlock.clock as clock
machine = os.environ.get("MACHINE")
if machine:
    uname, boot_id = os.uname(), clock.read_boot_id()
    os.uname = lambda: os.uname_result((uname.sysname, machine, *uname[2:]))
    clock.read_boot_id = lambda: f"{boot_id}-{machine}"
"""


class Cable:
    """A way to a server's socket that can be cut and mended."""

    def __init__(self, url: str, folder: Path) -> None:
        found = conninfo_to_dict(url)
        name = f".s.PGSQL.{found.get('port', 5432)}"
        self._to = str(Path(str(found["host"])) / name)
        self.folder = folder
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / name))
        self._door.listen()
        self._open: list[socket.socket] = []
        self._is_cut = False
        self._is_over = False
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        self._is_cut = True
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open = []

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self._is_over = True
        self.cut()
        self._door.close()

    def _serve(self) -> None:
        while not self._is_over:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            if self._is_cut:
                near.close()
                continue
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._to)
            self._open += [near, far]
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        ways = {one: other, other: one}
        with one, other:
            while True:
                for ready in select.select(list(ways), [], [])[0]:
                    try:
                        got = ready.recv(65_536)
                        if not got:
                            return
                        ways[ready].sendall(got)
                    except OSError:
                        return


@pytest.fixture
def cable(postgres_server: PostgresServer) -> Iterator[Cable]:
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        found = Cable(postgres_server.url, Path(folder))
        yield found
        found.close()


@pytest.fixture
def machines(
    repository: Path, tmp_path: Path, postgres_server: PostgresServer, cable: Cable
) -> tuple[Works, Works]:
    url = postgres_server.create_database()
    near = str(conninfo_to_dict(url)["host"])
    through = url.replace(near, str(cable.folder)).replace(
        quote(near, safe=""), quote(str(cable.folder), safe="")
    )
    assert through != url
    seed = Works(
        repository, more=f'[repository]\nid = "{ID}"\n[sessions]\nlease = "4s"\n[store]\nwait = "2s"\n'
    )
    git(repository, "clone", "--quiet", "--bare", str(repository), str(tmp_path / "remote.git"))
    first = tmp_path / "first"
    first.mkdir()
    (first / "sitecustomize.py").write_text(ELSEWHERE)
    made: list[Works] = []
    for name, place in (("north", url), ("south", through)):
        folder = tmp_path / name / "shop"
        git(tmp_path, "clone", "--quiet", str(tmp_path / "remote.git"), str(folder))
        works = Works.there(folder)
        works.shell = seed.shell.at(folder).where(
            MACHINE=name, PYTHONPATH=str(first), INTERLOCK_STORE=place, INTERLOCK_AGENT=f"lead-{name}"
        )
        made.append(works)
    return made[0], made[1]


def test_both_machines_work_off_one_queue(machines: tuple[Works, Works]) -> None:
    north, south = machines
    tasks = [north.edit(f"Say {number}", f"{number}.txt", seconds=0.3) for number in range(6)]

    both = [one.begin("--workers", "2", "--until-empty", command="worker") for one in machines]
    for process in both:
        process.communicate(timeout=120)

    assert [one.returncode for one in both] == [0, 0]
    assert {north.task(task)["attempt"] for task in tasks} == {1}
    git(north.root, "fetch", "--quiet")
    names = git(north.root, "ls-tree", "--name-only", "origin/main").split()
    assert {f"{number}.txt" for number in range(6)} <= set(names)
    assert south.shell.ask("claims")["claims"] == []


def test_who_is_cut_off_loses_its_task_and_can_do_no_harm(
    machines: tuple[Works, Works], cable: Cable
) -> None:
    north, south = machines
    task = north.add(
        "Be cut off",
        "a.txt",
        script={"seconds": 8, "append": {"a.txt": "of the south\n"}},
        later={2: {"append": {"a.txt": "of the north\n"}}},
    )
    away = south.begin("--workers", "1")
    eventually(lambda: bool(south.workers_running()), seconds=60)

    cable.cut()
    here = north.begin("--workers", "1", "--until-empty")
    here.communicate(timeout=120)
    cable.mend()
    away.communicate(timeout=120)

    assert north.states()[task] == "done"
    git(north.root, "fetch", "--quiet")
    assert git(north.root, "show", "origin/main:a.txt") == "of the north"
    assert north.task(task)["attempt"] == 2
    assert north.shell.ask("claims")["claims"] == []
    south.run()
    eventually(lambda: south.workers_running() == [])
    assert [one["id"] for one in south.shell.ask("workspace", "list")["workspaces"]] == []

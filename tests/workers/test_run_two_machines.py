"""Two clones with one PostgreSQL as two machines: they share one queue, and who is cut off can do no harm."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from landlane.settings.model import LOCAL_NAME
from landlane.testing.postgres_server import PostgresServer
from landlane.testing.repositories import open_test_repository
from tests.support.git import git_line
from tests.support.project import let_time_pass
from tests.support.waiting import wait_until
from tests.workers.running import WorkerTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.postgres,
    pytest.mark.timeout(240),
    pytest.mark.soak,
    pytest.mark.sandbox,
]

LEASE_MS = 10_000
ID = "6f3d1b52-0b56-4b0e-9d0e-3f1f5f2f6a77"
# Python imports this first: on another machine the name and the run of the machine are others.
ELSEWHERE = """
import os, landlane.clock as clock
machine = os.environ.get("MACHINE")
if machine:
    uname, boot_id = os.uname(), clock.read_boot_id()
    os.uname = lambda: os.uname_result((uname.sysname, machine, *uname[2:]))
    clock.read_boot_id = lambda: f"{boot_id}-{machine}"
"""

# A reviewer that approves what it can read.
JUDGE = """
import os
from landlane.worker import serve
def judge(work):
    found = os.path.exists(os.path.join(work.assignment.folder, "a.txt"))
    return work.complete("looked", verdict="approve" if found else "reject")
serve(judge)
"""


class SocketProxy:
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
        self._guard = threading.Lock()  # who comes at the cut is refused, or cut off with the others
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        with self._guard:
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
            with self._guard:
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
def cable(postgres_server: PostgresServer) -> Iterator[SocketProxy]:
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        found = SocketProxy(postgres_server.url, Path(folder))
        yield found
        found.close()


@pytest.fixture
def machines(
    request: pytest.FixtureRequest,
    repository: Path,
    tmp_path: Path,
    postgres_server: PostgresServer,
    cable: SocketProxy,
) -> tuple[WorkerTestbed, WorkerTestbed]:
    """Two clones that share a database and a remote; its parameter is more of their settings."""
    url = postgres_server.create_database()
    near = str(conninfo_to_dict(url)["host"])
    through = url.replace(near, str(cable.folder)).replace(
        quote(near, safe=""), quote(str(cable.folder), safe="")
    )
    assert through != url
    seed = WorkerTestbed(repository, more=f'[repository]\nid = "{ID}"\n{getattr(request, "param", "")}')
    git_line(repository, "clone", "--quiet", "--bare", str(repository), str(tmp_path / "remote.git"))
    first = tmp_path / "first"
    first.mkdir()
    (first / "sitecustomize.py").write_text(ELSEWHERE)
    made: list[WorkerTestbed] = []
    for name, place in (("north", url), ("south", through)):
        folder = tmp_path / name / "shop"
        git_line(tmp_path, "clone", "--quiet", str(tmp_path / "remote.git"), str(folder))
        works = WorkerTestbed.there(folder)
        works.shell = seed.shell.at(folder).with_env(
            MACHINE=name, PYTHONPATH=str(first), LANDLANE_STORE=place, LANDLANE_AGENT=f"lead-{name}"
        )
        made.append(works)
    return made[0], made[1]


def test_both_machines_work_off_one_queue(machines: tuple[WorkerTestbed, WorkerTestbed]) -> None:
    north, south = machines
    tasks = [north.edit(f"Say {number}", f"{number}.txt", seconds=0.3) for number in range(6)]

    both = [one.begin("--forever", "--workers", "2", "--until-empty") for one in machines]
    for process in both:
        process.communicate(timeout=120)

    assert [one.returncode for one in both] == [0, 0]
    assert {north.task(task)["attempt"] for task in tasks} == {1}
    git_line(north.root, "fetch", "--quiet")
    names = git_line(north.root, "ls-tree", "--name-only", "origin/main").split()
    assert {f"{number}.txt" for number in range(6)} <= set(names)
    assert south.shell.run_json("claims")["claims"] == []


@pytest.mark.parametrize(
    "machines", [f'[sessions]\nlease = "{LEASE_MS}ms"\n[store]\nwait = "2s"\n'], indirect=True, ids=["short"]
)
def test_a_disconnected_worker_loses_its_task_and_does_no_harm(
    machines: tuple[WorkerTestbed, WorkerTestbed], cable: SocketProxy
) -> None:
    north, south = machines
    task = north.add(
        "Be cut off",
        "a.txt",
        script={"seconds": 20, "append": {"a.txt": "of the south\n"}},
        later={2: {"append": {"a.txt": "of the north\n"}}},
    )
    away = south.begin("--workers", "1")
    south.wait_for_worker()

    cable.cut()
    repo = open_test_repository(north.root, north.shell.environment["LANDLANE_STORE"], repository_id=ID)
    let_time_pass(repo.store, LEASE_MS)
    repo.store.close()
    here = north.begin("--workers", "1", "--until-empty")
    here.communicate(timeout=120)
    cable.mend()
    away.communicate(timeout=120)

    assert north.states()[task] == "done"
    git_line(north.root, "fetch", "--quiet")
    assert git_line(north.root, "show", "origin/main:a.txt") == "of the north"
    assert north.task(task)["attempt"] == 2
    assert north.shell.run_json("claims")["claims"] == []
    south.run()
    wait_until(lambda: south.workers_running() == [])
    assert [one["id"] for one in south.shell.run_json("workspace", "list")["workspaces"]] == []


def give_judge(works: WorkerTestbed) -> None:
    """Let one machine know the reviewer, in the settings of its clone; others cannot begin it."""
    command = json.dumps([sys.executable, "-c", JUDGE])
    local = works.root / ".git" / "landlane" / LOCAL_NAME
    local.parent.mkdir(exist_ok=True)
    local.write_text(f"[agents.judge]\ncommand = {command}\nprotocol = 'messages'\n", encoding="utf-8")


def review_of(works: WorkerTestbed, task: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The review of a task, and the task of its reviewer."""
    (review,) = (
        one for one in works.shell.run_json("review", "list", "--all")["reviews"] if one["task"] == task
    )
    return review, works.task(review["verdicts"][0]["task"])


def pins_in_remote(works: WorkerTestbed) -> list[str]:
    return works.git("ls-remote", "origin", "refs/landlane/*").split()[1::2]


@pytest.mark.promise(
    "reviews.on-any-machine",
    "Work made on one machine can be reviewed and landed on another; a machine leaves alone work it cannot "
    "fetch.",
)
def test_work_of_one_machine_is_reviewed_and_landed_by_another(
    machines: tuple[WorkerTestbed, WorkerTestbed],
) -> None:
    north, south = machines
    task = north.edit("Say so", "a.txt", label="reviewer:judge")
    give_judge(south)
    north.begin("--workers", "1").communicate(timeout=100)
    review, reviewers = review_of(north, task)
    assert (north.states()[task], review["state"], reviewers["state"]) == ("review", "open", "ready")
    assert pins_in_remote(south) == [f"refs/landlane/proved/{review['head']}"]

    south.begin("--workers", "1").communicate(timeout=100)

    assert south.states() == {task: "done", reviewers["id"]: "done"}
    assert [south.task(one)["attempt"] for one in south.states()] == [1, 1]
    git_line(south.root, "fetch", "--quiet")
    assert git_line(south.root, "show", "origin/main:a.txt") == "Say so"
    assert pins_in_remote(south) == []
    north.run()
    for one in machines:
        assert one.git("for-each-ref", "refs/landlane/proved", "refs/heads/landlane") == ""


def test_a_commit_on_another_machine_is_neither_reviewed_nor_failed_here(
    machines: tuple[WorkerTestbed, WorkerTestbed], tmp_path: Path
) -> None:
    north, south = machines
    hook = tmp_path / "remote.git" / "hooks" / "update"
    hook.write_text('#!/bin/sh\ncase "$1" in refs/landlane/proved/*) exit 1;; esac\n')
    hook.chmod(0o755)
    task = north.edit("Say so", "a.txt", label="reviewer:judge")
    give_judge(south)
    north.begin("--workers", "1").communicate(timeout=100)
    review, reviewers = review_of(north, task)

    away = south.begin("--forever", "--workers", "1", "--until-empty")
    assert away.stderr is not None
    heard = _hear(away.stderr, f"{reviewers['id']} waits: {review['head'][:12]} is not here")
    north.shell.run_json("review", "give", review["id"], "--verdict", "approve", "--as", "judge")
    heard += _hear(away.stderr, f"{task} was approved at {review['head'][:12]}, which is not here")
    assert (south.task(task)["state"], south.task(reviewers["id"])["attempt"]) == ("review", 1), heard
    assert "failed" not in str(south.shell.run_json("task", "log", task)), heard
    north.run("--workers", "1")
    away.communicate(timeout=100)

    assert away.returncode == 0
    assert (north.task(task)["state"], north.task(task)["attempt"]) == ("done", 1)
    assert pins_in_remote(north) == []


def _hear(said: IO[str], words: str) -> list[str]:
    """What is said up to these words; their line is the last."""
    lines: list[str] = []
    for line in said:
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError(lines)

"""A throw-away world for real clients: a repository, homes, a network of its own, and runs against scripts.

    with ClientTestbed() as world:
        world.call("landlane", "init", "--yes")
        claude = CLIENTS["claude"]
        edit = claude.edit("calc.py", "    return a - b", "    return a + b")
        result = world.run(claude, {"main": edit + claude.say("done")})
        assert not result.told_model("held by")

The world sets up nothing in its repository, and gives clients nothing of the caller's environment.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from landlane.testing.repositories import make_repository
from landlane.values import value
from tests.support.real_clients.client import HERE, NODE, Client, Scripts, clients_folder, program_of
from tests.support.real_clients.network_namespace import Namespace
from tests.support.scripted_model.server import Request, ScriptedModel

if TYPE_CHECKING:
    from tests.support.scripted_model.api_formats import Json

RUN_SECONDS = 90.0
CALL_SECONDS = 60.0
END_SECONDS = 10.0
FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "free.py": "x = 1\n"}

_GIT_SETTINGS = "[user]\n\tname = Ada Example\n\temail = ada@example.invalid\n[gc]\n\tauto = 0\n"
_QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
    "CI": "1",
    "TERM": "dumb",
    "LANG": "C.UTF-8",
}


@value
class Launch:
    """One start of a client. It begins with the script `main`."""

    client: Client
    scripts: Scripts
    home: str = "home"
    cwd: Path | None = None
    environment: Mapping[str, str] = {}
    arguments: Sequence[str] = ()
    program: Path | None = None


@value
class Result:
    """What a run of a client left: its end, its words, what the model was asked, and the repository's files.

    `code` is None for a run that had to be stopped. `is_isolated` is false where a namespace cannot be had.
    """

    code: int | None
    out: str
    err: str
    seconds: float
    requests: list[Request]
    files: dict[str, str]
    is_isolated: bool

    @property
    def events(self) -> list[Json]:
        """The JSON lines among the client's words."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def turns(self, script: str = "main") -> list[int]:
        """The turns of a script that were asked for, each once, in order."""
        return sorted({one.turn for one in self.requests if one.script == script})

    def turns_containing(self, text: str, script: str = "main") -> list[int]:
        """The turns of a script whose request held the text."""
        return sorted({one.turn for one in self.requests if one.script == script and one.contains(text)})


class Running:
    """A client at work: `model` shows how far it is and opens gates, `finish` waits for its end."""

    def __init__(self, world: ClientTestbed, launch: Launch) -> None:
        self._world = world
        self._started = time.monotonic()
        here = str(launch.cwd or world.repository)
        scripts = json.loads(json.dumps(dict(launch.scripts)).replace(HERE, json.dumps(here)[1:-1]))
        self.model = ScriptedModel(scripts, listening=world.network.listen())
        program = launch.program or world.program_of(launch.client.name)
        prompt = launch.client.prompt_for("main")
        words = [str(program), *launch.client.command(self.model.url, prompt), *launch.arguments]
        environment = {
            **world.environment(launch.home),
            **launch.client.environment(self.model.url),
            **launch.environment,
        }
        self._out, self._err = _words_file(), _words_file()
        self.process = subprocess.Popen(
            [*world.network.enter(), *words],
            cwd=here,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )

    def finish(self, seconds: float = RUN_SECONDS) -> Result:
        """Wait for the client's end, or end it, and tell what it left."""
        code: int | None
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.stop()
            code = None
        taken = time.monotonic() - self._started
        self.model.close()
        return Result(
            code=code,
            out=_read_words(self._out),
            err=_read_words(self._err),
            seconds=taken,
            requests=self.model.requests,
            files=self._world.files(),
            is_isolated=self._world.network.is_isolated,
        )

    def stop(self) -> None:
        """Kill the client and what it started in its group, if it is still there."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def discard(self) -> None:
        """End a client that nobody finished."""
        if not self._out.closed:
            self.stop()
            self.model.close()
            self._out.close()
            self._err.close()


class ClientTestbed:
    """A repository with two files, homes by name, and a network with loopback only; gone after `with`."""

    def __init__(self, *, files: Mapping[str, str] | None = None, clients: Path | None = None) -> None:
        """`clients` is the folder the clients are installed in, by default the one of scripts/clients.sh."""
        self._clients = clients or clients_folder()
        self._running: list[Running] = []
        # A short path: some clients put unix sockets below it.
        self.root = Path(tempfile.mkdtemp(prefix="world-")).resolve()
        (self.root / "tmp").mkdir()
        self.repository = make_repository(self.root / "repository", files=FILES if files is None else files)
        self.network = Namespace()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what still runs here, and remove the world."""
        for one in self._running:
            one.discard()
        deadline = time.monotonic() + END_SECONDS
        # Again, until none is left: what is being killed may just be starting another.
        while (left := self.processes()) and time.monotonic() < deadline:
            for process in left:
                _kill(process)
            time.sleep(0.01)
        self.network.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def home(self, name: str = "home") -> Path:
        """A home directory of this name, made on first use."""
        home = self.root / name
        if not home.exists():
            home.mkdir()
            (home / ".gitconfig").write_text(_GIT_SETTINGS, encoding="utf-8")
        return home

    def add_home_files(self, client: Client, home: str = "home") -> None:
        """Give a home the files of someone who has used the client here before; those that are there stay."""
        for name, content in client.home_files(self.repository).items():
            path = self.home(home) / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))

    def environment(self, home: str = "home") -> dict[str, str]:
        """All that a user of this world has in the environment; clients and `landlane` are on the PATH."""
        programs = [self._clients / NODE, *sorted(self._clients.glob("*/node_modules/.bin"))]
        path = os.pathsep.join([*map(str, programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        # So that the hooks count where the coverage of this process is measured.
        measured = {name: text for name, text in os.environ.items() if name.startswith("COVERAGE_")}
        places = {"HOME": str(self.home(home)), "TMPDIR": str(self.root / "tmp"), "PATH": path}
        return {**_QUIET, **measured, **places}

    def program_of(self, name: str) -> Path:
        """The program of a client.

        Raises:
            FileNotFoundError: the client is not installed.
        """
        program = program_of(name, self._clients)
        if program is None:
            raise FileNotFoundError(f"{name} is not installed in {self._clients}: scripts/clients.sh {name}")
        return program

    def call(
        self,
        *words: str,
        home: str = "home",
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        check: bool = True,
        seconds: float = CALL_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as the user of a home would, in the repository and in this world's network.

        Raises:
            subprocess.CalledProcessError: the command failed, and `check` was not switched off.
        """
        return subprocess.run(
            [*self.network.enter(), *words],
            cwd=cwd or self.repository,
            env={**self.environment(home), **(environment or {})},
            check=check,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def start(self, client: Client, scripts: Scripts, **options: Any) -> Running:
        """Start a client in the background; the options are those of `Launch`."""
        return self.launch(Launch(client=client, scripts=scripts, **options))

    def launch(self, launch: Launch) -> Running:
        """Start a client in the background."""
        self.add_home_files(launch.client, launch.home)
        running = Running(self, launch)
        self._running.append(running)
        return running

    def run(
        self, client: Client, scripts: Scripts, *, seconds: float = RUN_SECONDS, **options: Any
    ) -> Result:
        """Run a client to its end; the options are those of `Launch`."""
        return self.start(client, scripts, **options).finish(seconds)

    def run_together(self, launches: Sequence[Launch], seconds: float = RUN_SECONDS) -> list[Result]:
        """Run several clients at once, to the end of all."""
        running = [self.launch(one) for one in launches]
        return [one.finish(seconds) for one in running]

    def files(self) -> dict[str, str]:
        """The text of every file in the repository, git's own left out."""
        found: dict[str, str] = {}
        for folder, folders, names in os.walk(self.repository):
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                path = Path(folder, name)
                if name != ".git" and path.is_file():
                    found[str(path.relative_to(self.repository))] = path.read_text(errors="replace")
        return found

    def processes(self) -> list[int]:
        """The processes that have their home here: what a client or a hook left running."""
        mark = f"\0HOME={self.root}{os.sep}".encode()
        found: list[int] = []
        # Not by Path.glob, which asks whether each file exists, and raises if a process ends meanwhile.
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                if mark in b"\0" + Path("/proc", pid, "environ").read_bytes():
                    found.append(int(pid))
            except OSError:  # it has ended, or is somebody else's
                continue
        return found


def _words_file() -> IO[bytes]:
    # A file and not a pipe: a pipe fills up, and stays open as long as any descendant lives.
    return tempfile.TemporaryFile()


def _read_words(words: IO[bytes]) -> str:
    with words:
        words.seek(0)
        return words.read().decode(errors="replace")


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass

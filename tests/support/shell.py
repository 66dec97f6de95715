"""Commands typed as a user types them: real processes of the installed `landlane`, in a folder of their own.

`ask` wants JSON and checks what every answer promises: one object on stdout and nothing else, `ok` in keeping
with the exit code, a code and a hint in words with every failure. `tell` wants the text for people.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.support.command_server import Forked, can_fork
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

LANDLANE = str(Path(sys.executable).with_name("landlane"))
LIMIT_SECONDS = 60.0
Answer = dict[str, Any]

# Files that change by being looked at, or that say nothing.
_PASSING = re.compile(r"(-shm|\.lock|settings\.cache)$")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_SESSIONS = re.compile(r"\bs-[a-z2-9]{10}\b")
_TOKENS = re.compile(r"\b\d{10,16}\b")
_HASHES = re.compile(r"\b[0-9a-f]{16,64}…?")
_AGES = re.compile(r"\b\d+(ms|s)\b")


class Shell:
    """A folder and an environment in which commands are typed."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str] | None = None, prefix: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.environment = dict(environment or {})
        self.prefix = prefix

    def at(self, folder: Path | str) -> Shell:
        """The same, in another folder."""
        return Shell(self.folder / folder, self.environment, self.prefix)

    def where(self, **environment: str) -> Shell:
        """The same, with more in the environment."""
        return Shell(self.folder, {**self.environment, **environment}, self.prefix)

    def humble(self) -> Shell:
        """The same, without the superuser's power to read and write what the mode of a file forbids."""
        if os.geteuid() != 0:
            return self
        give_up = "import ctypes, os, sys; drop = ctypes.CDLL(None).prctl; drop(24, 1); drop(24, 2)"
        run = "os.execvp(sys.argv[1], sys.argv[1:])"
        return Shell(self.folder, self.environment, (sys.executable, "-I", "-S", "-c", f"{give_up}; {run}"))

    def run(self, *words: str, stdin: str = "", limit_seconds: float = LIMIT_SECONDS) -> Ended:
        """Run `landlane` with these words, and wait for its end."""
        return self.run_program(LANDLANE, *words, stdin=stdin, limit_seconds=limit_seconds)

    def run_program(self, *words: str, stdin: str = "", limit_seconds: float = LIMIT_SECONDS) -> Ended:
        environment = {**os.environ, **self.environment}
        if words[0] == LANDLANE and not self.prefix and can_fork(environment):
            running = Running(list(words), self.folder, environment, stdin.encode())
            with running:
                return running.end(limit_seconds)
        done = subprocess.run(
            (*self.prefix, *words),
            cwd=self.folder,
            env=environment,
            input=stdin.encode(),
            capture_output=True,
            timeout=limit_seconds,
        )
        return Ended(list(words), done.returncode, done.stdout.decode(), done.stderr.decode())

    def sh(self, script: str) -> Ended:
        """Run a shell script that finds `landlane` on its path."""
        path = f"{os.path.dirname(LANDLANE)}:{os.environ['PATH']}"
        return self.where(PATH=path).run_program("sh", "-c", script)

    def git(self, *words: str) -> str:
        ended = self.run_program("git", *words)
        assert ended.exit == 0, ended
        return ended.out

    def ask(self, *words: str, exit: int = 0) -> Answer:
        """The JSON answer to a command, which must end with this exit code."""
        before = words.index("--") if "--" in words else len(words)
        ended = self.run(*words[:before], "--json", *words[before:])
        assert ended.exit == exit, ended
        return ended.answer()

    def refuse(self, code: str, *words: str, exit: int = 2) -> Answer:
        """The JSON answer to a command that must fail with this code."""
        answer = self.ask(*words, exit=exit)
        assert answer["code"] == code, answer
        return answer

    def tell(self, *words: str, exit: int = 0) -> str:
        """What a command writes for people."""
        ended = self.run(*words)
        assert ended.exit == exit, ended
        return ended.out

    def start(self, *words: str) -> Running:
        """Start `landlane` and go on."""
        return Running([LANDLANE, *words], self.folder, {**os.environ, **self.environment})

    @property
    def state(self) -> Path:
        """The folder of the repository's state; for shells that stand at the root of the main worktree."""
        return self.folder / ".git" / "landlane"

    def await_waiter(self) -> None:
        """Go on when somebody stands in line."""

        def has_waiter() -> bool:
            with contextlib.closing(sqlite3.connect(f"file:{self.state}/store.db?mode=ro", uri=True)) as db:
                return bool(db.execute("SELECT count(*) FROM waiters").fetchone()[0])

        wait_until(has_waiter)

    def pass_time(self, seconds: float) -> None:
        """Let time pass for every command that starts from now on: the store's clock is put forward."""
        with contextlib.closing(sqlite3.connect(self.state / "store.db", timeout=LIMIT_SECONDS)) as db, db:
            ahead = "UPDATE meta SET value = CAST(value AS INTEGER) + ? WHERE key = 'base'"
            assert db.execute(ahead, (round(seconds * 1000),)).rowcount == 1

    def holders(self) -> dict[str, str]:
        """Who holds what."""
        return {claim["pattern"]: claim["holder"] for claim in self.ask("claims")["claims"]}

    def position(self) -> int:
        """Where the journal ends."""
        return self.ask("status")["journal"]["position"]

    def kinds(self) -> list[str]:
        """What happened, in order."""
        return [entry["kind"] for entry in self.ask("journal")["entries"]]


class Ended:
    """How a command ended, and what it said."""

    def __init__(self, words: list[str], exit: int, out: str, err: str) -> None:
        self.words = words
        self.exit = exit
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        words = " ".join(word[:80] for word in self.words[:12])
        return f"{words}\nexit {self.exit}\nstdout: {self.out[:2000]}\nstderr: {self.err[:4000]}"

    def answer(self) -> Answer:
        """The one JSON object on stdout, in the form that all answers have."""
        assert self.out.count("\n") == 1, self
        assert self.out.endswith("\n"), self
        found = json.loads(self.out)
        assert isinstance(found, dict), self
        assert found["ok"] is (self.exit == 0), self
        if not found["ok"]:
            assert re.fullmatch(r"[A-Z][A-Z_]*[A-Z]", found["code"]), self
            assert found["message"], self
            assert "hint" in found, self
        assert "Traceback" not in self.err, self
        return found


class Running:
    """A command that goes on while the test does something else; leaving the `with` block ends it."""

    def __init__(
        self, words: list[str], folder: Path, environment: Mapping[str, str], stdin: bytes | None = None
    ) -> None:
        self._words = words
        self._process = _start(words, folder, environment, stdin)
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate(timeout=LIMIT_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def line(self) -> str:
        """The next line of its answer; the test's own time limit ends the wait."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode()

    def end(self, limit_seconds: float = LIMIT_SECONDS) -> Ended:
        """Wait for its end."""
        out, err = self._process.communicate(timeout=limit_seconds)
        assert self._process.returncode is not None
        return Ended(self._words, self._process.returncode, out.decode(), err.decode())


def end_all(started: Sequence[Running]) -> list[Ended]:
    """Wait for commands that were started to run at the same time."""
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(running).end() for running in started]


def _start(
    words: list[str], folder: Path, environment: Mapping[str, str], stdin: bytes | None
) -> Forked | subprocess.Popen[bytes]:
    if words[0] == LANDLANE and can_fork(environment):
        return Forked(words, str(folder), environment, stdin)
    assert stdin is None
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def at_terminal(shell: Shell, *words: str, **environment: str) -> tuple[int, str]:
    """Run a command for a person who sits at a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [LANDLANE, *words],
        cwd=shell.folder,
        env={**os.environ, "USER": "pat", **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    said = b""
    try:
        while got := os.read(master, 10_000):
            said += got
    except OSError:
        pass  # that is how a terminal ends
    os.close(master)
    return process.wait(60), said.decode().replace("\r\n", "\n")


def fingerprint(folder: Path) -> dict[str, str]:
    """What tells the files below a folder from changed ones; empty ones do not count."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _PASSING.search(path.name) and path.stat().st_size
    }


def masked(text: str) -> str:
    """A text without what differs from run to run."""
    text = _TIMES.sub("TIME", text)
    text = _SESSIONS.sub("SESSION", text)
    text = _TOKENS.sub("TOKEN", text)
    text = _HASHES.sub("HASH", text)
    return _AGES.sub("AGE", text)

"""Run the installed `landlane` in real processes, as a user types it.

`run_json` asks for JSON and checks what holds for every answer: one object on stdout and nothing else, `ok`
that agrees with the exit code, a code, a message and a hint with every failure, and all that the shipped JSON
Schema says. `run_text` returns the text for people.
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
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.support.answer_schema import check_answer
from tests.support.command_server import Forked, can_fork
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

LANDLANE = str(Path(sys.executable).with_name("landlane"))
LIMIT_SECONDS = 60.0
Answer = dict[str, Any]

# Files that change by being read, or have no content of interest.
_VOLATILE = re.compile(r"(-shm|\.lock|settings\.cache)$")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_SESSIONS = re.compile(r"\bs-[a-z2-9]{10}\b")
_TOKENS = re.compile(r"\b\d{10,16}\b")
_HASHES = re.compile(r"\b[0-9a-f]{16,64}…?")
_AGES = re.compile(r"\b\d+(ms|s)\b")


class Shell:
    """A folder and an environment in which commands are run."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str] | None = None, prefix: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.environment = dict(environment or {})
        self.prefix = prefix

    def at(self, folder: Path | str) -> Shell:
        """Return the same shell in another folder."""
        return Shell(self.folder / folder, self.environment, self.prefix)

    def with_env(self, **environment: str) -> Shell:
        """Return the same shell with more environment variables."""
        return Shell(self.folder, {**self.environment, **environment}, self.prefix)

    def without_root(self) -> Shell:
        """Return the same shell without root's capability to ignore file modes."""
        if os.geteuid() != 0:
            return self
        give_up = "import ctypes, os, sys; drop = ctypes.CDLL(None).prctl; drop(24, 1); drop(24, 2)"
        run = "os.execvp(sys.argv[1], sys.argv[1:])"
        return Shell(self.folder, self.environment, (sys.executable, "-I", "-S", "-c", f"{give_up}; {run}"))

    def run(self, *words: str, stdin: str = "", limit_seconds: float = LIMIT_SECONDS) -> CommandResult:
        """Run `landlane` with these arguments to its end."""
        return self.run_program(LANDLANE, *words, stdin=stdin, limit_seconds=limit_seconds)

    def run_program(
        self, *words: str, stdin: str = "", limit_seconds: float = LIMIT_SECONDS
    ) -> CommandResult:
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
        return CommandResult(list(words), done.returncode, done.stdout.decode(), done.stderr.decode())

    def sh(self, script: str) -> CommandResult:
        """Run a shell script with `landlane` on its PATH."""
        path = f"{os.path.dirname(LANDLANE)}:{os.environ['PATH']}"
        return self.with_env(PATH=path).run_program("sh", "-c", script)

    def git(self, *words: str) -> str:
        ended = self.run_program("git", *words)
        assert ended.exit == 0, ended
        return ended.out

    def run_json(self, *words: str, exit: int = 0) -> Answer:
        """Run a command, which must end with this exit code, and return its JSON answer."""
        before = words.index("--") if "--" in words else len(words)
        ended = self.run(*words[:before], "--json", *words[before:])
        assert ended.exit == exit, ended
        return ended.json()

    def run_error(self, code: str, *words: str, exit: int = 2) -> Answer:
        """Run a command, which must fail with this error code, and return its JSON answer."""
        answer = self.run_json(*words, exit=exit)
        assert answer["code"] == code, answer
        return answer

    def run_text(self, *words: str, exit: int = 0) -> str:
        """Run a command, which must end with this exit code, and return its text."""
        ended = self.run(*words)
        assert ended.exit == exit, ended
        return ended.out

    def start(self, *words: str) -> Running:
        """Start `landlane` in the background."""
        return Running([LANDLANE, *words], self.folder, {**os.environ, **self.environment})

    @property
    def state(self) -> Path:
        """The state folder of the repository; only for a shell at the root of the main worktree."""
        return self.folder / ".git" / "landlane"

    def wait_for_waiter(self) -> None:
        """Return when a session waits for a claim."""

        def has_waiter() -> bool:
            with contextlib.closing(sqlite3.connect(f"file:{self.state}/store.db?mode=ro", uri=True)) as db:
                return bool(db.execute("SELECT count(*) FROM waiters").fetchone()[0])

        wait_until(has_waiter)

    def pass_time(self, seconds: float) -> None:
        """Advance the store's clock, for every command that starts from now on."""
        with contextlib.closing(sqlite3.connect(self.state / "store.db", timeout=LIMIT_SECONDS)) as db, db:
            ahead = "UPDATE meta SET value = CAST(value AS INTEGER) + ? WHERE key = 'base'"
            assert db.execute(ahead, (round(seconds * 1000),)).rowcount == 1

    def holders(self) -> dict[str, str]:
        """Return the holder of each claimed pattern."""
        return {claim["pattern"]: claim["holder"] for claim in self.run_json("claims")["claims"]}

    def position(self) -> int:
        """Return the last position of the journal."""
        return self.run_json("status")["journal"]["position"]

    def kinds(self) -> list[str]:
        """Return the kinds of all journal entries, in order."""
        return [entry["kind"] for entry in self.run_json("log")["entries"]]


class CommandResult:
    """The exit code and the output of a command."""

    def __init__(self, words: list[str], exit: int, out: str, err: str) -> None:
        self.words = words
        self.exit = exit
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        words = " ".join(word[:80] for word in self.words[:12])
        return f"{words}\nexit {self.exit}\nstdout: {self.out[:2000]}\nstderr: {self.err[:4000]}"

    def json(self) -> Answer:
        """Return the one JSON object on stdout, after checking what holds for every answer."""
        assert self.out.count("\n") == 1, self
        assert self.out.endswith("\n"), self
        answer = json.loads(self.out)
        assert isinstance(answer, dict), self
        assert answer["ok"] is (self.exit == 0), self
        if not answer["ok"]:
            assert re.fullmatch(r"[A-Z][A-Z_]*[A-Z]", answer["code"]), self
            assert answer["message"], self
            assert "hint" in answer, self
        assert "Traceback" not in self.err, self
        if self.words[0] == LANDLANE:
            check_answer(self.words[1:], answer)
        return answer


class Running:
    """A command that runs in the background; leaving the `with` block kills it."""

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

    def read_line(self) -> str:
        """Return the next line of its output; the time limit of the test ends the wait."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode()

    def end(self, limit_seconds: float = LIMIT_SECONDS) -> CommandResult:
        """Wait for its end and return its result."""
        out, err = self._process.communicate(timeout=limit_seconds)
        assert self._process.returncode is not None
        return CommandResult(self._words, self._process.returncode, out.decode(), err.decode())


def wait_for_all(started: Sequence[Running]) -> list[CommandResult]:
    """Wait for the end of commands that run at the same time, and return their results."""
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


def run_at_terminal(shell: Shell, *words: str, typed: str = "", **environment: str) -> tuple[int, str]:
    """Run a command at a terminal, as a person does who types this; return its exit code and output."""
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
    _type(master, typed)
    output = b""
    try:
        while data := os.read(master, 10_000):
            output += data
    except OSError:
        pass  # reading from a closed terminal fails
    os.close(master)
    return process.wait(60), output.decode().replace("\r\n", "\n")


def _type(terminal: int, text: str) -> None:
    """Type a text ahead, without an echo that would come at any time."""
    if text:
        modes = termios.tcgetattr(terminal)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, modes)
        os.write(terminal, text.encode())


def fingerprint(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder that is not empty."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _VOLATILE.search(path.name) and path.stat().st_size
    }


def masked(text: str) -> str:
    """Return a text without the parts that differ from run to run."""
    text = _TIMES.sub("TIME", text)
    text = _SESSIONS.sub("SESSION", text)
    text = _TOKENS.sub("TOKEN", text)
    text = _HASHES.sub("HASH", text)
    return _AGES.sub("AGE", text)


class TerminalScreen:
    """A command at a terminal of 100 by 30 that a person types to; leaving the `with` block kills it."""

    def __init__(self, shell: Shell, *words: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (30, 100))
        self._process = subprocess.Popen(
            [LANDLANE, *words],
            cwd=shell.folder,
            env={**os.environ, "USER": "pat", "TERM": "xterm-256color", **environment},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._unread = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(LIMIT_SECONDS)
        os.close(self._master)

    def read_until(self, text: str) -> str:
        """Return what is shown up to and with a text; the time limit of the test ends the wait."""
        while text not in self._unread:
            self._unread += os.read(self._master, 10_000).decode(errors="replace")
        before, _, self._unread = self._unread.partition(text)
        return before + text

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Read the rest and return the exit code."""
        with contextlib.suppress(OSError):  # reading from a closed terminal fails
            while os.read(self._master, 10_000):
                pass
        return self._process.wait(LIMIT_SECONDS)

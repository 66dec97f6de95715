"""Kill a command at a chosen system call, and compare what is left with what the whole command leaves.

`strace` lists the calls that change something or start something, and then sends SIGKILL as a process enters
one of them. That process is the command itself, or a git command that it starts. What the killed one started
runs on, as after a kill by a person or by the system.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import psycopg

from landlane.app.store_place import POINTER
from landlane.platform.process import list_pids
from landlane.values import value
from tests.support.git import git_line
from tests.support.shell import LANDLANE, Shell
from tests.support.tools import find_tool, library_path
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from landlane.testing.postgres_server import PostgresServer

# Calls that change files, wake others, talk to a server or start programs. Some exist on some machines only.
_CALLS = (
    "rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat mkdir mkdirat rmdir fsync"
    " fdatasync ftruncate pwrite64 write sendto sendmsg flock chmod fchmod fchmodat vfork clone clone3 execve"
)
CALLS = ",".join(f"?{name}" for name in _CALLS.split())
_LIMIT_SECONDS = 120.0
_CHECKOUTS = ("repository", "repository.workspaces", "worktree", "restored")


@value
class Scenario:
    """A command, and the repository in which it has something to do.

    `prepare` gets a shell at the root of a fresh repository and returns the folder to run the command in.
    The bytes in `precious` must be somewhere afterwards: in a checkout, or in an object that a ref keeps.
    """

    name: str
    prepare: Callable[[Shell], Path]
    words: tuple[str, ...]
    precious: tuple[bytes, ...] = ()


@value
class Call:
    """A system call: how often the process has made this one by then.

    The process is the command, or the `git`-th git command that it starts.
    """

    name: str
    number: int
    git: int = 0


@value
class Outcome:
    """How a command ended: its exit code, and the code of its error."""

    exit: int
    code: str


class KillTestbed:
    """A prepared repository that is put back before each kill, on SQLite or in a PostgreSQL database."""

    def __init__(self, root: Path, home: Path, scenario: Scenario, server: PostgresServer | None) -> None:
        self.scenario = scenario
        self.folder = root / "repository"
        self._places = (root, home)
        self._saved = root.parent / f"saved-{scenario.name}"
        self._started = self._saved / "started"
        (self._saved / "bin").mkdir(parents=True)
        self._write_git()
        self._server = server
        self._url = ""
        if server is not None:
            self._url = server.create_database()
            (self.folder / ".git" / "landlane").mkdir()
            pointer = self.folder / ".git" / "landlane" / POINTER
            pointer.write_text(self._url + "\n", encoding="utf-8")
        self.shell = Shell(self.folder)
        self.start = scenario.prepare(self.shell)
        self._save()
        self.outcomes, self.facts = self._run_twice()

    def _save(self) -> None:
        for number, place in enumerate(self._places):
            shutil.copytree(place, self._saved / str(number), symlinks=True)
        if self._server is not None:
            self._copy_database(f"{self._name}", f"{self._name}_saved")

    def restore(self) -> None:
        """Put everything back to before the command."""
        self._write_git()
        for number, place in enumerate(self._places):
            shutil.rmtree(place)
            shutil.copytree(self._saved / str(number), place, symlinks=True)
        if self._server is not None:
            self._copy_database(f"{self._name}_saved", self._name)

    @property
    def _name(self) -> str:
        return self._url.partition("?")[0].rpartition("/")[2]

    def _copy_database(self, source: str, target: str) -> None:
        assert self._server is not None
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            for name in (source, target):  # a killed client's connection may still be there
                query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
                connection.execute(query, (name,))
            connection.execute(f'DROP DATABASE IF EXISTS "{target}" WITH (FORCE)'.encode())
            connection.execute(f'CREATE DATABASE "{target}" TEMPLATE "{source}"'.encode())

    def _run_twice(self) -> tuple[set[Outcome], list[dict[str, object]]]:
        """Run the command without a kill, and again: return how it ends, and what it leaves each time."""
        outcomes: set[Outcome] = set()
        facts: list[dict[str, object]] = []
        for _ in range(2):
            outcomes.add(self.repeat())
            facts.append(self.describe())
        self.restore()
        return outcomes, facts

    def repeat(self) -> Outcome:
        """Run the command to its end."""
        folder = self.start if self.start.is_dir() else self.folder
        words = list(self.scenario.words)
        at = words.index("--") if "--" in words else len(words)
        ended = Shell(folder).run(*words[:at], "--json", *words[at:])
        assert "Traceback" not in ended.err, ended
        if "--" in words:  # the command's own output is passed through
            return Outcome(exit=ended.exit, code="")
        return Outcome(exit=ended.exit, code=str(ended.json().get("code", "")))

    def list_calls(self) -> tuple[list[Call], list[Call]]:
        """Return the calls of the command itself, and those of the git commands it starts, in their order."""
        lines = self._trace("-f", "-e", f"trace={CALLS}")
        started = self._started.read_text(encoding="utf-8").split()
        self.restore()
        counts: Counter[tuple[str, str]] = Counter()
        own: list[Call] = []
        others: list[Call] = []
        first = lines[0].split()[0]
        for pid, rest in (line.split(maxsplit=1) for line in lines):
            name, bracket, _ = rest.partition("(")
            if not bracket or not name.isidentifier():  # the end of a call, or a signal
                continue
            counts[pid, name] += 1
            if pid == first:
                own.append(Call(name=name, number=counts[pid, name]))
            elif pid in started and name != "execve":
                others.append(Call(name=name, number=counts[pid, name], git=started.index(pid) + 1))
        return own, others

    def kill_at(self, call: Call) -> bool:
        """Run the command until a call of it, or of a git command of it; return whether it got there."""
        inject = ("-e", f"trace={call.name}", "-e", f"inject={call.name}:signal=KILL:when={call.number}")
        if call.git:
            self._write_git(call.git, inject)
            lines = self._trace("-e", "trace=none", log=self._saved / "none")
            lines = (self._saved / "calls").read_text(encoding="utf-8", errors="replace").splitlines()
        else:
            lines = self._trace(*inject)
        return any("+++ killed by SIGKILL +++" in line for line in lines)

    def _write_git(self, number: int = 0, options: Sequence[str] = ()) -> None:
        """Write a `git` that notes its process id, and runs under strace when it is started the n-th time."""
        real = shutil.which("git")
        strace = shlex.join([find_tool("strace"), "-o", str(self._saved / "calls"), *options])
        script = (
            f"#!/bin/sh\necho $$ >>{self._started}\n"
            f'[ $(wc -l <{self._started}) = {number} ] && exec {strace} {real} "$@"\nexec {real} "$@"\n'
        )
        program = self._saved / "bin" / "git"
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
        (self._saved / "calls").write_text("")

    def _trace(self, *options: str, log: Path | None = None) -> list[str]:
        """Run the command under strace, wait for all that it started, and return the lines of strace."""
        log = log or self._saved / "calls"
        self._started.write_text("")
        environment = {**os.environ, "LD_LIBRARY_PATH": library_path("strace")}
        environment["PATH"] = f"{self._saved / 'bin'}:{environment['PATH']}"
        with subprocess.Popen(
            [find_tool("strace"), "-o", str(log), *options, LANDLANE, *self.scenario.words],
            cwd=self.start,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                process.wait(_LIMIT_SECONDS)
            finally:
                process.kill()
            wait_until(lambda: not list(_members(process.pid)))
        return log.read_text(encoding="utf-8", errors="replace").splitlines()

    def check(self) -> list[str]:
        """Repeat the command and return what is wrong then."""
        wrong: list[str] = []
        outcome = self.repeat()
        if outcome not in self.outcomes:
            wrong.append(f"repeated: {outcome}, expected one of {self.outcomes}")
        facts = self.describe()
        if facts not in self.facts:
            wrong += [
                f"{name}: {facts[name]}, expected {[known[name] for known in self.facts]}"
                for name in facts
                if facts[name] not in [known[name] for known in self.facts]
            ] or [f"mixed: {facts}"]
        doctor = self.shell.run("doctor", "--json").json()
        if not doctor["ok"]:
            wrong.append(f"doctor: {doctor}")
        trouble = self.shell.run_json("log", "--verify")["trouble"]
        if trouble:
            wrong.append(f"journal: {trouble}")
        wrong += [f"lost: {text!r}" for text in self.scenario.precious if not self._has(text)]
        return wrong

    def describe(self) -> dict[str, object]:
        """Return what the command may have changed, without ids and times."""
        shell = self.shell
        claims = [(one["pattern"], one["holder"]) for one in shell.run_json("claims")["claims"]]
        tasks = shell.run_json("task", "list", "--all")["tasks"]
        git = self.folder
        refs = git_line(git, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads").splitlines()
        history = {
            ref.split()[0]: git_line(git, "log", "--format=%T %s", ref.split()[1]).splitlines()
            for ref in refs
        }
        return {
            "claims": sorted(claims),
            "tasks": [(task["id"], task["state"], task.get("owner")) for task in tasks],
            "state": [(one["key"], one["value"]) for one in shell.run_json("state", "list")["states"]],
            "history": history,
            "files": {
                str(path.relative_to(self._places[0])): _digest(path) for path in _user_files(self._places[0])
            },
        }

    def _has(self, text: bytes) -> bool:
        """Return whether a text is in a checkout, or in what a ref keeps."""
        if any(path.is_file() and text in path.read_bytes() for path in _user_files(self._places[0])):
            return True
        hashed = subprocess.run(
            ["git", "hash-object", "--stdin"], cwd=self.folder, input=text, capture_output=True, check=True
        )
        kept = git_line(self.folder, "rev-list", "--objects", "--all", "--", ".")
        return hashed.stdout.decode().strip() in kept


def _members(session: int) -> Iterator[int]:
    for pid in list_pids():
        try:
            if os.getsid(pid) == session and not _is_zombie(pid):
                yield pid
        except OSError:
            continue


def _is_zombie(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0] in "ZX"


def _user_files(root: Path) -> Iterator[Path]:
    """Yield the files of all checkouts, without those in which the queue tests."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git" and not name.startswith(".queue-")]
        if os.path.exists(os.path.join(folder, ".git")):
            folders[:] = sorted(folders)
        elif folder == str(root):
            names.clear()  # a store that was moved there
            folders[:] = [name for name in folders if name in _CHECKOUTS]
        for name in sorted(names):
            if name != ".git" and not name.startswith(".queue-"):
                yield root.joinpath(folder, name)


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]

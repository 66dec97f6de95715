"""The resident on PostgreSQL: a hook and a claim through its socket, against the same without it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import sysconfig
import time
from contextlib import chdir, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import landlane
from bench.fresh import make_repository, plain_environment
from bench.places import DISK, scratch
from bench.postgres_claims import find_server
from bench.table import Row, Skipped, at_most
from bench.timing import medians
from landlane.app.open import open_repository
from landlane.app.store_place import POINTER
from landlane.resident.messages import AnswerLost, BadMessage, pack_request, send_request
from landlane.resident.start import ensure_resident
from landlane.sessions.join import join
from landlane.values import value

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Generator, Iterator, Mapping

    from bench.sizes import Sizes

_START = "import sys; sys.path[:0] = [sys.argv[1]]"
_PACKAGES = f"sys.path.append({sysconfig.get_path('purelib')!r})"
_READ = "from posix import environ, read; payload = read(0, 1 << 20)"
# What a hook's caller does where the resident is, and where it is not; both say yes or fail.
_THROUGH = f"""{_START}
{_READ}
from landlane.resident.messages import send_request, find_socket, pack_request, shared_environment
request = pack_request(b"hook", b"/", [b"claude", b""], shared_environment(environ), payload)
answer = send_request(find_socket(sys.argv[2]), request, 20.0)
from posix import _exit
_exit(0 if answer == (0, b"", b"") else 1)
"""
_WITHOUT = f"""{_START}; {_PACKAGES}
{_READ}
from landlane.hook_entry.client_full_path import answer
spoken = answer("claude", "", payload, {{name.decode(): text.decode() for name, text in environ.items()}})
from posix import _exit
_exit(0 if (spoken.exit_code, spoken.stdout) == (0, "") else 1)
"""


@value
class Spent:
    """Return the run time of a program in milliseconds."""

    wall: float
    cpu: float


def bench_resident(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """Wall and CPU time of a hook and of a claim on PostgreSQL, through the resident and without it."""
    server = find_server()
    if isinstance(server, str):
        yield Skipped(what="hooks and claims on PostgreSQL through the resident", reason=server)
        return
    with scratch(DISK) as folder, _served(folder, server.create_database()) as place:
        python = [sys.executable, "-I", "-S"]
        hook = place.hook
        programs: dict[str, Callable[[], Spent]] = {
            "hook through": lambda: place.spend([*python, "-c", _THROUGH, place.package, place.state], hook),
            "hook without": lambda: place.spend([*python, "-c", _WITHOUT, place.package], hook),
            "claim through": lambda: place.claim({"LANDLANE_RESIDENT": place.state}),
            "claim without": lambda: place.claim({}),
            "pass": lambda: place.spend([*python, "-c", "pass"], b""),
        }
        last: dict[str, Spent] = {}
        candidates: dict[str, Callable[[], float]] = {}
        for name, program in programs.items():
            candidates |= _both(name, program, last)
        found = medians(candidates, sizes.process_rounds, lots, warm=3)
    for noun, aim in (("hook", at_most(0.5)), ("claim", None)):
        for kind in ("wall", "CPU"):
            yield Row(
                what=f"{kind} of a {noun} on PostgreSQL through the resident, against its own process",
                unit="ms",
                ours=found[f"{noun} through {kind}"],
                peer=found[f"{noun} without {kind}"],
                aim=aim,
            )
    yield Row(
        what="CPU of a hook on PostgreSQL through the resident, against `python -I -S -c pass`",
        unit="ms",
        ours=found["hook through CPU"],
        peer=found["pass CPU"],
    )


def _both(name: str, program: Callable[[], Spent], last: dict[str, Spent]) -> dict[str, Callable[[], float]]:
    """One program as two candidates; each of them runs it."""

    def run(kind: str) -> float:
        last[name] = program()
        return last[name].wall if kind == "wall" else last[name].cpu

    return {f"{name} wall": lambda: run("wall"), f"{name} CPU": lambda: run("CPU")}


class _Place:
    """A repository whose state is in PostgreSQL, and its resident."""

    def __init__(self, repository: str, package: str, pid: int, hook: bytes, session: str) -> None:
        self.repository = repository
        self.package = package
        self.state = os.path.join(repository, ".git", "landlane")
        self.hook = hook
        self._pid = pid
        self._session = session
        self._numbers = count()

    def claim(self, more: Mapping[str, str]) -> Spent:
        """`landlane claim` of another path each time."""
        words = [sys.executable, "-P", "-m", "landlane", "claim", f"src/f{next(self._numbers)}.py"]
        return self.spend(words, b"", {"LANDLANE_SESSION": self._session, **more})

    def spend(self, words: list[str], stdin: bytes, more: Mapping[str, str] | None = None) -> Spent:
        """Run a program; its CPU time and the resident's own meanwhile.

        Raises:
            RuntimeError: it failed.
        """
        read, write = os.pipe()
        os.write(write, stdin)
        os.close(write)
        environment = {**plain_environment(), "PYTHONPATH": self.package, **(more or {})}
        environment.pop("LANDLANE_AGENT")
        actions = [
            (os.POSIX_SPAWN_DUP2, read, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        before = _cpu_ms(self._pid)
        start = time.perf_counter()
        with chdir(self.repository):
            pid = os.posix_spawn(words[0], words, environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        wall = (time.perf_counter() - start) * 1e3
        os.close(read)
        if os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"it failed: {' '.join(words)[:200]}")
        served = _cpu_ms(self._pid) - before
        return Spent(wall=wall, cpu=(usage.ru_utime + usage.ru_stime) * 1e3 + served)


def _cpu_ms(pid: int) -> float:
    """The CPU time of a process and its children so far; the commands that they ran are not in it."""
    total = 0
    for one in (pid, *_children(pid)):
        for task in Path(f"/proc/{one}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e6


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def _served(folder: str, url: str) -> Generator[_Place]:
    repository = make_repository(Path(folder, "repository"))
    state = Path(repository, ".git", "landlane")
    state.mkdir()
    (state / POINTER).write_text(url + "\n", encoding="utf-8")
    Path(repository, "a.py").write_text("pass\n", encoding="utf-8")
    repo = open_repository(repository)
    joined = join(repo, "bench")
    repo.close()
    # A copy: a resident ends when its package changes, and ours may be edited while this runs.
    package = Path(folder, "package")
    shutil.copytree(Path(landlane.__file__).parent, package / "landlane")
    os.environ["PYTHONPATH"] = str(package)
    path = ensure_resident(str(state), 30.0)
    answer = send_request(path, pack_request(b"ping", b"", (), {}, b""), 10.0) if path else None
    if path is None or answer is None:
        raise RuntimeError("no resident came")
    pid = int(answer[1])
    try:
        for tool in ("Read", "Edit"):
            _try(path, _hook(repository, tool))
        session = f"{joined.session.id}:{joined.secret}"
        yield _Place(repository, str(package), pid, _hook(repository, "Edit"), session)
    finally:
        del os.environ["PYTHONPATH"]
        os.kill(pid, signal.SIGTERM)


def _hook(repository: str, tool: str) -> bytes:
    document = {
        "session_id": "bench-1",
        "cwd": repository,
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": {"file_path": f"{repository}/a.py"},
    }
    return json.dumps(document).encode()


def _try(path: str, payload: bytes) -> None:
    try:
        answer = send_request(path, pack_request(b"hook", b"/", [b"claude", b""], {}, payload), 30.0)
    except (AnswerLost, BadMessage) as error:
        raise RuntimeError(f"a hook was not answered: {error}") from error
    if answer != (0, b"", b""):
        raise RuntimeError(f"a hook was refused: {answer}")

"""The command `resident`: keep stores open for hooks, run sandboxed callers' commands, run the queue."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial

from landlane.app.open import open_repository
from landlane.cli.serve_sandboxed import as_guest, other_repository, run_call
from landlane.cli.specs.table import all_commands
from landlane.clock import parse_duration
from landlane.errors import LandlaneError, NotAllowed
from landlane.git.discovery import find_checkout
from landlane.landing.records import list_landings
from landlane.platform.socket_peer import is_sandboxed
from landlane.repository import Repository
from landlane.resident.messages import shared_environment
from landlane.resident.server import Handlers, ResidentServer
from landlane.resident.single_instance import ResidentLock
from landlane.resident.start import start_queue_runner
from landlane.sessions.model import parse_credentials
from landlane.text import in_one_line
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.platform.socket_peer import Peer
    from landlane.resident.messages import Request
    from landlane.store.interface import Store


_QUEUE_SECONDS = 20.0  # interval of the check for queue entries that no process handles
_TAKEOVER_SECONDS = 2.0  # interval of the check for entries whose process was killed
_MOST_TAKEOVERS = 5  # of one entry: a check may kill every process that runs it
_RUNS_SECONDS = 5.0  # interval of the check for sandboxed commands whose starter was killed
_MOST_KEPT = 16  # open stores
_WAIT_MS = 8_000  # for a busy store; a hook's caller does not wait much longer
_TEXT = ("utf-8", "replace")
_HOOK = "landlane.hook_entry.client_full_path"  # imported by name: cli does not depend on it
_HOOK_MODULES = ("landlane.hooks.dispatch", "landlane.hooks.shell.effects", "landlane.clients.claude.hook")


def resident(call: CommandCall, state: str, idle: str) -> int:
    """Serve a state folder until it is no longer needed."""
    folder = os.path.realpath(state or find_checkout(call.cwd).state_folder)
    if not os.path.isdir(folder):
        call.open().close()  # probably the repository's first command
    lock = ResidentLock.take(folder)
    if lock is None:
        return call.terminal.answer({"ok": True, "served": False}, "another process serves it already")
    os.chdir(folder)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    server = ResidentServer(lock, _handlers(folder), parse_duration(idle, what="--idle") / 1000)

    def end(_: int, __: object) -> None:
        server.end("it was asked to")

    signal.signal(signal.SIGTERM, end)
    why = server.serve()
    return call.terminal.answer({"ok": True, "served": True, "why": why}, f"ended: {why}")


def _handlers(folder: str) -> Handlers:
    repositories = LentRepositories(folder)
    return Handlers(
        answer_hook=repositories.answer_hook,
        run_call=partial(run_call, folder),
        warm_up=_warm_up,
        keep_up=repositories.keep_up,
    )


def _warm_up() -> None:
    """Load what most commands need: every child has it then."""
    wanted = {f"landlane.cli.{command.handler.partition(':')[0]}" for command in all_commands()}
    wanted -= {"landlane.cli.demo", "landlane.cli.init"}
    for name in (*sorted(wanted), "landlane.store.sqlite.store", "json", "psycopg"):
        try:
            __import__(name)
        except ImportError:  # the driver of another database
            continue


class LentRepositories:
    """Repositories for the resident's threads: stores stay open and are lent to one thread at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._kept: list[tuple[str, Store]] = []
        self._unsettled = ""
        self._is_warm = False
        self._queue_at = time.monotonic()
        self._takeover_at = 0.0
        self._takeovers: dict[str, int] = {}  # by entry
        self._runs_at = 0.0
        self._drained: set[str] = set()

    def answer_hook(self, request: Request, peer: Peer) -> tuple[int, bytes, bytes]:
        """Answer a coding client's hook, as the client's own process would."""
        _, _, words, environment, payload = request
        variables = {
            os.fsdecode(name): os.fsdecode(text) for name, text in shared_environment(environment).items()
        }
        session_text = variables.get("LANDLANE_SESSION", "")
        is_guest = is_sandboxed(peer.pid)
        if is_guest and not session_text:
            raise NotAllowed(
                "a hook in a sandbox shows no session",
                code="NOT_YOUR_SESSION",
                hint="set LANDLANE_SESSION",
            )
        client, word = (*(os.fsdecode(argument) for argument in words), "", "")[:2]
        answer: Any = __import__(_HOOK, fromlist=["answer"]).answer
        with self._lending(peer.pid, session_text if is_guest else "") as open_at:
            reply = answer(client, word, payload, variables, open_at=open_at)
        return reply.exit_code, reply.stdout.encode(*_TEXT), reply.stderr.encode(*_TEXT)

    @contextmanager
    def _lending(self, pid: int, guest: str) -> Generator[Callable[[str], Repository]]:
        """Yield a function that opens repositories for a hook; `guest` is a sandboxed caller's secret."""
        lent: list[tuple[str, Store]] = []

        def borrow(key: str, open_it: Callable[[], Store]) -> Store:
            store = self._fetch(key) or open_it()
            lent.append((key, store))
            return store

        def open_at(folder: str) -> Repository:
            is_ours = os.path.realpath(find_checkout(folder).state_folder) == self._folder
            if guest and not is_ours:
                raise other_repository(folder)
            repo = open_repository(
                folder,
                detects_restore=False,
                most_wait_ms=_WAIT_MS,
                caller=0 if guest else pid,
                is_guest=bool(guest),
                borrow=borrow,
            )
            if not is_ours:  # a hook may also read another repository
                return repo
            repo = replace(repo, update_files=_leave_files)
            if guest:
                repo = as_guest(repo, self._folder, parse_credentials(guest))
            self._unsettled = folder
            return repo

        try:
            yield open_at
        finally:
            for key, store in lent:
                self._keep(key, store)

    def _fetch(self, key: str) -> Store | None:
        with self._guard:
            for index, (known, store) in enumerate(self._kept):
                if known == key:
                    del self._kept[index]
                    return store
        return None

    def _keep(self, key: str, store: Store) -> None:
        # A SQLite file opens fast, and an open one may have been replaced in the meantime.
        is_remote = "://" in key
        with self._guard:
            if is_remote and len(self._kept) < _MOST_KEPT:
                self._kept.append((key, store))
                return
        store.close()

    def keep_up(self) -> str:
        """Update the files beside the store and run the queue; return why to exit, or ""."""
        if not os.path.isdir(self._folder):
            return "its folder is gone"
        folder, self._unsettled = self._unsettled, ""
        try:
            if not self._is_warm:
                self._is_warm = True
                self._warm_up()
            if folder:
                open_repository(folder).close()
            if time.monotonic() - self._queue_at > _QUEUE_SECONDS:
                self._queue_at = time.monotonic()
                self._serve_queue()
            if time.monotonic() - self._takeover_at > _TAKEOVER_SECONDS:
                self._takeover_at = time.monotonic()
                self._take_queue_over()
            if time.monotonic() - self._runs_at > _RUNS_SECONDS:
                self._runs_at = time.monotonic()
                self._end_abandoned_runs()
        except (LandlaneError, OSError, ValueError, ImportError) as error:
            sys.stderr.write(f"{type(error).__name__}: {in_one_line(str(error))}\n")
            sys.stderr.flush()
        return ""

    def _warm_up(self) -> None:
        """Load what hooks need and open a store, so that the first of them is quick, too."""
        for name in (_HOOK, *_HOOK_MODULES):
            __import__(name)
        if os.path.exists(os.path.join(self._folder, "repository")):
            with self._lending(0, "") as open_at:
                open_at(_home_of(self._folder))

    def _serve_queue(self) -> None:
        """Start a queue runner for entries that no process handles, once per entry."""
        from landlane.landing.queue import has_new_entries  # noqa: PLC0415 - the resident starts without it

        repo = open_repository(_home_of(self._folder), detects_restore=False)
        try:
            if not repo.checkout.common_dir or not repo.settings.landing.resident:
                return
            repo = repo.require_git()
            if has_new_entries(repo, self._drained):
                self._drained |= {landing.id for landing in list_landings(repo)}
                start_queue_runner(repo)
        finally:
            repo.store.close()

    def _take_queue_over(self) -> None:
        """Start a queue runner if the process that ran the queue was killed."""
        if not os.path.exists(os.path.join(self._folder, "repository")):
            return
        from landlane.landing.unattended import list_unattended  # noqa: PLC0415 - the resident starts without it

        repo = open_repository(_home_of(self._folder), detects_restore=False)
        try:
            if not repo.checkout.common_dir or not repo.settings.landing.resident:
                return
            waiting = list_unattended(repo)
            ids = [one.id for one in waiting if self._takeovers.get(one.id, 0) < _MOST_TAKEOVERS]
            if ids:
                self._takeovers |= {name: self._takeovers.get(name, 0) + 1 for name in ids}
                start_queue_runner(repo.require_git())
        finally:
            repo.store.close()

    def _end_abandoned_runs(self) -> None:
        """End sandboxed commands whose starter was killed."""
        if not os.path.exists(os.path.join(self._folder, "repository")):
            return
        from landlane.exec.cleanup import end_abandoned_runs  # noqa: PLC0415 - the resident starts without it

        repo = open_repository(_home_of(self._folder), detects_restore=False)
        try:
            if repo.checkout.common_dir:
                for line in end_abandoned_runs(repo.require_git()):
                    sys.stderr.write(f"{in_one_line(line)}\n")
        finally:
            repo.store.close()


def _leave_files(_: Repository, __: float) -> None:
    """Do nothing: `keep_up` writes the files beside the store after the answer."""


def _home_of(folder: str) -> str:
    """Return the main checkout that a state folder belongs to."""
    above = os.path.dirname(folder)
    return os.path.dirname(above) if os.path.basename(above) == ".git" else above

"""A throw-away PostgreSQL server for tests and benchmarks.

It listens on a unix socket in a folder of its own, so no port can clash. A watchdog, a shell that reads a
pipe, ends the server when its parent dies, however that happens.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import time
import uuid
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from landlane.platform.process import list_pids, read_process
from landlane.testing.postgres_install import PostgresFailed, PostgresInstall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_POLL_SECONDS = 0.005
_SETTINGS = {"port": "5432", "listen_addresses": "", "max_connections": "200"}
# synchronous_commit stays on: a commit must survive `crash`, which kills the server, not the machine.
_NO_FSYNC = {"fsync": "off", "full_page_writes": "off"}

# A pipe and not prctl(PR_SET_PDEATHSIG): that fires when the starting *thread* ends, and needs preexec_fn,
# which may deadlock beside other threads. `read` returns when the last writer is gone.
_WATCHDOG = """
read -r _
kill -QUIT "$1" || exit
tries=0
while kill -0 "$1" && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
rm -rf -- "$2"
"""


class PostgresServer:
    """A running server; leave the `with` block, or call `stop`, to end it."""

    def __init__(self, install: PostgresInstall, home: Path, settings: Mapping[str, str]) -> None:
        self._install = install
        self._home = home
        self._run_folder = install.run_folder
        self._settings = {**settings, "unix_socket_directories": str(install.run_folder)}
        self._owner_pid = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(
        cls,
        folder: Path | None = None,
        *,
        temp: Path | None = None,
        fsync: bool = True,
        options: Mapping[str, str] | None = None,
        locations: Iterable[Path] | None = None,
    ) -> Self:
        """Start a server, with its data and log in `folder` (kept, and reused) or in a temp folder (removed).

        `temp` is where temp folders are made. `options` take precedence over our own settings.

        Raises:
            PostgresUnavailable: nothing in `locations` can be run here.
            PostgresFailed: the server did not come up.
            ValueError: we are root and `nobody` may not enter `folder`.
        """
        install = PostgresInstall(locations, temp)
        home = install.run_folder if folder is None else folder.resolve()
        settings = {**_SETTINGS, **({} if fsync else _NO_FSYNC), **(options or {})}
        server = cls(install, home, settings)
        try:
            install.make_data(home / "data")
            server._launch()
        except BaseException:
            shutil.rmtree(install.run_folder, ignore_errors=True)
            raise
        atexit.register(server.stop)
        return server

    @property
    def url(self) -> str:
        """The URL of the database `postgres` of this server; the same after a restart."""
        return self._url_of("postgres")

    @property
    def version(self) -> str:
        """The output of `postgres --version`."""
        return self._install.version

    @property
    def log(self) -> Path:
        """The file that the server writes its log to."""
        return self._home / "postgres.log"

    @property
    def pid(self) -> int | None:
        """The process id of the server, or None when it is not running."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def create_database(self, name: str | None = None, *, template: str = "template0") -> str:
        """Create a database, as a copy of `template`, and return its URL."""
        # Here and not above: a machine without psycopg must be able to import this module and skip.
        import psycopg  # noqa: PLC0415 - an extra
        from psycopg.sql import SQL, Identifier  # noqa: PLC0415 - an extra

        name = name or f"test_{uuid.uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            query = SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template))
            connection.execute(query)
        return self._url_of(name)

    def restart(self) -> None:
        """Start the server again on the same data and URL; if it runs, shut it down properly first."""
        if not self._run_folder.is_dir():
            raise RuntimeError("a server that was stopped cannot be restarted; start another one")
        self._end(signal.SIGINT)
        self._launch()

    def crash(self) -> None:
        """Kill every process of the server at once; nothing is flushed and no client is notified."""
        process = self._process
        if process is not None and process.poll() is None:
            # Stopped first, so that it neither starts children that we miss nor reaps those that we list.
            process.send_signal(signal.SIGSTOP)
            running = [found for found in map(read_process, list_pids()) if found is not None]
            children = [found.pid for found in running if found.parent == process.pid]
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.kill()
            process.wait()
            _wait_for_end(children)
        self._end_watchdog()

    def stop(self) -> None:
        """End the server and remove its temp folder; a folder given to `start` stays."""
        # A forked child inherits this object and its exit handler, but not the server.
        if os.getpid() != self._owner_pid:
            return
        atexit.unregister(self.stop)
        is_throwaway = self._home == self._run_folder
        self._end(signal.SIGQUIT if is_throwaway else signal.SIGINT)
        shutil.rmtree(self._run_folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _url_of(self, database: str) -> str:
        address = f"host={quote(str(self._run_folder), safe='')}&port={self._settings['port']}"
        return f"postgresql://postgres@/{quote(database, safe='')}?{address}"

    def _launch(self) -> None:
        """Run `postgres` in the foreground, with a watchdog, and return when it answers."""
        settings = [word for name, text in self._settings.items() for word in ("-c", f"{name}={text}")]
        command = [str(self._install.folder / "postgres"), "-D", str(self._home / "data"), *settings]
        with self.log.open("ab") as log:
            self._process = self._install.start(command, log)
        try:
            self._watchdog = subprocess.Popen(
                ["/bin/sh", "-c", _WATCHDOG, "sh", str(self._process.pid), str(self._run_folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
            self._wait_until_ready(self._process)
        except BaseException:
            self.crash()
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the server's pid file says that it takes connections; pg_ctl waits the same way."""
        give_up_at = time.monotonic() + _START_SECONDS
        while not _is_ready(self._home / "data" / "postmaster.pid", process.pid):
            if process.poll() is not None:
                raise PostgresFailed(f"postgres ended with code {process.returncode}:\n{self._log_tail()}")
            if time.monotonic() > give_up_at:
                raise PostgresFailed(f"postgres not ready after {_START_SECONDS:.0f} s:\n{self._log_tail()}")
            time.sleep(_POLL_SECONDS)

    def _log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def _end(self, number: signal.Signals) -> None:
        """Signal the server, if it runs, and wait for its end; kill it when that takes too long."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.crash()
        self._end_watchdog()

    def _end_watchdog(self) -> None:
        """End the watchdog before it notices anything: the server is gone already."""
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.kill()
            watchdog.communicate()


def _is_ready(pid_file: Path, pid: int) -> bool:
    """Return whether the pid file is that of this process and its status line says ready."""
    try:
        lines = pid_file.read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _wait_for_end(pids: Iterable[int]) -> None:
    """Wait until these processes have released the server's files and memory; a zombie has."""
    give_up_at = time.monotonic() + _STOP_SECONDS
    while running := [pid for pid in pids if read_process(pid) is not None]:
        if time.monotonic() > give_up_at:
            raise PostgresFailed(f"processes {running} outlived SIGKILL")
        time.sleep(_POLL_SECONDS)

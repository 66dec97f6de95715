"""The only place that starts git: arguments as a list, a time limit, a quiet environment, readable errors."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from landlane.errors import RepositoryError
from landlane.git.hook_pass import pass_environment
from landlane.redact import hide_credentials
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

    from landlane.git.discovery import Checkout


_LIMIT_SECONDS = 60.0
_END_SECONDS = 5.0
_TICK_SECONDS = 0.3
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG in <sys/prctl.h>
# The variables with which git tells its hooks which repository it works on.
LOCATION_VARIABLES = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_PREFIX"
)  # fmt: skip
# What the user may say to git by environment: identity, settings, transport, editors, tracing. The rest, such
# as GIT_ICASE_PATHSPECS, GIT_EXTERNAL_DIFF or GIT_OBJECT_DIRECTORY, would change what our commands mean.
_USER_VARIABLES = (
    "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_", "GIT_SSH", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_",
    "GIT_LFS_", "GIT_ASKPASS", "GIT_TERMINAL_PROMPT", "GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL", "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR", "GIT_TRACE", "GIT_ADVICE",
)  # fmt: skip
_QUARANTINE = ("GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")


@value
class GitResult:
    """The exit code of a git command, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


def foreign_variables() -> list[str]:
    """Return the variables in the environment that no git of ours and no check may inherit."""
    own = (*_USER_VARIABLES, *(_QUARANTINE if _is_receiving() else ()))
    return [name for name in os.environ if name.startswith("GIT_") and not name.startswith(own)]


def _is_receiving() -> bool:
    """Return whether this process runs in a hook of a push, which alone sees the objects that arrive."""
    path = os.environ.get("GIT_QUARANTINE_PATH", "")
    is_named = path != "" and path == os.environ.get("GIT_OBJECT_DIRECTORY")
    return is_named and "incoming-" in os.path.basename(path) and os.path.isdir(path)


def user_environment() -> dict[str, str]:
    """Return the environment without variables that would change what our git commands mean."""
    foreign = foreign_variables()
    return {name: text for name, text in os.environ.items() if name not in foreign}


def run_git(
    *arguments: str,
    cwd: str,
    git_dir: str = "",
    stdin: bytes | None = None,
    limit_seconds: float = _LIMIT_SECONDS,
    variables: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    on_tick: Callable[[], None] | None = None,
) -> GitResult:
    """Run git and wait for it; a non-zero exit is not an error here.

    It works on the repository at `git_dir`, or on the one that contains `cwd`, whatever the environment says:
    inside a hook that may name another one. `variables` are added to the environment; `environment` replaces
    all of it. `on_tick` is called a few times a second; an exception from it ends git.

    Raises:
        RepositoryError: git is not installed, or took too long.
    """
    if environment is None:
        usual = user_environment()
        usual |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        usual["GIT_NO_REPLACE_OBJECTS"] = "1"  # checks must see the objects that others get
        if git_dir:
            usual |= {"GIT_DIR": git_dir, "GIT_WORK_TREE": cwd}
        # Our hooks recognise our own git by the pass.
        environment = {**usual, **pass_environment(git_dir or cwd), **(variables or {})}
    give_up_at = time.monotonic() + limit_seconds
    pause = limit_seconds if on_tick is None else _TICK_SECONDS
    data = stdin or None
    with _start(arguments, cwd, environment) as process:
        try:
            while True:
                try:
                    out, err = process.communicate(data, timeout=pause)
                    break
                except subprocess.TimeoutExpired as error:
                    if time.monotonic() >= give_up_at:
                        raise _too_slow(arguments[0], limit_seconds) from error
                    data = None  # it is sent already
                    if on_tick is not None:
                        on_tick()
        finally:
            if process.poll() is None:
                _end(process)
    stderr = hide_credentials(err.decode("utf-8", "replace").strip())
    stdout = out.decode("utf-8", "surrogateescape")
    return GitResult(exit_code=process.returncode, stdout=stdout, stderr=stderr)


def _start(
    arguments: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    *,
    stdin: int | None = subprocess.PIPE,
    stdout: int | IO[bytes] | None = subprocess.PIPE,
    stderr: int | IO[bytes] | None = subprocess.PIPE,
    preexec_fn: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            ["git", *arguments],  # noqa: S607 - the user's git, as the user calls it
            cwd=cwd,
            env=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=preexec_fn,  # noqa: PLW1509 - two system calls that do not block
        )
    except FileNotFoundError as error:
        raise RepositoryError(
            "git is not installed", code="NO_GIT", hint="install git 2.30 or newer"
        ) from error


def _too_slow(verb: str, limit_seconds: float) -> RepositoryError:
    return RepositoryError(
        f"git {verb} took longer than {limit_seconds:g} seconds",
        code="GIT_SLOW",
        hint="look for a hanging git process or a slow disk",
    )


def run_git_with_hooks(
    *arguments: str, cwd: str, environment: Mapping[str, str], stdin: bytes, limit_seconds: float
) -> GitResult:
    """Run a git that starts the user's own programs, such as hooks; both outputs contain all they print.

    It ends when this process dies, because it may run under a lock of ours.

    Raises:
        RepositoryError: git is not installed, or took too long.
    """
    import tempfile  # noqa: PLC0415 - expensive, and only needed here

    environment = {**environment, **pass_environment(environment.get("GIT_DIR", "") or cwd)}
    # Into a file: a pipe would end only when the last child in the background has ended.
    with tempfile.TemporaryFile() as output:
        process = _start(
            arguments,
            cwd,
            environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with(os.getpid()),
        )
        try:
            process.communicate(stdin, timeout=limit_seconds)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise _too_slow(arguments[0], limit_seconds) from error
        except BaseException:
            _end(process)
            raise
        output.seek(0)
        text = hide_credentials(output.read().decode("utf-8", "replace").strip())
    return GitResult(exit_code=process.returncode, stdout=text, stderr=text)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate git, which passes it on to its hooks; kill it when it does not end."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _die_with(parent: int) -> Callable[[], None] | None:
    """Return a function that lets a child end when its parent dies; None if the system cannot do that."""
    import ctypes  # noqa: PLC0415 - expensive, and only needed here

    try:
        control = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None

    def begin() -> None:
        control(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the call
            os._exit(1)

    return begin


def run_in(
    checkout: Checkout,
    *arguments: str,
    stdin: bytes | None = None,
    limit_seconds: float = _LIMIT_SECONDS,
    variables: Mapping[str, str] | None = None,
    on_tick: Callable[[], None] | None = None,
) -> GitResult:
    """Run git on a checkout, as `run_git` does."""
    return run_git(
        *arguments,
        cwd=checkout.root,
        git_dir=checkout.git_dir,
        stdin=stdin,
        limit_seconds=limit_seconds,
        variables=variables,
        on_tick=on_tick,
    )


def try_git_output(checkout: Checkout, *arguments: str) -> str:
    """Return what git prints, without the last line end; empty when git fails."""
    result = run_in(checkout, *arguments)
    return "" if result.exit_code else result.stdout.rstrip("\n")


def git_output(
    checkout: Checkout,
    *arguments: str,
    stdin: bytes | None = None,
    limit_seconds: float = 600.0,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Return what git prints, without the last line end.

    Raises:
        RepositoryError: git failed.
    """
    result = run_in(checkout, *arguments, stdin=stdin, limit_seconds=limit_seconds, variables=variables)
    if result.exit_code:
        raise git_failed(arguments, result)
    return result.stdout.rstrip("\n")


def resolve_revision(checkout: Checkout, revision: str) -> str:
    """Return the id of the object that a revision names; empty when there is none."""
    return try_git_output(checkout, "rev-parse", "--verify", "--quiet", revision)


def identity_variables(name: str) -> dict[str, str]:
    """Return variables for commits that git makes under this name instead of the user's."""
    return {
        f"GIT_{role}_{field}": text
        for role in ("AUTHOR", "COMMITTER")
        for field, text in (("NAME", name), ("EMAIL", "landlane@localhost"))
    }


def git_failed(arguments: Sequence[str], result: GitResult) -> RepositoryError:
    """Return the error for a git command that failed unexpectedly."""
    return RepositoryError(
        f"git {_verb(arguments) or 'git'} failed: {result.stderr[-500:] or f'exit {result.exit_code}'}",
        code="GIT_FAILED",
        hint="`git fsck` and `landlane doctor` tell more",
    )


def _verb(arguments: Sequence[str]) -> str:
    return next((word for word in arguments if not word.startswith("-") and "=" not in word), "")


class GitStream:
    """A git process that is fed and read while it runs, for content that does not fit in memory."""

    def __init__(self, *arguments: str, cwd: str, environment: Mapping[str, str]) -> None:
        import tempfile  # noqa: PLC0415 - expensive, and only needed here

        self._name = _verb(arguments)
        # Into a file: git would stop once a pipe that is not read is full.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        process = _start(arguments, cwd, environment, stderr=self._errors)
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout

    def __enter__(self) -> GitStream:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._stdin, self._stdout):
            try:
                pipe.close()
            except OSError:
                pass  # the unwritten rest has no reader any more
        self._errors.close()

    def write(self, data: bytes) -> None:
        """Send data to git.

        Raises:
            RepositoryError: it has ended already.
        """
        try:
            self._stdin.write(data)
        except OSError as error:
            raise self._failed() from error

    def flush(self) -> None:
        """Send everything that was written so far."""
        try:
            self._stdin.flush()
        except OSError as error:
            raise self._failed() from error

    def read_line(self) -> bytes:
        """Return the next line, without its end; empty at the end of the output."""
        return self._stdout.readline().removesuffix(b"\n")

    def read(self, size: int) -> bytes:
        """Return this many bytes of output, or the rest of it."""
        return self._stdout.read(size)

    def finish(self, limit_seconds: float = 10 * _LIMIT_SECONDS) -> None:
        """Close the input, and wait until git is done.

        Raises:
            RepositoryError: it failed, or took too long.
        """
        try:
            self._stdin.close()
            self._process.wait(limit_seconds)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._failed() from error
        if self._process.returncode:
            raise self._failed()

    def _failed(self) -> RepositoryError:
        self._errors.seek(0)
        text = self._errors.read(4000).decode("utf-8", "replace").strip()
        return RepositoryError(
            f"git {self._name} failed: {text[:400] or 'it ended or hung without a word'}",
            code="GIT_FAILED",
            hint="look for a full disk, and run `git fsck`",
        )


def run_git_interactive(
    words: Sequence[str], *, cwd: str, out: int | None = None, variables: Mapping[str, str] | None = None
) -> int:
    """Run git in the caller's terminal and environment; return its exit code, 128 and more for a signal.

    Raises:
        RepositoryError: git is not installed.
    """
    child = _start(words, cwd, {**os.environ, **(variables or {})}, stdin=None, stdout=out, stderr=None)
    # Ctrl-C reaches git itself, which then removes its lock files. We only wait for its end.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = child.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code

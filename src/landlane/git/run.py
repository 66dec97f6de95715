"""The only starter of git: arguments as a list, a time limit, a quiet environment, and errors in words."""

from __future__ import annotations

import os
import subprocess
import time

from landlane.errors import RepositoryError
from landlane.git.hook_pass import pass_environment
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.git.discovery import Checkout


_LIMIT_SECONDS = 60.0
_END_SECONDS = 5.0
_TICK_SECONDS = 0.3
_SIGNAL_OF_DEATH = 1  # PR_SET_PDEATHSIG in <sys/prctl.h>
# What git tells its hooks about the repository it works on.
LOCATION_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)


@value
class GitResult:
    """What git said."""

    exit_code: int
    stdout: str
    stderr: str


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
    """Run git and wait for it; a non-zero exit is for the caller to judge.

    It works on the repository at `git_dir`, or on the one that `cwd` lies in, whatever the environment says:
    what git put there for a hook may mean another one. `variables` are added to its environment; a whole
    `environment` takes the place of everything that would be in it. `on_tick` is called a few times a second
    meanwhile; what it raises ends git.

    Raises:
        RepositoryError: git is not installed, or took too long.
    """
    if environment is None:
        usual = {name: text for name, text in os.environ.items() if name not in LOCATION_VARIABLES}
        usual |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        usual["GIT_NO_REPLACE_OBJECTS"] = "1"  # what is judged must be what is there, and what others get
        if git_dir:
            usual |= {"GIT_DIR": git_dir, "GIT_WORK_TREE": cwd}
        # Our own hooks know our own git by what it shows them.
        environment = {**usual, **pass_environment(git_dir or cwd), **(variables or {})}
    try:
        if on_tick is not None:
            return _run_ticking(arguments, cwd, environment, limit_seconds, on_tick)
        done = subprocess.run(  # noqa: S603 - a list of arguments, no shell
            ["git", *arguments],  # noqa: S607 - the user's git, as the user calls it
            cwd=cwd,
            input=stdin if stdin is not None else b"",
            capture_output=True,
            timeout=limit_seconds,
            check=False,
            env=environment,
        )
    except FileNotFoundError as error:
        raise _no_git() from error
    except subprocess.TimeoutExpired as error:
        raise _too_slow(arguments[0], limit_seconds) from error
    return GitResult(
        exit_code=done.returncode,
        stdout=done.stdout.decode("utf-8", "surrogateescape"),
        stderr=done.stderr.decode("utf-8", "replace").strip(),
    )


def _run_ticking(
    arguments: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    limit_seconds: float,
    on_tick: Callable[[], None],
) -> GitResult:
    give_up_at = time.monotonic() + limit_seconds
    with subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
        ["git", *arguments],  # noqa: S607 - the user's git, as the user calls it
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=_TICK_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    on_tick()
                    if time.monotonic() >= give_up_at:
                        raise
        finally:
            if process.poll() is None:
                _end(process)
    return GitResult(
        exit_code=process.returncode,
        stdout=out.decode("utf-8", "surrogateescape"),
        stderr=err.decode("utf-8", "replace").strip(),
    )


def _no_git() -> RepositoryError:
    return RepositoryError("git is not installed", code="NO_GIT", hint="install git 2.30 or newer")


def _too_slow(verb: str, limit_seconds: float) -> RepositoryError:
    return RepositoryError(
        f"git {verb} took longer than {limit_seconds:g} seconds",
        code="GIT_SLOW",
        hint="look for a hanging git process or a slow disk",
    )


def run_git_with_hooks(
    *arguments: str, cwd: str, environment: Mapping[str, str], stdin: bytes, limit_seconds: float
) -> GitResult:
    """Run a git that starts the user's own programs, such as hooks; what all of them say comes together.

    It is ended when this process dies: what runs under a lock of ours must not outlive it.

    Raises:
        RepositoryError: git is not installed, or took too long.
    """
    import tempfile  # noqa: PLC0415 - dear, and only needed here

    environment = {**environment, **pass_environment(environment.get("GIT_DIR", "") or cwd)}
    # Into a file: of a pipe we would see the end only when the last child in the background is gone.
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
                ["git", *arguments],  # noqa: S607 - the user's git, as the user calls it
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=_end_with(os.getpid()),  # noqa: PLW1509 - two system calls that wait for nobody
            )
        except FileNotFoundError as error:
            raise _no_git() from error
        try:
            process.communicate(stdin, timeout=limit_seconds)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise _too_slow(arguments[0], limit_seconds) from error
        except BaseException:
            _end(process)
            raise
        said.seek(0)
        text = said.read().decode("utf-8", "replace").strip()
    return GitResult(exit_code=process.returncode, stdout=text, stderr=text)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, which it hands on to its hooks; kill it when it does not."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_with(parent: int) -> Callable[[], None] | None:
    """What a child does first so that it is asked to end when its parent has died, where the system can."""
    import ctypes  # noqa: PLC0415 - dear, and only needed here
    import signal  # noqa: PLC0415 - only needed here

    try:
        control = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None

    def begin() -> None:
        control(_SIGNAL_OF_DEATH, signal.SIGTERM)
        if os.getppid() != parent:  # it died before it could be heard of
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
    checkout: Checkout, *arguments: str, stdin: bytes | None = None, limit_seconds: float = 600.0
) -> str:
    """Return what git prints, without the last line end.

    Raises:
        RepositoryError: git failed.
    """
    result = run_in(checkout, *arguments, stdin=stdin, limit_seconds=limit_seconds)
    if result.exit_code:
        raise git_failed(arguments, result)
    return result.stdout.rstrip("\n")


def resolve_revision(checkout: Checkout, revision: str) -> str:
    """Return the id of the object that a revision names; empty when there is none."""
    return try_git_output(checkout, "rev-parse", "--verify", "--quiet", revision)


def git_failed(arguments: Sequence[str], found: GitResult) -> RepositoryError:
    """Git refused what it should have been able to do."""
    verb = next((word for word in arguments if not word.startswith("-") and "=" not in word), "git")
    return RepositoryError(
        f"git {verb} failed: {found.stderr[-500:] or f'exit {found.exit_code}'}",
        code="GIT_FAILED",
        hint="`git fsck` and `landlane doctor` tell more",
    )


class GitStream:
    """A git that is fed and read while it runs, for what is too big to be held in memory."""

    def __init__(self, *arguments: str, cwd: str, environment: Mapping[str, str]) -> None:
        import tempfile  # noqa: PLC0415 - dear, and only needed here

        self._name = next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
        # Into a file: a pipe that nobody reads would stop git once it is full.
        self._trouble = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            ["git", *arguments],  # noqa: S607 - the user's git, as the user calls it
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._trouble,
            env=environment,
        )

    def __enter__(self) -> GitStream:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:
                pass  # what was still to be written has no reader any more
        self._trouble.close()

    def write(self, data: bytes) -> None:
        """Feed it.

        Raises:
            RepositoryError: it has ended already.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
        except OSError as error:
            raise self._failed() from error

    def flush(self) -> None:
        """Make sure that it has all that was written so far."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.flush()
        except OSError as error:
            raise self._failed() from error

    def read_line(self) -> bytes:
        """Its next line, without the end; empty at the end of all."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().removesuffix(b"\n")

    def read(self, size: int) -> bytes:
        """As many bytes of its output, or what is left of it."""
        assert self._process.stdout is not None
        return self._process.stdout.read(size)

    def finish(self, limit_seconds: float = 10 * _LIMIT_SECONDS) -> None:
        """Say that nothing more comes, and wait until all of it is done.

        Raises:
            RepositoryError: it failed, or took too long.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(limit_seconds)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._failed() from error
        if self._process.returncode:
            raise self._failed()

    def _failed(self) -> RepositoryError:
        self._trouble.seek(0)
        said = self._trouble.read(4000).decode("utf-8", "replace").strip()
        return RepositoryError(
            f"git {self._name} failed: {said[:400] or 'it ended or hung without a word'}",
            code="GIT_FAILED",
            hint="look for a full disk, and run `git fsck`",
        )


def run_git_interactive(
    words: Sequence[str], *, cwd: str, out: int | None = None, variables: Mapping[str, str] | None = None
) -> int:
    """Run git with the caller's own terminal and environment, and tell its exit code; over 128: a signal.

    Raises:
        RepositoryError: git is not installed.
    """
    import signal  # noqa: PLC0415 - only needed here

    try:
        child = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            ["git", *words],  # noqa: S607 - the user's git, as the user calls it
            cwd=cwd,
            stdout=out,
            env={**os.environ, **(variables or {})},
        )
    except FileNotFoundError as error:
        raise RepositoryError(
            "git is not installed", code="NO_GIT", hint="install git 2.30 or newer"
        ) from error
    # Ctrl-C reaches git itself, which then takes its lock files away. We only wait for its end.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = child.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code

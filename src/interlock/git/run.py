"""The only starter of git: arguments as a list, a time limit, a quiet environment, and errors in words."""

from __future__ import annotations

import os
import subprocess

from interlock.errors import RepositoryError
from interlock.values import value

_LIMIT_SECONDS = 60.0


@value
class Output:
    """What git said."""

    exit_code: int
    text: str
    trouble: str


def run_git(
    *arguments: str, cwd: str, stdin: bytes | None = None, limit_seconds: float = _LIMIT_SECONDS
) -> Output:
    """Run git and wait for it; a non-zero exit is for the caller to judge.

    Raises:
        RepositoryError: git is not installed, or took too long.
    """
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
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
        raise RepositoryError("git is not installed", code="NO_GIT", hint="install git 2.30 or newer") from error
    except subprocess.TimeoutExpired as error:
        raise RepositoryError(
            f"git {arguments[0]} took longer than {limit_seconds:g} seconds",
            code="GIT_SLOW",
            hint="look for a hanging git process or a slow disk",
        ) from error
    return Output(
        exit_code=done.returncode,
        text=done.stdout.decode("utf-8", "surrogateescape"),
        trouble=done.stderr.decode("utf-8", "replace").strip(),
    )

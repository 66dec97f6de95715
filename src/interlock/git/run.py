"""The only starter of git: arguments as a list, a time limit, a quiet environment, and errors in words."""

from __future__ import annotations

import os
import subprocess

from interlock.errors import RepositoryError
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.git.layout import Checkout

_LIMIT_SECONDS = 60.0
# What git tells its hooks about the repository it works on.
PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_PREFIX")


@value
class Output:
    """What git said."""

    exit_code: int
    text: str
    trouble: str


def run_git(
    *arguments: str,
    cwd: str,
    git_dir: str = "",
    stdin: bytes | None = None,
    limit_seconds: float = _LIMIT_SECONDS,
) -> Output:
    """Run git and wait for it; a non-zero exit is for the caller to judge.

    It works on the repository at `git_dir`, or on the one that `cwd` lies in, whatever the environment says:
    what git put there for a hook may mean another one.

    Raises:
        RepositoryError: git is not installed, or took too long.
    """
    environment = {name: text for name, text in os.environ.items() if name not in PLACES}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    if git_dir:
        environment |= {"GIT_DIR": git_dir, "GIT_WORK_TREE": cwd}
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
        raise RepositoryError(
            "git is not installed", code="NO_GIT", hint="install git 2.30 or newer"
        ) from error
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


def run_in(checkout: Checkout, *arguments: str, stdin: bytes | None = None) -> Output:
    """Run git on a checkout, as `run_git` does."""
    return run_git(*arguments, cwd=checkout.root, git_dir=checkout.git_dir, stdin=stdin)

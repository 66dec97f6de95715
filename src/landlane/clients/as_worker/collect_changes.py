"""Collect what the client changed in the checkout: as a commit, or as a patch against the base.

Files that git ignores are left out. The checkout's own index is changed only by a commit.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence

from landlane.errors import RepositoryError
from landlane.git.run import git_failed, run_git, run_git_with_hooks, user_environment
from landlane.values import value

_SECONDS = 600.0
_COMMIT_SECONDS = 3_600.0  # the user's hooks may run tests
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.safecrlf=false", "-c", "advice.addEmbeddedRepo=false")
_IDENTITY = ("-c", "user.name=Landlane worker", "-c", "user.email=worker@landlane.invalid")
_PATCH = (
    *("diff-index", "--cached", "--patch", "--binary", "--full-index", "--no-renames", "--no-color"),
    *("--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"),
)


@value
class Patch:
    """A change as a unified diff, and the paths it touches. The text is None if it is not UTF-8."""

    text: str | None
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


def current_commit(folder: str) -> str:
    """Return the commit of a checkout's HEAD; empty when there is none."""
    found = run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=folder)
    return "" if found.exit_code else found.stdout.strip()


def ignore_files(folder: str, patterns: Sequence[str]) -> None:
    """Add files of the client to the checkout's own list of ignored files.

    Raises:
        RepositoryError: git refuses.
    """
    path = os.path.join(folder, _run(folder, {}, "rev-parse", "--git-path", "info/exclude").strip())
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            known = file.read()
    except FileNotFoundError:
        known = ""
    missing = [f"{pattern}\n" for pattern in patterns if pattern not in known.splitlines()]
    if missing:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(["" if not known or known.endswith("\n") else "\n", *missing])


def ignored_files(folder: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return which of these paths are files that git ignores, such as the output of a task."""
    found: list[str] = []
    for path in paths:
        is_file = os.path.isfile(os.path.join(folder, path))
        if is_file and run_git("check-ignore", "--quiet", "--", path, cwd=folder).exit_code == 0:
            found.append(path)
    return tuple(found)


def commit_rest(folder: str, message: str) -> str:
    """Commit what is uncommitted, with the user's own hooks, and return the commit of HEAD then.

    Raises:
        RepositoryError: git or one of its hooks refuses.
    """
    _add_all(folder)
    staged = run_git("diff", "--cached", "--quiet", cwd=folder, limit_seconds=_SECONDS)
    if staged.exit_code:
        is_known = run_git("var", "GIT_COMMITTER_IDENT", cwd=folder).exit_code == 0
        who = () if is_known else _IDENTITY
        environment = user_environment()
        environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
        words = (*who, "commit", "--quiet", "--file=-", "--cleanup=whitespace")
        done = run_git_with_hooks(
            *words,
            cwd=folder,
            environment=environment,
            stdin=message.encode("utf-8", "replace"),
            limit_seconds=_COMMIT_SECONDS,
        )
        if done.exit_code:
            raise git_failed(("commit",), done)
    return current_commit(folder)


def patch_since(folder: str, base: str) -> Patch:
    """Return everything that differs from a commit, including new and binary files.

    Raises:
        RepositoryError: git refuses.
    """
    with tempfile.TemporaryDirectory(prefix="landlane-patch-") as scratch:
        index = os.path.join(scratch, "index")
        asked = run_git("rev-parse", "--git-path", "index", cwd=folder)
        own = os.path.join(folder, asked.stdout.strip())
        if not asked.exit_code and os.path.isfile(own):
            # The index saves git from reading all files. By the time of the index, git knows which files may
            # have changed although they look the same, so that is copied, too.
            shutil.copy2(own, index)
        private = {"GIT_INDEX_FILE": index}
        _add_all(folder, private)
        names = _run(folder, private, "diff-index", "--cached", "--no-renames", "--name-status", "-z", base)
        words = names.split("\0")
        pairs = list(zip(words[::2], words[1::2], strict=False))
        text = _run(folder, private, *_PATCH, base)
        if not _is_text(text):  # files in another encoding fit into a patch as binary ones
            attributes = os.path.join(scratch, "attributes")
            with open(attributes, "w", encoding="ascii") as file:
                file.write("* -diff\n")
            text = _run(folder, private, "-c", f"core.attributesFile={attributes}", *_PATCH, base)
    return Patch(
        text=text if _is_text(text) else None,
        changed=tuple(path for status, path in pairs if status != "D"),
        deleted=tuple(path for status, path in pairs if status == "D"),
    )


def copy_changed(folder: str, target: str, paths: Sequence[str]) -> None:
    """Copy files and links of a checkout under another folder, each under its own path.

    Raises:
        RepositoryError: one of them is neither, such as a submodule.
    """
    for path in paths:
        source, copy = os.path.join(folder, path), os.path.join(target, path)
        if not os.path.islink(source) and not os.path.isfile(source):
            raise RepositoryError(
                f"{path} is not a file and cannot be returned with a patch",
                code="NOT_A_FILE",
                hint="make the change smaller, so that it fits into a patch",
            )
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy2(source, copy, follow_symlinks=False)


def _add_all(folder: str, variables: Mapping[str, str] | None = None) -> None:
    words = (*_QUIET, "add", "--all", "--", ":(top)")
    done = run_git(*words, cwd=folder, limit_seconds=_SECONDS, variables=variables)
    if done.exit_code:
        raise git_failed(("add",), done)


def _run(folder: str, variables: Mapping[str, str], *words: str) -> str:
    ended = run_git(*_QUIET, *words, cwd=folder, limit_seconds=_SECONDS, variables=variables)
    if ended.exit_code:
        raise git_failed(words, ended)
    return ended.stdout


def _is_text(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)

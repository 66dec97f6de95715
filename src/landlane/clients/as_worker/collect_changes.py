"""What the client changed in the checkout: as a commit, or as a patch against the base.

Files that git ignores are nobody's change. The checkout's own index is left alone, except by a commit.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from landlane.errors import RepositoryError
from landlane.git.run import LOCATION_VARIABLES, git_failed, run_git, run_git_with_hooks
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECONDS = 600.0
_COMMIT_SECONDS = 3_600.0  # the user's hooks may test
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.safecrlf=false", "-c", "advice.addEmbeddedRepo=false")
_SOMEBODY = ("-c", "user.name=Landlane worker", "-c", "user.email=worker@landlane.invalid")
_PATCH = (
    *("diff-index", "--cached", "--patch", "--binary", "--full-index", "--no-renames", "--no-color"),
    *("--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"),
)


@value
class Patch:
    """A change as a unified diff, and the paths it touches. A text that is None cannot be said as text."""

    text: str | None
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


def head_of(folder: str) -> str:
    """The commit that a checkout stands on; empty when there is none."""
    found = run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=folder)
    return "" if found.exit_code else found.stdout.strip()


def ignore(folder: str, patterns: Sequence[str]) -> None:
    """Have git ignore files in a checkout that are nobody's work; its own list is for that.

    Raises:
        RepositoryError: git refuses.
    """
    place = os.path.join(folder, _ask(folder, {}, "rev-parse", "--git-path", "info/exclude").strip())
    try:
        with open(place, encoding="utf-8", errors="replace") as file:
            known = file.read()
    except FileNotFoundError:
        known = ""
    wanted = [pattern for pattern in patterns if pattern not in known.splitlines()]
    if wanted:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "a", encoding="utf-8") as file:
            file.write(
                "".join([*(["\n"] if known and known[-1] != "\n" else []), *(f"{one}\n" for one in wanted)])
            )


def commit_rest(folder: str, message: str) -> str:
    """Commit whatever is uncommitted, with the user's own hooks; tells the commit that it stands on then.

    Raises:
        RepositoryError: git or one of its hooks refuses.
    """
    _add_all(folder)
    staged = run_git("diff", "--cached", "--quiet", cwd=folder, limit_seconds=_SECONDS)
    if staged.exit_code:
        is_known = run_git("var", "GIT_COMMITTER_IDENT", cwd=folder).exit_code == 0
        who = () if is_known else _SOMEBODY
        environment = {name: text for name, text in os.environ.items() if name not in LOCATION_VARIABLES}
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
    return head_of(folder)


def patch_since(folder: str, base: str) -> Patch:
    """All that differs from a commit, with new files and binary ones.

    Raises:
        RepositoryError: git refuses.
    """
    with tempfile.TemporaryDirectory(prefix="landlane-patch-") as place:
        index = os.path.join(place, "index")
        found = run_git("rev-parse", "--git-path", "index", cwd=folder)
        own = os.path.join(folder, found.stdout.strip())
        if not found.exit_code and os.path.isfile(own):
            # What it knows of the files saves git from reading them all. With its time: by that git knows
            # which of them may have changed since without looking different.
            shutil.copy2(own, index)
        private = {"GIT_INDEX_FILE": index}
        _add_all(folder, private)
        names = _ask(folder, private, "diff-index", "--cached", "--no-renames", "--name-status", "-z", base)
        changed, deleted = _names(names)
        text = _ask(folder, private, *_PATCH, base)
        if not _is_text(text):  # files in another encoding: as binary ones they can be said
            attributes = os.path.join(place, "attributes")
            with open(attributes, "w", encoding="ascii") as file:
                file.write("* -diff\n")
            text = _ask(folder, private, "-c", f"core.attributesFile={attributes}", *_PATCH, base)
    return Patch(text=text if _is_text(text) else None, changed=changed, deleted=deleted)


def copy_changed(folder: str, target: str, paths: Sequence[str]) -> None:
    """Copy files and links of a checkout under another folder, each under its own path.

    Raises:
        RepositoryError: one of them is neither, such as a submodule.
    """
    for path in paths:
        source, place = os.path.join(folder, path), os.path.join(target, path)
        if not os.path.islink(source) and not os.path.isfile(source):
            raise RepositoryError(
                f"{path} is no file, and cannot be handed back beside a patch",
                code="NOT_A_FILE",
                hint="make the change smaller, so that it fits into a patch",
            )
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy2(source, place, follow_symlinks=False)


def _add_all(folder: str, variables: Mapping[str, str] | None = None) -> None:
    words = (*_QUIET, "add", "--all", "--", ":(top)")
    done = run_git(*words, cwd=folder, limit_seconds=_SECONDS, variables=variables)
    if done.exit_code:
        raise git_failed(("add",), done)


def _ask(folder: str, variables: Mapping[str, str], *words: str) -> str:
    found = run_git(*_QUIET, *words, cwd=folder, limit_seconds=_SECONDS, variables=variables)
    if found.exit_code:
        raise git_failed(words, found)
    return found.stdout


def _names(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    words = text.split("\0")
    pairs = list(zip(words[::2], words[1::2], strict=False))
    changed = tuple(path for status, path in pairs if status != "D")
    return changed, tuple(path for status, path in pairs if status == "D")


def _is_text(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)

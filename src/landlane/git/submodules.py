"""Submodules of a new checkout: those that the main checkout has initialised are there, too."""

from __future__ import annotations

import os

from landlane.errors import RepositoryError
from landlane.git.run import GitResult, run_git, try_git_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout

_UPDATE_SECONDS = 1800.0
_PREFIX = "submodule."


def fill_submodules(home: Checkout, path: str, *, is_clone: bool) -> list[str]:
    """Initialise those submodules that the main checkout has, too; tells which.

    Raises:
        RepositoryError: one of them cannot be had.
    """
    if not os.path.exists(os.path.join(path, ".gitmodules")):
        return []
    urls = _named(try_git_output(home, "config", "-z", "--get-regexp", r"^submodule\..*\.url$"), ".url")
    listed = run_git("config", "-z", "-f", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$", cwd=path)
    places = {name: where for name, where in _named(listed.stdout, ".path").items() if name in urls}
    if not places:
        return []
    if is_clone:  # a worktree shares these settings with the main checkout
        for name in places:
            run_git("config", f"{_PREFIX}{name}.url", urls[name], cwd=path)
    # What the user has configured by hand to come from a local folder may come from there.
    is_local = any(_is_local(urls[name]) for name in places)
    allowed = ("-c", "protocol.file.allow=always") if is_local else ()
    found = _update(path, *allowed, "--recursive", places=list(places.values()))
    if found.exit_code and not _fill_from_home(home, path, places, urls):
        raise RepositoryError(
            f"submodules cannot be had here: {found.stderr[-300:]}",
            code="SUBMODULE_MISSING",
            hint="mend the submodule's URL, or `git submodule deinit` it in the main checkout",
        )
    return list(places.values())


def _named(text: str, ending: str) -> dict[str, str]:
    """The values of settings by the name of their submodule."""
    items = (item.partition("\n") for item in text.split("\0") if item)
    return {key[len(_PREFIX) : -len(ending)]: value for key, _, value in items}


def _is_local(url: str) -> bool:
    return url.startswith(("/", ".", "file://"))


def _update(path: str, *words: str, places: list[str]) -> GitResult:
    options = [word for word in words if word == "--recursive"]
    before = [word for word in words if word != "--recursive"]
    return run_git(
        *before,
        *("submodule", "--quiet", "update", "--init", *options, "--", *places),
        cwd=path,
        limit_seconds=_UPDATE_SECONDS,
    )


def _fill_from_home(home: Checkout, path: str, places: dict[str, str], urls: dict[str, str]) -> bool:
    """Where remotes cannot be reached, take submodules from the main checkout; tells whether all came."""
    for name, place in places.items():
        module = os.path.join(home.common_dir, "modules", name)
        if not os.path.isdir(module):
            return False
        source = ("-c", f"{_PREFIX}{name}.url={module}", "-c", "protocol.file.allow=always")
        if _update(path, *source, places=[place]).exit_code:
            return False
        run_git("config", "remote.origin.url", urls[name], cwd=os.path.join(path, place))
    return True

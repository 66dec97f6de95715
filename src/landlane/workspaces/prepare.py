"""Making a new workspace runnable as `[workspace]` says: copy, link, install, generate, check."""

from __future__ import annotations

import os
import shutil

from landlane.clock import duration_text
from landlane.errors import LandlaneError
from landlane.git.run import LOCATION_VARIABLES
from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.settings.model import Settings

_TAIL = 2000


def prepare(
    settings: Settings,
    source: str,
    path: str,
    environment: Mapping[str, str],
    tell: Callable[[str], None],
    on_tick: Callable[[], None],
) -> None:
    """Bring in what is not under git, then prove that the workspace works.

    Raises:
        LandlaneError: something is missing or fails, and is named.
    """
    for name in settings.workspace.copy:
        _copy(source, path, name)
    for name in settings.workspace.link:
        _link(source, path, name)
    steps = [("install", command) for command in settings.workspace.install]
    steps += [("generate", command) for command in settings.workspace.generate]
    steps += [("check", settings.workspace.check)] if settings.workspace.check else []
    for step, command in steps:
        tell(f"{step}: {command}")
        _run(step, command, path, environment, settings.workspace.limit_ms, on_tick)


def _inside(root: str, name: str, step: str) -> str:
    """A name of the settings as a path, which must stay inside, also where a folder on the way is a link."""
    full = os.path.normpath(os.path.join(root, name))
    real_root, real_folder = os.path.realpath(root), os.path.realpath(os.path.dirname(full))
    is_inside = full.startswith(root.rstrip("/") + "/")
    if not is_inside or not f"{real_folder}/".startswith(real_root.rstrip("/") + "/"):
        raise _failed(step, f"{name!r} leads out of the repository", "name a path inside it")
    if os.path.relpath(full, root).split("/")[0] == ".git":
        raise _failed(step, f"{name!r} belongs to git", "name files of the project")
    return full


def _source(root: str, name: str, step: str) -> str:
    full = _inside(root, name, step)
    if not os.path.lexists(full):
        raise _failed(
            step,
            f"{name} is not in the main checkout",
            f"make it there, or take it out of [workspace] {step}",
        )
    return full


def _copy(source: str, path: str, name: str) -> None:
    origin, place = _source(source, name, "copy"), _inside(path, name, "copy")
    if os.path.lexists(place):
        return  # it is under git, or was copied before this was taken up again
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.isdir(origin) and not os.path.islink(origin):
            shutil.copytree(origin, place, symlinks=True)
        else:
            shutil.copy2(origin, place, follow_symlinks=False)
    except (OSError, shutil.Error) as error:
        raise _failed("copy", f"{name}: {error}", "check the disk and the permissions") from error


def _link(source: str, path: str, name: str) -> None:
    origin, place = _source(source, name, "link"), _inside(path, name, "link")
    if os.path.lexists(place):
        return
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(origin, place)
    except OSError as error:
        raise _failed("link", f"{name}: {error.strerror}", "check the disk and the permissions") from error


def _run(
    step: str,
    command: str,
    path: str,
    environment: Mapping[str, str],
    limit_ms: int,
    on_tick: Callable[[], None],
) -> None:
    child = Child(["/bin/sh", "-c", command], cwd=path, environment=environment, without=LOCATION_VARIABLES)
    ended = child.wait(limit_ms / 1000, on_tick)
    if ended.has_timed_out:
        raise _failed(
            step,
            f"`{command}` took longer than {duration_text(limit_ms)}",
            "raise [workspace] limit, or mend it",
        )
    if ended.exit_code:
        said = (ended.stdout + ended.stderr)[-_TAIL:].strip()
        raise _failed(
            step,
            f"`{command}` ended with {ended.exit_code}" + (f": {said}" if said else ""),
            "mend it, then open again",
        )


def _failed(step: str, what: str, hint: str) -> LandlaneError:
    return LandlaneError(
        f"the workspace is not runnable: {step}: {what}", code="WORKSPACE_NOT_RUNNABLE", hint=hint, step=step
    )

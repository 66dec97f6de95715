"""Prepare a new workspace as `[workspace]` says: copy, link, install, generate, check."""

from __future__ import annotations

import fcntl
import os
import shutil

from landlane.clock import duration_text
from landlane.errors import LandlaneError
from landlane.git.run import foreign_variables
from landlane.sandbox.sandboxed_check import CheckCommand, CheckPlaces, run_sandboxed_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.processes.child import ChildResult
    from landlane.settings.model import Settings

_TAIL = 2000
_CLONE_FILE = 0x40049409  # FICLONE in <linux/fs.h>


def prepare(
    settings: Settings,
    places: CheckPlaces,
    path: str,
    environment: Mapping[str, str],
    report: Callable[[str], None],
    on_tick: Callable[[], None],
) -> None:
    """Bring in files that are not under git, then run the commands that build and check the workspace.

    The commands run in a sandbox, with the network: the files that they use are those of a branch.

    Raises:
        LandlaneError: something is missing, or a command fails.
    """
    workspace = settings.workspace
    for name in workspace.copy:
        _bring_in("copy", places.root, path, name)
    for name in workspace.link:
        _bring_in("link", places.root, path, name)
    commands = [("install", command) for command in workspace.install]
    commands += [("generate", command) for command in workspace.generate]
    commands += [("check", workspace.check)] if workspace.check else []
    for step, command in commands:
        report(f"{step}: {command}")
        words = ["/bin/sh", "-c", command]
        run = CheckCommand(
            words=words,
            path=path,
            environment=environment,
            limit_seconds=workspace.limit_ms / 1000,
            without=foreign_variables(),
            is_preparing=True,
        )
        _check_ended(step, command, run_sandboxed_check(settings, places, run, on_tick), workspace.limit_ms)


def _inside(root: str, name: str, step: str) -> str:
    """Return a name of the settings as a path, which must be inside the root, links resolved."""
    full = os.path.normpath(os.path.join(root, name))
    real_root, real_folder = os.path.realpath(root), os.path.realpath(os.path.dirname(full))
    is_inside = full.startswith(root.rstrip("/") + "/")
    if not is_inside or not f"{real_folder}/".startswith(real_root.rstrip("/") + "/"):
        raise _failed(step, f"{name!r} leads out of the repository", "name a path inside it")
    if os.path.relpath(full, root).split("/")[0] == ".git":
        raise _failed(step, f"{name!r} belongs to git", "name files of the project")
    return full


def _bring_in(step: str, source: str, path: str, name: str) -> None:
    """Copy or link a file or folder of the main checkout."""
    origin, place = _inside(source, name, step), _inside(path, name, step)
    if not os.path.lexists(origin):
        hint = f"make it there, or take it out of [workspace] {step}"
        raise _failed(step, f"{name} is not in the main checkout", hint)
    if os.path.lexists(place):
        return  # it is under git, or was brought in before an interruption
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if step == "link":
            os.symlink(origin, place)
        elif os.path.isdir(origin) and not os.path.islink(origin):
            shutil.copytree(origin, place, symlinks=True, copy_function=_copy_file)
        else:
            _copy_file(origin, place)
    except OSError as error:
        trouble = error.strerror if step == "link" else error
        raise _failed(step, f"{name}: {trouble}", "check the disk and the permissions") from error


def _copy_file(source: str, target: str) -> None:
    """Copy a file, without its data where the file system can share them until one of the two is changed."""
    if not os.path.islink(source):
        with open(source, "rb") as origin, open(target, "wb") as copy:
            try:
                fcntl.ioctl(copy, _CLONE_FILE, origin.fileno())
            except OSError:
                shutil.copyfileobj(origin, copy)
        shutil.copystat(source, target)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _check_ended(step: str, command: str, ended: ChildResult, limit_ms: int) -> None:
    if ended.has_timed_out:
        late = f"`{command}` took longer than {duration_text(limit_ms)}"
        raise _failed(step, late, "raise [workspace] limit, or fix it")
    if ended.exit_code:
        output = (ended.stdout + ended.stderr)[-_TAIL:].strip()
        trouble = f"`{command}` ended with {ended.exit_code}" + (f": {output}" if output else "")
        raise _failed(step, trouble, "fix it, then open again")


def _failed(step: str, what: str, hint: str) -> LandlaneError:
    return LandlaneError(
        f"the workspace is not runnable: {step}: {what}", code="WORKSPACE_NOT_RUNNABLE", hint=hint, step=step
    )

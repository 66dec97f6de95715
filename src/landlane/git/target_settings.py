"""Return the settings and rules that hold: those on the target branch, cached in the state folder.

Every hook reads them, so this must not start git. The files that decide where the target is are compared with
those of the last reading, and git is asked only after one of them has changed.
"""

from __future__ import annotations

import marshal
import os

from landlane.errors import SettingsError
from landlane.files import open_regular, stamp_of, write_atomically
from landlane.settings.load import CACHE_FORM, read_last_good, read_settings
from landlane.settings.model import FILE_NAME, LOCAL_NAME, Settings
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from landlane.git.discovery import Checkout

    Stamps = tuple[tuple[str, str], ...]

_CACHE = "target-settings.cache"
_OWN_CACHE = "settings.cache"  # of the file in a working tree
_ABSENT = "-"
_VARIABLES = ("GIT_CONFIG", "XDG_CONFIG_HOME")


@value
class HeldSettings:
    """The settings that hold for a caller, and what people should know about them.

    `shared` hold for everyone else. They differ from `settings` only for a person, and only while the target
    branch has no settings (not `is_committed`) and the working tree has (`is_own`). They were read from the
    commit `tip`. `trouble` says why the newest settings do not hold. `watched` are the files, with their
    stamps, that change whenever the target moves.
    """

    settings: Settings
    shared: Settings
    is_own: bool = False
    branch: str = ""
    tip: str = ""
    is_committed: bool = True
    trouble: str = ""
    watched: Stamps = ()

    @property
    def remark(self) -> str:
        """What people should know about where the settings come from; empty if it is as usual."""
        if self.trouble:
            where = f" (on {self.branch})" if self.is_committed and self.branch else ""
            return f"{self.trouble}{where}; the last valid settings hold"
        if self.is_own:
            return not_committed(self.branch)
        return ""


def not_committed(branch: str) -> str:
    """Return that the settings in the working tree hold only for the person there."""
    where = f"on {branch}" if branch else "committed"
    return f"{FILE_NAME} is not {where} yet: until then agents, hooks and workers use the defaults"


def settings_in_force(checkout: Checkout, *, is_person: bool = False) -> HeldSettings:
    """Return the settings of the target branch, with those of this clone over them.

    While the target has none, a person gets those of the working tree, everyone else the defaults. Outside of
    git there is no target: the settings of the folder hold. Settings that cannot be parsed never hold; those
    before them do.

    Raises:
        SettingsError: the settings of this clone cannot be used.
    """
    if not checkout.home_dir:
        return _with_own(checkout, HeldSettings(settings=Settings(), shared=Settings()), is_shared=True)
    found = _read_target(checkout.home_checkout, checkout.state_folder)
    settings = Settings.from_plain(found["plain"])
    held = HeldSettings(
        settings=settings,
        shared=settings,
        branch=found["branch"],
        tip=found["tip"],
        is_committed=found["is_committed"],
        trouble=found["trouble"],
        watched=found["marks"][-1],
    )
    return _with_own(checkout, held) if is_person and not held.is_committed else held


def _with_own(checkout: Checkout, held: HeldSettings, *, is_shared: bool = False) -> HeldSettings:
    """Return the settings of a working tree, or the last ones that could be parsed."""
    root, folder = checkout.root, checkout.state_folder
    if checkout.git_dir != checkout.home_dir and not os.path.lexists(os.path.join(root, FILE_NAME)):
        root = checkout.home_checkout.root
    cache = os.path.join(folder, _OWN_CACHE)
    try:
        settings, trouble = read_settings(root, cache, os.path.join(folder, LOCAL_NAME)), held.trouble
    except SettingsError as error:
        if error.facts.get("file") == LOCAL_NAME:
            raise
        settings, trouble = read_last_good(cache) or held.shared, error.message
    if is_shared:
        return replace(held, settings=settings, shared=settings, trouble=trouble)
    is_own = os.path.lexists(os.path.join(root, FILE_NAME))
    return replace(held, settings=settings, is_own=is_own, trouble=trouble)


def committed_document(checkout: Checkout) -> dict[str, Any] | None:
    """Return the settings on the target branch as they are in the file; None if it has none."""
    if not checkout.home_dir:
        return None
    found = _read_target(checkout.home_checkout, checkout.state_folder)
    return found["document"] if found["is_committed"] else None


def committed_text(checkout: Checkout, name: str) -> tuple[int, bytes] | None:
    """Return the size and the beginning of the rules file `name` on the target branch; None without one."""
    found = _read_target(checkout.home_checkout, checkout.state_folder, name)
    return found["rules"]


def _read_target(home: Checkout, folder: str, rules_file: str = "") -> dict[str, Any]:
    """Return what the target branch holds, from the cache if nothing has changed."""
    path = os.path.join(folder, _CACHE)
    known = _load(path)
    is_known = known is not None and rules_file in ("", known["rules_file"])
    if known is not None and is_known and known["marks"] == _marks(home, folder, known["refs"]):
        return known
    from landlane.git.read_target import read_target  # noqa: PLC0415 - start-up: not with a warm cache

    found = read_target(
        home,
        os.path.join(folder, LOCAL_NAME),
        known,
        lambda refs: _marks(home, folder, refs),
        rules_file=rules_file,
    )
    _save(path, found)
    return found


def _marks(home: Checkout, folder: str, refs: Iterable[str]) -> tuple[object, ...]:
    """Return what changes whenever the target, its settings or its rules may have changed.

    The last part changes only when the target moves or may be another branch, or refs are packed.
    """
    user, git = os.path.expanduser("~"), home.common_dir
    general = (
        os.path.join(git, "config"),
        os.path.join(home.git_dir, "config.worktree"),
        os.path.join(user, ".gitconfig"),
        os.path.join(user, ".config", "git", "config"),
        os.path.join(git, "refs", "heads"),  # changes when a branch appears or disappears
    )
    moving = (
        os.path.join(git, "HEAD"),  # it and the next file can make another branch the target
        os.path.join(git, "refs", "remotes", "origin", "HEAD"),
        os.path.join(folder, LOCAL_NAME),
        os.path.join(git, "packed-refs"),
        os.path.join(git, "reftable", "tables.list"),
        *(os.path.join(git, ref) for ref in refs),
    )
    variables = tuple(item for item in sorted(os.environ.items()) if item[0].startswith(_VARIABLES))
    return (variables, _stamps(general), _stamps(moving))


def _stamps(paths: Iterable[str]) -> Stamps:
    return tuple((path, _stamp_at(path)) for path in paths)


def _stamp_at(path: str) -> str:
    try:
        return stamp_of(os.stat(path))
    except OSError:
        return _ABSENT


def _load(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb", opener=open_regular) as file:
            form, found = marshal.loads(file.read())  # noqa: S302 - our own file, in git's own folder
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return found if form == CACHE_FORM else None


def _save(path: str, found: dict[str, Any]) -> None:
    """Keep it for the next process; without it that one is only slower."""
    try:
        write_atomically(path, marshal.dumps((CACHE_FORM, found)))
    except OSError:
        return

"""Install and remove our git hooks, in a repository and its clones."""

from __future__ import annotations

import os
from functools import partial

from landlane.git.hook_pass import hooks_folder
from landlane.git.hooks.hooks_path import (
    FormerSetting,
    InsertedAs,
    InstalledHooks,
    find_user_hooks,
    forget_installed_hooks,
    is_former_folder,
    load_installed_hooks,
    read_hooks_path,
    remove_config_leftover,
    restore_hooks_path,
    save_installed_hooks,
    set_hooks_path,
    with_current_place,
)
from landlane.git.hooks.scripts import JUDGED, outdated_scripts, own_folder, remove_scripts, write_scripts
from landlane.git.remove_checkout import list_worktrees
from landlane.git.shared_config import remember_config
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout


_NOTES = (JUDGED, "landlane-githook")  # files that our hooks write in a git directory
COMMITS, PUSHES, TARGET = "git: commits", "git: pushes", "git: target branch"


def _config(common_dir: str) -> str:
    return os.path.join(common_dir, "config")


def git_hooks_to_change(home: Checkout) -> str:
    """Return the config file to change for git to run our hooks; empty when they are installed."""
    if not home.common_dir:
        return ""
    record = load_installed_hooks(home.common_dir)
    config = _config(home.common_dir)
    is_there = (
        record is not None
        and read_hooks_path(config) == hooks_folder(home.common_dir)
        and record.own == find_user_hooks(home, record)
        and not outdated_scripts(home.common_dir, record.own)
    )
    return "" if is_there else config


def git_hooks_installed(home: Checkout) -> str:
    """Return the config file that names our hooks; empty when none of them are left here."""
    common = home.common_dir
    if not common or (load_installed_hooks(common) is None and not os.path.isdir(hooks_folder(common))):
        return ""
    return _config(common)


def install_git_hooks(home: Checkout, clones: Sequence[str] = ()) -> None:
    """Install our hooks here and in these clones; installing again is harmless.

    The user's own hooks keep running from where they are.

    Raises:
        RepositoryError: a config file cannot be written.
    """
    common = home.common_dir
    record = load_installed_hooks(common)
    record = replace(record or InstalledHooks(), own=find_user_hooks(home, record))
    if is_former_folder(named := read_hooks_path(_config(common)), common):
        record = with_current_place(record, common, named or "")
    write_scripts(common, record.own, home.root)  # first, so that the config never names missing scripts
    save_installed_hooks(common, record)
    # The repository's own config is last: until then it shows that the repository was moved.
    for config in (*(_config(os.path.join(path, ".git")) for path in clones), _config(common)):
        if os.path.isfile(config) and read_hooks_path(config) != hooks_folder(common):
            set_hooks_path(config, hooks_folder(common), partial(_remember_former, common, config))
    remember_config(home)


def _remember_former(common: str, config: str, former: FormerSetting) -> None:
    if is_former_folder(former.value, common):
        return  # the setting before init is recorded already
    record = load_installed_hooks(common) or InstalledHooks()
    save_installed_hooks(common, replace(record, formers={**record.formers, config: former}))


def remove_git_hooks(home: Checkout, clones: Sequence[str] = ()) -> bool:
    """Remove our hooks and restore every config file; return whether there were any."""
    common = home.common_dir
    record, ours = load_installed_hooks(common), hooks_folder(common)
    if record is None and not os.path.isdir(ours):
        return False
    record = record or InstalledHooks()  # a removal was interrupted
    own = own_folder(common, record.own, home.root)
    for config in (_config(common), *(_config(os.path.join(path, ".git")) for path in clones)):
        # A clone created with our hooks gets the config it would have had without them.
        without = own if config != _config(common) and os.path.isdir(own) else None
        remove_config_leftover(config)
        if os.path.isfile(config):
            restore_hooks_path(
                config,
                ours,
                record.formers.get(config) or FormerSetting(value=without, way=InsertedAs.BY_GIT),
            )
    remove_scripts(common)
    forget_installed_hooks(common)
    for git_dir in (common, *(worktree for worktree, _ in list_worktrees(home))):
        for name in _NOTES:
            if os.path.exists(os.path.join(git_dir, name)):
                os.unlink(os.path.join(git_dir, name))
    remember_config(home)
    return True

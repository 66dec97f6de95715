"""Read the settings of a commit or of the main checkout."""

from __future__ import annotations

import os
import tomllib

from landlane.errors import SettingsError
from landlane.git.trial_merge import read_blob
from landlane.settings.load import merge_documents, read_local, read_settings
from landlane.settings.model import FILE_NAME, LOCAL_NAME, Settings
from landlane.settings.readers import parse_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository


def read_at(repo: Repository, tip: str) -> Settings:
    """Return the settings of a commit, of the main checkout, or these if those are not valid."""
    try:
        return read_commit(repo.home, tip) or of_main_checkout(repo)
    except SettingsError:
        return repo.settings


def committed_at(home: Checkout, commit: str) -> Settings | None:
    """Return the settings in a commit; None if it has none, or none that are valid."""
    try:
        return read_commit(home, commit)
    except SettingsError:
        return None


def of_main_checkout(repo: Repository) -> Settings:
    """Return the settings in the main checkout, which an agent cannot relax by editing its workspace."""
    if repo.checkout.root == repo.home.root:
        return repo.settings
    return read_settings(repo.home.root, local=os.path.join(repo.state_folder, LOCAL_NAME))


def read_commit(home: Checkout, commit: str) -> Settings | None:
    """Read the settings of a commit; None when it has no settings file.

    Raises:
        SettingsError: they are not valid.
    """
    content = read_blob(home, commit, FILE_NAME)
    if content is None:
        return None
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"it is not valid TOML: {error}", code="SETTINGS_NOT_TOML") from error
    local = read_local(os.path.join(home.state_folder, LOCAL_NAME))
    return parse_settings(merge_documents(document, local))

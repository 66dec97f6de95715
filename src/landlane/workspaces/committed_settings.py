"""Settings as a commit or the main checkout has them."""

from __future__ import annotations

import tomllib

from landlane.errors import SettingsError
from landlane.git import trial_merge as trials
from landlane.settings.load import read_settings
from landlane.settings.model import FILE_NAME, Settings
from landlane.settings.readers import parse_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository


def read_at(repo: Repository, tip: str) -> Settings:
    """The settings as the target has them, for those who only look; unusable ones do not stop them."""
    try:
        return read_commit(repo.home, tip) or of_main_checkout(repo)
    except SettingsError:
        return repo.settings


def committed_at(home: Checkout, commit: str) -> Settings | None:
    """The settings that a commit itself brings along; nothing where it has none, or none that can be used."""
    try:
        return read_commit(home, commit)
    except SettingsError:
        return None


def of_main_checkout(repo: Repository) -> Settings:
    """The settings that lie in the main checkout: what an author writes into a workspace opens no door."""
    if repo.checkout.root == repo.home.root:
        return repo.settings
    return read_settings(repo.home.root)


def read_commit(home: Checkout, commit: str) -> Settings | None:
    """Read the settings of a commit; None when it has no settings file.

    Raises:
        SettingsError: they are not valid.
    """
    content = trials.read_blob(home, commit, FILE_NAME)
    if content is None:
        return None
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"it is not valid TOML: {error}", code="SETTINGS_NOT_TOML") from error
    return parse_settings(document)

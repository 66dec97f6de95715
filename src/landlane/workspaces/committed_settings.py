"""Read the settings of a commit."""

from __future__ import annotations

import os

from landlane.errors import SettingsError
from landlane.git.read_target import parse_good, parse_settings_file, read_blobs
from landlane.settings.load import merge_documents, read_local
from landlane.settings.model import FILE_NAME, LOCAL_NAME, Settings
from landlane.settings.readers import parse_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository


def read_at(repo: Repository, tip: str) -> Settings:
    """Return the settings of a commit, or those that hold for the caller if it has none that can be used."""
    try:
        return read_good(repo.home, tip) or repo.settings
    except SettingsError:
        return repo.settings


def committed_at(home: Checkout, commit: str) -> Settings | None:
    """Return the settings in a commit; None if it has none, or none that are valid."""
    try:
        return read_commit(home, commit)
    except SettingsError:
        return None


def read_commit(home: Checkout, commit: str) -> Settings | None:
    """Read the settings of a commit, with those of this clone over them; None when it has no settings file.

    Raises:
        SettingsError: they are not valid.
    """
    content = _content(home, commit)
    return _overlaid(home, parse_settings_file(content)) if content is not None else None


def read_good(home: Checkout, commit: str) -> Settings | None:
    """Like `read_commit`, but return the last settings before it that are valid, if those in it are not.

    Raises:
        SettingsError: none of them is.
    """
    content = _content(home, commit)
    if content is None:
        return None
    document, trouble = parse_good(home, commit, content)
    if trouble and not document:
        raise SettingsError(trouble, code="SETTINGS_NOT_TOML")
    return _overlaid(home, document)


def _content(home: Checkout, commit: str) -> bytes | None:
    found = read_blobs(home, commit, [FILE_NAME]).get(FILE_NAME) if commit else None
    return found[1] if found is not None else None


def _overlaid(home: Checkout, document: dict[str, object]) -> Settings:
    local = read_local(os.path.join(home.state_folder, LOCAL_NAME))
    return parse_settings(merge_documents(document, local))

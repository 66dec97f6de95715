"""The rules by which what lands is judged: those of the target branch; no branch chooses its own."""

from __future__ import annotations

import tomllib

from landlane.errors import RepositoryError, SettingsError
from landlane.git import trial_merge as trials
from landlane.landing.model import no_checks
from landlane.patterns.pattern import covers_branch
from landlane.settings.model import FILE_NAME, Settings, check_settings, read_settings
from landlane.setup.propose_settings import find_test_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.context import Site
    from landlane.git.discovery import Checkout
    from landlane.git.target import Target


def settings_at(site: Site, target: Target, tip: str) -> Settings:
    """The settings as the target branch has them; one that has none is judged by those of the main checkout.

    Raises:
        RepositoryError: they cannot be read there.
        SettingsError: nobody has said how the target is tested.
    """
    try:
        found = _read(site.home, tip)
    except SettingsError as error:
        raise RepositoryError(
            f"{FILE_NAME} on {target.branch} cannot be used: {error.message}",
            code="SETTINGS_BROKEN",
            hint=f"mend it there: commit a {FILE_NAME} that `landlane doctor` likes on {target.branch}",
        ) from error
    settings = found or of_main_checkout(site)
    if settings.landing_checks is None:
        command, _ = find_test_command(site.home.root)
        raise no_checks(target.branch if found is not None else "", command)
    return settings


def read_at(site: Site, tip: str) -> Settings:
    """The settings as the target has them, for those who only look; unusable ones do not stop them."""
    try:
        return _read(site.home, tip) or of_main_checkout(site)
    except SettingsError:
        return site.settings


def committed_at(home: Checkout, commit: str) -> Settings | None:
    """The settings that a commit itself brings along; nothing where it has none, or none that can be used."""
    try:
        return _read(home, commit)
    except SettingsError:
        return None


def of_main_checkout(site: Site) -> Settings:
    """The settings that lie in the main checkout: what an author writes into a workspace opens no door."""
    if site.here.root == site.home.root:
        return site.settings
    return read_settings(site.home.root)


def _read(home: Checkout, commit: str) -> Settings | None:
    content = trials.blob_at(home, commit, FILE_NAME)
    if content is None:
        return None
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"it is not valid TOML: {error}", code="SETTINGS_NOT_TOML") from error
    return Settings(**check_settings(document))


def broken_settings(home: Checkout, commit: str) -> str:
    """Why nothing could land any more after this commit; empty when all is well."""
    try:
        found = _read(home, commit)
    except SettingsError as error:
        return f"its {FILE_NAME} cannot be used: {error.message}"
    if found is not None and found.landing_checks is None:
        return f"its {FILE_NAME} does not say [landing] checks: after it nothing could land any more"
    return ""


def gate_for(site: Site, settings: Settings, paths: Sequence[str]) -> str:
    """Why a person must decide: the first path that the settings say so of."""
    pattern_of = site.context.repository.pattern_of
    for text in settings.landing_gate:
        gated = pattern_of(text, "glob").branches
        for path in paths:
            (branch,) = pattern_of(path, "literal").branches
            if any(covers_branch(one, branch) for one in gated):
                return f"waits for a person: it changes {path} ({text})"
    return ""

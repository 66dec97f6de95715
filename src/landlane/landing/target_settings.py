"""The rules by which what lands is judged: those of the target branch; no branch chooses its own."""

from __future__ import annotations

from landlane.errors import RepositoryError, SettingsError
from landlane.landing.model import no_checks
from landlane.patterns.pattern import covers_alternative
from landlane.settings.detect_test_command import find_test_command
from landlane.settings.model import FILE_NAME, Settings
from landlane.workspaces.committed_settings import of_main_checkout, read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository


def settings_at(repo: Repository, target: TargetBranch, tip: str) -> Settings:
    """The settings as the target branch has them; one that has none is judged by those of the main checkout.

    Raises:
        RepositoryError: they cannot be read there.
        SettingsError: nobody has said how the target is tested.
    """
    try:
        found = read_commit(repo.home, tip)
    except SettingsError as error:
        raise RepositoryError(
            f"{FILE_NAME} on {target.branch} cannot be used: {error.message}",
            code="SETTINGS_BROKEN",
            hint=f"mend it there: commit a {FILE_NAME} that `landlane doctor` likes on {target.branch}",
        ) from error
    settings = found or of_main_checkout(repo)
    if settings.landing.checks is None:
        command, _ = find_test_command(repo.home.root)
        raise no_checks(target.branch if found is not None else "", command)
    return settings


def broken_settings(home: Checkout, commit: str) -> str:
    """Why nothing could land any more after this commit; empty when all is well."""
    try:
        found = read_commit(home, commit)
    except SettingsError as error:
        return f"its {FILE_NAME} cannot be used: {error.message}"
    if found is not None and found.landing.checks is None:
        return f"its {FILE_NAME} does not say [landing] checks: after it nothing could land any more"
    return ""


def gate_for(repo: Repository, settings: Settings, paths: Sequence[str]) -> str:
    """Why a person must decide: the first path that the settings say so of."""
    pattern_of = repo.git.pattern_of
    for text in settings.landing.gate:
        gated = pattern_of(text, "glob").alternatives
        for path in paths:
            (branch,) = pattern_of(path, "literal").alternatives
            if any(covers_alternative(one, branch) for one in gated):
                return f"waits for a person: it changes {path} ({text})"
    return ""

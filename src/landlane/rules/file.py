"""Read the rules file: one for all checkouts of the repository, from the target branch.

A change takes effect for all sessions when it has landed, not before: any agent can write the file.
"""

from __future__ import annotations

import os

from landlane.errors import RepositoryError
from landlane.git.target_settings import committed_text
from landlane.rules.model import MOST_BYTES, read_rules, version_of
from landlane.settings.named_files import check_inside, decoded, read_text
from landlane.text import shell_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.rules.model import Rules


def load_rules(here: Checkout, home: Checkout, file: str) -> Rules | None:
    """Return the current rules, or None when there are none.

    Raises:
        RepositoryError: the file is too long, not text, or outside the repository.
    """
    text = load_text(here, home, file)
    return read_rules(text) if text is not None else None


def load_version(here: Checkout, home: Checkout, file: str) -> str:
    """Return only the version, which is cheaper; empty when there are no rules.

    Raises:
        RepositoryError: as `load_rules`.
    """
    text = load_text(here, home, file)
    return version_of(text) if text is not None else ""


def load_text(here: Checkout, home: Checkout, file: str) -> str | None:
    """Return the text of the rules.

    Raises:
        RepositoryError: as `load_rules`.
    """
    if here.home_dir:
        check_inside(file)
        found = decoded(file, committed_text(here, file), MOST_BYTES)
    else:  # outside of git there is no target branch
        found = read_text(home.root, file, MOST_BYTES)
    if found is None:
        return None
    if found.is_cut:
        raise RepositoryError(
            f"{file} has {found.size:,} bytes; rules may have {MOST_BYTES:,}",
            code="RULES_TOO_LONG",
            hint="keep the rules short, and link to what explains them",
        )
    return found.text


def no_rules(repo: Repository, file: str) -> RepositoryError:
    """Return the error for a missing rules file."""
    if repo.checkout.home_dir and os.path.lexists(os.path.join(repo.checkout.root, file)):
        where = f"on {repo.held.branch}" if repo.held.branch else "committed"
        return RepositoryError(
            f"{file} is not {where} yet, so it binds no one",
            code="NO_RULES",
            hint=f"git add {shell_path(file)} && git commit -m 'Add rules' {shell_path(file)}",
        )
    return RepositoryError(
        f"there is no {file} in this repository",
        code="NO_RULES",
        hint="write one with the usual rules: landlane init",
    )

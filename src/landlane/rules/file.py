"""Read the rules file: one for all checkouts of the repository, from its main checkout.

A branch that changes the rules takes effect for all sessions when it lands, not before.
"""

from __future__ import annotations

from landlane.errors import RepositoryError
from landlane.rules.model import MOST_BYTES, read_rules, version_of
from landlane.settings.named_files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
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
    found = read_text(home.root, file, MOST_BYTES)
    if found is None and here.root != home.root:
        # A bare repository has no main checkout, and one on another branch may lack the file.
        found = read_text(here.root, file, MOST_BYTES)
    if found is None:
        return None
    if found.is_cut:
        raise RepositoryError(
            f"{file} has {found.size:,} bytes; rules may have {MOST_BYTES:,}",
            code="RULES_TOO_LONG",
            hint="keep the rules short, and link to what explains them",
        )
    return found.text


def no_rules(file: str) -> RepositoryError:
    """Return the error for a missing rules file."""
    return RepositoryError(
        f"there is no {file} in this repository",
        code="NO_RULES",
        hint="write one with the usual rules: landlane init",
    )

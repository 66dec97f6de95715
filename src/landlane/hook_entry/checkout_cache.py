"""Cached facts about a checkout, written by the full path of a hook for its fast path.

The file is in the git directory of the checkout. It is valid for one version of the settings and the rules:
when they have changed, the hook takes the full path, which writes the file again.
"""

from __future__ import annotations

import os

from landlane.app.open import ANSWERED
from landlane.files import stamp_of, write_whole
from landlane.settings.model import FILE_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository

NAME = ANSWERED
FORM = "2"
ABSENT = "-"


def note_facts(repo: Repository) -> None:
    """Write the facts, unless the file already holds them."""
    checkout = repo.checkout
    if not checkout.git_dir:
        return
    path = os.path.join(checkout.git_dir, NAME)
    text = "\n".join(_facts(repo)) + "\n"
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except (OSError, ValueError):
        pass
    write_whole(path, text)


def _facts(repo: Repository) -> list[str]:
    """Return one fact per line, in the order that `hook_entry/client_fast_path.py` reads."""
    root = repo.checkout.root
    settings = repo.settings
    # The rules are those of the main checkout, unless it has none.
    homes = (repo.checkout.home_checkout.root, root)
    named = [os.path.join(folder, settings.rules.file) for folder in homes]
    rules = next((path for path in named if os.path.lexists(path)), named[0])
    place = str(getattr(repo.store, "path", ""))
    # A checkout without settings of its own has those of the main one.
    main_settings = os.path.join(homes[0], FILE_NAME) if homes[0] != root else ""
    ignores_case = repo.git.pattern_of("A", "literal").alternatives[0].key != "A"
    return [
        FORM,
        root,
        _stamp(os.path.join(root, FILE_NAME)),
        rules,
        _stamp(rules),
        repo.store.repository,
        place if not ignores_case else "",  # empty: take the full path
        repo.state_folder if not place else "",  # of the resident that answers for a remote store
        main_settings,
        _stamp(main_settings) if main_settings else ABSENT,
    ]


def _stamp(path: str) -> str:
    try:
        return stamp_of(os.stat(path))
    except OSError:
        return ABSENT

"""Open the repository of a folder from a hook."""

from __future__ import annotations

import os
import site
import sys

from landlane.app.open import open_repository
from landlane.errors import StoreError
from landlane.git.discovery import find_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository


_WAIT_MS = 8_000  # for a busy store, while the client waits for the hook


def open_usual(folder: str) -> Repository:
    """Open the repository that a folder lies in; a hook starts without the installed packages."""
    try:
        return open_repository(folder, is_short_lived=True, most_wait_ms=_WAIT_MS)
    except StoreError as error:
        if error.code != "POSTGRES_MISSING" or not sys.flags.no_site:
            raise
    # A hook starts without the installed packages. The next one is answered by a resident that has them.
    from landlane.resident.start import start_server  # noqa: PLC0415 - only with a store on a server

    site.main()
    repo = open_repository(folder, is_short_lived=True, most_wait_ms=_WAIT_MS)
    if not os.environ.get("LANDLANE_STORE"):
        start_server(find_checkout(folder).state_folder)
    return repo

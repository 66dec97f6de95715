"""Open the repository from a hook, and cache for the fast path what it needs to know about its checkout.

The cache is a file in the git directory of the checkout, with one item per line. It is valid until the target
branch moves, which may change the settings and the rules, or the files in the state folder change that name
the store and the repository: then the hook takes the full path, which writes it again.
"""

from __future__ import annotations

import os
import site
import sys

from landlane.app.open import ANSWERED, open_repository
from landlane.app.store_place import ID_FILE, POINTER
from landlane.errors import StoreError
from landlane.files import open_regular, stamp_of, write_atomically
from landlane.git.discovery import find_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository


_WAIT_MS = 8_000  # for a busy store, while the client waits for the hook
ABSENT = "-"
_FORM = "4"


def open_from_hook(folder: str) -> Repository:
    """Open the repository that a folder lies in."""
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


def cache_for_client_hooks(repo: Repository) -> None:
    """Write the cache, unless it already is as it should be."""
    checkout = repo.checkout
    if not checkout.git_dir:
        return
    path = os.path.join(checkout.git_dir, ANSWERED)
    text = "\n".join(_client_cache(repo)) + "\n"
    if read_cache(path) != text:
        write_atomically(path, text)


def _client_cache(repo: Repository) -> list[str]:
    """Return the items in the order that `hook_entry/client_fast_path.py` reads."""
    store_path = store_path_of(repo)
    return [
        _FORM,
        repo.checkout.root,
        repo.store.repository,
        "" if ignores_case(repo) else store_path,  # empty: take the full path
        "" if store_path else repo.state_folder,  # of the resident that answers for a remote store
        *state_stamps(repo),
        *watched_files(repo),
    ]


def watched_files(repo: Repository) -> list[str]:
    """Return the files whose change may change the settings or the rules, each followed by its stamp."""
    return [item for pair in repo.held.watched for item in pair]


def state_stamps(repo: Repository) -> tuple[str, str, str]:
    """Return the state folder, and the stamps of the files that say which store and repository hold."""
    folder = repo.state_folder
    return folder, stamp_at(os.path.join(folder, POINTER)), stamp_at(os.path.join(folder, ID_FILE))


def store_path_of(repo: Repository) -> str:
    """Return the file of the store; empty for one on a server."""
    return str(getattr(repo.store, "path", ""))


def ignores_case(repo: Repository) -> bool:
    """Return whether paths are compared without regard to case."""
    return repo.git.pattern_of("A", "literal").alternatives[0].key != "A"


def stamp_at(path: str) -> str:
    """Return the stamp of a file, or a dash when it does not exist."""
    try:
        return stamp_of(os.stat(path))
    except OSError:
        return ABSENT


def read_cache(path: str) -> str:
    """Return the text of a cache; empty without one."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", opener=open_regular) as file:
            return file.read()
    except OSError:
        return ""

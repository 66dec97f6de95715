"""Which store and which repository id hold: the state folder decides, whatever checkout a command runs in.

`store-url` in the state folder names the store, `repository` holds the id. Both are written by the first
command. Before that, `LANDLANE_STORE`, then `[store] url`, then the default name the store, and the settings
may name the id. Afterwards these must agree with the state folder: only `store move` and `store adopt` change
it. A state folder with a journal was used before, so a store or an id that is missing there is an error.
"""

from __future__ import annotations

import os

from landlane.errors import StoreCorrupt, StoreError
from landlane.files import read_regular, write_atomically
from landlane.ids import is_uuid, new_uuid
from landlane.redact import show_url
from landlane.store.sqlite.database import translate_os_error
from landlane.text import short_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.settings.model import Settings


STORE_NAME = "store.db"
POINTER = "store-url"
ID_FILE = "repository"
JOURNAL = "journal.jsonl"
STORE_ID_FILE = "journal.store"
VARIABLE = "LANDLANE_STORE"
_MOST_BYTES = 65_536
# The parameters of a URL that decide which database it names.
_KEYWORDS = ("host", "hostaddr", "port", "dbname", "user", "password", "passfile", "service", "sslmode")
_DECIDING = ("host", "hostaddr", "port", "dbname", "service")


def is_used(folder: str) -> bool:
    """Return whether a state folder has had a store: then a missing one is lost, not new."""
    try:
        return os.path.lexists(os.path.join(folder, STORE_ID_FILE)) or bool(
            os.lstat(os.path.join(folder, JOURNAL)).st_size
        )
    except OSError:
        return False


def has_state(folder: str) -> bool:
    """Return whether there is a state folder that names its store or has a journal."""
    return os.path.isdir(folder) and bool(known_place(folder) or is_used(folder))


# ------------------------------------------------------------------------------------------- the store


def store_place(checkout: Checkout, settings: Settings) -> str:
    """Return where the store is: where the state folder says, else where the first command will put it.

    Raises:
        StoreError: the state folder names another store than the environment or the settings.
    """
    known = known_place(checkout.state_folder)
    named, source = named_place(checkout, settings)
    if not known:
        return named or os.path.join(checkout.state_folder, STORE_NAME)
    if named and not is_same_place(named, known):
        raise _elsewhere(named, source, known)
    # Another user or password for the same database may come from the environment.
    return named if "://" in named else known


def known_place(folder: str) -> str:
    """Return where the store of this state folder is; empty before its first use."""
    default = os.path.join(folder, STORE_NAME)
    return recorded_place(folder) or (default if os.path.lexists(default) else "")


def recorded_place(folder: str) -> str:
    """Return the place that the state folder names; empty if it names none.

    Raises:
        StoreError: the file that names it cannot be read, or names no place.
    """
    path = os.path.join(folder, POINTER)
    try:
        place = read_regular(path, _MOST_BYTES).decode("utf-8", "surrogateescape").strip()
    except OSError as error:
        if _is_absent(path, error):
            return ""
        if isinstance(error, PermissionError) and _is_hidden_or_foreign(path):
            raise translate_os_error(error, folder) from error
        raise StoreError(
            f"{short_path(path)} cannot be read: {error.strerror}",
            code="STORE_FORBIDDEN" if isinstance(error, PermissionError) else "STORE_POINTER_BROKEN",
            hint="it names the store; as a user who may read it: landlane doctor --fix",
        ) from error
    if place == STORE_NAME:
        return os.path.join(folder, STORE_NAME)
    if "\0" in place or ("://" not in place and not os.path.isabs(place)):
        raise StoreError(
            f"{short_path(path)} does not name a store",
            code="STORE_POINTER_BROKEN",
            hint="find the store and write it again: landlane doctor --fix",
        )
    return place


def _is_hidden_or_foreign(path: str) -> bool:
    """Return whether the folder may not be searched, or the file in it belongs to another user."""
    try:
        return os.lstat(path).st_uid != os.geteuid()
    except PermissionError:
        return True


def _is_absent(path: str, error: OSError) -> bool:
    """Return whether nothing was there; by now another process may have written it, which is no damage."""
    return isinstance(error, FileNotFoundError | NotADirectoryError) and not os.path.islink(path)


def record_place(folder: str, place: str) -> None:
    """Make a place the store of this state folder, durably. A URL may hold a password, so it is private."""
    # Relative, so that a repository can be moved to another folder.
    text = STORE_NAME if place == os.path.join(folder, STORE_NAME) else place
    try:
        mode = 0o600 if "://" in text else None
        write_atomically(os.path.join(folder, POINTER), text + "\n", mode=mode, is_durable=True)
    except OSError as error:
        raise translate_os_error(error, folder) from error


def record_first_place(folder: str, place: str) -> None:
    """Make a place the store of a state folder that has none; of several first commands one decides.

    Raises:
        StoreError: another process has just chosen another place.
    """
    path = os.path.join(folder, POINTER)
    text = STORE_NAME if place == os.path.join(folder, STORE_NAME) else place
    _link_first(path, text)
    chosen = recorded_place(folder)
    if not is_same_place(place, chosen):
        raise _elsewhere(place, "this command", chosen)


def named_place(checkout: Checkout, settings: Settings) -> tuple[str, str]:
    """Return the place that the environment or else the settings name, and which of them; empty if none."""
    place, source = os.environ.get(VARIABLE, ""), VARIABLE
    if not place:
        place, source = settings.store.url, "[store] url"
    return (resolve_place(checkout, place), source) if place else ("", "")


def resolve_place(checkout: Checkout, place: str) -> str:
    """Return a place as a URL or an absolute path: of a file, or of `store.db` in a folder.

    Raises:
        StoreError: it is a connection string of keywords, whose password would become the name of a file.
    """
    if "://" in place:
        return place
    if any(word.partition("=")[0] in _KEYWORDS and "=" in word for word in place.split()):
        raise StoreError(
            "a store is named by a URL or a file, not by keywords such as host=…",
            code="STORE_UNKNOWN_KIND",
            hint="write it as a URL: postgresql://USER@HOST:PORT/DATABASE",
        )
    # A relative path must mean the same in every folder and worktree: it starts where the git directory is.
    base = os.path.dirname(checkout.home_dir) if checkout.home_dir else checkout.root
    path = os.path.abspath(os.path.join(base, place))
    default = os.path.join(checkout.state_folder, STORE_NAME)
    return os.path.join(path, STORE_NAME) if os.path.isdir(path) and path != default else path


def is_same_place(first: str, second: str) -> bool:
    """Return whether two places are one: the same file, or the same database, for any user."""
    if first == second:
        return True
    if "://" not in first and "://" not in second:
        return os.path.realpath(first) == os.path.realpath(second)
    return "://" in first and "://" in second and _database_of(first) == _database_of(second)


def _database_of(url: str) -> tuple[object, ...]:
    """Return what decides which database a URL names: not the user, the password or how to connect."""
    scheme, rest, query = _split(url)
    account, _, rest = rest.rpartition("@")
    hosts, _, database = rest.partition("/")
    given = [part.partition("=") for part in query.split("&")]
    known = {key: text for key, _, text in given if key in _DECIDING}
    ports = known.pop("port", "").split(",")
    servers: list[tuple[str, str]] = []
    for at, host in enumerate((hosts or known.pop("host", "")).split(",")):
        name, colon, port = host.rpartition(":")
        if not colon or port.endswith("]"):
            name, port = host, ""
        servers.append((name.lower(), port or ports[min(at, len(ports) - 1)] or "5432"))
    database = database or known.pop("dbname", "") or account.partition(":")[0]
    kind = "postgresql" if scheme == "postgres" else scheme
    return kind, servers, database, sorted(known.items())


def _split(url: str) -> tuple[str, str, str]:
    """Return the scheme of a URL, what follows, and its parameters."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    return scheme, rest, query


def _elsewhere(named: str, source: str, known: str) -> StoreError:
    repair = f"unset {VARIABLE}" if source == VARIABLE else "remove it from landlane.toml"
    shown = show_place(named)
    return StoreError(
        f"the state of this repository is in {show_place(known)}, but {source} names {shown}",
        code="STORE_ELSEWHERE",
        hint=f"{repair}; or use the state that is there: landlane store adopt;"
        f" or move the state there: landlane store move '{shown}'",
    )


def show_place(place: str) -> str:
    """Return a place for people: of a URL only the parts that cannot be secret."""
    return show_url(place) if "://" in place else place


# --------------------------------------------------------------------------------------------- the id


def repository_id(folder: str, settings: Settings) -> str:
    """Return the id of the repository; empty if it is lost, so that only the store may know it.

    Raises:
        StoreError: the settings name another id, or the file does not hold one.
    """
    known = recorded_id(folder)
    named = settings.repository.id
    if known and named and known != named:
        raise StoreError(
            f"landlane.toml names the repository {named}, but the state here belongs to {known}",
            code="REPOSITORY_ELSEWHERE",
            hint=f'set [repository] id = "{known}" again, or use the other id: landlane store adopt',
        )
    if known or named or is_used(folder):
        return known or named
    _link_first(os.path.join(folder, ID_FILE), new_uuid())
    return recorded_id(folder)


def recorded_id(folder: str) -> str:
    """Return the id in the state folder; empty if there is none.

    Raises:
        StoreError: the file cannot be read, or holds something else.
    """
    path = os.path.join(folder, ID_FILE)
    try:
        text = read_regular(path, _MOST_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        if _is_absent(path, error):
            return ""
        raise _broken_id(path, str(error.strerror)) from error
    if not is_uuid(text):
        raise _broken_id(path, "it holds something else")
    return text


def _broken_id(path: str, why: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{short_path(path)} does not hold the id of this repository: {why}",
        code="REPOSITORY_ID_BROKEN",
        hint="take the id from the store: landlane doctor --fix",
    )


def record_id(folder: str, repository: str) -> None:
    """Write the id durably: after a power cut the repository must not get a new one."""
    try:
        write_atomically(os.path.join(folder, ID_FILE), repository + "\n", is_durable=True)
    except OSError as error:
        raise translate_os_error(error, folder) from error


def _link_first(path: str, text: str) -> None:
    """Write a file unless it exists; of several processes the first one decides what it holds."""
    scratch = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        mode = 0o600 if "://" in text else None
        write_atomically(scratch, text + "\n", mode=mode, is_durable=True)
        try:
            os.link(scratch, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(scratch)
    except OSError as error:
        raise translate_os_error(error, path) from error

"""Open the repository of a folder: find its checkout, read its settings, open its store, join the packages.

`assemble_repository` is the only way to a repository, so the extension points of sessions and tasks are never
empty. Most commands need none of the packages behind them, so each group is imported on first use.
"""

from __future__ import annotations

import os
import pwd

from landlane.app.plain_files import detect_restore, update_files
from landlane.app.repository_record import (
    ID_FILE,
    begin_repository,
    change_case,
    repository_id_of,
    write_id,
)
from landlane.errors import StoreError
from landlane.git.discovery import Checkout, find_checkout
from landlane.git.hook_pass import hooks_folder
from landlane.git.repository import GitRepository, is_case_insensitive
from landlane.platform.process import MachineProcesses
from landlane.repository import Repository
from landlane.sessions import extensions as session_extensions
from landlane.sessions.leases import sweep
from landlane.sessions.model import find_reserved_use
from landlane.sessions.secrets import SecretFiles
from landlane.settings.load import read_settings
from landlane.settings.model import FILE_NAME, LOCAL_NAME
from landlane.store.sqlite.database import store_moved_error, translate_os_error
from landlane.store.sqlite.store import SqliteStore
from landlane.tasks.extensions import install
from landlane.text import short_path
from landlane.values import replace, value
from landlane.version import install_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.clock import Clock
    from landlane.git.repository import GitRepository
    from landlane.platform.process import MachineProcesses
    from landlane.repository import Repository, Secrets
    from landlane.sessions.extensions import SessionExtensions
    from landlane.settings.model import Settings
    from landlane.store.interface import Store, Transaction
    from landlane.tasks.extensions import Budgets, FollowUps, Offers, ReviewRules, Waits


# A file in the git directory of a checkout in which hooks were answered (see hook_entry/repository.py).
ANSWERED = "landlane-hook"


def open_repository(
    cwd: str,
    *,
    clock: Clock | None = None,
    is_short_lived: bool = False,
    detects_restore: bool = True,
    most_wait_ms: int | None = None,
    caller: int | None = None,
    is_guest: bool = False,
    borrow: Callable[[str, Callable[[], Store]], Store] | None = None,
) -> Repository:
    """Open the repository that contains a folder; create its state on first use.

    A store that is older than the journal file counts as restored from a backup; `detects_restore=False`
    skips that, to compare the two. `most_wait_ms` limits the wait for a busy store for callers with less time
    than the settings allow.

    `caller` is the pid of the process on whose behalf it is opened, 0 for none. With `is_guest` the caller is
    sandboxed: it may write in that folder and is not trusted, so settings and git config come from the main
    checkout. `borrow` gets the store's key and a function that opens it, and may return a store that is open.

    Raises:
        RepositoryError: there is no usable repository.
        SettingsError: its settings cannot be used.
        StoreError: its store cannot be opened.
    """
    checkout = _as_seen_by_guest(find_checkout(cwd)) if is_guest else find_checkout(cwd)
    folder = checkout.state_folder
    _make_folder(folder, checkout)
    of_settings = checkout.home_checkout if is_guest else checkout
    settings = _read_settings(of_settings, folder)
    if most_wait_ms is not None and most_wait_ms < settings.store.wait_ms:
        settings = replace(settings, store=replace(settings.store, wait_ms=most_wait_ms))
    repository_id, former_id = repository_id_of(folder, settings)
    place = store_place(checkout, settings)

    def open_this() -> Store:
        return open_store(place, folder, repository_id, settings, clock=clock, is_short_lived=is_short_lived)

    store = borrow(f"{repository_id} {place}", open_this) if borrow is not None else open_this()
    try:
        ignore_case = _ignores_case(store, checkout, settings, former_id)
        if former_id:  # only now: after an earlier failure the former id must still be known
            write_id(os.path.join(folder, ID_FILE), repository_id)
        if detects_restore:
            detect_restore(store, folder)
    except BaseException:
        store.close()
        raise
    return assemble_repository(
        settings=settings,
        store=store,
        git=GitRepository(checkout, cwd, ignore_case=ignore_case),
        processes=MachineProcesses(caller),
        secrets=SecretFiles(folder),
    )


def _as_seen_by_guest(checkout: Checkout) -> Checkout:
    """Return the checkout with the main git directory, whose config a sandboxed caller cannot write."""
    home = checkout.home_dir
    return Checkout(root=checkout.root, git_dir=home, common_dir=home)


def _read_settings(checkout: Checkout, folder: str) -> Settings:
    """Return the settings of a checkout, or those of the main checkout if it has no settings file."""
    root = checkout.root
    if checkout.git_dir != checkout.home_dir and not os.path.lexists(os.path.join(root, FILE_NAME)):
        root = checkout.home_checkout.root
    return read_settings(root, os.path.join(folder, "settings.cache"), os.path.join(folder, LOCAL_NAME))


def was_set_up(checkout: Checkout) -> bool:
    """Return whether hooks of Landlane were answered or installed here, so that there must be a state."""
    marks = (os.path.join(checkout.git_dir, ANSWERED), hooks_folder(checkout.home_dir))
    return bool(checkout.git_dir) and any(map(os.path.exists, marks))


def _make_folder(folder: str, checkout: Checkout) -> None:
    """Create the state folder on first use.

    Raises:
        StoreError: it is missing although hooks are installed here; claims must not be forgotten.
    """
    if not os.path.isdir(folder) and was_set_up(checkout):
        raise StoreError(
            f"{short_path(folder)} was deleted: claims, tasks and the journal are gone",
            code="STATE_GONE",
            hint="restore it from a backup, or start again with an empty state: landlane init",
        )
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise translate_os_error(error, folder) from error


def _ignores_case(store: Store, checkout: Checkout, settings: Settings, former_id: str) -> bool:
    """Return whether paths are compared without case: decided once per repository, for all machines.

    Raises:
        StoreError: the repository's state was moved away from this store.
    """
    row, moved = store.view(
        lambda snapshot: (
            snapshot.one("repository_get"),
            snapshot.one("meta_get", key=f"moved_to/{store.repository}"),
        )
    )
    if moved is not None:  # even a read would return outdated state
        raise store_moved_error(str(store.describe()["place"]), moved["value"])
    if row is None:
        ignore_case = settings.claims.ignore_case
        if ignore_case is None:
            ignore_case = is_case_insensitive(checkout)
        begin_repository(store, former_id, ignore_case=ignore_case)
        row = store.view(lambda snapshot: snapshot.one("repository_get"))
        assert row is not None
    if settings.claims.ignore_case is not None and settings.claims.ignore_case != bool(row["ignore_case"]):
        change_case(store, ignore_case=settings.claims.ignore_case)
        return settings.claims.ignore_case
    return bool(row["ignore_case"])


def person_name() -> str:
    """Return the user's name, in the form of an agent name."""
    name = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    if not name:
        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            name = f"user{os.getuid()}"
    cleaned = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._@-") else "-" for letter in name
    )
    name = cleaned.lstrip(".-")[:64] or "person"
    return f"{name}-user" if find_reserved_use(name) else name


STORE_NAME = "store.db"

POINTER = "store-url"

_URL = ("postgresql://", "postgres://")


def store_place(checkout: Checkout, settings: Settings) -> str:
    """Return where the store is, by the environment, the last `store move`, the settings or the default."""
    place = os.environ.get("LANDLANE_STORE", "") or _pointed_to(checkout.state_folder) or settings.store.url
    if "://" in place:
        return place
    # A relative path must mean the same in every folder and worktree: it starts where the git directory is.
    base = os.path.dirname(checkout.home_dir) if checkout.home_dir else checkout.root
    return os.path.join(base, place or os.path.join(checkout.state_folder, STORE_NAME))


def _pointed_to(folder: str) -> str:
    """Return where the last `store move` went; empty if there was none."""
    path = os.path.join(folder, POINTER)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            place = file.read().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(
            f"{short_path(path)} cannot be read: {error.strerror}",
            code="STORE_FORBIDDEN",
            hint="it names the store; ask the user who moved it, or set LANDLANE_STORE",
        ) from error
    if "://" not in place and not os.path.isabs(place):
        raise StoreError(
            f"{short_path(path)} does not name a store",
            code="STORE_POINTER_BROKEN",
            hint="write the store's URL or path into it; delete it only if the store was never moved",
        )
    return place


def open_store(
    place: str,
    folder: str,
    repository_id: str,
    settings: Settings,
    *,
    clock: Clock | None = None,
    is_short_lived: bool = False,
    is_fresh: bool = False,
) -> Store:
    """Open the store at a path or URL; with `is_fresh` it may be new, and the caller fills it."""
    if place.startswith(_URL):
        try:
            from landlane.store.postgres.store import PostgresStore  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise StoreError(
                "the store is PostgreSQL, and its driver is not installed",
                code="POSTGRES_MISSING",
                hint=install_command("postgres"),
            ) from error

        return PostgresStore(place, repository_id, folder=folder, clock=clock, wait_ms=settings.store.wait_ms)
    if "://" in place:
        kind, _, rest = place.partition("://")
        raise StoreError(
            f"{kind}:// is not supported; use a file or postgresql://",
            code="STORE_UNKNOWN_KIND",
            hint=f"export LANDLANE_STORE=postgresql://{rest}",
        )
    return SqliteStore(
        sqlite_path(place),
        repository_id,
        clone=os.path.dirname(folder),
        clock=clock,
        wait_ms=settings.store.wait_ms,
        # A command exits without closing the store, to save emptying its log. The next command reads that
        # log, so it is kept short.
        checkpoint_pages=200 if is_short_lived else 1000,
        is_fresh=is_fresh,
    )


def sqlite_path(place: str) -> str:
    """Return the file that a path means: itself, or the store in that folder."""
    path = os.path.abspath(place)
    return os.path.join(path, STORE_NAME) if os.path.isdir(path) else path


def assemble_repository(
    *, settings: Settings, store: Store, git: GitRepository, processes: MachineProcesses, secrets: Secrets
) -> Repository:
    """Return the opened repository, with all packages connected."""
    session_extensions.install(_load_session_extensions)
    install(_Tasks())
    return Repository(
        settings=settings,
        store=store,
        git=git,
        checkout=git.checkout,
        processes=processes,
        secrets=secrets,
        before_change=sweep,
        after_change=_after_change,
        update_files=update_files,
    )


def _after_change(tx: Transaction, repo: Repository) -> None:
    from landlane.tasks.extensions import settle_touched  # noqa: PLC0415 - only changes of tasks need it

    settle_touched(tx, repo)


def _load_session_extensions() -> SessionExtensions:
    from landlane.app.session_extensions import Sessions  # noqa: PLC0415 - few commands need it

    return Sessions()


@value
class _Tasks:
    @property
    def follow_ups(self) -> FollowUps:
        from landlane.app.task_follow_ups import TaskFollowUps  # noqa: PLC0415 - few commands need it

        return TaskFollowUps()

    @property
    def offers(self) -> Offers:
        from landlane.app.task_offers import TaskOffers  # noqa: PLC0415 - few commands need it

        return TaskOffers()

    @property
    def budgets(self) -> Budgets:
        from landlane.app.task_budgets import TaskBudgets  # noqa: PLC0415 - few commands need it

        return TaskBudgets()

    @property
    def reviews(self) -> ReviewRules:
        from landlane.app.task_reviews import TaskReviews  # noqa: PLC0415 - few commands need it

        return TaskReviews()

    @property
    def waits(self) -> Waits:
        from landlane.app.task_waits import TaskWaits  # noqa: PLC0415 - few commands need it

        return TaskWaits()

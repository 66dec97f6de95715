"""Open the repository of a folder: find its checkout, read its settings, open its store, join the packages.

`assemble_repository` is the only way to a repository, so the extension points of sessions and tasks are never
empty. Most commands need none of the packages behind them, so each group is imported on first use.
"""

from __future__ import annotations

import errno
import os
import pwd

from landlane.app.folder_rights import protect_folder
from landlane.app.plain_files import detect_restore, update_files
from landlane.app.repository_record import begin_repository, list_repositories, read_record
from landlane.app.store_place import (
    ID_FILE,
    has_state,
    is_used,
    known_place,
    record_first_place,
    record_id,
    recorded_id,
    recorded_place,
    repository_id,
    show_place,
    store_place,
)
from landlane.errors import RepositoryError, StoreCorrupt, StoreError
from landlane.git.discovery import Checkout, find_checkout
from landlane.git.hook_pass import hooks_folder
from landlane.git.repository import GitRepository, is_case_insensitive
from landlane.git.target_settings import HeldSettings, settings_in_force
from landlane.ids import new_uuid
from landlane.platform.process import MachineProcesses
from landlane.repository import Repository
from landlane.sessions import extensions as session_extensions
from landlane.sessions.leases import sweep
from landlane.sessions.model import find_reserved_use
from landlane.sessions.secrets import SecretFiles
from landlane.store.sqlite.database import translate_os_error
from landlane.store.sqlite.store import SqliteStore
from landlane.tasks.extensions import install
from landlane.text import short_path
from landlane.values import replace, value
from landlane.version import install_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.app.repository_record import RepositoryRecord
    from landlane.clock import Clock
    from landlane.git.repository import GitRepository
    from landlane.platform.process import MachineProcesses
    from landlane.repository import Repository, Secrets
    from landlane.sessions.extensions import SessionExtensions
    from landlane.settings.model import Settings
    from landlane.store.interface import Store, Transaction
    from landlane.tasks.extensions import Budgets, FollowUps, Offers, ReviewRules, Waits


# Files in the git directory of a checkout in which hooks were answered (see hook_entry/repository.py).
ANSWERED = "landlane-hook"
ANSWERED_GIT = "landlane-githook"


def open_repository(
    cwd: str,
    *,
    clock: Clock | None = None,
    is_short_lived: bool = False,
    detects_restore: bool = True,
    most_wait_ms: int | None = None,
    caller: int | None = None,
    is_guest: bool = False,
    is_moving: bool = False,
    may_begin: bool = False,
    is_person: bool = False,
    borrow: Callable[[str, Callable[[], Store]], Store] | None = None,
) -> Repository:
    """Open the repository that contains a folder; create its state on first use.

    A store that is older than the journal file counts as restored from a backup; `detects_restore=False`
    skips that, to compare the two. `most_wait_ms` limits the wait for a busy store for callers with less time
    than the settings allow.

    `caller` is the pid of the process on whose behalf it is opened, 0 for none. With `is_guest` the caller is
    sandboxed: it may write in that folder and is not trusted, so git config comes from the main checkout.
    With `is_person` the settings in the working tree hold while the target branch has none. With `is_moving`
    the store of the state folder is opened whatever else names another one, with `may_begin` the state may be
    new although hooks are installed.
    `borrow` gets the store's key and a function that opens it, and may return a store that is open.

    Raises:
        RepositoryError: there is no usable repository.
        SettingsError: its settings cannot be used.
        StoreError: its store cannot be opened.
    """
    checkout = _as_seen_by_guest(find_checkout(cwd)) if is_guest else find_checkout(cwd)
    check_location(checkout)
    folder = checkout.state_folder
    _make_folder(folder, checkout, may_begin=may_begin)
    held = settings_in_force(checkout, is_person=is_person)
    settings = held.settings
    if most_wait_ms is not None and most_wait_ms < settings.store.wait_ms:
        settings = replace(settings, store=replace(settings.store, wait_ms=most_wait_ms))
    place = (known_place(folder) if is_moving else "") or store_place(checkout, settings)
    known_id = repository_id(folder, settings) or find_lost_id(place, folder, settings)

    def open_this() -> Store:
        return open_store(
            place,
            folder,
            known_id,
            settings,
            clock=clock,
            is_short_lived=is_short_lived,
            may_create=not is_used(folder),
        )

    store = borrow(f"{known_id} {place}", open_this) if borrow is not None else open_this()
    try:
        record = _use_store(store, checkout, place, settings)
        if detects_restore:
            detect_restore(store, folder)
    except BaseException:
        store.close()
        raise
    repo = assemble_repository(
        settings=settings,
        held=replace(held, settings=settings),
        store=store,
        git=GitRepository(checkout, cwd, ignore_case=record.ignore_case),
        processes=MachineProcesses(caller),
        secrets=SecretFiles(folder),
    )
    return replace(repo, is_guest=True) if is_guest else repo


def _as_seen_by_guest(checkout: Checkout) -> Checkout:
    """Return the checkout with the main git directory, whose config a sandboxed caller cannot write."""
    home = checkout.home_dir
    return Checkout(root=checkout.root, git_dir=home, common_dir=home)


def check_location(checkout: Checkout) -> None:
    """Refuse a repository whose path is not one line of text: stores and settings of clients cannot hold it.

    Raises:
        RepositoryError: the path of the checkout or of the state folder is not UTF-8 or has a line break.
    """
    for path in (checkout.root, checkout.state_folder):
        if "\n" in path:  # the pointers between a worktree and its repository are lines
            raise RepositoryError(
                f"the path {path!r} has a line break",
                code="PATH_NOT_TEXT",
                hint="rename the folder, then try again",
            )
        if not path.isascii() and any("\udc80" <= letter <= "\udcff" for letter in path):
            raise RepositoryError(
                f"the path {path.encode('utf-8', 'backslashreplace').decode()} is not valid UTF-8",
                code="PATH_NOT_TEXT",
                hint="rename the folder, then try again",
            )


def was_set_up(checkout: Checkout) -> bool:
    """Return whether hooks of Landlane were answered or installed here, so that there must be a state."""
    folders = (checkout.git_dir, checkout.home_dir)
    marks = (*(os.path.join(folder, ANSWERED) for folder in folders), hooks_folder(checkout.home_dir))
    return bool(checkout.git_dir) and any(map(os.path.exists, marks))


def _make_folder(folder: str, checkout: Checkout, *, may_begin: bool) -> None:
    """Create the state folder on first use.

    Raises:
        StoreError: its state is missing although hooks are installed here; claims must not be forgotten.
    """
    if not has_state(folder) and not may_begin and was_set_up(checkout):
        raise StoreError(
            f"{short_path(folder)} was deleted: claims, tasks and the journal are gone",
            code="STATE_GONE",
            hint="restore it from a backup, or start again with an empty state: landlane init",
        )
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.access(folder, os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
        protect_folder(folder, checkout.home_dir)
    except OSError as error:
        raise translate_os_error(error, folder) from error


def _use_store(store: Store, checkout: Checkout, place: str, settings: Settings) -> RepositoryRecord:
    """Return what the store knows about the repository; on first use, make it the store of the state folder.

    Raises:
        StoreError: the repository's state is not in this store, or another process chose another place.
    """
    folder = checkout.state_folder
    record = _read_known_record(store, folder)
    if not recorded_place(folder):
        record_first_place(folder, place)
    if not recorded_id(folder):
        record_id(folder, store.repository)
    return record if record is not None else _begin(store, checkout, settings)


def _read_known_record(store: Store, folder: str) -> RepositoryRecord | None:
    """Return what the store knows about the repository; None before its first use.

    Raises:
        StoreError: the repository's state was moved away from this store, or is not in it any more.
    """
    was_used = is_used(folder)  # before the look into the store: another process may use it first meanwhile
    record = read_record(store)
    if record is None and was_used:
        raise StoreCorrupt(
            f"the store {store.describe()['place']} does not hold this repository any more",
            code="STORE_LOST",
            hint="restore a backup of it, or rebuild a SQLite store from the journal: landlane doctor --fix",
        )
    return record


def _begin(store: Store, checkout: Checkout, settings: Settings) -> RepositoryRecord:
    """Add the repository to the store; how it compares paths is decided here, for all machines."""
    ignore_case = settings.claims.ignore_case
    if ignore_case is None:
        ignore_case = is_case_insensitive(checkout)
    begin_repository(store, ignore_case=ignore_case)
    record = read_record(store)
    assert record is not None
    return record


def find_lost_id(place: str, folder: str, settings: Settings) -> str:
    """Return the id of the only repository in a store, for a state folder that has lost it.

    Raises:
        StoreError: the store holds no repository or several ones.
    """
    store = open_store(place, folder, new_uuid(), settings, may_create=False)
    try:
        found = list_repositories(store)
    finally:
        store.close()
    if len(found) != 1:
        path = os.path.join(folder, ID_FILE)
        raise StoreCorrupt(
            f"{short_path(path)} is gone, and the store {show_place(place)}"
            f" holds {len(found) or 'no'} repositories",
            code="STORE_LOST",
            hint="write the id back into that file, or into landlane.toml: [repository] id",
        )
    return found[0]


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


_URL = ("postgresql://", "postgres://")


def open_store(
    place: str,
    folder: str,
    repository: str,
    settings: Settings,
    *,
    clock: Clock | None = None,
    is_short_lived: bool = False,
    may_create: bool = True,
) -> Store:
    """Open the store at a path or URL; without `may_create` it must exist."""
    if place.startswith(_URL):
        try:
            from landlane.store.postgres.store import PostgresStore  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise StoreError(
                "the store is PostgreSQL, and its driver is not installed",
                code="POSTGRES_MISSING",
                hint=install_command("postgres"),
            ) from error

        return PostgresStore(
            place,
            repository,
            folder=folder,
            clock=clock,
            wait_ms=settings.store.wait_ms,
            may_create=may_create,
        )
    if "://" in place:
        kind, _, rest = place.partition("://")
        raise StoreError(
            f"{kind}:// is not supported; use a file or postgresql://",
            code="STORE_UNKNOWN_KIND",
            hint=f"export LANDLANE_STORE={show_place(f'postgresql://{rest}')}",
        )
    return SqliteStore(
        place,
        repository,
        clone=os.path.dirname(folder),
        clock=clock,
        wait_ms=settings.store.wait_ms,
        # A command exits without closing the store, to save emptying its log. The next command reads that
        # log, so it is kept short.
        checkpoint_pages=200 if is_short_lived else 1000,
        may_create=may_create,
    )


def assemble_repository(
    *,
    settings: Settings,
    store: Store,
    git: GitRepository,
    processes: MachineProcesses,
    secrets: Secrets,
    held: HeldSettings | None = None,
) -> Repository:
    """Return the opened repository, with all packages connected."""
    session_extensions.install(_load_session_extensions)
    install(_Tasks())
    return Repository(
        settings=settings,
        held=held or HeldSettings(settings=settings, shared=settings),
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

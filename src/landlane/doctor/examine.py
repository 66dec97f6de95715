"""The doctor's checks, one by one: report what is wrong, and repair what can be repaired."""

from __future__ import annotations

import os

from landlane.app.open import open_repository
from landlane.app.repository_record import repository_id_of
from landlane.app.store_location import POINTER, STORE_NAME, sqlite_path, store_place
from landlane.app.verify_journal import verify_journal
from landlane.doctor.clients import look_at_clients
from landlane.doctor.command_path import look_at_reach
from landlane.doctor.git import look_at_locks, look_at_settings, look_at_worktrees
from landlane.doctor.hook_programs import look_at_hook_programs
from landlane.doctor.nested_worktrees import look_at_nesting
from landlane.doctor.sandbox import look_at_kernel, look_at_runs
from landlane.doctor.try_git_hooks import try_git_hooks
from landlane.doctor.workspaces import look_at_strays
from landlane.errors import LandlaneError, Malformed, StoreCorrupt, StoreError, StoreTransient
from landlane.git.discovery import find_checkout
from landlane.git.repository import is_case_insensitive
from landlane.patterns.pattern import parse
from landlane.repository import Repository
from landlane.sandbox.model import check_promises
from landlane.settings.load import read_settings
from landlane.setup.rebuild_store import Rebuilt, rebuild_store, repair_store
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from landlane.doctor.finding import Finding
    from landlane.settings.model import Settings

    T = TypeVar("T")


_WAIT_MS = 5_000  # for the write lock; the doctor should report quickly
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs")


@value
class Check:
    """The result of one check. `is_enforced` is false where the guarantee is only advisory."""

    name: str
    is_ok: bool
    is_enforced: bool
    found: str
    hint: str = ""


def examine(cwd: str, *, fix: bool = False) -> list[Check]:
    """Run all checks, in the order of their dependencies; with `fix`, repair a broken store first."""
    checks: list[Check] = []
    try:
        checkout = find_checkout(cwd)
        checks.append(_good("repository", f"{checkout.root}"))
        _check_patterns(read_settings(checkout.root))
        checks.append(_good("settings", "understood"))
    except LandlaneError as error:
        return [*checks, _bad("settings" if checks else "repository", error)]
    try:
        repo = _open_sound(cwd) if fix else _open_writable(cwd)
    except StoreCorrupt as error:
        if not fix:
            return [*checks, _bad("store", error)]
        checks.append(_repair(cwd))
        if not checks[-1].is_ok:
            return checks
        repo = open_repository(cwd, is_short_lived=True)
    except LandlaneError as error:
        return [*checks, _bad("store", error)]
    if fix:
        _close_secrets(repo)
    checks += [_run(name, check, repo) for name, check in _CHECKS]
    git_rows = _look_at_git_hooks(repo, fix=fix)
    programs = _run("hook programs", _look_at_hook_programs, repo)
    return [*checks, *_look_at_clients(repo), *git_rows, programs, *_look_at_git(repo, fix=fix)]


def _check_patterns(settings: Settings) -> None:
    """Parse the patterns of the settings, since an invalid one would make later claims fail."""
    for text in (*settings.claims.required, *settings.claims.free, *(settings.claims.shareable or ())):
        parse(text)
    check_promises(settings.sandbox.required)


def _open_writable(cwd: str) -> Repository:
    """Open the repository if its store can be written; behind a stopped writer every check would wait."""
    repo = open_repository(cwd, is_short_lived=True, detects_restore=False, most_wait_ms=_WAIT_MS)
    _see_that_it_is_free(repo)
    return repo


def _see_that_it_is_free(repo: Repository) -> None:
    try:
        repo.store.change(lambda tx: None, is_durable=False)
    except StoreTransient:
        repo.store.close()
        raise
    except StoreError:
        return  # the checks report any other problem


def _open_sound(cwd: str) -> Repository:
    """Open the repository, if every page of its store can be read."""
    repo = open_repository(cwd, is_short_lived=True, most_wait_ms=_WAIT_MS)
    _see_that_it_is_free(repo)
    damage = repo.store.find_damage()
    if damage:
        repo.store.close()
        raise StoreCorrupt(damage, code="STORE_CORRUPT")
    return repo


def _repair(cwd: str) -> Check:
    try:
        rebuilt = _with_place(cwd, repair_store)
    except LandlaneError as error:
        return _bad("rebuild", error)
    if rebuilt is None:
        return _good("rebuild", "another process has just repaired the store")
    kept = f"the broken store is kept as {rebuilt.kept}" if rebuilt.kept else "nothing was left of the store"
    difference = (
        f"; {rebuilt.unreadable} lines of it could not be used and are kept" if rebuilt.unreadable else ""
    )
    return _good(
        "rebuild",
        f"from {rebuilt.entries} journal entries: {rebuilt.claims} claims, {rebuilt.sessions} sessions live,"
        f" epoch {rebuilt.epoch}; {kept}{difference}",
    )


def rebuild_here(cwd: str) -> Rebuilt:
    """Rebuild the SQLite store of the repository at `cwd` from its journal copy.

    Raises:
        Malformed: the state is in PostgreSQL, which has its own backups.
        StoreCorrupt: there is no journal to build from.
    """
    return _with_place(cwd, rebuild_store)


def _with_place(cwd: str, build: Callable[..., T]) -> T:
    """Rebuild the store of the repository at `cwd`, if it is a SQLite store."""
    checkout = find_checkout(cwd)
    folder = checkout.state_folder
    settings = read_settings(checkout.root)
    place = store_place(checkout, settings)
    if "://" in place or sqlite_path(place) != os.path.join(folder, STORE_NAME):
        raise Malformed(
            "only the store beside its journal can be rebuilt from it",
            code="STORE_ELSEWHERE",
            hint="restore a backup of the database there",
        )
    repository_id, _ = repository_id_of(folder, settings)
    ignore_case = settings.claims.ignore_case
    if ignore_case is None:
        ignore_case = is_case_insensitive(checkout)
    return build(folder, repository_id, ignore_case=ignore_case, wait_ms=settings.store.wait_ms)


def _good(name: str, found: str, *, is_enforced: bool = True) -> Check:
    return Check(name=name, is_ok=True, is_enforced=is_enforced, found=found)


def _bad(name: str, error: LandlaneError) -> Check:
    return Check(name=name, is_ok=False, is_enforced=False, found=error.message, hint=error.hint)


def _run(name: str, check: Callable[[Repository], Check], repo: Repository) -> Check:
    try:
        return check(repo)
    except LandlaneError as error:
        return _bad(name, error)
    except OSError as error:
        return Check(name=name, is_ok=False, is_enforced=False, found=f"cannot be looked at: {error}")


def _look_at_store(repo: Repository) -> Check:
    trouble = repo.store.find_damage()
    if trouble:
        hint = "`landlane store rebuild` builds it anew from journal.jsonl"
        return Check(name="store", is_ok=False, is_enforced=False, found=trouble, hint=hint)
    facts = describe_store(repo)
    return _good("store", f"{facts['kind']} at {facts['place']}, sound, durable")


def _look_at_journal(repo: Repository) -> Check:
    verdict = verify_journal(repo)
    if verdict.trouble:
        return Check(
            name="journal",
            is_ok=False,
            is_enforced=False,
            found="; ".join(verdict.trouble[:3]),
            hint="compare with a backup or refs/landlane/journal",
        )
    return _good("journal", f"{verdict.entries} entries, chain whole")


def _look_at_clock(repo: Repository) -> Check:
    if getattr(repo.store, "url", ""):
        return _good("clock", "leases count on the database server's clock, the same for all machines")
    if os.path.exists("/proc/sys/kernel/random/boot_id"):
        return _good("clock", "leases count on the boot clock, which nobody can set")
    return Check(
        name="clock",
        is_ok=True,
        is_enforced=False,
        found="this system tells no boot id",
        hint="a restart is recognised only to the minute",
    )


def _look_at_disk(repo: Repository) -> Check:
    kind = _file_system(repo.state_folder)
    if kind in _NETWORK and "://" not in getattr(repo.store, "url", ""):
        return Check(
            name="file system",
            is_ok=False,
            is_enforced=False,
            found=f"the store lies on {kind}, where locks are not reliable",
            hint="keep the repository on a local disk, or move the state: landlane store move postgresql://…",
        )
    return _good("file system", kind or "unknown", is_enforced=bool(kind))


def _file_system(folder: str) -> str:
    best, kind = "", ""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                _, point, name, *_ = line.split(" ")
                inside = folder == point or folder.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, name
    except OSError:
        return ""
    return kind


def _look_at_command(repo: Repository) -> Check:
    del repo
    return _of("command", look_at_reach())


def _look_at_secrets(repo: Repository) -> Check:
    paths = _secret_paths(repo)
    if not paths:
        return _good("secrets", "none yet")
    open_ones = [path for path in paths if os.stat(path).st_mode & 0o077]
    if open_ones:
        return Check(
            name="secrets",
            is_ok=False,
            is_enforced=False,
            found=f"other users can read {', '.join(open_ones[:3])}",
            hint=f"chmod -R go= {' '.join(open_ones[:3])}, or `landlane doctor --fix`",
        )
    return _good("secrets", "readable by this user alone")


def _secret_paths(repo: Repository) -> list[str]:
    """Check that only this user can read session secrets and the store's address with its password."""
    sessions = os.path.join(repo.state_folder, "sessions")
    kept = [os.path.join(sessions, name) for name in os.listdir(sessions)] if os.path.isdir(sessions) else []
    paths = [sessions, *kept, os.path.join(repo.state_folder, POINTER)]
    return [path for path in paths if os.path.exists(path)]


def _close_secrets(repo: Repository) -> None:
    for path in _secret_paths(repo):
        mode = os.stat(path).st_mode
        if mode & 0o077:
            os.chmod(path, mode & 0o700)


def _look_at_clients(repo: Repository) -> list[Check]:
    """Check the clients' hooks, and list what no guard stops."""
    try:
        rows = look_at_clients(repo, repo.checkout)
    except (LandlaneError, OSError) as error:
        found = error.message if isinstance(error, LandlaneError) else str(error)
        return [Check(name="clients", is_ok=False, is_enforced=False, found=found)]
    guarded = sorted({name.partition(":")[0] for name, one in rows if ":" in name and one.is_enforced})
    return [*(_of(name, finding) for name, finding in rows), _guards(guarded)]


def _look_at_hook_programs(repo: Repository) -> Check:
    return _of("hook programs", look_at_hook_programs(repo.checkout))


def _look_at_git_hooks(repo: Repository, *, fix: bool) -> list[Check]:
    """Check that the git hooks refuse what they should."""
    try:
        rows = try_git_hooks(repo, repo.checkout, is_fixing=fix)
    except (LandlaneError, OSError) as error:
        found = error.message if isinstance(error, LandlaneError) else str(error)
        return [Check(name="git hooks", is_ok=False, is_enforced=False, found=found)]
    return [_of(name, finding) for name, finding in rows]


def _guards(guarded: list[str]) -> Check:
    """Report what keeps a process from changing a file that another session holds."""
    hooks = f"client hooks: {', '.join(guarded)}" if guarded else "no client hook"
    return Check(
        name="guards",
        is_ok=True,
        is_enforced=False,
        found=f"{hooks}; a program that no client starts is stopped by git's hooks at its commit, not before",
        hint="agents without hooks must run `landlane claim` before they change a file",
    )


def _of(name: str, found: Finding) -> Check:
    return Check(
        name=name,
        is_ok=found.is_ok,
        is_enforced=found.is_ok and found.is_enforced,
        found=found.found,
        hint=found.hint,
    )


def _look_at_git(repo: Repository, *, fix: bool) -> list[Check]:
    """Check what all worktrees share. A setting that breaks git everywhere is always repaired."""
    checkout = repo.checkout
    if not checkout.common_dir:
        return []

    def judged(name: str, check: Callable[[Repository, bool], Finding]) -> Check:
        return _of(name, check(repo, fix))

    return [
        _run(name, lambda _, name=name, check=check: judged(name, check), repo) for name, check in _GIT_CHECKS
    ]


_GIT_CHECKS: tuple[tuple[str, Callable[[Repository, bool], Finding]], ...] = (
    ("lock files", look_at_locks),
    ("git settings", look_at_settings),
    ("worktrees", look_at_worktrees),
    ("nested worktrees", look_at_nesting),
    ("stray work", look_at_strays),
    ("sandbox", look_at_kernel),
    ("sandboxed runs", look_at_runs),
)

_CHECKS: tuple[tuple[str, Callable[[Repository], Check]], ...] = (
    ("store", _look_at_store),
    ("journal", _look_at_journal),
    ("clock", _look_at_clock),
    ("file system", _look_at_disk),
    ("secrets", _look_at_secrets),
    ("command", _look_at_command),
)


def describe_store(repo: Repository) -> dict[str, Any]:
    """Report where the state is stored and how large it is."""
    store = repo.store
    counts = store.view(
        lambda snapshot: {
            "claims": sum(row["claims"] for row in snapshot.all("claims_count")),
            "sessions": len(snapshot.all("sessions_live")),
            "entries": sum(row["entries"] for row in snapshot.all("entry_count")),
            **{
                row["key"]: row["value"]
                for row in snapshot.all("meta_all")
                if row["key"] in ("schema", "epoch", "store_id")
            },
        }
    )
    return {**store.describe(), "repository": store.repository, "folder": repo.state_folder, **counts}

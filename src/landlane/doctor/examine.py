"""Run the doctor's checks in order: report what is wrong, and repair what can be repaired."""

from __future__ import annotations

import os
from importlib.util import find_spec

from landlane.app.folder_rights import has_url, is_too_open
from landlane.app.open import open_repository
from landlane.app.plain_files import journal_path, move_aside
from landlane.app.repository_record import read_record
from landlane.app.store_place import POINTER, record_id, recorded_id, store_place
from landlane.app.verify_journal import verify_journal
from landlane.doctor.check import Check, advisory, failed, fixed, passed
from landlane.doctor.clients import check_clients
from landlane.doctor.git import (
    check_landings,
    check_locks,
    check_misplaced,
    check_place,
    check_settings,
    check_worktrees,
)
from landlane.doctor.hook_programs import check_hook_programs
from landlane.doctor.nested_worktrees import check_nesting
from landlane.doctor.sandbox import check_kernel, check_runs
from landlane.doctor.try_git_hooks import check_git_hooks
from landlane.errors import LandlaneError, Malformed, StoreCorrupt, StoreError, StoreTransient
from landlane.git.discovery import find_checkout
from landlane.git.repository import is_case_insensitive
from landlane.git.target_settings import settings_in_force
from landlane.ids import new_uuid
from landlane.journal.read import read_entries
from landlane.patterns.pattern import parse
from landlane.processes.child import Child
from landlane.processes.own_command import NAME, own_command
from landlane.repository import Repository
from landlane.sandbox.model import check_promises
from landlane.sessions.join import is_secret_lost
from landlane.sessions.leases import list_live_sessions
from landlane.settings.load import read_settings
from landlane.settings.model import FILE_NAME
from landlane.setup.rebuild_store import Rebuilt, rebuild_store, repair_store
from landlane.setup.repair_state import find_odd_files, repair_pointers, set_odd_aside
from landlane.store.journal_chain import check_chain
from landlane.text import home_path, shell_path
from landlane.units import count
from landlane.values import replace
from landlane.version import install_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from landlane.git.discovery import Checkout
    from landlane.settings.model import Settings

    T = TypeVar("T")


_EXTRAS = {"postgres": "psycopg", "mcp": "mcp", "langgraph": "langgraph"}  # by the module each one needs
_WAIT_MS = 5_000  # for the write lock; the doctor should report quickly
_SHELL_SECONDS = 10.0
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs")


def examine(cwd: str, *, fix: bool = False) -> list[Check]:
    """Run all checks, in the order of their dependencies; with `fix`, repair a broken store first."""
    checks: list[Check] = []
    try:
        checkout = find_checkout(cwd)
        checks.append(_named("repository", passed(checkout.root)))
        checks.append(_named("settings", _check_settings(checkout)))
    except LandlaneError as error:
        return [*checks, _broken("settings" if checks else "repository", error)]
    try:
        checks += _check_state_folder(checkout, fix=fix)
        repo = _open(cwd, fix=fix)
    except StoreCorrupt as error:
        if not fix:
            return [*checks, _broken("store", error)]
        checks.append(_repair(cwd))
        if not checks[-1].is_ok:
            return checks
        repo = open_repository(cwd, is_short_lived=True, is_person=True)
    except LandlaneError as error:
        return [*checks, _broken("store", error)]
    if fix and (closed := _close_secrets(repo)):
        checks.append(_named("secrets", fixed(f"made private: {', '.join(map(home_path, closed[:3]))}")))
    if fix and _repair_journal(repo):
        checks.append(_named("journal copy", fixed("written again from the store")))
    moved = _run("place", lambda: check_place(repo, is_fixing=fix))
    if not moved.is_ok:  # what that breaks is not listed as well
        return [*checks, *_check_case(repo), moved]
    checks += [
        *([moved] if moved.is_fixed else []),
        *_check_case(repo),
        *(_run(name, lambda check=check: check(repo)) for name, check in _CHECKS),
    ]
    git_hooks = _run_several("git hooks", lambda: check_git_hooks(repo, is_fixing=fix))
    checks += [*_run_several("clients", lambda: _check_clients(repo)), *git_hooks]
    checks.append(_run("hook programs", lambda: check_hook_programs(repo.checkout)))
    if repo.checkout.common_dir:
        checks += [_run(name, lambda check=check: check(repo, fix)) for name, check in _GIT_CHECKS]
    return [replace(check, is_enforced=check.is_ok and check.is_enforced) for check in checks]


def _named(name: str, check: Check) -> Check:
    return replace(check, name=name)


def _broken(name: str, error: LandlaneError | OSError) -> Check:
    if isinstance(error, LandlaneError):
        return _named(name, failed(error.message, error.hint))
    return _named(name, failed(f"cannot be checked: {error}"))


def _run(name: str, check: Callable[[], Check]) -> Check:
    try:
        return _named(name, check())
    except (LandlaneError, OSError) as error:
        return _broken(name, error)


def _run_several(name: str, check: Callable[[], list[Check]]) -> list[Check]:
    try:
        return check()
    except (LandlaneError, OSError) as error:
        return [_named(name, failed(error.message if isinstance(error, LandlaneError) else str(error)))]


def _check_settings(checkout: Checkout) -> Check:
    """Check the settings that hold, and those in the working tree, which may become those that hold."""
    held = settings_in_force(checkout, is_person=True)
    _check_patterns(held.settings)
    if held.trouble:
        return failed(held.remark, f"correct {FILE_NAME}, then land it")
    try:
        _check_patterns(read_settings(checkout.root))
    except LandlaneError as error:  # it does not hold yet, and keeps no one from anything
        return failed(f"in this checkout: {error.message}", error.hint)
    if held.is_own:
        return advisory(held.remark, f"git add {FILE_NAME} && git commit -m 'Set up Landlane' {FILE_NAME}")
    return passed(f"understood, from {held.branch}" if held.is_committed and held.branch else "understood")


def _check_patterns(settings: Settings) -> None:
    """Parse the patterns of the settings, since an invalid one would make later claims fail."""
    for text in (*settings.claims.required, *settings.claims.free, *(settings.claims.shareable or ())):
        parse(text)
    check_promises(settings.sandbox.required)


def _open_at(cwd: str, *, detects_restore: bool) -> Repository:
    return open_repository(
        cwd, is_short_lived=True, detects_restore=detects_restore, most_wait_ms=_WAIT_MS, is_person=True
    )


def _open(cwd: str, *, fix: bool) -> Repository:
    """Open the repository if its store can be written; before a repair, also if it has no damage.

    Behind a stopped writer every check would wait.
    """
    repo = _open_at(cwd, detects_restore=fix)
    try:
        repo.store.change(lambda tx: None, is_durable=False)
    except StoreTransient:
        repo.store.close()
        raise
    except StoreError:
        pass  # the checks report any other problem
    if fix and (damage := repo.store.find_damage()):
        repo.store.close()
        raise StoreCorrupt(damage, code="STORE_CORRUPT")
    return repo


def _repair(cwd: str) -> Check:
    try:
        rebuilt = _build_store(cwd, repair_store)
    except LandlaneError as error:
        return _broken("rebuild", error)
    if rebuilt is None:
        return _named("rebuild", fixed("another process has just rebuilt the store"))
    kept = f"the broken store is kept as {rebuilt.kept}" if rebuilt.kept else "nothing was left of the store"
    unusable = (
        f"; {rebuilt.unreadable} lines of it could not be used and are kept" if rebuilt.unreadable else ""
    )
    counts = f"{count(rebuilt.claims, 'claim')}, {count(rebuilt.sessions, 'session')}, epoch {rebuilt.epoch}"
    return _named("rebuild", fixed(f"from {rebuilt.entries} journal entries: {counts}; {kept}{unusable}"))


def rebuild_here(cwd: str) -> Rebuilt:
    """Rebuild the SQLite store of the repository at `cwd` from its journal copy.

    Raises:
        Malformed: the state is in PostgreSQL, which has its own backups.
        StoreCorrupt: there is no journal to build from.
    """
    return _build_store(cwd, rebuild_store)


def _build_store(cwd: str, build: Callable[..., T]) -> T:
    """Rebuild the store of the repository at `cwd`, if it is a SQLite store."""
    checkout = find_checkout(cwd)
    folder = checkout.state_folder
    settings = settings_in_force(checkout, is_person=True).settings
    place = store_place(checkout, settings)
    if "://" in place:
        raise Malformed(
            "a store in PostgreSQL is not rebuilt from the journal",
            code="STORE_ON_SERVER",
            hint="restore it from the backup of the database",
        )
    # In a store of its own any id will do, so one that is lost with the store is replaced.
    repository = recorded_id(folder) or settings.repository.id or new_uuid()
    ignore_case = settings.claims.ignore_case
    if ignore_case is None:
        ignore_case = is_case_insensitive(checkout)
    built = build(folder, repository, ignore_case=ignore_case, wait_ms=settings.store.wait_ms, path=place)
    if not recorded_id(folder):
        record_id(folder, repository)
    return built


def _check_state_folder(checkout: Checkout, *, fix: bool) -> list[Check]:
    """Check the files that say which store and which repository hold; with `fix`, repair them."""
    folder = checkout.state_folder
    if not fix:
        odd = find_odd_files(folder)
        return [_named("state folder", _odd(odd))] if odd else []
    done = [f"kept aside as {name}" for name in set_odd_aside(folder)]
    done += repair_pointers(checkout, settings_in_force(checkout, is_person=True).settings)
    return [_named("state folder", fixed("; ".join(done)))] if done else []


def _odd(paths: list[str]) -> Check:
    return failed(f"not regular files: {', '.join(map(home_path, paths))}", "landlane doctor --fix")


def _repair_journal(repo: Repository) -> bool:
    """Write the journal's copy again if it is damaged and the journal in the store is not."""
    if not verify_journal(repo).trouble or check_chain(read_entries(repo)).trouble:
        return False
    path = journal_path(repo)
    if os.path.lexists(path):
        move_aside(path)
    repo.settle(wait_seconds=5.0)
    return True


def _check_case(repo: Repository) -> list[Check]:
    """Return a failed check if paths are not compared as the settings say, which needs a command."""
    wanted, record = repo.settings.claims.ignore_case, read_record(repo.store)
    if wanted is None or record is None or wanted == record.ignore_case:
        return []
    how = "without regard to case" if record.ignore_case else "with regard to case"
    found = f"paths are compared {how}, but landlane.toml says otherwise"
    return [_named("paths", failed(found, "landlane store adopt"))]


def _check_store(repo: Repository) -> Check:
    damage = repo.store.find_damage()
    if damage:
        return failed(damage, "rebuild it from the journal: landlane store rebuild")
    description = describe_store(repo)
    kind, place = str(description["kind"]), str(description["place"])
    return passed(f"{kind} at {place}, intact" if "://" in place else f"{kind.partition(' ')[0]}, intact")


def _check_journal(repo: Repository) -> Check:
    verdict = verify_journal(repo)
    if verdict.trouble:
        return failed(
            "; ".join(verdict.trouble[:3]), "compare with the copy in git: git show refs/landlane/journal"
        )
    return passed(f"verified ({count(verdict.entries, 'entry', 'entries')})")


def _check_clock(repo: Repository) -> Check:
    if getattr(repo.store, "url", ""):
        return passed("leases use the clock of the database server, the same for all machines")
    if os.path.exists("/proc/sys/kernel/random/boot_id"):
        return passed("leases use the boot clock, which cannot be set")
    return advisory("this system has no boot id; a restart is recognised only to the minute")


def _check_file_system(repo: Repository) -> Check:
    kind = _file_system(repo.state_folder)
    if kind in _NETWORK and "://" not in getattr(repo.store, "url", ""):
        return failed(
            f"the store is on {kind}, where locks are not reliable",
            "use a local disk, or move the state to PostgreSQL: landlane store move postgresql://HOST/DATABASE",
        )
    return passed(kind or "unknown", is_enforced=bool(kind))


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


def _check_secrets(repo: Repository) -> Check:
    """Check that no other user can read session secrets, the store's URL with its password, and the state.

    Opening the repository makes a state folder private that belongs to this user; what is left is not theirs.
    """
    if is_too_open(repo.state_folder, repo.common_dir):
        return failed(
            f"other users can read {home_path(repo.state_folder)}, which belongs to another user",
            f"as its owner: chmod -R go= {shell_path(repo.state_folder)}",
        )
    paths = _secret_paths(repo)
    if not paths:
        return passed("none yet")
    readable = [path for path in paths if os.stat(path).st_mode & 0o077]
    if readable:
        return failed(
            f"other users can read {', '.join(readable[:3])}",
            "landlane doctor --fix",
        )
    return passed("readable only by you")


def _secret_paths(repo: Repository) -> list[str]:
    sessions = os.path.join(repo.state_folder, "sessions")
    kept = [os.path.join(sessions, name) for name in os.listdir(sessions)] if os.path.isdir(sessions) else []
    paths = [sessions, *kept]
    if has_url(repo.state_folder):
        paths.append(os.path.join(repo.state_folder, POINTER))
    return [path for path in paths if os.path.exists(path)]


def _close_secrets(repo: Repository) -> list[str]:
    """Make secrets readable only by this user; return the paths that were not."""
    closed: list[str] = []
    for path in _secret_paths(repo):
        mode = os.stat(path).st_mode
        if mode & 0o077:
            os.chmod(path, mode & 0o700)
            closed.append(path)
    return closed


def _check_sessions(repo: Repository) -> Check:
    """Check that commands can act in every live session of this machine."""
    live = repo.store.view(
        lambda snapshot: [one for one in list_live_sessions(snapshot) if one.is_alive(snapshot.now)]
    )
    lost = [session.agent for session in live if is_secret_lost(repo, session)]
    if lost:
        return failed(
            f"secret gone: {', '.join(lost[:3])}; --as {lost[0]} is refused until the session lapses",
            "work under another name until then",
        )
    return passed(f"{len(live)} live")


def _check_command(_: Repository) -> Check:
    """Check that a login shell, which some clients use, finds `landlane`; else agents get its path."""
    try:
        ended = Child(["/bin/sh", "-lc", f"command -v {NAME}"], cwd="/").wait(_SHELL_SECONDS)
    except OSError as error:
        return advisory(f"no shell could be asked: {error}")
    lines = ended.stdout.strip().splitlines()
    if lines and not ended.has_timed_out:
        return passed(f"a login shell finds it: {lines[-1]}")
    path = own_command()
    consequence = f"agents get its full path: {path}" if path else "agents cannot call it by name"
    hint = f"link it where every shell looks: sudo ln -s {path} /usr/local/bin/" if path else ""
    return advisory(f"a login shell does not find `landlane`; {consequence}", hint)


def _check_extras(_: Repository) -> Check:
    """Check which optional parts of Landlane are installed; a command that needs an absent one says so."""
    absent = [extra for extra, module in _EXTRAS.items() if find_spec(module) is None]
    if not absent:
        return passed("all installed")
    return passed(f"not installed: {', '.join(absent)}", f"add them: {install_command(','.join(absent))}")


def _check_clients(repo: Repository) -> list[Check]:
    """Check the clients' hooks, and report which of them keep a process from changing a held file."""
    clients = check_clients(repo)
    guarded = sorted({one.name.partition(":")[0] for one in clients if ":" in one.name and one.is_enforced})
    hooks = f"client hooks: {', '.join(guarded)}" if guarded else "no client hook"
    guards = advisory(
        f"{hooks}; a program that no client starts is stopped by git's hooks at its commit, not before",
        "agents without hooks claim before they edit: landlane claim PATH",
    )
    return [*clients, _named("guards", guards)]


_GIT_CHECKS: tuple[tuple[str, Callable[[Repository, bool], Check]], ...] = (
    ("landings", check_landings),
    ("lock files", check_locks),
    ("git settings", check_settings),
    ("worktrees", check_worktrees),
    ("nested worktrees", check_nesting),
    ("misplaced changes", check_misplaced),
    ("sandbox", check_kernel),
    ("sandboxed runs", check_runs),
)

_CHECKS: tuple[tuple[str, Callable[[Repository], Check]], ...] = (
    ("store", _check_store),
    ("journal", _check_journal),
    ("clock", _check_clock),
    ("file system", _check_file_system),
    ("secrets", _check_secrets),
    ("sessions", _check_sessions),
    ("command", _check_command),
    ("extras", _check_extras),
)


def describe_store(repo: Repository) -> dict[str, Any]:
    """Return where the state is stored and how much there is."""
    store = repo.store
    counts = store.view(
        lambda snapshot: {
            "claims": sum(row["claims"] for row in snapshot.all("claims_count")),
            "sessions": len(snapshot.all("sessions_live")),
            "entries": sum(row["entries"] for row in snapshot.all("entry_count")),
            **{
                row["key"]: row["value"]
                for row in snapshot.all("meta_all")
                if row["key"] in ("schema", "written_by", "epoch", "store_id")
            },
        }
    )
    return {**store.describe(), "repository": store.repository, "folder": repo.state_folder, **counts}

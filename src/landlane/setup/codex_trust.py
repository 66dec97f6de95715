"""Make Codex trust our hooks: it only runs hooks that its user approved, and records that in its settings.

The settings file is backed up before Codex is asked, so that undo restores it byte for byte. If the file was
changed since, by Codex or for another repository, undo only removes the entries of this checkout.
"""

from __future__ import annotations

import os

from landlane.clients.codex import setup as codex_setup
from landlane.clients.setup_checks import find_client_program
from landlane.clients.setup_files import OUTSIDE
from landlane.errors import LandlaneError
from landlane.managed_files.manifest import FileRecord, InitRecord, load_record, save_backup, save_record
from landlane.managed_files.user_files import fingerprint, mode_of, read_bytes
from landlane.processes.child import Child
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.clients.setup_files import ClientEnvironment
    from landlane.managed_files.apply import ChangePlan

_LIMIT_SECONDS = 20.0


def runner_at(root: str) -> Callable[[list[str]], str]:
    """Return a function that runs a client's program in a checkout and returns its output.

    The output is empty when the program cannot be started or takes too long.
    """

    def run(words: list[str]) -> str:
        try:
            ended = Child(words, cwd=root).wait(_LIMIT_SECONDS)
        except OSError:
            return ""
        return "" if ended.has_timed_out else ended.stdout

    return run


def trust_needed(env: ClientEnvironment, changes: ChangePlan) -> str:
    """Return the file in which Codex must record its trust; empty when it has, or Codex is not installed."""
    if not find_client_program(env, "codex"):
        return ""
    path = codex_setup.trust_file(env)
    hooks = os.path.join(env.root, codex_setup.SETUP.path)
    if any(skipped.path == hooks for skipped in changes.skipped):
        return ""
    if any(step.path == hooks for step in changes.steps):
        return path
    found = codex_setup.SETUP.find_problems(env, runner_at(env.root))
    return path if any("trust" in problem.hint for problem in found) else ""


def install_trust(state: str, env: ClientEnvironment) -> str:
    """Back up Codex's settings and make it trust our hooks; return an error message, or an empty string."""
    path = codex_setup.trust_file(env)
    before = read_bytes(path)
    record = load_record(state)
    known = record.entry_of(path)
    if known is None or fingerprint(before) not in known.after:
        known = _make_record(path, env, before)
        if before is not None:
            save_backup(state, before)
    _save(state, record, known)
    try:
        codex_setup.trust(env, runner_at(env.root))
    except LandlaneError as error:
        return f"Codex does not run these hooks yet: {error.message}; {error.hint}"
    after = read_bytes(path)
    _save(state, record, replace(known, after=(*known.after, fingerprint(after))))
    return ""


def _make_record(path: str, env: ClientEnvironment, before: bytes | None) -> FileRecord:
    return FileRecord(
        path=path,
        root=env.root,
        existed=before is not None,
        mode=mode_of(path),
        before=fingerprint(before),
        after=(),
        form=OUTSIDE,
        content=env.root,
        folders=(os.path.dirname(path),) if not os.path.isdir(os.path.dirname(path)) else (),
    )


def _save(state: str, record: InitRecord, entry: FileRecord) -> None:
    others = tuple(known for known in record.entries if known.path != entry.path)
    save_record(state, replace(record, entries=(*others, entry)))

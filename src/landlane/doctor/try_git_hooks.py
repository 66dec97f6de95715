"""Check that the git hooks refuse forbidden commits, moves and pushes."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager

from landlane.claims.model import ClaimMode, Request
from landlane.claims.take import take
from landlane.doctor.finding import Finding
from landlane.errors import LandlaneError
from landlane.git.hook_pass import PASS, hooks_folder
from landlane.git.hooks.former_hooks import InstalledHooks, load_installed_hooks
from landlane.git.hooks.scripts import CANARY, UNREFUSED, outdated_scripts
from landlane.git.run import LOCATION_VARIABLES, resolve_revision, run_in, try_git_output
from landlane.ids import short_id
from landlane.patterns.pattern import parse
from landlane.processes.child import Child
from landlane.repository import Repository
from landlane.sessions.join import join, leave
from landlane.setup.install_git_hooks import COMMITS, PUSHES, TARGET, git_hooks_to_change, install_git_hooks
from landlane.values import replace
from landlane.workspaces.target_guard import guarded_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from landlane.git.discovery import Checkout
    from landlane.processes.child import ChildResult
    from landlane.repository import Repository

    Rows = list[tuple[str, Finding]]


_SCRIPTS = {COMMITS: "pre-commit", PUSHES: "pre-push", TARGET: "reference-transaction"}

_OURS = ("LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_OVERRIDE", "LANDLANE_RESIDENT", PASS)

_LIMIT_SECONDS = 40.0

_REFUSED = 1

_TTL_MS = 120_000

_MEND = "`landlane doctor --fix` puts it back; what stands there now runs after ours"


def try_git_hooks(repo: Repository, checkout: Checkout, *, is_fixing: bool = False) -> Rows:
    """Check the git hooks: run each with something it must refuse."""
    home = checkout.home_checkout
    if not home.common_dir:
        return []
    if load_installed_hooks(home.common_dir) is None:
        return [
            (name, _open("no hook of ours is in place", "`landlane init` puts it there")) for name in _SCRIPTS
        ]
    if is_fixing and (git_hooks_to_change(home) or _found_folder(checkout) != hooks_folder(home.common_dir)):
        install_git_hooks(home, [checkout.root] if checkout.home else [])
    found = _found_folder(checkout)
    if found != hooks_folder(home.common_dir):
        trouble = f"core.hooksPath leads to {found}: another program has changed it"
        return [
            (name, Finding(is_ok=False, is_enforced=False, found=trouble, hint=_MEND)) for name in _SCRIPTS
        ]
    record = load_installed_hooks(home.common_dir) or InstalledHooks()
    outdated = outdated_scripts(home.common_dir, record.own)
    repo = replace(repo, checkout=checkout)
    return [(name, _look(repo, name, script, script in outdated)) for name, script in _SCRIPTS.items()]


def _open(found: str, hint: str) -> Finding:
    return Finding(is_ok=True, is_enforced=False, found=found, hint=hint)


def _found_folder(checkout: Checkout) -> str:
    return os.path.join(checkout.root, try_git_output(checkout, "rev-parse", "--git-path", "hooks"))


def _look(repo: Repository, name: str, script: str, is_outdated: bool) -> Finding:
    if is_outdated:
        path = os.path.join(hooks_folder(repo.common_dir), script)
        found = f"{path} is gone, was changed or cannot be run"
        return Finding(is_ok=False, is_enforced=False, found=found, hint="`landlane doctor --fix` mends it")
    try:
        if name == COMMITS:
            return _judged(_try_commit(repo), "a commit of a held file")
        if name == PUSHES:
            return _look_at_pushes(repo)
        return _look_at_target(repo)
    except (LandlaneError, OSError) as error:
        hint = error.hint if isinstance(error, LandlaneError) else ""
        return Finding(is_ok=False, is_enforced=False, found=f"no canary could be sent: {error}", hint=hint)


def _judged(ended: ChildResult, what: str) -> Finding:
    if ended.exit_code == _REFUSED:
        return Finding(is_ok=True, found=f"{what} was refused, as it should be")
    said = (ended.stderr or ended.stdout).strip().splitlines()[-1:] or ["without a word"]
    found = f"{what} was not refused (exit {ended.exit_code}: {said[0][:200]})"
    return Finding(is_ok=False, is_enforced=False, found=found, hint="run `landlane init` again")


@contextmanager
def _held_path(repo: Repository) -> Generator[str]:
    """Hold a path that does not exist, not for our own process, since the hook is its child."""
    holder = join(repo, short_id("canary", 6)).session
    try:
        path = f".landlane-{short_id('canary', 8)}"
        take(
            repo,
            holder,
            Request(patterns=(parse(path),), mode=ClaimMode.EXCLUSIVE, ttl_ms=_TTL_MS, note="doctor"),
        )
        yield path
    finally:
        leave(repo, holder)


def _try_commit(repo: Repository) -> ChildResult:
    """Try to commit a held path from a separate index; nothing is written to the repository."""
    with _held_path(repo) as path, tempfile.TemporaryDirectory(prefix="landlane-canary-") as folder:
        index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        if resolve_revision(repo.checkout, "HEAD"):
            run_in(repo.checkout, "read-tree", "HEAD", variables=index)
        blob = try_git_output(repo.checkout, "hash-object", "--stdin")
        run_in(
            repo.checkout, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", variables=index
        )
        return _run(repo, "pre-commit", [], "", index)


def _look_at_pushes(repo: Repository) -> Finding:
    target = guarded_target(repo)
    tip = resolve_revision(repo.home, "HEAD")
    if target is not None and target.remote and tip:
        line = f"refs/heads/canary {tip} {target.ref} {tip}\n"
        what = f"a push to {target.branch} of {target.remote}"
        return _judged(_run(repo, "pre-push", [target.remote, ""], line), what)
    line = f"refs/heads/canary {tip} refs/heads/canary {'0' * len(tip)}\n"
    return _runs(_run(repo, "pre-push", ["canary", ""], line), "no remote's branch is the queue's here")


def _look_at_target(repo: Repository) -> Finding:
    target = guarded_target(repo)
    tip = resolve_revision(repo.home, target.ref) if target is not None else ""
    if target is not None and tip:
        line = f"{tip} {'1' * len(tip)} {target.ref}\n"
        ended = _run(repo, "reference-transaction", ["prepared"], line)
        return _judged(ended, f"a move of {target.branch} past the queue")
    line = f"{'0' * 40} {'1' * 40} refs/heads/canary\n"
    ended = _run(repo, "reference-transaction", ["prepared"], line)
    found = _runs(ended, "`[landing] checks` is not set, so the queue is not the only one to move it")
    return replace(found, is_enforced=False)


def _runs(ended: ChildResult, why: str) -> Finding:
    if ended.exit_code == UNREFUSED:
        return Finding(is_ok=True, found=f"in place, and lets through what is free; {why}")
    said = (ended.stderr or ended.stdout).strip()[:200] or "without a word"
    found = f"it refuses what is free (exit {ended.exit_code}: {said})"
    return Finding(is_ok=False, is_enforced=False, found=found, hint="run `landlane init` again")


def _run(
    repo: Repository, script: str, words: list[str], given: str, variables: dict[str, str] | None = None
) -> ChildResult:
    """Run a hook script as git would, for an unknown agent; the user's own hook does not run."""
    environment = {**(variables or {}), CANARY: "1", "LANDLANE_AGENT": short_id("canary", 6)}
    with tempfile.NamedTemporaryFile(prefix="landlane-canary-") as file:
        file.write(given.encode())
        file.flush()
        path = os.path.join(hooks_folder(repo.common_dir), script)
        shell = 'input=$1; shift; exec "$@" <"$input"'
        child = Child(
            ["/bin/sh", "-c", shell, "sh", file.name, path, *words],
            cwd=repo.checkout.root,
            environment=environment,
            without=(*LOCATION_VARIABLES, *_OURS),
        )
        return child.wait(_LIMIT_SECONDS)

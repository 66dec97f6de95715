"""Check that the git hooks refuse forbidden commits, moves and pushes."""

from __future__ import annotations

import os
import tempfile

from landlane.doctor.check import Check, advisory, failed, passed
from landlane.doctor.try_client_hooks import held_path, run_with_input
from landlane.errors import LandlaneError
from landlane.git.hook_pass import PASS, hooks_folder
from landlane.git.hooks.hooks_path import InstalledHooks, load_installed_hooks
from landlane.git.hooks.scripts import CANARY, UNREFUSED, outdated_scripts
from landlane.git.run import LOCATION_VARIABLES, resolve_revision, run_in, try_git_output
from landlane.ids import short_id
from landlane.repository import Repository
from landlane.setup.install_git_hooks import COMMITS, PUSHES, TARGET, git_hooks_to_change, install_git_hooks
from landlane.values import replace
from landlane.workspaces.target_guard import guarded_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.processes.child import ChildResult
    from landlane.repository import Repository


_SCRIPTS = {COMMITS: "pre-commit", PUSHES: "pre-push", TARGET: "reference-transaction"}

_OURS = ("LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_OVERRIDE", "LANDLANE_RESIDENT", PASS)

_LIMIT_SECONDS = 40.0

_REFUSED = 1

NO_REMOTE = "there is no remote to push to"
_FIX = "install ours again, yours still runs: landlane doctor --fix"


def check_git_hooks(repo: Repository, *, is_fixing: bool = False) -> list[Check]:
    """Check the git hooks: run each with something it must refuse."""
    checkout = repo.checkout
    home = checkout.home_checkout
    if not home.common_dir:
        return []
    if load_installed_hooks(home.common_dir) is None:
        return _for_all(advisory("no git hook of Landlane is installed", "landlane init"))
    ours = hooks_folder(home.common_dir)
    if is_fixing and (git_hooks_to_change(home) or _configured_folder(checkout) != ours):
        install_git_hooks(home, [checkout.root] if checkout.home else [])
    folder = _configured_folder(checkout)
    if folder != ours:
        return _for_all(failed(f"core.hooksPath leads to {folder}: another program has changed it", _FIX))
    record = load_installed_hooks(home.common_dir) or InstalledHooks()
    outdated = outdated_scripts(home.common_dir, record.own)
    return [
        replace(_check_hook(repo, name, script, script in outdated), name=name)
        for name, script in _SCRIPTS.items()
    ]


def _for_all(check: Check) -> list[Check]:
    return [replace(check, name=name) for name in _SCRIPTS]


def _configured_folder(checkout: Checkout) -> str:
    return os.path.join(checkout.root, try_git_output(checkout, "rev-parse", "--git-path", "hooks"))


def _check_hook(repo: Repository, name: str, script: str, is_outdated: bool) -> Check:
    if is_outdated:
        path = os.path.join(hooks_folder(repo.common_dir), script)
        return failed(f"{path} is gone, was changed or cannot be run", "landlane doctor --fix")
    try:
        if name == COMMITS:
            return _check_refused(_try_commit(repo), "a commit of a held file")
        return _check_pushes(repo) if name == PUSHES else _check_target(repo)
    except (LandlaneError, OSError) as error:
        hint = error.hint if isinstance(error, LandlaneError) else ""
        return failed(f"cannot be tried: {error}", hint)


def _check_refused(ended: ChildResult, what: str) -> Check:
    if ended.exit_code == _REFUSED:
        return passed(f"{what} was refused when tried")
    output = (ended.stderr or ended.stdout).strip().splitlines()[-1:] or ["without a word"]
    found = f"{what} was not refused (exit {ended.exit_code}: {output[0][:200]})"
    return failed(found, "landlane init")


def _try_commit(repo: Repository) -> ChildResult:
    """Try to commit a held path from a separate index; nothing is written to the repository.

    The holder is not bound to our process, because the hook is a child of it.
    """
    with held_path(repo) as path, tempfile.TemporaryDirectory(prefix="landlane-canary-") as folder:
        index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        if resolve_revision(repo.checkout, "HEAD"):
            run_in(repo.checkout, "read-tree", "HEAD", variables=index)
        blob = try_git_output(repo.checkout, "hash-object", "--stdin")
        run_in(
            repo.checkout, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", variables=index
        )
        return _run(repo, "pre-commit", [], "", index)


def _check_pushes(repo: Repository) -> Check:
    target = guarded_target(repo)
    tip = resolve_revision(repo.home, "HEAD")
    if target is not None and target.remote and tip:
        line = f"refs/heads/canary {tip} {target.ref} {tip}\n"
        what = f"a push to {target.branch} of {target.remote}"
        return _check_refused(_run(repo, "pre-push", [target.remote, ""], line), what)
    line = f"refs/heads/canary {tip} refs/heads/canary {'0' * len(tip)}\n"
    has_remote = bool(try_git_output(repo.home, "remote"))
    why = "no remote has the target branch" if has_remote else NO_REMOTE
    return _check_allowed(_run(repo, "pre-push", ["canary", ""], line), why)


def _check_target(repo: Repository) -> Check:
    target = guarded_target(repo)
    tip = resolve_revision(repo.home, target.ref) if target is not None else ""
    if target is not None and tip:
        line = f"{tip} {'1' * len(tip)} {target.ref}\n"
        ended = _run(repo, "reference-transaction", ["prepared"], line)
        return _check_refused(ended, f"a move of {target.branch} past the queue")
    line = f"{'0' * 40} {'1' * 40} refs/heads/canary\n"
    ended = _run(repo, "reference-transaction", ["prepared"], line)
    check = _check_allowed(ended, "landing.checks is not set, so the target branch is not guarded")
    return replace(check, is_enforced=False)


def _check_allowed(ended: ChildResult, why: str) -> Check:
    if ended.exit_code == UNREFUSED:
        return passed(f"in place, and lets through what is free; {why}")
    output = (ended.stderr or ended.stdout).strip()[:200] or "without a word"
    return failed(f"it refuses what is free (exit {ended.exit_code}: {output})", "landlane init")


def _run(
    repo: Repository, script: str, words: list[str], given: str, variables: dict[str, str] | None = None
) -> ChildResult:
    """Run a hook script as git would, for an unknown agent; the user's own hook does not run."""
    return run_with_input(
        [os.path.join(hooks_folder(repo.common_dir), script), *words],
        given.encode(),
        cwd=repo.checkout.root,
        environment={**(variables or {}), CANARY: "1", "LANDLANE_AGENT": short_id("canary", 6)},
        without=(*LOCATION_VARIABLES, *_OURS),
        limit_seconds=_LIMIT_SECONDS,
    )

"""The command `git`: run git unless that would affect other sessions' work in the same checkout."""

from __future__ import annotations

import os

from landlane.app.repair_config import prepare_git
from landlane.cli.sandboxed.own_clone import git_inside
from landlane.error_json import failure_json
from landlane.git.lock import git_lock, lock_environment
from landlane.git.run import run_git_interactive
from landlane.hooks.git_command.guard import check_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


_STDERR = 2


def git(call: CommandCall, words: tuple[str, ...]) -> int:
    """Check a git call, then run git and return its exit code."""
    if os.environ.get("LANDLANE_RESIDENT"):
        return git_inside(call, words)
    cwd = call.cwd
    repo = prepare_git(call.repo, call.terminal.note)
    reach = check_git(repo, call.known_session(), cwd, words)
    out = _STDERR if call.terminal.is_json else None
    if reach.is_racy:
        with git_lock(repo.common_dir, f"git {reach.verb}", on_wait=call.terminal.note):
            code = run_git_interactive(words, cwd=cwd, out=out, variables=lock_environment(repo.common_dir))
    else:
        code = run_git_interactive(words, cwd=cwd, out=out)
    answer = {"ok": True, "exit": code, "verb": reach.verb, "reach": reach.reach}
    if code:
        message = f"git {reach.verb} ended with {code}"
        answer |= failure_json("GIT_FAILED", message, "what it said is on stderr")
    return call.terminal.answer(answer, code=code)

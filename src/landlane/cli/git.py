"""The command `git`: run git unless that would affect other sessions' work in the same checkout."""

from __future__ import annotations

import os

from landlane.app.repair_config import prepare_git
from landlane.cli.sandboxed.own_clone import git_inside
from landlane.git.lock import git_lock, lock_environment
from landlane.git.run import run_git_interactive
from landlane.hooks.git_command.guard import check_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


_STDERR = 2


def git(call: CommandCall, words: tuple[str, ...]) -> int:
    """Check a git call, then run git and return its exit code."""
    if os.environ.get("LANDLANE_RESIDENT"):
        return git_inside(call, words)
    cwd = call.cwd
    repo = prepare_git(call.repo, call.terminal.note)
    verdict = check_git(repo, call.known_session(), cwd, words)
    is_json = call.terminal.is_json
    out = _STDERR if is_json else None
    if verdict.is_racy:
        with git_lock(repo.common_dir, f"git {verdict.verb}", on_wait=call.terminal.note):
            code = run_git_interactive(words, cwd=cwd, out=out, variables=lock_environment(repo.common_dir))
    else:
        code = run_git_interactive(words, cwd=cwd, out=out)
    if is_json:
        answer = {"ok": code == 0, "exit": code, "verb": verdict.verb, "reach": verdict.kind}
        failed = {
            "code": "GIT_FAILED",
            "message": f"git {verdict.verb} ended with {code}",
            "hint": "what it said is on stderr",
        }
        call.terminal.answer(answer if code == 0 else answer | failed)
    return code

"""The command that runs git, unless that would hit the work of others in the same checkout."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk


_STDERR = 2


def git(desk: Desk, words: tuple[str, ...]) -> int:
    """Judge a call of git, then hand over to it; ends as git does."""
    if os.environ.get("LANDLANE_RESIDENT"):
        from landlane.cli.sandboxed.own_clone import git_inside

        return git_inside(desk, words)
    from landlane.git.lock import git_lock, lock_environment
    from landlane.git.run import run_git_interactive
    from landlane.hooks.git_command.guard import check_git

    cwd = desk.cwd
    site = desk.house.site(desk.terminal.note)
    verdict = check_git(site, desk.known_session(), cwd, words)
    is_json = desk.terminal.is_json
    out = _STDERR if is_json else None
    if verdict.is_racy:
        with git_lock(site.common_dir, f"git {verdict.verb}", on_wait=desk.terminal.note):
            code = run_git_interactive(words, cwd=cwd, out=out, variables=lock_environment(site.common_dir))
    else:
        code = run_git_interactive(words, cwd=cwd, out=out)
    if is_json:
        answer = {"ok": code == 0, "exit": code, "verb": verdict.verb, "reach": verdict.kind}
        failed = {
            "code": "GIT_FAILED",
            "message": f"git {verdict.verb} ended with {code}",
            "hint": "what it said is on stderr",
        }
        desk.terminal.answer(answer if code == 0 else answer | failed)
    return code

"""The command `commit`."""

from __future__ import annotations

import os

from landlane.app.repair_config import prepare_git
from landlane.cli.sandboxed.own_clone import commit_inside
from landlane.cli.terminal import in_one_line
from landlane.errors import Malformed
from landlane.workspaces.commit import commit as make_commit
from landlane.workspaces.commit import make_commit_request
from landlane.workspaces.to_json import commit_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def commit(
    call: CommandCall, paths: tuple[str, ...], message: str, m: tuple[str, ...], task: str, revert: bool
) -> int:
    """Commit only these paths, and show the commit."""
    if message and m:
        raise Malformed("the message is given twice", code="BOTH_NAMED", hint="use either -m or --message")
    text = message or "\n\n".join(m)
    if os.environ.get("LANDLANE_RESIDENT"):
        return commit_inside(call, paths, text, task)
    repo = prepare_git(call.repo, call.terminal.note)
    request = make_commit_request(repo, paths, call.cwd, message=text, task=task, may_undo=revert)
    made = make_commit(repo, call.session(), request)
    if made.changed_by_hooks:
        names = in_one_line(", ".join(made.changed_by_hooks[:10]))
        call.terminal.note(f"changed while the hooks ran, and not committed: {names}")
    if made.left_alone:
        call.terminal.note(f"left alone: {made.left_alone} other staged path(s)")
    text = in_one_line(f"✓ committed {made.commit[:8]} {made.subject}")
    return call.terminal.answer(commit_json(made), text, quiet=made.commit)

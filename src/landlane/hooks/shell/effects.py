"""Find what a shell call of a coding client changed, and whether the session was allowed to change it.

Before a call, git verbs that would affect all sessions in a shared checkout are refused, and a snapshot of
the checkout is taken. After it, the differences are checked: changes to paths that another session holds, or
outside the session's role or workspace, are recorded as a breach, reported to the model at once, and can be
undone or moved with one command. Free paths are claimed for the session, or reported, depending on the
policy. Only contents count: a file with nothing but new timestamps is unchanged.
"""

from __future__ import annotations

import os

from landlane.clients.hook_format import patched_paths
from landlane.clients.model import SHELL
from landlane.errors import Held, Malformed, NotAllowed
from landlane.files import read_file_version
from landlane.git.snapshot import changes_between, last_snapshot
from landlane.hooks.edit import check_edit, in_own_scratch
from landlane.hooks.git_command.guard import check_git
from landlane.hooks.shell.changes import (
    NO_SNAPSHOT,
    CallSnapshot,
    CheckoutChange,
    advance_snapshot,
    find_changes,
    locate_checkout_at,
    parse_snapshot,
    read_context,
    take_call_snapshot,
)
from landlane.hooks.shell.ownership import (
    UNAUTHORIZED,
    ChangeOwner,
    certain_effects,
    judge_changes,
    names_file,
    remembered_as,
    with_suspects,
    without_committed,
    without_holders_writes,
    without_repairs,
)
from landlane.hooks.shell.reading import only_reads
from landlane.hooks.shell.report import GUARD, claim_or_report, report_breaches
from landlane.hooks.shell_syntax.command_line import MOST_TEXT, parse_shell
from landlane.ids import short_id
from landlane.protocol.hook_events import (
    NOTHING,
    HookEventKind,
    HookPolicy,
    HookVerdict,
    ToolAction,
    deny,
    inform,
)
from landlane.roles.enforce import role_of
from landlane.rules.violations import CLAIM_FIRST, STAY_IN_ROLE, record_violation
from landlane.sessions.tool_calls import (
    ToolCall,
    begin_call,
    end_call,
    find_last_snapshot,
    find_open_call,
    list_open_calls,
    record_reads,
    save_last_snapshot,
)
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.hooks.shell_syntax.command_line import ShellLine
    from landlane.hooks.shell_syntax.tokens import WorkingFolder
    from landlane.protocol.hook_events import HookAnswer, HookEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_MOST_READ = 500


def before_shell(repo: Repository, session: Session, event: HookEvent) -> HookAnswer:
    """Refuse what would affect the work of others; otherwise record the state before the call.

    This refuses git verbs, and patches that a client applies as its own edit.

    Raises:
        LandlaneError: the call cannot be checked, or the checkout cannot be read.
    """
    if in_own_scratch(repo, session, repo.checkout.root):
        return NOTHING  # no other session works there, and the sandbox blocks writes elsewhere
    refusal = _refuse_writing(repo, session, event)
    if refusal and repo.settings.hooks.policy != HookPolicy.WATCH:
        return deny(refusal)
    line = parse_shell(event.command)
    refusal = _refuse_git(repo, session, event, line)
    if refusal and repo.settings.hooks.policy != HookPolicy.WATCH:
        return deny(f"{refusal} Nothing of the command was run.")
    patched = _judge_patches(repo, session, event, line)
    if patched.verdict == HookVerdict.DENY:
        return patched
    snapshot = take_call_snapshot(repo, session, event, line)
    begin_call(repo, session.id, event.call or short_id("c"), repo.checkout.root, snapshot.to_text())
    if refusal:
        return inform(
            "Landlane let this command pass and only noted it, because its policy here is to watch. "
            f"Anywhere else it would refuse it and say: {refusal}"
        )
    return patched


def _refuse_writing(repo: Repository, session: Session, event: HookEvent) -> str:
    """Return why a role without a shell may not run a command; one that certainly only reads it may."""
    role = role_of(repo, session) if session.role else None
    if role is None or SHELL in role.tools or only_reads(event.command):
        return ""
    what = f"the role {role.name} has no shell that writes"
    record_violation(repo, session, rule=STAY_IN_ROLE, guard=GUARD, what=what)
    return (
        f"The role {role.name} changes nothing and has no shell that writes: nothing of the command was run. "
        "Commands that only read are fine, each by itself: ls, cat, grep, rg, git log, git show, git diff. "
        f"What you may do: `landlane role show {role.name}`."
    )


def _judge_patches(repo: Repository, session: Session, event: HookEvent, line: ShellLine) -> HookAnswer:
    """Check patches in a shell command as edits: some clients apply them without an end event."""
    answer = NOTHING
    for patch in line.patches:
        if patch.folder.is_unknown:  # its files are unknown; changes here are found afterwards
            continue
        try:
            # Only the beginning of a long command was parsed; an extra path is harmless.
            paths = patched_paths(event.command if len(event.command) > MOST_TEXT else patch.text)
        except Malformed:
            continue
        folder = _folder_of(repo, event, patch.folder)
        edit = replace(
            event, tool=ToolAction.EDIT, cwd=folder, paths=tuple(path for path in paths if "\0" not in path)
        )
        judged = check_edit(repo, session, edit)
        if judged.verdict == HookVerdict.DENY:
            return judged
        answer = judged if judged != NOTHING else answer
    return answer


def _refuse_git(repo: Repository, session: Session, event: HookEvent, line: ShellLine) -> str:
    """Return why a git command in the line is refused, and what to run instead."""
    for call in line.git_calls:
        if call.folder.is_unknown:  # changes here are found afterwards
            continue
        try:
            check_git(repo, session, _folder_of(repo, event, call.folder), call.words)
        except (NotAllowed, Held) as error:
            record_violation(repo, session, rule=CLAIM_FIRST, guard=GUARD, what=error.message)
            hint = f"{error.hint[:1].upper()}{error.hint[1:]}." if error.hint else ""
            return f"{error.message}. {hint}"
    return ""


def _folder_of(repo: Repository, event: HookEvent, folder: WorkingFolder) -> str:
    parts = (os.path.expanduser(part) for part in folder.folders)
    return os.path.normpath(os.path.join(event.cwd or repo.checkout.root, *parts))


def after_shell(repo: Repository, session: Session, event: HookEvent) -> HookAnswer:
    """Find what the call changed; record and report what the session was not allowed to change."""
    if in_own_scratch(repo, session, repo.checkout.root):
        return NOTHING
    call, snapshot = _find_snapshot(repo, session, event)
    if call is not None and not snapshot.is_background:
        end_call(repo, session.id, call.call)
    if snapshot == NO_SNAPSHOT:
        return NOTHING
    background = _background_changes(repo, session, snapshot)
    changes, now = find_changes(repo, session, snapshot)
    _advance_open_calls(repo, session, now)
    _save_last_snapshot(repo, session, now)
    since = call.began_at if call is not None else None
    # A background command may have made these changes before this call began, so nothing is certain.
    texts = _check_changes(repo, session, background, snapshot, event.command, None) if background else []
    texts += _check_changes(repo, session, changes, snapshot, event.command, since) if changes else []
    return inform("\n\n".join(texts))


def _check_changes(
    repo: Repository,
    session: Session,
    changes: Sequence[CheckoutChange],
    snapshot: CallSnapshot,
    command: str,
    since: int | None,
    *,
    is_late: bool = False,
) -> list[str]:
    """Check changes and report them. With `is_late`, only files that the command names are certain."""
    context = read_context(repo, session)
    effects = judge_changes(repo, context, changes)
    foreign = [effect for effect in effects if effect.kind in UNAUTHORIZED]
    texts: list[str] = []
    foreign = without_repairs(repo, context, without_committed(repo, foreign, snapshot)) if foreign else []
    if foreign:
        others = without_holders_writes(repo, foreign)
        unnamed = [effect for effect in others if is_late and not names_file(command, effect.path)]
        named = [effect for effect in others if effect not in unnamed]
        breaches = with_suspects(repo, context, named, command, since)
        breaches += with_suspects(repo, context, unnamed, command, None)
        texts += report_breaches(repo, context, breaches)
    ours = [effect for effect in effects if effect.kind in (ChangeOwner.OWN, ChangeOwner.UNCLAIMED)]
    ours = certain_effects(repo, context, ours, command, None if is_late else since) if ours else []
    unclaimed = [effect for effect in ours if effect.kind == ChangeOwner.UNCLAIMED]
    texts += claim_or_report(repo, session, unclaimed)
    seen = {remembered_as(effect): read_file_version(effect.full_path) for effect in ours[:_MOST_READ]}
    record_reads(repo, session.id, {path: version for path, version in seen.items() if path})
    return texts


def _background_changes(repo: Repository, session: Session, snapshot: CallSnapshot) -> list[CheckoutChange]:
    """Return the changes since the last check that a background command of the session may have made."""
    root = repo.checkout.root
    found: list[CheckoutChange] = []
    for call in list_open_calls(repo, session.id):
        before = parse_snapshot(call.snapshot)
        is_background_here = before.is_background and call.root == root and not snapshot.is_background
        if is_background_here and root in before.trees and root in snapshot.trees:
            changes = changes_between(
                locate_checkout_at(repo, root), before.trees[root], snapshot.trees[root]
            )
            found = [
                CheckoutChange(root=root, change=change, tree=snapshot.trees[root]) for change in changes
            ]
    return found


def _advance_open_calls(repo: Repository, session: Session, now: CallSnapshot) -> None:
    """Move the snapshots of commands that still run to this point, so that nothing is reported twice."""
    for call in list_open_calls(repo, session.id):
        snapshot = parse_snapshot(call.snapshot)
        moved = advance_snapshot(snapshot, now)
        if moved != snapshot:
            begin_call(repo, session.id, call.call, call.root, moved.to_text())


def _save_last_snapshot(repo: Repository, session: Session, now: CallSnapshot) -> None:
    """Record the state at the end of a call: a process it left running may write later."""
    text, _ = find_last_snapshot(repo, session.id)
    before = parse_snapshot(text)
    if before.may_leave_processes:  # keep watching what an earlier call left running
        command = f"{before.command}\n{now.command}"
        trees, heads = {**before.trees, **now.trees}, {**before.heads, **now.heads}
        files = {**before.files, **now.files}
        now = replace(now, trees=trees, heads=heads, files=files, command=command, may_leave_processes=True)
    save_last_snapshot(repo, session.id, now.to_text())


def _find_snapshot(
    repo: Repository, session: Session, event: HookEvent
) -> tuple[ToolCall | None, CallSnapshot]:
    """Return the state before a call: by its id, the newest open call, or the last snapshot."""
    call = find_open_call(repo, session.id, event.call) or find_open_call(repo, session.id, "")
    if call is not None:
        return call, parse_snapshot(call.snapshot)
    tree = last_snapshot(locate_checkout_at(repo, repo.checkout.root))
    return None, CallSnapshot(trees={repo.checkout.root: tree}, files={}) if tree else NO_SNAPSHOT


def check_earlier_calls(repo: Repository, session: Session, event: HookEvent) -> str:
    """Check calls without an end event and calls that left processes running; return the report.

    A call that has not ended may still run: it is watched from here on, until its turn is over.
    """
    if event.kind == HookEventKind.AFTER and event.tool == ToolAction.SHELL:
        return ""  # its own check includes this
    is_over = event.kind in (HookEventKind.PROMPT, HookEventKind.STOP)
    texts = _check_open_calls(repo, session, event)
    if is_over or (event.kind == HookEventKind.BEFORE and event.tool == ToolAction.SHELL):
        texts += _check_after_calls(repo, session, is_stop=event.kind == HookEventKind.STOP)
    return "\n\n".join(texts)


def _check_open_calls(repo: Repository, session: Session, event: HookEvent) -> list[str]:
    texts: list[str] = []
    is_over = event.kind in (HookEventKind.PROMPT, HookEventKind.STOP)
    for call in reversed(list_open_calls(repo, session.id)):  # oldest first: its snapshot covers the most
        current = find_open_call(repo, session.id, call.call)
        if current is None:
            continue
        snapshot = parse_snapshot(current.snapshot)
        if current.root != repo.checkout.root:  # single files were recorded for that checkout
            snapshot = replace(snapshot, files={})
        if (is_over and not snapshot.is_background) or snapshot.is_patch or snapshot == NO_SNAPSHOT:
            end_call(repo, session.id, call.call)
        if snapshot == NO_SNAPSHOT:
            continue
        changes, now = find_changes(repo, session, snapshot)
        _advance_open_calls(repo, session, now)
        _save_last_snapshot(repo, session, now)
        if changes:
            # The end of the call is unknown: by the next prompt others may have made the change.
            is_late = snapshot.is_background or snapshot.is_patch or event.kind == HookEventKind.PROMPT
            since = current.began_at
            texts += _check_changes(
                repo, session, changes, snapshot, snapshot.command, since, is_late=is_late
            )
    return texts


def _check_after_calls(repo: Repository, session: Session, *, is_stop: bool) -> list[str]:
    """Check what changed since the last call ended; always at the end of a turn."""
    text, since = find_last_snapshot(repo, session.id)
    snapshot = parse_snapshot(text)
    if snapshot == NO_SNAPSHOT or not (is_stop or snapshot.may_leave_processes):
        return []
    if repo.checkout.root not in snapshot.trees:
        snapshot = replace(snapshot, files={})
    changes, now = find_changes(repo, session, snapshot)
    # With nothing left running, later changes are not made by this session.
    save_last_snapshot(repo, session.id, now.to_text() if snapshot.may_leave_processes else "")
    if not changes:
        return []
    if snapshot.may_leave_processes:
        return _check_changes(repo, session, changes, snapshot, snapshot.command, since, is_late=True)
    return _check_changes(repo, session, changes, snapshot, "", None)

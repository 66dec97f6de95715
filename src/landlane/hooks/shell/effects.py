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
from landlane.errors import Held, Malformed, NotAllowed
from landlane.files import look_at
from landlane.git.snapshot import changes_between, last_snapshot
from landlane.hooks.edit import check_edit, in_own_scratch
from landlane.hooks.git_command.guard import check_git
from landlane.hooks.shell.changes import (
    NO_WINDOW,
    Window,
    close_window,
    move_window,
    open_window,
    place_at,
    survey_scene,
    window_from,
)
from landlane.hooks.shell.claim_free_paths import settle_unclaimed
from landlane.hooks.shell.ignored_changes import without_mended, without_moves
from landlane.hooks.shell.ownership import (
    OWN,
    UNCLAIMED,
    judge_changes,
    names_file,
    remembered_as,
    surely_ours,
    with_suspects,
    without_the_holders_own,
)
from landlane.hooks.shell.report import GUARD, report_breaches
from landlane.hooks.shell_syntax.command_line import MOST_TEXT, read_line
from landlane.ids import short_id
from landlane.protocol.hook_events import (
    AFTER,
    BEFORE,
    DENY,
    EDIT,
    NOTHING,
    PROMPT,
    SHELL,
    STOP,
    WATCH,
    deny,
    inform,
)
from landlane.roles.enforce import may_write as why_not_written
from landlane.rules.violations import CLAIM_FIRST, record_violation
from landlane.sessions.file_versions import remember
from landlane.sessions.tool_calls import (
    ToolCall,
    begin_call,
    end_call,
    last_look,
    note_look,
    open_call,
    open_calls,
)
from landlane.values import replace
from landlane.workspaces.unauthorized_writes import HELD, ROLE, STRAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.tree_diff import TreeChange
    from landlane.hooks.shell_syntax.command_line import ShellLine
    from landlane.protocol.hook_events import HookAnswer, HookEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_MOST_READ = 500


def may_write(repo: Repository, session: Session, path: str) -> str:
    """Return why the session's role forbids changing a path; empty when it may."""
    return why_not_written(repo, session, path)


# ------------------------------------------------------------------------------------------ before


def before_shell(repo: Repository, session: Session, event: HookEvent) -> HookAnswer:
    """Refuse what would affect the work of others; otherwise record the state before the call.

    This refuses git verbs, and patches that a client applies as its own edit.

    Raises:
        LandlaneError: the call cannot be checked, or the checkout cannot be read.
    """
    if in_own_scratch(repo, session, repo.checkout.root):
        return NOTHING  # no other session works there, and the sandbox blocks writes elsewhere
    line = read_line(event.command)
    refusal = _refuse_git(repo, session, event, line)
    if refusal and repo.settings.hooks.policy != WATCH:
        return deny(f"{refusal} Nothing of the command was run.")
    patched = _judge_patches(repo, session, event, line)
    if patched.verdict == DENY:
        return patched
    window = open_window(repo, session, event, line)
    begin_call(repo, session.id, event.call or short_id("c"), repo.checkout.root, window.to_text())
    if refusal:
        return inform(
            "Landlane let this command pass and only noted it, because its policy here is to watch. "
            f"Anywhere else it would refuse it and say: {refusal}"
        )
    return patched


def _judge_patches(repo: Repository, session: Session, event: HookEvent, line: ShellLine) -> HookAnswer:
    """Check patches in a shell command as edits: some clients apply them without an end event."""
    answer = NOTHING
    base = event.cwd or repo.checkout.root
    for patch in line.patches:
        if patch.is_elsewhere:  # its files are unknown; changes here are found afterwards
            continue
        try:
            # Only the beginning of a long command was parsed; an extra path is harmless.
            paths = patched_paths(event.command if len(event.command) > MOST_TEXT else patch.text)
        except Malformed:
            continue
        folder = os.path.normpath(os.path.join(base, *(os.path.expanduser(part) for part in patch.folders)))
        edit = replace(event, tool=EDIT, cwd=folder, paths=tuple(path for path in paths if "\0" not in path))
        judged = check_edit(repo, session, edit)
        if judged.verdict == DENY:
            return judged
        answer = judged if judged != NOTHING else answer
    return answer


def _refuse_git(repo: Repository, session: Session, event: HookEvent, line: ShellLine) -> str:
    """Return why a git command in the line is refused, and what to run instead."""
    base = event.cwd or repo.checkout.root
    for call in line.git_calls:
        if call.is_elsewhere:  # its folder is unknown; changes here are found afterwards
            continue
        folder = os.path.normpath(os.path.join(base, *(os.path.expanduser(part) for part in call.folders)))
        try:
            check_git(repo, session, folder, call.words)
        except (NotAllowed, Held) as error:
            record_violation(repo, session, rule=CLAIM_FIRST, guard=GUARD, what=error.message)
            hint = f"{error.hint[:1].upper()}{error.hint[1:]}." if error.hint else ""
            return f"{error.message}. {hint}"
    return ""


# ------------------------------------------------------------------------------------------ after


def after_shell(repo: Repository, session: Session, event: HookEvent) -> HookAnswer:
    """Find what the call changed; record and report what the session was not allowed to change."""
    if in_own_scratch(repo, session, repo.checkout.root):
        return NOTHING
    call, window = _find_window(repo, session, event)
    if call is not None and not window.is_background:
        end_call(repo, session.id, call.call)
    if window == NO_WINDOW:
        return NOTHING
    between = _background_changes(repo, session, window)
    changes, now = close_window(repo, session, window)
    _move_on(repo, session, now)
    _note_last_look(repo, session, now)
    since = call.began_at if call is not None else None
    # A background command may have made these changes before this call began, so nothing is certain.
    texts = _judge_all(repo, session, between, window, event.command, None) if between else []
    texts += _judge_all(repo, session, changes, window, event.command, since) if changes else []
    return inform("\n\n".join(texts))


def _judge_all(
    repo: Repository,
    session: Session,
    changes: Sequence[tuple[str, TreeChange, str]],
    window: Window,
    command: str,
    since: int | None,
    *,
    is_late: bool = False,
) -> list[str]:
    """Check changes and report them. With `is_late`, only files that the command names are certain."""
    scene = survey_scene(repo, session)
    effects = judge_changes(repo, scene, changes, may_write)
    foreign = [effect for effect in effects if effect.kind in (HELD, STRAY, ROLE)]
    texts: list[str] = []
    foreign = without_mended(repo, scene, without_moves(repo, foreign, window)) if foreign else []
    if foreign:
        others = without_the_holders_own(repo, foreign)
        unnamed = [effect for effect in others if is_late and not names_file(command, effect.path)]
        named = [effect for effect in others if effect not in unnamed]
        guilty = with_suspects(repo, scene, named, command, since)
        guilty += with_suspects(repo, scene, unnamed, command, None)
        texts += report_breaches(repo, scene, guilty)
    ours = [effect for effect in effects if effect.kind in (OWN, UNCLAIMED)]
    ours = surely_ours(repo, scene, ours, command, None if is_late else since) if ours else []
    texts += settle_unclaimed(repo, session, [effect for effect in ours if effect.kind == UNCLAIMED])
    seen = {remembered_as(effect): look_at(effect.full_path) for effect in ours[:_MOST_READ]}
    remember(repo, session.id, {path: version for path, version in seen.items() if path})
    return texts


def _background_changes(
    repo: Repository, session: Session, window: Window
) -> list[tuple[str, TreeChange, str]]:
    """Return the changes since the last check that a background command of the session may have made."""
    root = repo.checkout.root
    found: list[tuple[str, TreeChange, str]] = []
    for call in open_calls(repo, session.id):
        before = window_from(call.snapshot)
        is_behind = before.is_background and call.root == root and not window.is_background
        if is_behind and root in before.trees and root in window.trees:
            changes = changes_between(place_at(repo, root), before.trees[root], window.trees[root])
            found = [(root, change, window.trees[root]) for change in changes]
    return found


def _move_on(repo: Repository, session: Session, now: Window) -> None:
    """Move the windows of commands that still run to this point, so that nothing is reported twice."""
    for call in open_calls(repo, session.id):
        window = window_from(call.snapshot)
        moved = move_window(window, now)
        if moved != window:
            begin_call(repo, session.id, call.call, call.root, moved.to_text())


def _note_last_look(repo: Repository, session: Session, now: Window) -> None:
    """Record the state at the end of a call: a process it left running may write later."""
    text, _ = last_look(repo, session.id)
    before = window_from(text)
    if before.is_leaving:  # keep watching what an earlier call left running
        command = f"{before.command}\n{now.command}"
        trees, heads = {**before.trees, **now.trees}, {**before.heads, **now.heads}
        files = {**before.files, **now.files}
        now = replace(now, trees=trees, heads=heads, files=files, command=command, is_leaving=True)
    note_look(repo, session.id, now.to_text())


def _find_window(repo: Repository, session: Session, event: HookEvent) -> tuple[ToolCall | None, Window]:
    """Return the state before a call: by its id, the newest open call, or the last snapshot."""
    call = open_call(repo, session.id, event.call) or open_call(repo, session.id, "")
    if call is not None:
        return call, window_from(call.snapshot)
    tree = last_snapshot(place_at(repo, repo.checkout.root))
    return None, Window(trees={repo.checkout.root: tree}, files={}) if tree else NO_WINDOW


# ------------------------------------------------------------------------------------------ later


def settle_open(repo: Repository, session: Session, event: HookEvent) -> str:
    """Check calls without an end event and calls that left processes running; return the report.

    A call that has not ended may still run: it is watched from here on, until its turn is over.
    """
    if event.kind == AFTER and event.tool == SHELL:
        return ""  # its own check includes this
    is_over = event.kind in (PROMPT, STOP)
    texts = _settle_calls(repo, session, event)
    if is_over or (event.kind == BEFORE and event.tool == SHELL):
        texts += _settle_late(repo, session, is_stop=event.kind == STOP)
    return "\n\n".join(texts)


def _settle_calls(repo: Repository, session: Session, event: HookEvent) -> list[str]:
    texts: list[str] = []
    is_over = event.kind in (PROMPT, STOP)
    for call in reversed(open_calls(repo, session.id)):  # oldest first: its window is the longest
        current = open_call(repo, session.id, call.call)
        if current is None:
            continue
        window = window_from(current.snapshot)
        if current.root != repo.checkout.root:  # single files were recorded for that checkout
            window = replace(window, files={})
        if (is_over and not window.is_background) or window.is_patch or window == NO_WINDOW:
            end_call(repo, session.id, call.call)
        if window == NO_WINDOW:
            continue
        changes, now = close_window(repo, session, window)
        _move_on(repo, session, now)
        _note_last_look(repo, session, now)
        if changes:
            # The end of the call is unknown: by the next prompt others may have made the change.
            is_late = window.is_background or window.is_patch or event.kind == PROMPT
            since = current.began_at
            texts += _judge_all(repo, session, changes, window, window.command, since, is_late=is_late)
    return texts


def _settle_late(repo: Repository, session: Session, *, is_stop: bool) -> list[str]:
    """Check what changed since the last call ended; always at the end of a turn."""
    text, since = last_look(repo, session.id)
    window = window_from(text)
    if window == NO_WINDOW or not (is_stop or window.is_leaving):
        return []
    if repo.checkout.root not in window.trees:
        window = replace(window, files={})
    changes, now = close_window(repo, session, window)
    # With nothing left running, later changes are not made by this session.
    note_look(repo, session.id, now.to_text() if window.is_leaving else "")
    if not changes:
        return []
    if window.is_leaving:
        return _judge_all(repo, session, changes, window, window.command, since, is_late=True)
    return _judge_all(repo, session, changes, window, "", None)

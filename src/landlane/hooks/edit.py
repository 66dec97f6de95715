"""Before an edit: check that this session may change these files, and claim those that are free."""

from __future__ import annotations

import os
from shlex import quote

from landlane.claims.check import PathState, check
from landlane.claims.claim_paths import claim_paths
from landlane.claims.describe import describe_holder, refusal_text
from landlane.claims.model import ClaimMode, Refused
from landlane.claims.take import list_claims, make_request
from landlane.errors import PatternError, RepositoryError
from landlane.files import GONE, read_file_version
from landlane.git.discovery import find_checkout
from landlane.patterns.pattern import covers_all, covers_alternative
from landlane.protocol.hook_events import NOTHING, HookPolicy, deny, inform
from landlane.rules.violations import CLAIM_FIRST, STAY_IN_ROLE, record_violation
from landlane.sessions.leases import find_ancestors, find_session
from landlane.sessions.model import worker_task
from landlane.sessions.tool_calls import find_read, list_reads, record_reads
from landlane.store import records
from landlane.tasks.records import tasks_of
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Refusal
    from landlane.patterns.pattern import Pattern
    from landlane.protocol.hook_events import HookAnswer, HookEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


_GUARD = "client hook"
_MOST_WORDS = 100  # of a shell command; later words are not searched for file names
_ELSEWHERE = ("PATH_OUTSIDE", "PATH_IN_OTHER_REPOSITORY")
_SCRATCH = "/landlane-"  # in the path of every scratch folder of a run


@value
class EditedFile:
    """A file about to be changed: its real path, and its pattern, which is the same in all worktrees."""

    path: str
    pattern: Pattern

    @property
    def name(self) -> str:
        """The path as claims name it."""
        return self.pattern.text


def check_edit(repo: Repository, session: Session, event: HookEvent) -> HookAnswer:
    """Return whether an edit is allowed; with the policy `auto`, free files are claimed for the session."""
    files, forbidden = _edited_files(repo, event)
    files = [file for file in files if not in_own_scratch(repo, session, file.path)]
    outside = _outside_of_role(repo, session, files)
    problem = (
        forbidden or outside or _outside_of_task(repo, session, files) or _misplaced(repo, session, files)
    )
    note = ""
    if not problem:
        # Claim before comparing, so that no other session can change the file in between.
        problem, note = _claim_free(repo, session, files)
        problem = problem or _outdated(repo, session, files)
    if not problem:
        return inform(note) if note else NOTHING
    paths = tuple(file.name for file in files)
    rule = STAY_IN_ROLE if problem == outside else CLAIM_FIRST
    record_violation(repo, session, rule=rule, guard=_GUARD, what=problem.partition("\n")[0], paths=paths)
    if repo.settings.hooks.policy == HookPolicy.WATCH:
        return inform(
            "Landlane let this edit pass, because its policy here is only to watch. Anywhere else it would "
            f"say: {problem}"
        )
    return deny(problem)


def note_edit(repo: Repository, session: Session, event: HookEvent) -> None:
    """Record the file versions that the session has seen, after an edit or a read."""
    files, _ = _edited_files(repo, event)
    record_reads(repo, session.id, {file.path: read_file_version(file.path) for file in files})


def note_named(repo: Repository, session: Session, event: HookEvent) -> None:
    """Record the files that a shell call names as read by the session.

    Some clients can only read through the shell, and must be able to read a file again when `_outdated` asks.
    """
    if not event.command:
        return
    seen = repo.store.view(lambda snapshot: list_reads(snapshot, session.id))
    paths = {path for path in seen if os.path.basename(path) in event.command}
    named = {path: read_file_version(path) for path in (*paths, *_named_files(repo, event))}
    unknown = {path: now for path, now in named.items() if path not in seen or now[0] != seen[path][0]}
    record_reads(repo, session.id, unknown)


def _named_files(repo: Repository, event: HookEvent) -> list[str]:
    """Return the files of this repository that a shell command names, in any folder it changes to."""
    from landlane.hooks.shell_syntax.command_line import parse_shell  # noqa: PLC0415 - only shell calls need it

    line = parse_shell(event.command)
    words = [word for word in dict.fromkeys(line.words) if word and not word.startswith("-")]
    paths: list[str] = []
    for folder in ("", *line.folders):
        for word in words[:_MOST_WORDS]:
            path = os.path.join(folder, word)
            if "\0" not in path and os.path.isfile(real_path(event, path)):
                paths += [file.path for file in _edited_files(repo, replace(event, paths=(path,)))[0]]
    return paths


def real_path(event: HookEvent, path: str) -> str:
    """Resolve a path of a tool's input, following links."""
    home = os.path.join(event.cwd, "~")  # some clients expand `~` themselves; a folder of that name is rare
    if path.startswith(f"{home}/") and not os.path.isdir(home):
        path = path[len(home) - 1 :]
    return os.path.realpath(os.path.join(event.cwd, os.path.expanduser(path)))


def _edited_files(repo: Repository, event: HookEvent) -> tuple[list[EditedFile], str]:
    """Return the files of this repository that an event names, and why one of them cannot be edited."""
    files: dict[str, EditedFile] = {}
    for path in event.paths:
        real = real_path(event, path)
        try:
            pattern = repo.git.pattern(real, is_literal=True)
        except PatternError as error:
            if error.code in _ELSEWHERE:
                continue
            return list(files.values()), f"{error.message}. {_sentence(error.hint)}"
        if os.path.isdir(real):
            return list(files.values()), f"{path} is a folder, not a file. Name the file that you mean."
        files[real] = EditedFile(path=real, pattern=pattern)
    return list(files.values()), ""


def in_own_scratch(repo: Repository, session: Session, path: str) -> bool:
    """Return whether a path is in the scratch folder of the session's own run, which is temporary."""
    if _SCRATCH not in path:
        return False
    from landlane.sessions.sandbox_runs import RunState, list_runs  # noqa: PLC0415 - few paths are in a scratch folder

    family = {session.id, *repo.store.view(lambda snapshot: find_ancestors(snapshot, session.id))}
    running = list_runs(repo, RunState.RUNNING)
    runs = [run for run in running if not family.isdisjoint((run.session, run.worker))]
    own = [f"{os.path.realpath(run.scratch)}/" for run in runs]
    return os.path.realpath(path).startswith(tuple(own))


def _outside_of_role(repo: Repository, session: Session, files: Sequence[EditedFile]) -> str:
    """Return why the session's role forbids changing one of these files, or an empty string."""
    if not session.role:
        return ""
    from landlane.roles.enforce import may_write  # noqa: PLC0415 - few sessions have a role

    for file in files:
        reason = may_write(repo, session, file.name.removeprefix("./"))
        if reason:
            return (
                f"{reason[:1].upper()}{reason[1:]}. Do not change it, neither with an edit nor through the "
                "shell: it would not land. Report what has to change, or hand it to an agent whose role may: "
                "`landlane task add … --role R`. What you may do: "
                f"`landlane role show {session.role}`."
            )
    return ""


def _outside_of_task(repo: Repository, session: Session, files: Sequence[EditedFile]) -> str:
    """Return why the task of a worker does not cover one of these files, or an empty string."""
    if not worker_task(session.agent):
        return ""
    from landlane.tasks.worker_paths import why_outside_task  # noqa: PLC0415 - only workers have such a task

    for file in files:
        name = file.name.removeprefix("./")
        reason = why_outside_task(repo, session, name)
        if reason:
            return (
                f"{reason}. Do not change it, neither with an edit nor through the shell: it would not land. "
                f"If you cannot do without it, say why: landlane claim {quote(name)} --note 'why'"
            )
    return ""


def _misplaced(repo: Repository, session: Session, files: Sequence[EditedFile]) -> str:
    """Return why a file is in the wrong checkout: another agent's workspace, or outside the session's own."""
    machine = repo.processes.machine
    opened = repo.store.view(lambda snapshot: records.find_all(snapshot, "workspace", ("open",)))
    workspaces = {row["path"]: row for row in opened if row["machine"] == machine}
    if not workspaces:
        return ""
    agents = _with_parents(repo, session)
    own = [path for path, row in workspaces.items() if row["agent"] in agents]
    for file in files:
        root = _root_of(file.path)
        if root in own or not root:
            continue
        workspace = workspaces.get(root)
        if workspace is not None:
            return (
                f"{file.path} lies in the workspace of {workspace['agent']} (task {workspace['task']}). "
                "Do not change anything there; work in your own checkout. If you are meant to work there, "
                f"you have to be started as {workspace['agent']}: LANDLANE_AGENT={workspace['agent']}."
            )
        if own:
            return (
                f"{file.path} lies outside your workspace. You work in {own[-1]}: "
                f"edit {os.path.join(own[-1], file.name)} instead."
            )
    return ""


def _with_parents(repo: Repository, session: Session) -> set[str]:
    """Return the agent names of a session and its ancestors: a subagent works in their workspaces."""

    def read_agents(snapshot: Snapshot) -> set[str]:
        parents = [find_session(snapshot, parent) for parent in find_ancestors(snapshot, session.id)]
        return {session.agent, *(parent.agent for parent in parents if parent is not None)}

    return repo.store.view(read_agents)


def _root_of(path: str) -> str:
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        return find_checkout(folder).root
    except RepositoryError:
        return ""


def _outdated(repo: Repository, session: Session, files: Sequence[EditedFile]) -> str:
    """Return why an edit would be based on an outdated version, or an empty string."""
    for file in files:
        seen = find_read(repo, session.id, file.path)
        now = read_file_version(file.path)
        if seen is None or now[0] == seen[0]:
            continue
        if now == GONE:
            record_reads(repo, session.id, {file.path: now})
            return (
                f"{file.name} was removed since you last read it. Find out why "
                f"(`git log -- {file.name}`); if it is to be there, write it again."
            )
        return (
            f"{file.name} has changed since you last read it: your edit would be based on an old version. "
            f"Read it again (`cat {file.name}` will do), then make your change to what it says now."
        )
    return ""


def _claim_free(repo: Repository, session: Session, files: Sequence[EditedFile]) -> tuple[str, str]:
    """Claim the free files; return why that failed, if it did, and a note about a former holder's work."""
    policy = repo.settings.hooks.policy
    wanted: dict[ClaimMode, list[Pattern]] = {ClaimMode.EXCLUSIVE: [], ClaimMode.SHARED: []}
    for file in files:
        coverage = check(repo, session, file.pattern)
        if coverage.state in (PathState.HELD, PathState.FREE):
            continue
        mode = claim_mode(repo, file.pattern)
        is_in_the_way = coverage.claim is not None and mode.conflicts_with(coverage.claim.mode)
        if coverage.claim is not None and is_in_the_way and policy != HookPolicy.AUTO:
            return _instead(describe_holder(repo, file.name, coverage.claim), file.name), ""
        if policy == HookPolicy.STRICT and not _is_parents(repo, session, file.pattern):
            return (
                f"{file.name} is not claimed, and this repository requires a claim before every change. "
                f"Claim it, then edit it: landlane claim {quote(file.name)}"
            ), ""
        wanted[mode].append(file.pattern)
    if policy == HookPolicy.WATCH:
        return "", ""
    notes: list[str] = []
    for mode, patterns in wanted.items():
        if not patterns:
            continue
        request = make_request(repo, tuple(patterns), mode=mode, task=task_of(repo, session))
        outcome = claim_paths(repo, session, request)
        if isinstance(outcome, Refused):
            return _refused_text(repo, outcome.refused[0]), ""
        notes += [outcome.saved.note] if outcome.saved is not None else []
    return "", "\n".join(notes)


def _is_parents(repo: Repository, session: Session, pattern: Pattern) -> bool:
    """Return whether an ancestor of this session has claimed a path."""
    ancestors = repo.store.view(lambda snapshot: find_ancestors(snapshot, session.id))
    return any(
        covers_alternative(claimed, wanted)
        for claim in (list_claims(repo, (pattern,)) if ancestors else ())
        if claim.session in ancestors
        for claimed in repo.git.pattern_of(claim.pattern, claim.kind).alternatives
        for wanted in pattern.alternatives
    )


def task_of(repo: Repository, session: Session) -> str:
    """Return the task that the session works on, or an empty string when there is not exactly one."""
    tasks = repo.store.view(lambda snapshot: tasks_of(snapshot, session.id))
    return tasks[0].id if len(tasks) == 1 else ""


def claim_mode(repo: Repository, pattern: Pattern) -> ClaimMode:
    """Return how a path is claimed: a mergeable one is shared."""
    is_mergeable = is_listed(repo, repo.settings.mergeable_patterns, pattern)
    return ClaimMode.SHARED if is_mergeable else ClaimMode.EXCLUSIVE


def is_listed(repo: Repository, globs: Sequence[str], pattern: Pattern) -> bool:
    """Return whether these globs of the settings cover everything that a pattern names."""
    known = [listed for glob in globs for listed in repo.git.pattern_of(glob, "glob").alternatives]
    return bool(known) and covers_all(known, pattern)


def _refused_text(repo: Repository, refusal: Refusal) -> str:
    """Explain to a model why a file was refused."""
    now = repo.store.view(lambda snapshot: snapshot.now)
    return _instead(refusal_text(refusal, repo.store, now), refusal.pattern)


def _instead(why: str, name: str) -> str:
    """Return a refusal for a model: the reason, and three ways to go on."""
    return (
        f"{why}.\n"
        "Your edit was not applied. Do not change this file through the shell either. Instead:\n"
        "- work on files that are not claimed: landlane claims\n"
        "- take another task: landlane next\n"
        f"- if you cannot go on without this file: landlane claim {quote(name)} --wait 10m"
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""

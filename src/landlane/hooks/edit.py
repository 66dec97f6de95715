"""Before an edit: check that this session may change these files, and claim those that are free."""

from __future__ import annotations

import os

from landlane.claims.check import check
from landlane.claims.model import ClaimMode, Refused
from landlane.claims.read import list_claims
from landlane.claims.take import make_request, take
from landlane.clock import duration_text, rfc3339
from landlane.errors import PatternError, RepositoryError
from landlane.files import GONE, look_at
from landlane.git.discovery import find_checkout
from landlane.patterns.pattern import covers_alternative
from landlane.protocol.hook_events import NOTHING, STRICT, WATCH, deny, inform
from landlane.rules.violations import CLAIM_FIRST, STAY_IN_ROLE, record_violation
from landlane.sessions.file_versions import all_seen, last_seen, remember
from landlane.sessions.read import find_ancestors, find_session
from landlane.store import records
from landlane.tasks.records import find_task, tasks_of
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
class Target:
    """A file about to be changed: its real path, and its pattern, which is the same in all worktrees."""

    path: str
    pattern: Pattern

    @property
    def name(self) -> str:
        """The path as claims name it."""
        return self.pattern.text


def check_edit(repo: Repository, session: Session, event: HookEvent) -> HookAnswer:
    """Return whether an edit is allowed; with the policy `auto`, free files are claimed for the session."""
    targets, forbidden = _targets(repo, event)
    targets = [target for target in targets if not in_own_scratch(repo, session, target.path)]
    outside = _outside_of_role(repo, session, targets)
    problem = forbidden or outside or _misplaced(repo, session, targets)
    if not problem:
        # Claim before comparing, so that no other session can change the file in between.
        problem = _judge(repo, session, targets) or _outdated(repo, session, targets)
    if not problem:
        return NOTHING
    paths = tuple(target.name for target in targets)
    rule = STAY_IN_ROLE if problem == outside else CLAIM_FIRST
    record_violation(repo, session, rule=rule, guard=_GUARD, what=problem.partition("\n")[0], paths=paths)
    if repo.settings.hooks.policy == WATCH:
        return inform(
            "Landlane let this edit pass, because its policy here is only to watch. Anywhere else it would "
            f"say: {problem}"
        )
    return deny(problem)


def note_edit(repo: Repository, session: Session, event: HookEvent) -> None:
    """Record the file versions that the session has seen, after an edit or a read."""
    targets, _ = _targets(repo, event)
    remember(repo, session.id, {target.path: look_at(target.path) for target in targets})


def note_named(repo: Repository, session: Session, event: HookEvent) -> None:
    """Record the files that a shell call names as read by the session.

    Some clients can only read through the shell, and must be able to read a file again when `_outdated` asks.
    """
    if not event.command:
        return
    seen = all_seen(repo, session.id)
    paths = {path for path in seen if os.path.basename(path) in event.command}
    named = {path: look_at(path) for path in (*paths, *_named_files(repo, event))}
    unknown = {path: now for path, now in named.items() if path not in seen or now[0] != seen[path][0]}
    remember(repo, session.id, unknown)


def _named_files(repo: Repository, event: HookEvent) -> list[str]:
    """Return the files of this repository that a shell command names, in any folder it changes to."""
    from landlane.hooks.shell_syntax.command_line import read_line  # noqa: PLC0415 - only shell calls need it

    line = read_line(event.command)
    words = [word for word in dict.fromkeys(line.words) if word and not word.startswith("-")]
    paths: list[str] = []
    for folder in ("", *line.folders):
        for word in words[:_MOST_WORDS]:
            path = os.path.join(folder, word)
            if "\0" not in path and os.path.isfile(real_path(event, path)):
                paths += [target.path for target in _targets(repo, replace(event, paths=(path,)))[0]]
    return paths


def real_path(event: HookEvent, path: str) -> str:
    """Resolve a path of a tool's input, following links."""
    home = os.path.join(event.cwd, "~")  # some clients expand `~` themselves; a folder of that name is rare
    if path.startswith(f"{home}/") and not os.path.isdir(home):
        path = path[len(home) - 1 :]
    return os.path.realpath(os.path.join(event.cwd, os.path.expanduser(path)))


def _targets(repo: Repository, event: HookEvent) -> tuple[list[Target], str]:
    """Return the files of this repository that an event names, and why one of them cannot be edited."""
    targets: dict[str, Target] = {}
    for path in event.paths:
        real = real_path(event, path)
        try:
            pattern = repo.git.pattern(real, is_literal=True)
        except PatternError as error:
            if error.code in _ELSEWHERE:
                continue
            return list(targets.values()), f"{error.message}. {_sentence(error.hint)}"
        if os.path.isdir(real):
            return list(targets.values()), f"{path} is a folder, not a file. Name the file that you mean."
        targets[real] = Target(path=real, pattern=pattern)
    return list(targets.values()), ""


def in_own_scratch(repo: Repository, session: Session, path: str) -> bool:
    """Return whether a path is in the scratch folder of the session's own run, which is temporary."""
    if _SCRATCH not in path:
        return False
    from landlane.sessions.sandbox_runs import list_running  # noqa: PLC0415 - few paths are in a scratch folder

    family = {session.id, *repo.store.view(lambda snapshot: find_ancestors(snapshot, session.id))}
    runs = [run for run in list_running(repo) if not family.isdisjoint((run.session, run.worker))]
    own = [f"{os.path.realpath(run.scratch)}/" for run in runs]
    return os.path.realpath(path).startswith(tuple(own))


def _outside_of_role(repo: Repository, session: Session, targets: Sequence[Target]) -> str:
    """Return why the session's role forbids changing one of these files, or an empty string."""
    if not session.role:
        return ""
    from landlane.roles.enforce import may_write  # noqa: PLC0415 - few sessions have a role

    for target in targets:
        reason = may_write(repo, session, target.name.removeprefix("./"))
        if reason:
            return (
                f"{reason[:1].upper()}{reason[1:]}. Do not change it, neither with an edit nor through the "
                "shell: it would not land. Report what has to change, or hand it to an agent whose role may: "
                "`landlane task add … --role R`. What you may do: "
                f"`landlane role show {session.role}`."
            )
    return ""


def _misplaced(repo: Repository, session: Session, targets: Sequence[Target]) -> str:
    """Return why a file is in the wrong checkout: another agent's workspace, or outside the session's own."""
    machine = repo.processes.machine
    opened = repo.store.view(lambda snapshot: records.all_of(snapshot, "workspace", ("open",)))
    workspaces = {row["path"]: row for row in opened if row["machine"] == machine}
    if not workspaces:
        return ""
    agents = _with_parents(repo, session)
    own = [path for path, row in workspaces.items() if row["agent"] in agents]
    for target in targets:
        root = _root_of(target.path)
        if root in own or not root:
            continue
        workspace = workspaces.get(root)
        if workspace is not None:
            return (
                f"{target.path} lies in the workspace of {workspace['agent']} (task {workspace['task']}). "
                "Do not change anything there; work in your own checkout. If you are meant to work there, "
                f"somebody has to start you as {workspace['agent']}: LANDLANE_AGENT={workspace['agent']}."
            )
        if own:
            return (
                f"{target.path} lies outside your workspace. You work in {own[-1]}: "
                f"edit {os.path.join(own[-1], target.name)} instead."
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


def _outdated(repo: Repository, session: Session, targets: Sequence[Target]) -> str:
    """Return why an edit would be based on an outdated version, or an empty string."""
    for target in targets:
        seen = last_seen(repo, session.id, target.path)
        now = look_at(target.path)
        if seen is None or now[0] == seen[0]:
            continue
        if now == GONE:
            remember(repo, session.id, {target.path: now})
            return (
                f"{target.name} was removed since you last read it. Find out why "
                f"(`git log -- {target.name}`); if it is to be there, write it again."
            )
        return (
            f"{target.name} has changed since you last read it: your edit would be based on an old version. "
            f"Read it again (`cat {target.name}` will do), then make your change to what it says now."
        )
    return ""


def _judge(repo: Repository, session: Session, targets: Sequence[Target]) -> str:
    """Claim the free files; return why that failed, or an empty string when it did not."""
    policy = repo.settings.hooks.policy
    wanted: dict[ClaimMode, list[Pattern]] = {ClaimMode.EXCLUSIVE: [], ClaimMode.SHARED: []}
    for target in targets:
        coverage = check(repo, session, target.pattern)
        if coverage.state in ("held", "free"):
            continue
        mode = ClaimMode.SHARED if _is_mergeable(repo, target.pattern) else ClaimMode.EXCLUSIVE
        is_in_the_way = coverage.claim is not None and mode.conflicts_with(coverage.claim.mode)
        if coverage.claim is not None and is_in_the_way and policy != "auto":
            return _held_text(
                repo, target.name, coverage.claim.agent, coverage.claim.task, coverage.claim.until
            )
        if policy == STRICT and not _is_parents(repo, session, target.pattern):
            return (
                f"{target.name} is not claimed, and this repository wants a claim before a change. "
                f"Run `landlane claim {target.name}` first, then edit."
            )
        wanted[mode].append(target.pattern)
    if policy == WATCH:
        return ""
    for mode, patterns in wanted.items():
        refused = _take(repo, session, tuple(patterns), mode) if patterns else None
        if refused is not None:
            return _refused_text(repo, refused)
    return ""


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


def _take(
    repo: Repository, session: Session, patterns: tuple[Pattern, ...], mode: ClaimMode
) -> Refusal | None:
    request = make_request(repo, patterns, mode=mode, task=task_of(repo, session), note="edited")
    outcome = take(repo, session, request)
    return outcome.refused[0] if isinstance(outcome, Refused) else None


def task_of(repo: Repository, session: Session) -> str:
    """Return the task that the session works on, or an empty string when there is not exactly one."""
    tasks = repo.store.view(lambda snapshot: tasks_of(snapshot, session.id))
    return tasks[0].id if len(tasks) == 1 else ""


def _is_mergeable(repo: Repository, pattern: Pattern) -> bool:
    pattern_of = repo.git.pattern_of
    patterns = repo.settings.mergeable_patterns
    mergeable = [known for text in patterns for known in pattern_of(text, "glob").alternatives]
    return all(
        any(covers_alternative(known, wanted) for known in mergeable) for wanted in pattern.alternatives
    )


def _refused_text(repo: Repository, refusal: Refusal) -> str:
    if refusal.is_waiting:
        return (
            f"{refusal.pattern} is free, but {refusal.holder} has been waiting for it. "
            f"Work on something else, or stand in line: `landlane claim {refusal.pattern} --wait 10m`."
        )
    return _held_text(repo, refusal.pattern, refusal.holder, refusal.task, refusal.until)


def _held_text(repo: Repository, name: str, holder: str, task: str, until: int) -> str:
    """Explain to a model who holds a path, for which task and how long, and what to do instead."""

    def read_title(snapshot: Snapshot) -> tuple[int, str]:
        known = find_task(snapshot, task) if task else None
        return snapshot.now, known.title if known is not None else ""

    now, title = repo.store.view(read_title)
    for_what = f" for task {task}" + (f' ("{title}")' if title else "") if task else ""
    end = rfc3339(repo.store.wall_of(until))
    left = duration_text(max(until - now, 0) // 1000 * 1000)
    return (
        f"{name} is held by {holder}{for_what} until {end} ({left} from now, longer if {holder} works on). "
        "Do not change it, neither with an edit nor through the shell.\n"
        "Do one of these instead: work on files that nobody holds (`landlane claims` lists what is held); "
        "take another task (`landlane next`); or, if your work cannot go on without this file, "
        f"wait for it: `landlane claim {name} --wait 10m`."
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""

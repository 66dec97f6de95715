"""What is wrong with a plan, and what its author should know: unknown names, rings, roles, duplicates."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.patterns.pattern import overlap, parse
from landlane.plans.model import AGENTS
from landlane.roles.built_in import find_role, roles_of
from landlane.roles.model import Scope
from landlane.tasks.checklist import is_task_id
from landlane.tasks.duplicates import Lookalike, best_first, likeness, signs_of
from landlane.tasks.evidence_model import required_evidence
from landlane.tasks.model import DROPPED, OVER
from landlane.text import nearest_word
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from landlane.patterns.pattern import Pattern
    from landlane.plans.model import Plan, PlanTask
    from landlane.settings.model import Settings
    from landlane.tasks.duplicates import Likeness
    from landlane.tasks.model import Task

    T = TypeVar("T")


_PLANNED = "planned"
_MOST_SHARING = 20  # a word that more tasks share tells little


@value
class Finding:
    """Something that is wrong with a plan, or that its author should know."""

    code: str
    reason: str
    hint: str = ""
    tasks: tuple[str, ...] = ()
    line: int = 0


@value
class Around:
    """What a plan is judged against: the settings, what a path means here, and the tasks that are there."""

    settings: Settings
    parse: Callable[[str], Pattern] = parse
    tasks: Sequence[Task] | None = None  # nothing: nobody has looked
    agents: tuple[str, ...] = AGENTS


# ------------------------------------------------------------------------------------------ problems


def read_patterns(
    tasks: Iterable[PlanTask], around: Around
) -> tuple[dict[str, tuple[Pattern, ...]], list[Finding]]:
    """What the paths of each task mean, and those that mean nothing."""
    found: dict[str, tuple[Pattern, ...]] = {}
    problems: list[Finding] = []
    for task in tasks:
        read: list[Pattern] = []
        for text in task.paths:
            try:
                read.append(around.parse(text))
            except Malformed as error:
                problems.append(_of(task, error))
        found[task.name] = tuple({one.alternatives: one for one in read}.values())
    return found, problems


def _of(task: PlanTask, error: Malformed) -> Finding:
    return Finding(
        code=error.code,
        reason=f"{task.name}: {error.message}",
        hint=error.hint,
        tasks=(task.name,),
        line=task.line,
    )


def unknown_names(plan: Plan, tasks: Iterable[PlanTask], around: Around) -> list[Finding]:
    """Tasks, agents, roles and kinds that are named and not there."""
    names = {task.name for task in plan.tasks}
    problems: list[Finding] = []
    for task in tasks:
        problems += [
            problem
            for before in task.after
            if before not in names and (problem := _unknown_before(task, before, names, around)) is not None
        ]
        if task.agent and task.agent not in around.agents:
            problems.append(
                Finding(
                    code="UNKNOWN_AGENT",
                    reason=f"{task.name}: there is no agent {task.agent[:40]!r}",
                    hint=f"{_meant(task.agent, around.agents)}one of {', '.join(around.agents)}",
                    tasks=(task.name,),
                    line=task.line,
                )
            )
        try:
            if task.role:
                find_role(around.settings, task.role)
            if task.kind:
                required_evidence(task.kind, around.settings.tasks.evidence)
        except Malformed as error:
            problems.append(_of(task, error))
    return problems


def _unknown_before(task: PlanTask, before: str, names: set[str], around: Around) -> Finding | None:
    """Why a task cannot wait for this one, which is not in the plan; nothing when it can."""
    if is_task_id(before):
        state = next((one.state for one in around.tasks or () if one.id == before), "")
        if around.tasks is None or (state and state != DROPPED):
            return None
        why = f"{before} was dropped" if state else f"there is no task {before}"
        hint = "leave it out, or name another"
    else:
        why, hint = f"{before[:60]!r} is not in the plan", "give the name or the whole title of a task"
    return Finding(
        code="UNKNOWN_TASK",
        reason=f"{task.name}: {why}",
        hint=_meant(before, sorted(names)) + hint,
        tasks=(task.name,),
        line=task.line,
    )


def _meant(word: str, known: Sequence[str]) -> str:
    near = nearest_word(word, known)
    return f"did you mean {near}? " if near else ""


def ring_finding(ring: tuple[str, ...], tasks: Mapping[str, PlanTask]) -> Finding:
    """Some wait for each other."""
    return Finding(
        code="TASK_CYCLE",
        reason=f"these tasks wait for each other: {' → '.join(ring)}",
        hint="take one of these dependencies away",
        tasks=ring[:-1],
        line=tasks[ring[0]].line,
    )


# ------------------------------------------------------------------------------------------ warnings


def unclear(
    tasks: Iterable[PlanTask], patterns: Mapping[str, tuple[Pattern, ...]], around: Around
) -> list[Finding]:
    """What cannot be judged for lack of paths, and paths that a role could not write."""
    found: list[Finding] = []
    tasks = list(tasks)
    silent = tuple(task.name for task in tasks if not task.paths and not task.output)
    if silent:
        found.append(
            Finding(
                code="NO_PATHS",
                reason=f"nobody can tell what these change: {', '.join(silent)}",
                hint="give them paths, so that collisions are seen before they happen",
                tasks=silent,
            )
        )
    scopes = _scopes(tasks, around.settings)
    for task in tasks:
        found += [
            Finding(
                code="ROLE_FORBIDS",
                reason=f"{task.name}: {why}",
                hint="give it another role, or leave out the path",
                tasks=(task.name,),
                line=task.line,
            )
            for why in _beyond_role(task, patterns[task.name], scopes)
        ]
    return found


def _beyond_role(task: PlanTask, patterns: Sequence[Pattern], scopes: Mapping[str, Scope]) -> list[str]:
    scope = scopes.get(task.role)
    return [why for one in patterns if (why := scope.why_not_claimed(one))] if scope is not None else []


def _scopes(tasks: Iterable[PlanTask], settings: Settings) -> dict[str, Scope]:
    """What each role may write, spelled out once; those that are not there were told already."""
    roles = roles_of(settings)
    return {name: Scope(roles[name], settings) for name in {task.role for task in tasks} if name in roles}


def find_duplicates(
    plan: Plan,
    tasks: Iterable[PlanTask],
    patterns: Mapping[str, tuple[Pattern, ...]],
    around: Around,
) -> list[Finding]:
    """Tasks that look like the same work: within the plan, and in the queue."""
    found: list[Finding] = []
    sharing: dict[str, list[PlanTask]] = {}
    keys = {plan.key_of(task) for task in plan.tasks}
    waiting = [one for one in around.tasks or () if one.state not in OVER and one.key not in keys]
    by_sign = _by_sign(waiting)
    for task in tasks:
        branches = [branch.key for one in patterns[task.name] for branch in one.alternatives]
        signs = signs_of(task.title, task.body, branches)
        alike = {one.name: one for one in _sharers(sharing, signs)}
        others = {one.id: one for one in _sharers(by_sign, signs)}
        planned = (
            _as_lookalike(other, patterns[other.name], patterns[task.name]) for other in alike.values()
        )
        queued = (_in_queue(other) for other in others.values())
        found += [*_likest(task, planned), *_likest(task, queued)]
        for sign in signs:
            sharing.setdefault(sign, []).append(task)
    return found


def _sharers(sharing: Mapping[str, list[T]], signs: Iterable[str]) -> list[T]:
    """Those that share a sign, of very many the last; a word that very many share is passed over."""
    found: list[T] = []
    for sign in signs:
        sharers = sharing.get(sign, [])
        if len(sharers) < _MOST_SHARING or sign[0] in "=/":
            found += sharers[-_MOST_SHARING:]
    return found


def _by_sign(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    found: dict[str, list[Task]] = {}
    for task in tasks:
        for sign in signs_of(task.title, task.body, ()):
            found.setdefault(sign, []).append(task)
    return found


def _as_lookalike(other: PlanTask, theirs: Sequence[Pattern], mine: Sequence[Pattern]) -> Lookalike:
    # Tasks of one plan often name one issue: that alone does not make them the same.
    shares = any(overlap(one, two) for one in mine for two in theirs)
    return Lookalike(
        task=other.name,
        title=other.title,
        body=other.body,
        state=_PLANNED,
        shares_path=shares,
        is_family=True,
    )


def _in_queue(other: Task) -> Lookalike:
    return Lookalike(task=other.id, title=other.title, body=other.body, state=other.state)


def _likest(task: PlanTask, others: Iterable[Lookalike]) -> list[Finding]:
    """The one that looks most like a task, if one does: more would not tell more."""
    found = [one for other in others if (one := likeness(task.title, task.body, other)) is not None]
    return [
        Finding(
            code="TASK_SIMILAR",
            reason=f"{task.name} looks like {_where(one)}: {one.reason}",
            hint="leave one of them out, or say in the titles what is different",
            tasks=(task.name, one.task),
            line=task.line,
        )
        for one in best_first(found)[:1]
    ]


def _where(one: Likeness) -> str:
    return one.task if one.state == _PLANNED else f"{one.task} in the queue ({one.state})"

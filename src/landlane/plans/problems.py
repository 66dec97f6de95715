"""What is wrong with a plan, and what its author should know: unknown names, roles, duplicates."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.patterns.pattern import overlap, parse
from landlane.plans.model import AGENTS
from landlane.roles.model import find_role, roles_of
from landlane.tasks.checklist import is_task_id
from landlane.tasks.duplicates import DuplicateCandidate, compare_with, most_similar, signs_of
from landlane.tasks.model import BUILT_IN as EVIDENCE_OF_KINDS
from landlane.tasks.model import DROPPED, FINAL, required_evidence
from landlane.tasks.role_fit import default_kind, why_unfit, worker_role
from landlane.text import nearest_word
from landlane.units import join_words
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.plans.model import Plan, PlanTask
    from landlane.settings.model import Settings
    from landlane.tasks.model import Task

    Patterns = Mapping[str, tuple[Pattern, ...]]


_PLANNED = "planned"
_MOST_SHARING = 20  # more tasks than this share a word: it says little about them


@value
class PlanFinding:
    """A problem of a plan, or a warning about it."""

    code: str
    reason: str
    hint: str = ""
    tasks: tuple[str, ...] = ()
    line: int = 0


@value
class PlanContext:
    """What a plan is checked against: the settings, how paths are parsed, and the tasks in the queue."""

    settings: Settings
    parse: Callable[[str], Pattern] = parse
    tasks: Sequence[Task] = ()
    agents: tuple[str, ...] = AGENTS
    is_in_git: bool = True


def _finding(code: str, task: PlanTask, reason: str, hint: str) -> PlanFinding:
    return PlanFinding(
        code=code, reason=f"{task.name}: {reason}", hint=hint, tasks=(task.name,), line=task.line
    )


def read_patterns(
    tasks: Iterable[PlanTask], context: PlanContext
) -> tuple[dict[str, tuple[Pattern, ...]], list[PlanFinding]]:
    """Return the patterns of each task, and the paths that are not valid."""
    patterns: dict[str, tuple[Pattern, ...]] = {}
    problems: list[PlanFinding] = []
    for task in tasks:
        unique: dict[object, Pattern] = {}
        for path in task.paths:
            try:
                pattern = context.parse(path)
                unique[pattern.alternatives] = pattern
            except Malformed as error:
                problems.append(_finding(error.code, task, error.message, error.hint))
        patterns[task.name] = tuple(unique.values())
    return patterns, problems


def find_unknown_names(plan: Plan, tasks: Iterable[PlanTask], context: PlanContext) -> list[PlanFinding]:
    """Return the tasks, agents, roles and kinds that are named but do not exist."""
    names = {task.name for task in plan.tasks}
    problems: list[PlanFinding] = []
    for task in tasks:
        problems += [
            problem
            for before in task.after
            if before not in names and (problem := _check_dependency(task, before, names, context))
        ]
        if task.agent and task.agent not in context.agents:
            hint = f"{_suggestion(task.agent, context.agents)}one of {', '.join(context.agents)}"
            reason = f"there is no agent {task.agent[:40]!r}"
            problems.append(_finding("UNKNOWN_AGENT", task, reason, hint))
        try:
            if task.role:
                find_role(context.settings, task.role)
            if task.kind:
                required_evidence(task.kind, context.settings.tasks.evidence)
        except Malformed as error:
            problems.append(_finding(error.code, task, error.message, error.hint))
    return problems


def _check_dependency(
    task: PlanTask, before: str, names: set[str], context: PlanContext
) -> PlanFinding | None:
    """Return why a task cannot wait for one that is not in the plan; None if it can."""
    if is_task_id(before):
        state = next((queued.state for queued in context.tasks if queued.id == before), "")
        if state and state != DROPPED:
            return None
        reason = f"{before} was dropped" if state else f"there is no task {before}"
        hint = "leave it out, or name another"
    else:
        reason = f"{before[:60]!r} is not in the plan"
        hint = "give the name or the full title of a task"
    return _finding("UNKNOWN_TASK", task, reason, _suggestion(before, sorted(names)) + hint)


def _suggestion(word: str, known: Sequence[str]) -> str:
    similar = nearest_word(word, known)
    return f"did you mean {similar}? " if similar else ""


def _cycle_text(names: Sequence[str]) -> str:
    return f"{join_words(names)} wait for each other" if len(names) > 1 else f"{names[0]} waits for itself"


def cycle_finding(cycle: tuple[str, ...], tasks: Mapping[str, PlanTask]) -> PlanFinding:
    """Return the problem of tasks that wait for each other."""
    return PlanFinding(
        code="TASK_CYCLE",
        reason=_cycle_text([f'"{name}"' for name in cycle[:-1]]),
        hint="remove one of these dependencies",
        tasks=cycle[:-1],
        line=tasks[cycle[0]].line,
    )


def find_path_warnings(
    tasks: Sequence[PlanTask],
) -> list[PlanFinding]:
    """Return a warning about tasks without paths."""
    warnings: list[PlanFinding] = []
    without_paths = tuple(task.name for task in tasks if not task.paths and not task.output)
    if without_paths:
        warnings.append(
            PlanFinding(
                code="NO_PATHS",
                reason=f"the changes of these are unknown: {', '.join(without_paths)}",
                hint="give them paths, so that collisions are seen before they happen",
                tasks=without_paths,
            )
        )
    return warnings


def find_unfit_roles(
    tasks: Iterable[PlanTask], patterns: Patterns, context: PlanContext
) -> list[PlanFinding]:
    """Return the tasks that no worker in their role could do, as `run` would find, too."""
    settings = context.settings
    roles = roles_of(settings)
    problems: list[PlanFinding] = []
    for task in tasks:
        role = roles.get(worker_role(settings, task.role, task.agent or settings.run.agent))
        kinds = {*settings.tasks.evidence, *EVIDENCE_OF_KINDS, ""}
        if role is None or task.kind not in kinds:
            continue  # reported as an unknown name
        own = roles.get(task.role)
        has_output = bool(task.output)
        reason = why_unfit(
            settings,
            role,
            patterns[task.name],
            kind=default_kind(own, task.kind, has_output=has_output),
            has_output=has_output,
            is_in_git=context.is_in_git,
        )
        if reason:
            hint = "give it another role, another kind, or leave out the path"
            problems.append(_finding("ROLE_FORBIDS", task, reason, hint))
    return problems


def find_duplicates(
    plan: Plan, tasks: Iterable[PlanTask], patterns: Patterns, context: PlanContext
) -> list[PlanFinding]:
    """Return warnings about tasks that look like the same work, in the plan or in the queue."""
    warnings: list[PlanFinding] = []
    keys = {plan.key_of(task) for task in plan.tasks}
    planned, queued = _Candidates(), _Candidates()
    for other in context.tasks:
        if other.state not in FINAL and other.key not in keys:
            candidate = DuplicateCandidate(
                task=other.id, title=other.title, body=other.body, state=other.state
            )
            queued.add(candidate, signs_of(other.title, other.body, ()))
    for task in tasks:
        own = patterns[task.name]
        keys_of_paths = [alternative.key for pattern in own for alternative in pattern.alternatives]
        signs = signs_of(task.title, task.body, keys_of_paths)
        similar_in_plan = [
            replace(other, shares_path=any(overlap(a, b) for a in own for b in patterns[other.task]))
            for other in planned.sharing(signs)
        ]
        warnings += [*_most_similar(task, similar_in_plan), *_most_similar(task, queued.sharing(signs))]
        # Tasks of one plan often name the same issue: that alone does not make them duplicates.
        candidate = DuplicateCandidate(
            task=task.name, title=task.title, body=task.body, state=_PLANNED, is_family=True
        )
        planned.add(candidate, signs)
    return warnings


class _Candidates:
    """Tasks that others are compared with, by the words and paths that they have."""

    def __init__(self) -> None:
        self._by_sign: dict[str, list[DuplicateCandidate]] = {}

    def add(self, candidate: DuplicateCandidate, signs: Iterable[str]) -> None:
        for sign in signs:
            self._by_sign.setdefault(sign, []).append(candidate)

    def sharing(self, signs: Iterable[str]) -> list[DuplicateCandidate]:
        """Return the candidates that share a sign; words that very many share do not count."""
        found: dict[str, DuplicateCandidate] = {}
        for sign in signs:
            sharing = self._by_sign.get(sign, [])
            if len(sharing) < _MOST_SHARING or sign[0] in "=/":
                found |= {candidate.task: candidate for candidate in sharing[-_MOST_SHARING:]}
        return list(found.values())


def _most_similar(task: PlanTask, candidates: Iterable[DuplicateCandidate]) -> list[PlanFinding]:
    similar = [one for other in candidates if (one := compare_with(task.title, task.body, other)) is not None]
    if not similar:
        return []
    first = most_similar(similar)[0]
    name = first.task if first.state == _PLANNED else f"{first.task} in the queue ({first.state})"
    return [
        PlanFinding(
            code="TASK_SIMILAR",
            reason=f"{task.name} looks like {name}: {first.reason}",
            hint="leave one of them out, or say in the titles what is different",
            tasks=(task.name, first.task),
            line=task.line,
        )
    ]

"""Checked plans as JSON and as text with a chart."""

from __future__ import annotations

from landlane.clock import duration_text
from landlane.plans.model import money_text
from landlane.text import list_some
from landlane.usage.to_json import dollars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.plans.check import PlanCheck
    from landlane.plans.json_types import PlanFindingJson, PlanJson, PlanTaskJson
    from landlane.plans.model import PlanTask
    from landlane.plans.problems import PlanFinding

_MOST_NAMED = 8
_LONGEST = 40


def plan_json(checked: PlanCheck) -> PlanJson:
    """Return a checked plan as JSON."""
    plan = checked.plan
    wave_of = {name: at for at, wave in enumerate(checked.waves, start=1) for name in wave}
    return {
        "title": plan.title or None,
        "digest": plan.digest,
        "tasks": [_task_json(task, checked, wave_of.get(task.name)) for task in plan.tasks],
        "order": list(checked.order),
        "waves": [list(wave) for wave in checked.waves],
        "at_once": checked.at_once,
        "sequence": [
            {"task": edge.task, "after": edge.before, "kind": edge.kind, "why": edge.what}
            for edge in checked.follows
        ],
        "critical_path": {
            "tasks": list(checked.critical),
            "seconds": None if checked.critical_ms is None else checked.critical_ms / 1000,
            "without_estimate": list(checked.unestimated),
        },
        "cost": {
            "at_most_usd": dollars(checked.most_micros),
            "known_usd": dollars(checked.known_micros),
            "limit_usd": dollars(plan.budget_micros),
            "unknown_for": list(checked.unpriced),
        },
        "problems": [_finding_json(finding) for finding in checked.problems],
        "warnings": [_finding_json(finding) for finding in checked.warnings],
    }


def _task_json(task: PlanTask, checked: PlanCheck, wave: int | None) -> PlanTaskJson:
    return {
        "name": task.name,
        "title": task.title,
        "line": task.line,
        "key": checked.plan.key_of(task),
        "done": task.is_ticked,
        "wave": wave,
        "after": list(checked.after.get(task.name, task.after)),
        "paths": list(task.paths),
        "role": task.role or None,
        "agent": task.agent or None,
        "check": task.check or None,
        "attempts": task.attempts,
        "estimate_seconds": None if task.estimate_ms is None else task.estimate_ms / 1000,
        "budget_usd": dollars(task.budget_micros),
        "needs": dict(task.needs),
        "contract": task.is_contract,
    }


def _finding_json(finding: PlanFinding) -> PlanFindingJson:
    return {
        "code": finding.code,
        "message": finding.reason,
        "hint": finding.hint or None,
        "tasks": list(finding.tasks),
        "line": finding.line or None,
    }


def plan_text(checked: PlanCheck) -> str:
    """Return a checked plan as text."""
    parts = [_headline(checked)]
    if checked.waves:
        parts += ["", *_chart(checked), "", _critical(checked)]
    elif checked.order == () and not checked.problems:
        parts.append("nothing is left to be done")
    parts.append(f"cost: {_cost(checked)}")
    if checked.follows:
        parts += [
            "in sequence:",
            *(f"  {edge.task} after {edge.before}: {edge.what}" for edge in checked.follows),
        ]
    for title, findings in (("warnings", checked.warnings), ("problems", checked.problems)):
        parts += [f"{title}:"] if findings else []
        for finding in findings:
            where = f"line {finding.line}: " if finding.line else ""
            parts.append(f"  {where}{finding.reason} [{finding.code}]")
            parts += [f"    {finding.hint}"] if finding.hint else []
    return "\n".join(parts)


def _headline(checked: PlanCheck) -> str:
    plan = checked.plan
    ticked = sum(task.is_ticked for task in plan.tasks)
    done = f" ({ticked} done)" if ticked else ""
    counts = f"{_count(len(plan.tasks), 'task')}{done}"
    if checked.waves:
        counts += f", {_count(len(checked.waves), 'wave')}, at most {checked.at_once} at once"
    return f"{plan.title}: {counts}" if plan.title else counts


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _chart(checked: PlanCheck) -> list[str]:
    """Return the waves from top to bottom; tasks in one bracket can run at the same time."""
    tasks = {task.name: task for task in checked.plan.tasks}
    width = max(len(_short(name)) for wave in checked.waves for name in wave)
    critical = set(checked.critical)
    lines: list[str] = []
    for number, wave in enumerate(checked.waves, start=1):
        for place, name in enumerate(wave):
            label = f"{number:>3} " if place == 0 else "    "
            mark = "*" if name in critical else " "
            bracket = _bracket(place, len(wave))
            lines.append(f"{label}{bracket}{mark}{_short(name):<{width}}  {_details(tasks[name])}".rstrip())
    return lines


def _bracket(place: int, count: int) -> str:
    if count == 1:
        return "──"
    return "┬─" if place == 0 else "└─" if place == count - 1 else "├─"


def _details(task: PlanTask) -> str:
    paths = ", ".join(task.paths[:3]) + (", …" if len(task.paths) > 3 else "")
    words = [task.role, task.agent, paths, "contract" if task.is_contract else ""]
    words.append(duration_text(task.estimate_ms) if task.estimate_ms is not None else "")
    return " · ".join(word for word in words if word)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _critical(checked: PlanCheck) -> str:
    chain = " → ".join(_short(name) for name in checked.critical)
    if checked.critical_ms is None:
        return f"critical path (*): {chain} ({_count(len(checked.critical), 'task')}; no estimates are given)"
    unknown = f"; unknown for {_names(checked.unestimated)}" if checked.unestimated else ""
    return f"critical path (*): {chain} ({duration_text(checked.critical_ms)}{unknown})"


def _cost(checked: PlanCheck) -> str:
    unknown = f"unknown for {_names(checked.unpriced)}" if checked.unpriced else ""
    if checked.most_micros is not None:
        limit = f", by the limit of the plan; {unknown}" if unknown else ""
        return f"at most ${money_text(checked.most_micros)}{limit}"
    if not checked.known_micros:
        return "unknown: no task has a budget"
    return f"${money_text(checked.known_micros)} at most for those with a budget; {unknown}"


def _names(names: tuple[str, ...]) -> str:
    return list_some([_short(name) for name in names], _MOST_NAMED)

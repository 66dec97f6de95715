"""The command `doctor`."""

from __future__ import annotations

import os
import time

from landlane.cli.terminal import in_one_line
from landlane.clients.model import CLIENTS
from landlane.doctor.examine import examine
from landlane.doctor.protection import find_protection, record_protection
from landlane.doctor.report import report_text, write_report
from landlane.doctor.summary import group, limits, summarize
from landlane.doctor.to_json import check_json
from landlane.errors import LandlaneError
from landlane.git.discovery import find_checkout
from landlane.text import home_path
from landlane.units import count, exact_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.doctor.check import Check
    from landlane.doctor.summary import Finding


def doctor(call: CommandCall, fix: bool, report: str) -> int:
    """Check the repository and show each finding."""
    begun_at = time.monotonic()
    checks = examine(call.cwd, fix=fix)
    _keep_protection(call, checks)
    took = exact_duration(round((time.monotonic() - begun_at) * 1000))
    problems = [check for check in checks if not check.is_ok]
    answer: dict[str, Any] = {
        "ok": not problems,
        "checks": [check_json(check) for check in checks],
        "summary": summarize(checks),
    }
    if problems:
        worst = problems[0]
        answer |= {"code": "UNWELL", "message": f"{worst.name}: {worst.found}", "hint": worst.hint}
    if report:
        write_report(os.path.join(call.cwd, report), report_text(checks))
        text = f"✓ wrote {report} ({count(len(group(problems)), 'problem')}; secrets removed)"
        return call.terminal.answer({**answer, "report": report}, text, 1 if problems else 0, quiet=report)
    if call.terminal.is_verbose:
        lines = _all_lines(checks)
    elif fix:
        lines = _fix_lines(checks) or [f"✓ nothing to fix ({count(len(checks), 'check')}, {took})"]
    elif problems:
        lines = _problem_lines(checks, home_path(call.cwd))
    else:
        lines = _healthy_lines(checks, home_path(call.cwd), took)
    return call.terminal.answer(answer, "\n".join(lines), 1 if problems else 0)


def _keep_protection(call: CommandCall, checks: list[Check]) -> None:
    """Keep which guards held, for the headline of the page; nothing is written into a damaged state."""
    if not any(check.name == "store" and check.is_ok for check in checks):
        return
    try:
        folder = find_checkout(call.cwd).state_folder
    except LandlaneError:
        return
    if os.path.isdir(folder):
        record_protection(folder, find_protection(checks, round(time.time() * 1000)))


def _healthy_lines(checks: list[Check], place: str, took: str) -> list[str]:
    summary = summarize(checks)
    lines = [f"✓ no problems in {place} ({count(len(checks), 'check')}, {took})"]
    lines += [f"  {topic:<8}  {in_one_line(text)}" for topic, text in summary.items()]
    shown = "; ".join(summary.values())
    return [*lines, *(f"– {_subject_text(one)}" for one in group(limits(checks)) if one.found not in shown)]


def _problem_lines(checks: list[Check], place: str) -> list[str]:
    problems = group(check for check in checks if not check.is_ok)
    lines = [line for one in problems for line in _with_fix(f"✗ {_subject_text(one)}", one)]
    open_ones = limits(checks)
    lines += [f"– {_subject_text(one)}" for one in group(open_ones)]
    passed = sum(check.is_ok for check in checks) - len(open_ones)
    lines.append(f"✓ {count(passed, 'check')} passed (list them: landlane doctor -v)")
    total = count(len(problems), "problem")
    return [*lines, "", f"{total} in {place}. For a bug report: landlane doctor --report report.txt"]


def _fix_lines(checks: list[Check]) -> list[str]:
    fixed = [f"✓ fixed  {_subject_text(one)}" for one in group(check for check in checks if check.is_fixed)]
    left = group(check for check in checks if not check.is_ok)
    return [*fixed, *(line for one in left for line in _with_fix(f"✗ left   {_subject_text(one)}", one))]


def _all_lines(checks: Iterable[Check]) -> list[str]:
    lines: list[str] = []
    for check in checks:
        mark = "✗" if not check.is_ok else "✓" if check.is_enforced else "–"
        lines.append(in_one_line(f"{mark} {check.name}: {check.found}"))
        lines += [f"    hint: {in_one_line(check.hint)}"] if check.hint else []
    return lines


def _subject_text(finding: Finding) -> str:
    client = CLIENTS.get(finding.subject)
    if client is not None and finding.found.startswith(client.title):  # it names its subject itself
        return in_one_line(finding.found)
    return in_one_line(f"{finding.subject}: {finding.found}")


def _with_fix(line: str, finding: Finding) -> list[str]:
    return [line, f"    fix: {in_one_line(finding.hint)}"] if finding.hint else [line]

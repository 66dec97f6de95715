"""The commands about plans: plan check."""

from __future__ import annotations

import os

from landlane.cli.arguments import read_bytes
from landlane.cli.terminal import in_one_line
from landlane.error_json import failure_json
from landlane.errors import Malformed
from landlane.plans.add_tasks import add_plan, check_here
from landlane.plans.model import MOST_CHARACTERS
from landlane.plans.parse import read_plan
from landlane.plans.to_json import plan_json, plan_text
from landlane.settings.locate import LineSpan, excerpt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.plans.add_tasks import AddedPlan
    from landlane.plans.model import Plan


def check(call: CommandCall, plan: str) -> int:
    """Show what a plan would create."""
    checked = check_here(call.repo, load_plan(call, plan))
    text = "\n".join(in_one_line(line) for line in plan_text(checked).split("\n"))
    if checked.is_fine:
        return call.terminal.answer({"ok": True, "plan": plan_json(checked)}, text)
    first = checked.problems[0]
    message = f"the plan cannot be carried out: {first.reason}"
    hint = first.hint or "fix what it names and check again"
    return call.terminal.answer(failure_json("PLAN_UNFIT", message, hint, plan=plan_json(checked)), text, 1)


def load_plan(call: CommandCall, name: str) -> Plan:
    """Return the plan in a file; a relative path is resolved against the caller's folder."""
    if name != "-" and not os.path.exists(os.path.join(call.cwd, name)):
        raise Malformed(f"no file {name[:80]}", code="UNREADABLE_FILE", hint="ls *.toml *.md", file=name)
    try:
        text = read_bytes(name, 4 * MOST_CHARACTERS + 1, call.cwd).decode("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise Malformed(
            f"the plan {name[:80]!r} cannot be read as text: {why}",
            code="UNREADABLE_FILE",
            hint="give the path of a TOML or Markdown file, or - for standard input",
        ) from error
    try:
        return read_plan(text, os.path.basename(name))
    except Malformed as error:
        raise _locate(error, name, text) from None


def _locate(error: Malformed, name: str, source: str) -> Malformed:
    """Return the error with its file and line, and with the line itself if it is in the plan."""
    line = int(error.facts.get("line") or 0)
    if not 0 < line <= len(source.splitlines()):
        return error
    written = source.splitlines()[line - 1]
    word = str(error.facts.pop("word", ""))
    column = written.find(word) if word in written else len(written) - len(written.lstrip())
    place = LineSpan(line=line, column=column + 1, length=len(word) or len(written.strip()))
    error.message = f"{name}:{line}: {error.message.removeprefix(f'line {line}: ')}"
    error.facts["excerpt"] = excerpt(source, place, str(error.facts.pop("remark", "")))
    return error


def add_plan_of(call: CommandCall, name: str, *, force: bool) -> AddedPlan:
    """Add the tasks of a plan in a file to the queue; an error names the file and its lines."""
    try:
        return add_plan(call.repo, call.session(), load_plan(call, name), force=force)
    except Malformed as error:
        lines = ",".join(map(str, error.facts.get("lines", ())))
        if lines:
            error.message = f"{name}:{lines}: {error.message.partition(': ')[2]}"
            error.hint = f"see the graph: {call.command_text('plan', 'check', name)}"
        raise

"""The commands about plans: plan check."""

from __future__ import annotations

import os
import shlex

from landlane.cli.arguments import read_bytes
from landlane.cli.terminal import in_one_line
from landlane.error_json import failure_json
from landlane.errors import Malformed
from landlane.plans.add_tasks import check_here
from landlane.plans.model import MOST_CHARACTERS
from landlane.plans.parse import read_plan
from landlane.plans.to_json import plan_json, plan_text
from landlane.text import nearest_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
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


def _no_file(call: CommandCall, name: str, command: str) -> Malformed:
    """Return the error about a plan that is not there, with the file that was probably meant."""
    folder, base = os.path.split(name)
    try:
        names = sorted(os.listdir(os.path.join(call.cwd, folder)))
    except OSError:
        names = []
    near = nearest_word(base, [one for one in names if one.endswith((".toml", ".md"))])
    hint = f"landlane {command} {shlex.quote(os.path.join(folder, near))}" if near else "ls *.toml *.md"
    return Malformed(f"no file {name[:80]}", code="UNREADABLE_FILE", hint=hint)


def load_plan(call: CommandCall, name: str, command: str = "plan check") -> Plan:
    """Return the plan in a file; a relative path is resolved against the caller's folder."""
    if name != "-" and not os.path.exists(os.path.join(call.cwd, name)):
        raise _no_file(call, name, command)
    try:
        text = read_bytes(name, 4 * MOST_CHARACTERS + 1, call.cwd).decode("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise Malformed(
            f"the plan {name[:80]!r} cannot be read as text: {why}",
            code="UNREADABLE_FILE",
            hint="give the path of a TOML or Markdown file, or - for standard input",
        ) from error
    return read_plan(text, os.path.basename(name))

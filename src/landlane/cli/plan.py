"""The commands about plans: plan check."""

from __future__ import annotations

import os
import sys

from landlane.cli.terminal import in_one_line
from landlane.errors import Malformed
from landlane.plans.add_tasks import check_here
from landlane.plans.model import MOST_CHARACTERS
from landlane.plans.parse import read_plan
from landlane.plans.to_json import plan_json, plan_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall


def check(call: CommandCall, plan: str) -> int:
    """Show what a plan would create."""
    read = read_plan(read_text(call, plan), os.path.basename(plan))
    checked = check_here(call.repo, read)
    answer: dict[str, Any] = {"ok": True, "plan": plan_json(checked)}
    if not checked.is_fine:
        first = checked.problems[0]
        answer = {
            "ok": False,
            "code": "PLAN_UNFIT",
            "message": f"the plan cannot be carried out: {first.reason}",
            "hint": first.hint or "mend what is named, and check again",
            "plan": answer["plan"],
        }
    text = "\n".join(in_one_line(line) for line in plan_text(checked).split("\n"))
    call.terminal.answer(answer, text)
    return 0 if checked.is_fine else 1


def read_text(call: CommandCall, name: str) -> str:
    """Return the text of a plan; a relative path is resolved against the caller's folder."""
    most = 4 * MOST_CHARACTERS + 1
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(most)
        else:
            with open(os.path.join(call.cwd, name), "rb") as file:
                raw = file.read(most)
        return raw.decode("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise Malformed(
            f"the plan {name[:80]!r} cannot be read as text: {why}",
            code="UNREADABLE_FILE",
            hint="give the path of a TOML or Markdown file, or - for standard input",
        ) from error

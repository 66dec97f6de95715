"""The commands about handoffs: handoff, handoff show, handoff list, accept, decline."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.claims.model import Refused
from landlane.claims.to_json import claim_json, outcome_json
from landlane.cli.arguments import read_file, read_number
from landlane.cli.terminal import in_one_line
from landlane.clock import rfc3339
from landlane.errors import Malformed
from landlane.handoffs.accept import accept_handoff, decline_handoff
from landlane.handoffs.context import context_for, handed_by, traces_of
from landlane.handoffs.model import LONGEST_TEXT, Draft, check_receiver, read_field
from landlane.handoffs.records import find_handoff, list_handoffs
from landlane.handoffs.send import collect_and_send, send_handoff
from landlane.handoffs.to_json import handoff_json, handoff_row, handoff_text
from landlane.tasks.records import get_task
from landlane.tasks.to_json import task_json
from landlane.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.tasks.model import Task


def send(
    call: CommandCall,
    task: str,
    to: str,
    product: str,
    context: str,
    constraint: tuple[str, ...],
    next: str,
    blocker: tuple[str, ...],
    assumption: tuple[str, ...],
    field: tuple[str, ...],
    max: str,
) -> int:
    """Hand off a task."""
    check_receiver(to)
    product_text, context_text = _read_texts(product, context)
    repo = call.repo
    draft = Draft(
        task=task,
        to=to,
        product=product_text,
        context=context_text,
        constraints=constraint,
        next=next,
        blockers=blocker,
        assumptions=assumption,
        fields=dict(read_field(one, repo.settings) for one in field),
        maximum=read_number(max, "--max") or 0,
    )
    session = call.session()
    if repo.checkout.common_dir:
        sent = collect_and_send(prepare_git(repo, call.terminal.note), session, draft)
    else:
        sent = send_handoff(repo, session, draft)
    item = task_json(get_task(repo, task), repo.store)
    lines = [f"{sent.id} hands {sent.task} to {sent.to} (handoff {sent.attempt} of {sent.maximum})"]
    if sent.until > sent.sent_at:
        lines.append(f"  kept for it until {rfc3339(sent.until)}; then it is anybody's")
    if sent.taken.get("branch"):
        lines.append(
            f"  branch {sent.taken['branch']} at {str(sent.taken.get('head', ''))[:12] or 'nothing yet'}"
        )
    if sent.taken.get("rescue"):
        lines.append(
            f"  not committed, and saved as {sent.taken['rescue']}: {len(sent.taken['dirty'])} paths"
        )
    lines += [f"  not known: {in_one_line(text)}" for text in sent.taken.get("unknown", ())]
    lines.append(f"  hash {sent.digest}")
    return call.terminal.answer({"ok": True, "handoff": handoff_json(sent), "task": item}, "\n".join(lines))


def _read_texts(product: str, context: str) -> tuple[str, str]:
    """Return both texts; a sandboxed caller sends them together, since its files are readable only there."""
    if not product == context == "-":
        return read_file(product, "--product", LONGEST_TEXT), read_file(context, "--context", LONGEST_TEXT)
    both = read_file("-", "standard input", 2 * LONGEST_TEXT + 2)
    first, mark, second = both.partition("\0")
    if not mark:
        raise Malformed(
            "standard input can be read only once",
            code="BAD_CALL",
            hint="give a file for --product or --context",
        )
    return first.removesuffix("\n"), second


def show(call: CommandCall, task: str) -> int:
    """Show a handoff in full, or what the last owner of a task left without one."""
    call.renew_session()
    handoff = find_handoff(call.repo, task)
    if handoff is not None:
        text = handoff_text(handoff, call.wall_now())
        return call.terminal.answer({"ok": True, "handoff": handoff_json(handoff), "context": text}, text)
    context = context_for(call.repo, get_task(call.repo, task))
    if not context:
        raise Malformed(
            f"nothing was handed over with {task}",
            code="NO_HANDOFF",
            hint=f"`landlane task show {task}` tells how it stands",
        )
    return call.terminal.answer({"ok": True, "handoff": None, "context": context}, context)


def accept(call: CommandCall, task: str, hash: str) -> int:
    """Accept a handoff and show it."""
    repo = call.repo
    outcome = accept_handoff(repo, call.session(), task, hash.strip())
    if isinstance(outcome, Refused):
        answer, code = outcome_json(outcome, repo.store)
        first = answer["refused"][0]
        answer |= {"task": None, "claims": []}
        answer["message"] = f"{task} will change {first['pattern']}, which {first['holder']} holds"
        return call.terminal.refuse(answer, code)
    item = task_json(outcome.task, repo.store)
    claims = [claim_json(claim, repo.store) for claim in outcome.claims]
    context = context_for(repo, outcome.task)
    lines = [f"{item['id']} {item['title']} is yours (attempt {item['attempt']}, branch {item['branch']})"]
    lines += [f"  claimed {in_one_line(claim['pattern'])} until {claim['until']}" for claim in claims]
    answer = {"ok": True, "task": item, "claims": claims, "handoff": handoff_json(outcome.handoff)}
    return call.terminal.answer({**answer, "context": context}, "\n".join([*lines, "", context]))


def describe_earlier_work(call: CommandCall, task: Task) -> tuple[dict[str, Any], list[str]]:
    """Return the previous owner's `handoff` and `context` as JSON, and as lines of text."""
    context = context_for(call.repo, task)
    handoff = handed_by(call.repo, task)
    if handoff is not None:
        return {"handoff": handoff_json(handoff), "context": context}, ["", context]
    lines = [f"  {in_one_line(line)}" for line in traces_of(call.repo, task)]
    return {"handoff": None, "context": context}, lines


def decline(call: CommandCall, task: str, why: str) -> int:
    """Decline a handoff."""
    declined = decline_handoff(call.repo, call.session(), task, why)
    text = f"{declined.id} is declined: {declined.task} is anybody's now"
    return call.terminal.answer({"ok": True, "handoff": handoff_json(declined)}, text)


def list_all(call: CommandCall, all: bool) -> int:
    """List handoffs."""
    call.renew_session()
    handoffs = list_handoffs(call.repo, with_settled=all)
    now = call.wall_now()
    rows = [handoff_row(handoff, now) for handoff in handoffs]
    columns = ["id", "task", "from", "to", "standing", "next"]
    table = call.terminal.table(count(len(rows), "handoff"), columns, rows)
    return call.terminal.answer({"ok": True, "handoffs": [handoff_json(one) for one in handoffs]}, table)

"""The commands about handoffs: handoff, handoff show, handoff list, accept, decline."""

from __future__ import annotations

import os
import shlex

from landlane.app.repair_config import prepare_git
from landlane.claims.model import Refused
from landlane.claims.to_json import claim_json, outcome_json
from landlane.cli.arguments import read_file, read_number
from landlane.cli.table import empty_text, text_width
from landlane.cli.terminal import in_one_line
from landlane.errors import Malformed
from landlane.handoffs.accept import accept_handoff, decline_handoff
from landlane.handoffs.context import context_for, handed_by, traces_of
from landlane.handoffs.model import LONGEST_TEXT, SENT, Draft, check_receiver, is_unchanged, read_field
from landlane.handoffs.records import find_handoff, list_handoffs
from landlane.handoffs.send import collect_and_send, send_handoff
from landlane.handoffs.text import field_rows, sent_text, state_text
from landlane.handoffs.to_json import handoff_json
from landlane.inbox.decisions import note_answered
from landlane.tasks.model import is_for_person
from landlane.tasks.records import get_task, list_tasks
from landlane.tasks.to_json import task_json
from landlane.text import home_path
from landlane.units import exact_duration, time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.handoffs.model import Handoff
    from landlane.tasks.model import Task

_WIDTH = 100
_NAME = 10  # width of the names of fields
_HASH = 12  # digits of a hash that people see


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
    found = get_task(repo, task)
    item = task_json(found, repo.store)
    lines = [f"✓ {sent_text(sent, found.title)}"]
    if is_for_person(sent.to):
        lines.append(f"  It waits in the inbox: landlane inbox {sent.id}")
    elif sent.until > sent.sent_at:
        wait = exact_duration(sent.until - sent.sent_at)
        lines.append(f"  Open to anyone if {sent.to} has not accepted in {wait}.")
    lines += [f"  ! not collected: {text}" for text in sent.taken.get("unknown", ())]
    if call.terminal.is_verbose:
        lines.append(f"  handoff {sent.attempt} of at most {sent.maximum}, hash {sent.digest}")
    text = "\n".join(map(in_one_line, lines))
    return call.terminal.answer(
        {"ok": True, "handoff": handoff_json(sent), "task": item}, text, quiet=sent.id
    )


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
        text = _card_text(call, handoff)
        return call.terminal.answer_card(
            {"ok": True, "handoff": handoff_json(handoff), "context": text}, text
        )
    context = context_for(call.repo, get_task(call.repo, task))
    if not context:
        raise Malformed(
            f"{task.upper()} was not handed over",
            code="NO_HANDOFF",
            hint=f"see where it stands: {call.command_text('task', 'show', task.upper())}",
        )
    return call.terminal.answer({"ok": True, "handoff": None, "context": context}, context)


def _card_text(call: CommandCall, handoff: Handoff) -> str:
    """Return a handoff in full, with the command that accepts it while it waits."""
    now = call.wall_now()
    title = f"{handoff.id} {handoff.task} {get_task(call.repo, handoff.task).title}"
    sent = f"{handoff.sender} to {handoff.to}, {time_ago(handoff.sent_at, now)}"
    changed = "" if is_unchanged(handoff) else " (it was changed after it was sent)"
    rows = [
        ("state", state_text(handoff, now)),
        *field_rows(handoff),
        ("number", f"{handoff.attempt} of at most {handoff.maximum}"),
        ("hash", f"{handoff.digest[:_HASH]}{changed}"),
    ]
    lines = [f"{title}{' ' * max(_WIDTH - text_width(title) - text_width(sent), 3)}{sent}", *_row_lines(rows)]
    if handoff.state == SENT:
        lines += ["", f"next: {call.command_text('handoff', 'accept', handoff.task)}"]
    return "\n".join(map(in_one_line, lines))


def _row_lines(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield named texts; a name is shown once for all its lines."""
    before = ""
    for name, text in rows:
        for line in text.splitlines():
            yield f"  {'' if name == before else name:<{_NAME}} {line}"
            before = name


def accept(call: CommandCall, task: str, hash: str) -> int:
    """Accept a handoff and show it."""
    repo = call.repo
    session = call.session()
    outcome = accept_handoff(repo, session, task, hash.strip())
    if isinstance(outcome, Refused):
        answer, code = outcome_json(outcome, repo.store)
        first = answer["refused"][0]
        answer |= {"task": None, "claims": []}
        answer["message"] = f"{task} will change {first['pattern']}, which {first['holder']} holds"
        return call.terminal.refuse(answer, code)
    handoff = outcome.handoff
    note_answered(repo, session, handoff.id)
    item = task_json(outcome.task, repo.store)
    claims = [claim_json(claim, repo.store) for claim in outcome.claims]
    context = context_for(repo, outcome.task)
    sent = time_ago(handoff.sent_at, call.wall_now())
    lines = [f"✓ {item['id']} {item['title']} is yours (handed over by {handoff.sender} {sent})"]
    lines += _row_lines(field_rows(handoff, is_accepted=True))
    lines.append(f"next: {_work_here(call, outcome.task, handoff)}")
    answer = {"ok": True, "task": item, "claims": claims, "handoff": handoff_json(handoff)}
    text = "\n".join(map(in_one_line, lines))
    return call.terminal.answer({**answer, "context": context}, text, quiet=item["id"])


def _work_here(call: CommandCall, task: Task, handoff: Handoff) -> str:
    """Return the command that goes to the checkout with the work."""
    path = str(handoff.taken.get("path") or "")
    if handoff.taken.get("workspace") and os.path.isdir(path):
        shown = home_path(path)
        is_plain = shown.startswith("~/") and shlex.quote(shown[2:]) == shown[2:]
        return f"cd {shown if is_plain else shlex.quote(path)}"
    return f'cd "$({call.command_text("workspace", "open", task.id)})"'


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
    session = call.session()
    declined = decline_handoff(call.repo, session, task, why)
    note_answered(call.repo, session, declined.id)
    title = get_task(call.repo, declined.task).title
    text = in_one_line(f"✓ declined {declined.id}; {declined.task} {title} is open to anyone now")
    return call.terminal.answer({"ok": True, "handoff": handoff_json(declined)}, text)


def list_all(call: CommandCall, all: bool) -> int:
    """List handoffs."""
    call.renew_session()
    handoffs = list_handoffs(call.repo, with_settled=all)
    now = call.wall_now()
    titles = {task.id: task.title for task in list_tasks(call.repo)} if handoffs else {}
    rows = [
        [one.id, f"{one.task} {titles[one.task]}", one.sender, one.to, state_text(one, now), one.next]
        for one in handoffs
    ]
    columns = ["handoff", "task", "from", "to", "state", "next step"]
    table = call.terminal.table("", columns, rows, cut="NEXT STEP") or empty_text("open handoff")
    answer = {"ok": True, "handoffs": [handoff_json(one) for one in handoffs]}
    return call.terminal.answer(answer, table, quiet="\n".join(one.id for one in handoffs))

"""The commands about handoffs: handoff, handoff show, handoff list, accept, decline."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.claims.model import Refused
from landlane.claims.to_json import claim_json, outcome_json
from landlane.cli.parse_number import read_number
from landlane.cli.read_file import read_file
from landlane.cli.terminal import in_one_line
from landlane.clock import rfc3339
from landlane.errors import Malformed
from landlane.handoffs.accept import accept_handoff, send_handoff
from landlane.handoffs.decline import decline_handoff
from landlane.handoffs.hand_over import context_for, hand_over, handed_by, traces_of
from landlane.handoffs.model import LONGEST_TEXT, Draft, check_receiver, read_field
from landlane.handoffs.records import find_handoff
from landlane.handoffs.to_json import handoff_json, handoff_text
from landlane.tasks.records import get_task
from landlane.tasks.to_json import task_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.handoffs.accept import Accepted
    from landlane.handoffs.model import Handoff
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
    texts = _read_texts(product, context)
    repo = call.repo
    draft = Draft(
        task=task,
        to=to,
        product=texts[0],
        context=texts[1],
        constraints=constraint,
        next=next,
        blockers=blocker,
        assumptions=assumption,
        fields=dict(read_field(one, repo.settings) for one in field),
        maximum=read_number(max, "--max") or 0 if max else 0,
    )
    sent = _hand_over(call, draft)
    row = handoff_json(sent)
    left = task_json(get_task(repo, task), repo.store)
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
    call.terminal.answer({"ok": True, "handoff": row, "task": left}, "\n".join(lines))
    return 0


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


def _hand_over(call: CommandCall, draft: Draft) -> Handoff:
    repo, session = call.repo, call.session()
    if repo.checkout.common_dir:
        return hand_over(prepare_git(repo, call.terminal.note), session, draft)
    return send_handoff(repo, session, draft)


def show(call: CommandCall, task: str) -> int:
    """Show a handoff in full, or what the last owner of a task left without one."""
    call.show_life()
    found = find_handoff(call.repo, task)
    if found is None:
        return _show_left(call, task)
    text = handoff_text(found, call.wall_now())
    call.terminal.answer({"ok": True, "handoff": handoff_json(found), "context": text}, text)
    return 0


def _show_left(call: CommandCall, task: str) -> int:
    repo = call.repo
    place = repo.require_git() if repo.checkout.common_dir else repo
    left = context_for(place, get_task(repo, task))
    if not left:
        raise Malformed(
            f"nothing was handed over with {task}",
            code="NO_HANDOFF",
            hint=f"`landlane task show {task}` tells how it stands",
        )
    call.terminal.answer({"ok": True, "handoff": None, "context": left}, left)
    return 0


def accept(call: CommandCall, task: str, hash: str) -> int:
    """Accept a handoff and show it."""
    outcome = accept_handoff(call.repo, call.session(), task, hash.strip())
    if isinstance(outcome, Refused):
        return _refuse(call, task, outcome)
    return _show_accepted(call, outcome)


def _refuse(call: CommandCall, task: str, outcome: Any) -> int:
    answer, code = outcome_json(outcome, call.repo.store)
    first = answer["refused"][0]
    answer |= {"task": None, "claims": []}
    answer["message"] = f"{task} will change {first['pattern']}, which {first['holder']} holds"
    call.terminal.answer(answer, "")
    if not call.terminal.is_json:
        call.terminal.complain(answer["message"], str(answer.get("hint", "")), str(answer["code"]))
    return code


def _show_accepted(call: CommandCall, accepted: Accepted) -> int:
    store = call.repo.store
    task = task_json(accepted.task, store)
    claims = [claim_json(claim, store) for claim in accepted.claims]
    repo = call.repo
    context = context_for(repo.require_git() if repo.checkout.common_dir else repo, accepted.task)
    lines = [f"{task['id']} {task['title']} is yours (attempt {task['attempt']}, branch {task['branch']})"]
    lines += [f"  claimed {in_one_line(claim['pattern'])} until {claim['until']}" for claim in claims]
    lines += ["", context]
    answer = {
        "ok": True,
        "task": task,
        "claims": claims,
        "handoff": handoff_json(accepted.handoff),
        "context": context,
    }
    call.terminal.answer(answer, "\n".join(lines))
    return 0


def what_was_left(call: CommandCall, task: Task) -> dict[str, Any]:
    """Return the previous owner's `handoff` and `context`, and both as `lines` of text."""
    repo = call.repo
    place = repo.require_git() if repo.checkout.common_dir else repo
    context = context_for(place, task)
    handoff = handed_by(place, task)
    if handoff is not None:
        return {"handoff": handoff_json(handoff), "context": context, "lines": ["", context]}
    lines = [f"  {in_one_line(line)}" for line in traces_of(place, task)]
    return {"handoff": None, "context": context, "lines": lines}


def decline(call: CommandCall, task: str, why: str) -> int:
    """Decline a handoff."""
    declined = decline_handoff(call.repo, call.session(), task, why)
    text = f"{declined.id} is declined: {declined.task} is anybody's now"
    call.terminal.answer({"ok": True, "handoff": handoff_json(declined)}, text)
    return 0

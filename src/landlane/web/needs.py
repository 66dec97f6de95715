"""The cards of what waits for a person: the question, the evidence, the change, what an answer unblocks."""

from __future__ import annotations

from landlane.clock import parse_rfc3339
from landlane.errors import LandlaneError
from landlane.gates.model import digest_in
from landlane.gates.records import get_gate
from landlane.gates.subject import describe_subject_change, lineage_cost
from landlane.gates.to_json import gate_json
from landlane.git.commits import merge_base
from landlane.git.target import commit_at, find_target
from landlane.handoffs.records import find_handoff
from landlane.handoffs.text import field_rows
from landlane.inbox.held_landings import landing_gate_json
from landlane.landing.model import gated_path
from landlane.landing.records import get_landing
from landlane.reviews.records import get_review
from landlane.tasks.records import get_task, lessons_of
from landlane.text import in_one_line
from landlane.units import count, exact_duration, money
from landlane.values import value
from landlane.web.diffs import Diff, read_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.inbox.json_types import InboxItemJson
    from landlane.repository import Repository
    from landlane.web.visit import Visit

MOST_CARDS = 7
_COMMIT = 8
_CAUSES = 6
_LONGEST_FACT = 400
WORDS = {"landing": "Landing", "gate": "Gate", "review": "Review", "handoff": "Handoff", "dead": "Stopped"}
_SEVERE = ("financial", "legal", "credentials", "deploy")


@value
class Fact:
    """A line of evidence: `ok`, `bad` or `note`."""

    state: str
    text: str
    code: str = ""


@value
class Button:
    """What a person can do about an item, with the command that does the same."""

    label: str
    command: str
    action: str = ""  # of `actions.ACTIONS`; empty for a link
    href: str = ""
    given: tuple[tuple[str, str], ...] = ()
    asks: str = ""  # the name of the text that the person must or may give
    is_required: bool = False
    title: str = ""  # of the dialog, if there is one
    explains: str = ""
    key: str = ""
    is_bad: bool = False
    is_main: bool = False
    decides: bool = True


@value
class Card:
    """One item of the inbox."""

    id: str
    kind: str
    question: str
    task: str
    title: str
    who: str
    asked_at: int
    unblocks: tuple[tuple[str, str, tuple[str, ...]], ...]
    cost: str
    facts: tuple[Fact, ...]
    buttons: tuple[Button, ...]
    diff: Diff | None = None
    head: str = ""
    notes: tuple[str, ...] = ()  # what a person must know before answering

    @property
    def word(self) -> str:
        """Return what kind of item it is."""
        return WORDS[self.kind]


def read_cards(visit: Visit, only: str = "") -> list[Card]:
    """Return the first cards, or one of them; what has just been answered is left out."""
    found: list[Card] = []
    for item in visit.items if only else visit.items[:MOST_CARDS]:
        if only in ("", item["id"]):
            try:
                found.append(_READERS[item["kind"]](visit, item))
            except LandlaneError:
                continue
    return found


def _base(item: InboxItemJson) -> dict[str, Any]:
    return {
        "id": item["id"],
        "kind": item["kind"],
        "task": item["task"] or "",
        "title": item["title"] or "",
        "asked_at": parse_rfc3339(item["asked_at"]),
        "unblocks": tuple((one["task"], one["title"], tuple(one["waits_for"])) for one in item["unblocks"]),
    }


def _cost_text(cost: Any) -> str:
    if not cost:
        return ""
    spent = money(round(cost["usd"] * 1_000_000), has_unknown=not cost["is_known"])
    return f"{'–' if spent == 'unknown' else spent} so far, {count(cost['attempts'], 'attempt')}"


def _head_option(head: str) -> str:
    return f" --head {head[:_COMMIT]}" if head else ""


def _approve_buttons(id: str, head: str, *, kind: str, name: str, may_say: bool) -> tuple[Button, ...]:
    is_severe = kind in _SEVERE
    approve = f"landlane gate approve {id}{_head_option(head)}"
    given = (("id", id), ("head", head))
    yes = Button(
        label="Approve…" if is_severe else "Approve",
        command=approve,
        action="approve",
        given=given,
        title=f"Approve {id}?" if is_severe else "",
        explains=f"This is a {kind} question; the answer takes effect at once." if is_severe else "",
        key="a",
        is_main=True,
    )
    no = Button(
        label="Reject…",
        command=f"landlane gate reject {id} --why '…'",
        action="reject",
        given=(("id", id),),
        asks="why",
        is_required=True,
        title=f"Reject {id}?",
        explains=f"{name} gets your reason.",
        key="r",
    )
    say = Button(
        label="Approve with a note…",
        command=f"{approve} --why '…'",
        action="approve",
        given=given,
        asks="why",
        is_required=True,
        title=f"Approve {id} with a note",
        explains=f"{name} gets your answer.",
    )
    return (yes, no, say) if may_say else (yes, no)


def _gate_card(visit: Visit, item: InboxItemJson) -> Card:
    repo = visit.repo
    gate = get_gate(repo, item["id"])
    found = gate_json(gate, visit.now)
    head = str(gate.about.get("head") or "")
    evidence: Mapping[str, Any] = {**found["evidence"]}
    moved = describe_subject_change(repo, gate)
    about = {key: text for key, text in gate.about.items() if key not in ("head", "branch", "retries", "at")}
    facts = [Fact(state="note", text=f"{key}: ", code=str(text)) for key, text in about.items()]
    facts += (
        [Fact(state="note", text=f"Commit {head[:_COMMIT]} ", code=str(gate.about.get("branch", "")))]
        if head
        else []
    )
    facts += (
        [Fact(state="note", text="Check of the task: ", code=str(evidence["check"]))]
        if evidence.get("check")
        else []
    )
    facts += _history_facts(str(evidence.get("history") or ""))
    facts += _history_facts(str(evidence.get("said") or ""), "note")
    if gate.claims:
        keeps = ", ".join(str(one["pattern"]) for one in gate.claims[:_CAUSES])
        facts.append(Fact(state="note", text="Keeps until you answer: ", code=keeps))
    is_retry = bool(gate.about.get("retries"))
    why = (
        " ".join(gate.why.split()).removeprefix(f"{gate.task} ") if gate.task else " ".join(gate.why.split())
    )
    return Card(
        **_base(item),
        question=_as_question(why),
        who=gate.agent,
        cost=_cost_text(evidence.get("cost")),
        facts=tuple(facts),
        head=head or digest_in(gate.about),
        diff=_diff_of(repo, head, str(evidence.get("base") or "")),
        buttons=_approve_buttons(
            gate.id,
            digest_in(gate.about),
            kind=str(gate.kind),
            name=gate.agent or "The next worker",
            may_say=True,
        )
        if not is_retry
        else _retry_buttons(gate.id),
        notes=(f"It cannot be approved as it is: {moved}.",) if moved else (),
    )


def _retry_buttons(id: str) -> tuple[Button, ...]:
    approve, reject = f"landlane gate approve {id}", f"landlane gate reject {id} --why '…'"
    return (
        Button(
            label="Retry with an answer…",
            command=f"{approve} --why '…'",
            action="approve",
            given=(("id", id),),
            asks="why",
            is_required=True,
            title="What should the next attempt do differently?",
            explains="The next worker reads your answer, and the task gets a new budget of attempts.",
            key="a",
            is_main=True,
        ),
        Button(label="Retry", command=approve, action="approve", given=(("id", id),)),
        Button(
            label="Give up…",
            command=reject,
            action="reject",
            given=(("id", id),),
            asks="why",
            is_required=True,
            title="Give this task up?",
            explains="It is not tried again. Tasks that wait for it keep waiting.",
            key="r",
            is_bad=True,
        ),
    )


def _as_question(text: str) -> str:
    """Return what was asked as a question or a sentence, as the agent wrote it."""
    plain = in_one_line(text)
    return plain[:1].upper() + plain[1:]


def _history_facts(text: str, state: str = "bad") -> list[Fact]:
    lines = [line for line in text.splitlines() if line.strip()]
    return [Fact(state=state, text=line.strip()[:_LONGEST_FACT]) for line in lines[:_CAUSES]]


def _landing_card(visit: Visit, item: InboxItemJson) -> Card:
    repo = visit.repo
    landing = get_landing(repo, item["id"])
    found = landing_gate_json(repo, landing, visit.now)
    facts = [Fact(state="ok", text=f"Commit {landing.head[:_COMMIT]} ", code=landing.branch)]
    facts += [
        Fact(state="ok", text="Verified: ", code=str(name))
        for name in found["evidence"].get("verified") or ()
    ]
    facts += [
        Fact(
            state="ok" if run.is_green else "bad",
            text=f"On the merge, {exact_duration(run.ms)}: ",
            code=run.name,
        )
        for run in landing.check_runs
    ]
    path = gated_path(landing.gate)
    reason = f"It changes {path}, which [landing] gate lists" if path else landing.gate
    facts.append(Fact(state="note", text=reason))
    named = (
        f"{landing.task} {item['title'] or ''}".strip() if landing.task else landing.subject or landing.branch
    )
    return Card(
        **_base(item),
        question=f"Land {named} on {landing.target}?",
        who=landing.agent,
        cost=_cost_text(found["evidence"].get("cost")),
        facts=tuple(facts),
        head=landing.head,
        diff=_diff_of(repo, landing.head),
        buttons=_approve_buttons(landing.id, landing.head, kind="landing", name=landing.agent, may_say=False),
    )


def _diff_of(repo: Repository, head: str, base: str = "") -> Diff | None:
    """Return what a commit changes against the target, if it is known here."""
    if not head or not repo.common_dir:
        return None
    if not base:
        target = find_target(repo.home, repo.settings)
        base = merge_base(repo.home, commit_at(repo.home, target.remote_ref or target.ref), head)
    found = read_diff(repo.home, base, head) if base else None
    return found if found is not None and found.files else None


def _review_card(visit: Visit, item: InboxItemJson) -> Card:
    repo = visit.repo
    review = get_review(repo, item["id"])
    task = get_task(repo, review.task)
    facts = (
        [Fact(state="note", text=f"Commit {review.head[:_COMMIT]}, round {review.round}")]
        if review.head
        else []
    )
    facts += [Fact(state="ok", text="Check of the task: ", code=task.check)] if task.check else []
    facts += [
        Fact(
            state="ok" if entry.verdict == "approve" else "bad",
            text=f"{entry.by or entry.name}: {entry.verdict} {entry.summary}",
        )
        for entry in review.all_entries
        if entry.verdict
    ]
    facts += [Fact(state="note", text=review.why)] if review.why else []
    give = f"landlane review give {review.id} --verdict approve{_head_option(review.head)}"
    open_it = Button(
        label="Open review",
        command=f"landlane review show {review.id}",
        href=f"/review/{review.id}",
        is_main=True,
        decides=False,
    )
    yes = Button(
        label="Approve",
        command=give,
        action="review",
        given=(("id", review.id), ("verdict", "approve"), ("head", review.head)),
        key="a",
    )
    send_back = Button(
        label="Send back…",
        command=f"landlane review give {review.id} --verdict reject --summary '…'{_head_option(review.head)}",
        action="review",
        given=(("id", review.id), ("verdict", "reject"), ("head", review.head)),
        asks="summary",
        is_required=True,
        title=f"Send {review.task} back?",
        explains=f"{review.agent or 'The next owner'} continues with your comment.",
        key="r",
    )
    return Card(
        **_base(item),
        question=f"Approve {review.task} {task.title}?",
        who=review.agent,
        cost=_cost_text(lineage_cost(repo, task.lineage)),
        facts=tuple(facts),
        head=review.head,
        diff=_diff_of(repo, review.head, review.base),
        buttons=(open_it, yes, send_back),
    )


def _handoff_card(visit: Visit, item: InboxItemJson) -> Card:
    repo = visit.repo
    handoff = find_handoff(repo, item["id"])
    task = get_task(repo, str(item["task"]))
    rows: Sequence[Any] = list(field_rows(handoff)) if handoff is not None else []
    facts = tuple(Fact(state="note", text=f"{name}: {text}"[:_LONGEST_FACT]) for name, text in rows[:_CAUSES])
    accept = Button(
        label="Take it over",
        command=f"landlane handoff accept {task.id}",
        action="accept",
        given=(("task", task.id),),
        key="a",
        is_main=True,
    )
    decline = Button(
        label="Decline…",
        command=f"landlane handoff decline {task.id} --why '…'",
        action="decline",
        given=(("task", task.id),),
        asks="why",
        is_required=True,
        title=f"Decline {task.id}?",
        explains="It goes back to the queue with your reason.",
        key="r",
    )
    return Card(
        **_base(item),
        question=f"Take over {task.id} {task.title}?",
        who=handoff.sender if handoff is not None else "",
        cost=_cost_text(lineage_cost(repo, task.lineage)),
        facts=facts,
        buttons=(accept, decline),
    )


def _dead_card(visit: Visit, item: InboxItemJson) -> Card:
    repo = visit.repo
    task = get_task(repo, item["id"])
    lessons = lessons_of(repo, task.id)[-_CAUSES:]
    facts = [
        Fact(state="bad", text=f"Attempt {one.attempt}: {' '.join(one.why.split())}"[:_LONGEST_FACT])
        for one in lessons
    ]
    facts += [Fact(state="note", text="Check: ", code=task.check)] if task.check else []
    retry = f"landlane task retry {task.id}"
    buttons = (
        Button(
            label="Retry…",
            command=f"{retry} --why '…'",
            action="retry",
            given=(("task", task.id),),
            asks="why",
            title="What should the next attempt do differently?",
            explains="The next worker reads it. It gets a new budget of attempts.",
            key="a",
            is_main=True,
        ),
        Button(
            label="Drop…",
            command=f"landlane task drop {task.id} --why '…'",
            action="drop",
            given=(("task", task.id),),
            asks="why",
            is_required=True,
            title=f"Drop {task.id} for good?",
            explains="It cannot be opened again. Tasks that wait for it are blocked.",
            key="r",
            is_bad=True,
        ),
    )
    why = " ".join(task.why.split()) or "its attempts are used up"
    return Card(
        **_base(item),
        question=f"{task.id} {task.title} failed for good. Retry it?",
        who=task.owner,
        cost=_cost_text(lineage_cost(repo, task.lineage)),
        facts=(Fact(state="bad", text=why[:_LONGEST_FACT]), *facts),
        buttons=buttons,
    )


_READERS = {
    "gate": _gate_card,
    "landing": _landing_card,
    "review": _review_card,
    "handoff": _handoff_card,
    "dead": _dead_card,
}

"""Rebuild tasks from the journal."""

from __future__ import annotations

import json

from landlane.patterns.pattern import LITERAL, parse
from landlane.tasks.duplicates import signs_of
from landlane.tasks.model import (
    ACTIVE,
    BLOCKED,
    DONE,
    DROPPED,
    LANDING,
    READY,
    REPORTED,
    REVIEW,
    WAITING,
    rank_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.store.interface import Transaction
    from landlane.store.journal_chain import JournalEntry


_STATE_AFTER = {
    "task.reported": REPORTED,
    "task.done": DONE,
    "task.blocked": BLOCKED,
    "task.unblocked": READY,
    "task.retried": READY,
    "task.dropped": DROPPED,
    "task.proved": LANDING,
    "task.asked": WAITING,
    "task.split": BLOCKED,
    "task.reviewing": REVIEW,
}
_WITHOUT_OWNER = (READY, BLOCKED, DROPPED)


class TaskReplay:
    """The tasks that the journal entries so far describe."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self.after: list[tuple[str, str]] = []

    def add(self, entry: JournalEntry) -> None:
        """Apply one more entry; entries about other things are ignored."""
        if not entry.kind.startswith("task."):
            return
        facts = entry.facts()
        if entry.kind == "task.added":
            self.tasks[facts["task"]] = {**facts, **_NEW_TASK, "at": entry.at}
            self.after += [(facts["task"], before) for before in facts["after"]]
            return
        task = self.tasks.get(facts["task"])
        if task is None:
            return
        if entry.kind == "task.waits":
            self.after.append((facts["task"], facts["after"]))
        elif entry.kind in ("task.planned", "task.edited"):
            task |= {key: facts[key] for key in _EDITABLE if key in facts}
        else:
            self._move(task, entry, facts)

    def _move(self, task: dict[str, Any], entry: JournalEntry, facts: dict[str, Any]) -> None:
        if entry.kind == "task.taken":
            task |= {
                "state": ACTIVE,
                "owner": entry.agent,
                "session": entry.session,
                "attempt": facts["attempt"],
            }
            task["why"] = ""
        elif entry.kind in ("task.failed", "task.returned"):
            task |= {
                "state": facts["state"],
                "why": facts["why"],
                "failures": facts.get("failures", task["failures"]),
            }
            is_lapse = entry.kind == "task.returned" and not facts.get("handed")
            task["lapses"] += is_lapse and " vanished " in facts["why"]
            task["lapses"] = facts.get("lapses", task["lapses"])  # older entries lack it
        elif entry.kind == "task.joined" and "kept_why" in facts:
            task |= {"state": facts["state"], "why": facts["kept_why"], "owner": "", "session": ""}
        elif entry.kind == "task.reviewed":
            task |= {key: facts[key] for key in ("state", "owner", "session", "head", "failures")}
            task["why"] = facts["kept_why"]
        elif entry.kind == "task.answered":
            task |= {"state": facts["state"], "why": "" if facts["is_resumed"] else facts["why"]}
            task["failures"] = facts.get("failures", task["failures"])
            if not facts["is_resumed"]:
                task |= {"owner": "", "session": ""}
        elif entry.kind in _STATE_AFTER:
            task |= {"state": _STATE_AFTER[entry.kind], "why": facts.get("why", "")}
            task["head"] = facts.get("head", task["head"])
            task["result"] = facts.get("result", task["result"])
            if entry.kind == "task.retried":
                task |= {"failures": 0, "lapses": 0}
        is_back = entry.kind in ("task.failed", "task.returned") and task["state"] not in (REPORTED, ACTIVE)
        if task["state"] in _WITHOUT_OWNER or is_back:
            task |= {"owner": "", "session": ""}

    def write(self, tx: Transaction, *, ignore_case: bool) -> int:
        """Write all tasks into a new store, and return how many."""
        done = {name for name, task in self.tasks.items() if task["state"] == DONE}
        waits: dict[str, list[str]] = {}
        for name, before in dict.fromkeys(self.after):
            tx.run("import_task_after", task=name, after=before)
            if before not in done:
                waits.setdefault(name, []).append(before)
        newest = 0
        for name, task in self.tasks.items():
            newest = max(newest, int(name[1:]))
            self._write_one(tx, name, task, waits.get(name, []), ignore_case=ignore_case)
        if newest:
            tx.run("import_task_counts", last=newest)
        return len(self.tasks)

    def _write_one(
        self, tx: Transaction, name: str, task: dict[str, Any], waits: list[str], *, ignore_case: bool
    ) -> None:
        if waits and task["state"] == READY:
            task |= {"state": BLOCKED, "why": ""}
        # Ages are lost with the old clock; the order in which tasks were added is kept.
        created_at = tx.now - len(self.tasks) + int(name[1:])
        tx.run(
            "import_tasks",
            id=name,
            **{key: task[key] for key in _STORED},
            rank=rank_of(created_at, task["priority"]),
            paths=json.dumps(task["paths"], ensure_ascii=False),
            check_command=task["check"],
            key=task["key"] or None,
            labels=json.dumps(task["labels"], ensure_ascii=False),
            waits_for=len(waits),
            created_at=created_at,
            ready_at=created_at,
            taken_at=tx.now if task["state"] == ACTIVE else 0,
        )
        keys = [
            branch.key
            for text, kind in task["paths"]
            for branch in parse(text, literal=kind == LITERAL, ignore_case=ignore_case).alternatives
        ]
        for sign in signs_of(task["title"], task["body"], keys):
            tx.run("import_task_signs", sign=sign, task=name)
        for other, reason in task.get("similar", ()):
            tx.run("import_task_links", task=name, other=other, reason=reason)


_EDITABLE = ("title", "body", "priority", "paths", "labels", "next_action")
_NEW_TASK: dict[str, Any] = {
    "state": READY,
    "owner": "",
    "session": "",
    "attempt": 0,
    "failures": 0,
    "lapses": 0,
    "why": "",
    "head": "",
    "result": "",
}
_STORED = (
    *("title", "body", "kind", "state", "role", "priority", "owner", "session", "attempt", "failures"),
    *("lapses", "max_attempts", "lineage", "output", "why", "next_action", "head", "result"),
)

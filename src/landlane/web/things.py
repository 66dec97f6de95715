"""The pages below the first view: tasks, agents, landings, workspaces, rescues, rules, settings and more."""

from __future__ import annotations

import os

from landlane.claims.describe import end_text, held_text, list_holdings, reason_text
from landlane.claims.take import list_claims
from landlane.errors import LandlaneError, Malformed
from landlane.gates.records import get_gate
from landlane.gates.to_json import gate_json
from landlane.git.commits import merge_base
from landlane.git.private_git_dir import open_temporary
from landlane.git.run import try_git_output
from landlane.git.target import commit_at, find_target
from landlane.handoffs.records import list_handoffs
from landlane.handoffs.to_json import handoff_json
from landlane.ids import is_record_id
from landlane.journal.read import last_position
from landlane.journal.select import make_filter
from landlane.journal.sentences import is_for_people
from landlane.landing.model import BOUNCED, EJECTED, HELD, LANDED, QUEUED, TESTING
from landlane.landing.records import get_landing, list_landings
from landlane.landing.target_status import read_target_status
from landlane.landing.to_text import ended_message, state_text
from landlane.rescue.list_changes import list_rescued_changes
from landlane.rescue.refs import get_rescue, list_rescues
from landlane.rescue.save import locate_checkout
from landlane.rules.file import load_rules
from landlane.rules.versions import list_readers
from landlane.settings.section import Section, keys_of
from landlane.state.key_rules import value_text
from landlane.state.keys import list_state
from landlane.status.task_facts import task_facts_json
from landlane.tasks.attempts import attempts_of
from landlane.tasks.lineage import family_with_lessons, lineage_of
from landlane.tasks.model import DEAD, DONE, DROPPED, FAILED, FINAL, IN_PROGRESS, READY, WAITING, TaskState
from landlane.tasks.records import find_task, get_task, list_tasks, task_history, task_paths, task_titles
from landlane.tasks.text import NEEDS_YOU, count_text, read_state, tries_text, waits_text
from landlane.tasks.text import state_text as task_state_text
from landlane.tasks.to_json import lineage_json
from landlane.tasks.waits import find_waits
from landlane.text import in_one_line
from landlane.units import byte_size, money, rough_duration
from landlane.web.claims_map import list_paths, read_claim_map
from landlane.web.diffs import Diff, parse_diff, read_diff
from landlane.web.graph import draw_graph
from landlane.web.needs import read_cards
from landlane.web.render import UNKNOWN
from landlane.web.timeline import list_entries
from landlane.web.working import read_working
from landlane.workers.attempt_log import read_log
from landlane.workspaces.model import OPEN
from landlane.workspaces.records import find as find_workspace
from landlane.workspaces.records import is_local
from landlane.workspaces.to_json import workspace_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.store.journal_chain import JournalEntry
    from landlane.tasks.model import Attempt, Task
    from landlane.web.visit import Visit
    from landlane.workspaces.model import Workspace

_PAGE = 50
_MOST_LOG = 400  # lines of a log that a page shows
_MOST_GRAPH = 120
_MOST_FOUND = 30
_LOOK_BACK = 20_000  # entries that a filter looks through
_BATCH = 1_000
TONES: Mapping[str, tuple[str, str]] = {
    "ready": ("idle", "queued"),
    "blocked": ("idle", "blocked"),
    "active": ("run", "work"),
    "reported": ("run", "test"),
    "review": ("run", "talk"),
    "landing": ("run", "land"),
    "waiting_for_person": ("you", "you"),
    "done": ("ok", "ok"),
    "failed": ("bad", "bad"),
    "dead": ("bad", "stuck"),
    "dropped": ("idle", "drop"),
    "queued": ("idle", "queued"),
    "testing": ("run", "test"),
    "proposed": ("run", "pr"),
    "held": ("you", "you"),
    "landed": ("ok", "ok"),
    "bounced": ("bad", "bad"),
    "ejected": ("idle", "eject"),
}


# ------------------------------------------------------------------------------------------------- tasks


def show_tasks(visit: Visit) -> dict[str, Any]:
    """Return one page of the tasks, the newest first."""
    repo, query = visit.repo, visit.query
    wanted = query.get("state", "open")
    named = read_state(wanted)
    tasks = list_tasks(repo)
    states = {named} if named is not None else set(TaskState) if wanted == "all" else set(TaskState) - FINAL
    text = query.get("q", "").strip().lower()
    chosen = [
        task for task in reversed(tasks) if task.state in states and (not text or text in task.title.lower())
    ]
    before = query.get("before", "")
    ids = [task.id for task in chosen]
    start = ids.index(before) + 1 if before in ids else 0
    shown = chosen[start : start + _PAGE]
    waits = find_waits(repo, shown)
    rows = [
        {
            "task": task,
            "state": task_state_text(task.state),
            "tone": TONES[task.state],
            "try": tries_text(task),
            "waits": waits_text(waits.get(task.id, ()), visit.now),
            "paths": task_paths(task),
        }
        for task in shown
    ]
    return {
        "title": "Tasks",
        "current": "tasks",
        "rows": rows,
        "counts": count_text(tasks) if tasks else "",
        "state_name": wanted,
        "q": query.get("q", ""),
        "states": ("open", *(one for one in TaskState if one != WAITING), NEEDS_YOU, "all"),
        "next": shown[-1].id if start + _PAGE < len(chosen) and shown else "",
        "before": before,
        "found": len(chosen),
    }


def show_task(visit: Visit) -> dict[str, Any]:
    """Return one task in full."""
    repo = visit.repo
    task = get_task(repo, visit.parameters["id"].upper())
    facts, attempts = task_facts_json(repo, task), attempts_of(repo, task.id)
    waits = find_waits(repo, [task]).get(task.id, ())
    family, _ = family_with_lessons(repo, task)
    number = _chosen_attempt(visit, attempts)
    landings = [one for one in list_landings(repo, ()) if one.task == task.id]
    history = [entry for entry in task_history(repo, task.id) if is_for_people(entry)]
    return {
        "title": f"{task.id} {task.title}",
        "current": "tasks",
        "task": task,
        "state": task_state_text(task.state),
        "tone": TONES[task.state],
        "facts": facts,
        "paths": task_paths(task),
        "waits": waits_text(waits, visit.now),
        "lineage": lineage_json(task, lineage_of(repo, task), repo.settings.retries, family),
        "attempts": attempts,
        "attempt": number,
        "log": _log(repo, task.id, attempts, number),
        "diff": _task_diff(repo, task),
        "landings": landings,
        "landing_tones": {one.id: TONES[one.state] for one in landings},
        "handoffs": [
            handoff_json(one) for one in list_handoffs(repo, with_settled=True) if one.task == task.id
        ],
        "entries": list_entries(repo, history[-_PAGE:]),
        "items": [item for item in visit.items if item["task"] == task.id],
        "can_retry": task.state in (FAILED, DEAD),
        "can_edit": task.state not in FINAL,
        "can_drop": task.state not in FINAL,
        "is_running": task.state in IN_PROGRESS,
        "can_block": task.state == READY,
        "is_blocked": task.state == "blocked",
    }


def _chosen_attempt(visit: Visit, attempts: Sequence[Attempt]) -> int:
    wanted = visit.query.get("attempt", "")
    known = [attempt.attempt for attempt in attempts]
    if wanted.isdecimal() and int(wanted) in known:
        return int(wanted)
    return known[-1] if known else 0


def _log(repo: Repository, task: str, attempts: Sequence[Attempt], number: int) -> dict[str, Any]:
    """Return the end of the log of an attempt, or why there is none."""
    attempt = next((one for one in attempts if one.attempt == number), None)
    if attempt is None:
        return {"lines": (), "note": "No worker has attempted this task.", "left_out": 0}
    found = read_log(repo.state_folder, task, number)
    if found is None:
        is_here = attempt.machine == repo.processes.machine
        note = (
            "The worker printed nothing, or the log was removed."
            if is_here
            else "The log is on another machine."
        )
        return {"lines": (), "note": note, "left_out": 0}
    lines = found.lines
    return {"lines": lines[-_MOST_LOG:], "note": "", "left_out": max(len(lines) - _MOST_LOG, 0)}


def _task_diff(repo: Repository, task: Task) -> Diff | None:
    """Return what the branch of a task changes against the target."""
    if not repo.common_dir or not task.attempt:
        return None
    head = task.head or commit_at(repo.home, f"refs/heads/{task.branch}")
    return diff_to_target(repo, head)


def diff_to_target(repo: Repository, head: str) -> Diff | None:
    """Return what a commit changes against the target; None if nothing is known of it here."""
    if not head:
        return None
    try:
        target = find_target(repo.home, repo.settings)
    except LandlaneError:
        return None
    base = merge_base(repo.home, commit_at(repo.home, target.remote_ref or target.ref), head)
    found = read_diff(repo.home, base, head) if base else None
    return found if found is not None and found.files else None


# ------------------------------------------------------------------------------------------------- agents


def show_agents(visit: Visit) -> dict[str, Any]:
    """Return all live sessions."""
    return {"title": "Agents", "current": "agents", "working": read_working(visit, is_folded=False)}


def show_agent(visit: Visit) -> dict[str, Any]:
    """Return what one agent does, holds and did."""
    repo, name = visit.repo, visit.parameters["id"]
    row = next((one for one in read_working(visit, is_folded=False).rows if one.agent == name), None)
    now = repo.store.view(lambda snapshot: snapshot.now)
    held = [one for one in list_holdings(repo) if one.claim.agent == name]
    entries = _recent(repo, lambda entry: entry.agent == name and is_for_people(entry))
    tasks = [task for task in list_tasks(repo) if task.owner == name]
    if row is None and not held and not entries and not tasks:
        raise Malformed(f"no agent {name[:60]}", code="UNKNOWN_AGENT", hint="see who works: landlane status")
    return {
        "title": name,
        "current": "agents",
        "name": name,
        "row": row,
        "claims": [_claim_row(repo, one, now) for one in held],
        "tasks": [
            {"task": task, "state": task_state_text(task.state), "tone": TONES[task.state]} for task in tasks
        ],
        "entries": list_entries(repo, entries[-_PAGE:]),
    }


def _claim_row(repo: Repository, holding: Any, now: int) -> dict[str, Any]:
    claim = holding.claim
    return {
        "token": claim.token,
        "path": claim.pattern,
        "holder": claim.agent,
        "mode": claim.mode,
        "reason": reason_text(holding),
        "since": repo.store.wall_of(claim.granted_at),
        "ends": end_text(holding, now),
        "waiting": holding.waiting,
        "task": claim.task,
        "can_release": not is_record_id(claim.agent),
        "sentence": held_text(claim.pattern, holding, repo.store, now),
    }


def show_claims(visit: Visit) -> dict[str, Any]:
    """Return the map of the claims, and all of them as a table."""
    repo, query = visit.repo, visit.query.get("path", "").strip()
    now = repo.store.view(lambda snapshot: snapshot.now)
    rows = [_claim_row(repo, one, now) for one in list_holdings(repo)]
    wanted = query.lower()
    shown = [row for row in rows if wanted in row["path"].lower() or wanted in row["holder"].lower()]
    who = _who(repo, query, now) if query else ""
    return {
        "title": "Claims",
        "current": "claims",
        "claims": read_claim_map(visit, query),
        "rows": shown,
        "path_query": query,
        "who": who,
        "conflicts": None,
    }


def _who(repo: Repository, path: str, now: int) -> str:
    """Return who holds exactly this path."""
    try:
        pattern = repo.git.pattern_of(path, "literal")
    except LandlaneError:
        return ""
    found = list_holdings(repo, [pattern])
    paths = list_paths(repo) or ()
    if found:
        return held_text(path, found[0], repo.store, now)
    return f"{path} is free" if path in paths else ""


# ---------------------------------------------------------------------------------------------- landings


def show_landings(visit: Visit) -> dict[str, Any]:
    """Return the queue, and one page of what ended, the newest first."""
    repo = visit.repo
    everything = list_landings(repo, ())
    titles = task_titles(repo, [one.task for one in everything[-400:]])
    open_ones = [one for one in everything if one.state in (QUEUED, TESTING, HELD)]
    ended = sorted((one for one in everything if one.ended_at), key=lambda one: -one.ended_at)
    page = int(visit.query["page"]) if visit.query.get("page", "").isdecimal() else 0
    shown = ended[page * _PAGE : (page + 1) * _PAGE]
    return {
        "title": "Landing",
        "current": "landing",
        "open": [_landing_row(one, titles, visit.now) for one in open_ones],
        "ended": [_landing_row(one, titles, visit.now) for one in shown],
        "page": page,
        "has_more": (page + 1) * _PAGE < len(ended),
        "total": len(ended),
    }


def _landing_row(landing: Landing, titles: Mapping[str, str], now: int) -> dict[str, Any]:
    return {
        "landing": landing,
        "title": titles.get(landing.task) or landing.subject or landing.branch,
        "tone": TONES[landing.state],
        "doing": state_text(landing, now),
    }


def show_landing(visit: Visit) -> dict[str, Any] | str:
    """Return one entry of the queue, or the target branch."""
    repo, id = visit.repo, visit.parameters["id"]
    if id == "target":
        status = read_target_status(repo)
        return {"title": status.branch, "current": "landing", "landing": None, "status": status}
    landing = get_landing(repo, id.upper())
    task = repo.store.view(lambda snapshot: find_task(snapshot, landing.task)) if landing.task else None
    is_ended = landing.state in (LANDED, BOUNCED, EJECTED)
    return {
        "title": f"{landing.id} {task.title if task is not None else landing.subject or landing.branch}",
        "current": "landing",
        "landing": landing,
        "task": task,
        "status": None,
        "tone": TONES[landing.state],
        "message": ended_message(landing, task)
        if is_ended or landing.state == HELD
        else state_text(landing, visit.now),
        "diff": diff_to_target(repo, landing.head)
        if not landing.commit
        else _commit_diff(repo, landing.commit),
        "can_eject": landing.state in (QUEUED, TESTING, HELD),
        "cards": read_cards(visit, landing.id) if landing.state == HELD else [],
    }


def _commit_diff(repo: Repository, commit: str) -> Diff | None:
    found = read_diff(repo.home, _parent(repo, commit), commit)
    return found if found.files else None


def _parent(repo: Repository, commit: str) -> str:
    return try_git_output(repo.home, "rev-parse", "--verify", "--quiet", f"{commit}^1")


# ------------------------------------------------------------------------------------- plan and journal


def show_plan(visit: Visit) -> dict[str, Any]:
    """Return the open tasks as a graph."""
    tasks = [task for task in list_tasks(visit.repo) if task.state not in (DONE, DROPPED)]
    linked = {before for task in tasks for before in task.after}
    chosen = [task for task in tasks if task.after or task.id in linked] or tasks
    return {
        "title": "Plan",
        "current": "plan",
        "graph": draw_graph(chosen[:_MOST_GRAPH]),
        "rows": [
            {"task": task, "state": task_state_text(task.state), "tone": TONES[task.state]}
            for task in chosen[:_MOST_GRAPH]
        ],
        "left_out": max(len(chosen) - _MOST_GRAPH, 0),
        "alone": len(tasks) - len(chosen),
    }


def show_journal(visit: Visit) -> dict[str, Any]:
    """Return one page of the journal, the newest first."""
    repo, query = visit.repo, visit.query
    about, is_full = query.get("about", "").strip(), query.get("all") == "yes"
    keep = make_filter(repo, about)
    before = int(query["before"]) if query.get("before", "").isdecimal() else 0
    found = _recent(repo, lambda entry: (is_full or is_for_people(entry)) and keep(entry), before)
    shown = found[-_PAGE:]
    return {
        "title": "Journal",
        "current": "journal",
        "entries": list_entries(repo, shown),
        "about": about,
        "is_full": is_full,
        "next": shown[0].position if len(found) > len(shown) or (shown and shown[0].position > 1) else 0,
        "before": before,
        "head": repo.store.last_entry(),
    }


def _recent(repo: Repository, keep: Callable[[JournalEntry], bool], before: int = 0) -> list[JournalEntry]:
    """Return the newest wanted entries before a position, at least a page of them if there are so many."""
    end = min(before - 1, last_position(repo)) if before else last_position(repo)
    found: list[JournalEntry] = []
    looked = 0
    while end > 0 and len(found) <= _PAGE and looked < _LOOK_BACK:
        start = max(end - _BATCH, 0)
        page = [entry for entry in repo.store.entries(start, end - start) if entry.position <= end]
        found = [*(entry for entry in page if keep(entry)), *found]
        looked += end - start
        end = start
    return found


# -------------------------------------------------------------------------- workspaces, rescues, the rest


def show_workspace(visit: Visit) -> dict[str, Any]:
    """Return a workspace, with what is changed in it now."""
    repo = visit.repo
    workspace = find_workspace(repo, visit.parameters["id"].upper())
    if workspace is None:
        hint = "see all: landlane workspace list"
        raise Malformed(f"no workspace {visit.parameters['id'][:20]}", code="UNKNOWN_WORKSPACE", hint=hint)
    head = commit_at(repo.home, f"refs/heads/{workspace.branch}") if repo.common_dir else ""
    return {
        "title": workspace.id,
        "current": "agents",
        "workspace": workspace_json(workspace),
        "is_here": is_local(repo, workspace) and workspace.state == OPEN and os.path.isdir(workspace.path),
        "diff": diff_to_target(repo, head),
        "now_diff": _changes_now(repo, workspace),
        "head": head,
    }


def _changes_now(repo: Repository, workspace: Workspace) -> Diff | None:
    """Return the uncommitted changes of a checkout, without any command that its own git config names."""
    if not is_local(repo, workspace) or not os.path.isdir(workspace.path):
        return None
    with open_temporary(locate_checkout(repo, workspace.path)) as private:
        text = private.git_output(
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "HEAD",
            "--",
        )
    found = parse_diff(text)
    return found if found.files else None


def show_rescues(visit: Visit) -> dict[str, Any]:
    """Return the saved work, the newest first."""
    repo = visit.repo.require_git()
    rescues = list(reversed(list_rescues(repo.common_dir)))
    titles = task_titles(repo, [str(one.facts.get("task") or "") for one in rescues])
    return {"title": "Rescue", "current": "rescue", "rescues": rescues, "titles": titles}


def show_rescue(visit: Visit) -> dict[str, Any]:
    """Return what one rescue holds."""
    repo = visit.repo.require_git()
    rescue = get_rescue(repo.common_dir, visit.parameters["id"])
    changes = list_rescued_changes(repo.common_dir, rescue)
    return {"title": rescue.id, "current": "rescue", "rescue": rescue, "changes": changes}


def show_state(visit: Visit) -> dict[str, Any]:
    """Return the shared keys."""
    states = list_state(visit.repo)
    rows = [{"state": one, "text": value_text(one.value)[:400]} for one in states]
    return {"title": "State", "current": "state", "rows": rows}


def show_rules(visit: Visit) -> dict[str, Any]:
    """Return the rules, and who has read which version."""
    repo = visit.repo
    file = repo.settings.rules.file
    rules = load_rules(repo.checkout, repo.home, file)
    readers = list_readers(repo, rules.version) if rules is not None else []
    return {"title": "Rules", "current": "rules", "rules": rules, "readers": readers, "file": file}


def show_doctor(visit: Visit) -> dict[str, Any]:
    """Return what the doctor found when it last ran."""
    del visit
    return {"title": "Doctor", "current": "doctor"}


def show_settings(visit: Visit) -> dict[str, Any]:
    """Return the settings by section; addresses of stores and receivers can hold secrets and are left out."""
    settings = visit.repo.settings
    rows = list(_setting_rows("", settings))
    return {"title": "Settings", "current": "settings", "rows": rows}


_HIDDEN = ("store.url", "notify.webhook", "notify.command")


def _setting_rows(prefix: str, section: Section) -> Iterable[tuple[str, str]]:
    for name, key in keys_of(type(section)).items():
        found = getattr(section, key.field)
        full = f"{prefix}{name}"
        if isinstance(found, Section):
            yield from _setting_rows(f"{full}.", found)
        elif full in _HIDDEN:
            yield full, "set" if found else UNKNOWN
        else:
            yield full, in_one_line(_setting_text(found, key.field))


def _setting_text(found: Any, field: str = "") -> str:
    if found is None or found in ("", (), {}):
        return UNKNOWN
    if (
        isinstance(found, int)
        and not isinstance(found, bool)
        and field.endswith(("_ms", "_micros", "_bytes"))
    ):
        write = rough_duration if field.endswith("_ms") else money if field.endswith("_micros") else byte_size
        return write(found)
    if isinstance(found, bool):
        return "yes" if found else "no"
    many: Any = found  # of any types: a list or a table of the settings
    if isinstance(found, tuple):
        return ", ".join(_setting_text(one) for one in many)
    if isinstance(found, dict):
        return ", ".join(f"{name} = {_setting_text(one)}" for name, one in many.items())
    if isinstance(found, Section):
        return ", ".join(f"{name} = {text}" for name, text in _setting_rows("", found) if text != UNKNOWN)
    return str(found)


# -------------------------------------------------------------------------------------- items and search


def show_item(visit: Visit) -> dict[str, Any] | str:
    """Return the card of one item; an item that does not wait any more is shown as what became of it."""
    repo, id = visit.repo, visit.parameters["id"].upper()
    cards = read_cards(visit, id)
    if cards:
        return {"title": f"{id} {cards[0].question}", "current": "overview", "card": cards[0], "gate": None}
    if id.startswith("T"):
        return f"/task/{id}"
    if id.startswith("L"):
        return f"/landing/{id}"
    if id.startswith("V"):
        return f"/review/{id}"
    if id.startswith("H"):
        handoff = next((one for one in list_handoffs(repo, with_settled=True) if one.id == id), None)
        if handoff is not None:
            return f"/task/{handoff.task}"
    gate = gate_json(get_gate(repo, id), visit.now)
    return {"title": id, "current": "overview", "card": None, "gate": gate}


def search(visit: Visit) -> dict[str, Any] | str:
    """Return what has the words: a thing by its id, tasks by title, files, agents."""
    repo, text = visit.repo, visit.query.get("q", "").strip()
    wanted = text.upper()
    if is_record_id(wanted):
        page = {"T": "task", "L": "landing", "V": "review", "R": "rescue", "W": "workspace"}.get(
            wanted[0], "item"
        )
        return f"/{page}/{wanted}"
    lower = text.lower()
    tasks = [task for task in reversed(list_tasks(repo)) if lower and lower in task.title.lower()]
    paths = [path for path in list_paths(repo) or () if lower and lower in path.lower()]
    agents = sorted(
        {claim.agent for claim in list_claims(repo)}
        | {row.agent for row in read_working(visit, is_folded=False).rows}
    )
    return {
        "title": f"“{text}”",
        "current": "",
        "q": text,
        "tasks": [
            {"task": task, "state": task_state_text(task.state), "tone": TONES[task.state]}
            for task in tasks[:_MOST_FOUND]
        ],
        "more_tasks": max(len(tasks) - _MOST_FOUND, 0),
        "paths": paths[:_MOST_FOUND],
        "more_paths": max(len(paths) - _MOST_FOUND, 0),
        "agents": [name for name in agents if lower and lower in name.lower()],
    }

"""The third mode: the same tasks with `landlane run`, a person at the gates, and safe deploys."""

from __future__ import annotations

import json
import os
import signal
import sys

from landlane.api import Landlane, LooksAlike
from landlane.demo.sample_project import TARGET, git, make_shop, write
from landlane.demo.scratch import has_ended, has_moved, now_ms, wait_until
from landlane.demo.scripted_person import Person
from landlane.resident.messages import find_socket
from landlane.resident.start import is_answering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.demo.sample_tasks import DemoTask
    from landlane.demo.scratch import DemoRun
    from landlane.processes.child import Child, ChildResult

LANDLANE = "landlane"
_LIMIT_SECONDS = 300.0
_SERVE_SECONDS = 30.0
_DEPLOY = ("sh", "tools/deploy.sh")
_BEHIND = 4  # the exit code of a deploy that would ship an outdated commit
# The events of a run to print when there is no terminal display.
_REPORTED_EVENTS = (" landed as ", " failed: ", " needs you: ", "error: ", "hint: ")


def run_coordinated(run: DemoRun, tasks: Sequence[DemoTask], workers: int) -> dict[str, int]:
    """Run the tasks with Landlane; return when it began and ended."""
    place = run.folder_of(LANDLANE)
    root = make_shop(place, workers)
    ops = os.path.join(place, "ops")
    git(root, "worktree", "add", "--quiet", "-b", "ops", ops, TARGET)
    keys = os.path.join(place, "keys.json")
    write(keys, json.dumps({task.title: task.key for task in tasks}))
    began = now_ms()
    _fill_queue(run, root, tasks)
    # Sandboxed workers reach the state through the resident. The demo starts one that ends with it.
    state = os.path.join(root, ".git", "landlane")
    run.serve("landlane", "resident", "--state", state, cwd=root)
    # Otherwise a worker would start one that outlives the demo.
    wait_until(lambda: _is_served(state), _SERVE_SECONDS)
    log = os.path.join(place, "person.log")
    person = run.python("landlane.demo.scripted_person", root, log, keys, cwd=root)
    orchestrator = _start_orchestrator(run, root, place)
    follower = _LogFollower(run, os.path.join(place, "run.log"))
    # As in the other modes, deploy from a checkout that is outdated by now.
    wait_until(lambda: has_moved(place) or has_ended(orchestrator), _LIMIT_SECONDS, follower.tick)
    refused = _deploy(run, place, ops)
    run.finish(orchestrator, _LIMIT_SECONDS, follower.tick)
    follower.tick()
    person.signal(signal.SIGTERM)
    run.finish(person, _LIMIT_SECONDS)
    _report_refusal(run, refused)
    _report_decisions(run, root, log)
    Person(root, log, {"DEMO_PLACE": place, "DEMO_WHO": "pat"}).type("deploy", "prod", "--", *_DEPLOY)
    again = _deploy(run, place, ops)
    if again.exit_code == _BEHIND:
        _report_refusal(run, again)
        _landlane(run, place, ops, "sync", "--update", "merge", "--as", "ops")
        _deploy(run, place, ops)
    return {"began": began, "ended": now_ms()}


def _is_served(state: str) -> bool:
    path = find_socket(state)
    return bool(path) and is_answering(path)


def _fill_queue(run: DemoRun, root: str, tasks: Sequence[DemoTask]) -> None:
    """Let two agents plan: kim adds what lead has already planned, in other words."""
    planned: set[str] = set()
    with Landlane(root, agent="lead") as lead, Landlane(root, agent="kim") as kim:
        for task in tasks:
            planner = kim if task.key in planned else lead
            planned.add(task.key)
            outcome = planner.tasks.add(
                task.title,
                body=f"{task.key} {task.think}",
                paths=task.paths,
                key=task.id,
                labels=[f"agent:{task.agent}"],
            )
            if isinstance(outcome, LooksAlike):
                first = outcome.similar[0]
                run.report(f'  refused: "{task.title}" looks like {first.task} ({first.reason})')


def _start_orchestrator(run: DemoRun, root: str, place: str) -> Child:
    """Start `landlane run` as a person does, with its display on a terminal."""
    words = [sys.executable, "-P", "-m", "landlane", "run", "--until-empty"]
    with open(os.path.join(place, "run.log"), "ab") as log, open(os.devnull, "rb") as null:
        streams = (null.fileno(), log.fileno(), 2 if run.has_terminal else log.fileno())
        return run.start(words, root, environment={"LANDLANE_AGENT": "lead"}, streams=streams)


class _LogFollower:
    """Prints the log of a run when there is no terminal display."""

    def __init__(self, run: DemoRun, path: str) -> None:
        self._run = run
        self._path = path
        self._read = 0  # bytes

    def tick(self) -> None:
        """Print the new lines."""
        if self._run.has_terminal:
            return
        with open(self._path, encoding="utf-8", errors="replace") as file:
            file.seek(self._read)
            text = file.read()
        lines = text[: text.rfind("\n") + 1]  # the last line may still be incomplete
        self._read += len(lines.encode())
        for line in lines.splitlines():
            if any(word in line for word in _REPORTED_EVENTS):
                self._run.report(f"  {line}")


def _report_decisions(run: DemoRun, root: str, log: str) -> None:
    """Report what was rejected before it could do harm, and what the person typed."""
    for entry in read_journal(root):
        if entry["kind"] == "landing.bounced":
            landing = entry["data"]["landing"]
            run.report(f"  {landing['task']} bounced: {landing['reason']}")
    if not os.path.exists(log):
        return  # the person was not asked
    with open(log, encoding="utf-8") as file:
        for line in file:
            if " $ " in line:
                run.report(f"  pat typed:{line.partition('$')[2].rstrip()}")


def read_journal(root: str) -> list[dict[str, Any]]:
    """Return all entries of the journal."""
    with open(os.path.join(root, ".git", "landlane", "journal.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def _deploy(run: DemoRun, place: str, checkout: str) -> ChildResult:
    """Request a deploy as the deploying agent."""
    return _landlane(run, place, checkout, "deploy", "prod", "--as", "ops", "--", *_DEPLOY)


def _report_refusal(run: DemoRun, ended: ChildResult) -> None:
    if ended.exit_code:
        said = ended.stderr.strip().splitlines()
        run.report(f"  ops: {said[0] if said else f'the deploy failed with exit {ended.exit_code}'}")


def _landlane(run: DemoRun, place: str, folder: str, *words: str) -> ChildResult:
    environment = {"DEMO_PLACE": place, "DEMO_WHO": "ops"}
    child = run.python("landlane", *words, cwd=folder, environment=environment)
    return run.finish(child, _LIMIT_SECONDS)

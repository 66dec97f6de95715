"""The orchestrator: picks tasks, starts a supervisor for each attempt, lands what they return.

It keeps nothing that is not in the store. Keepers are processes of their own, started by a helper: killing
this one harms none of them, and whoever is started next counts those that go on, ends what was left by the
dead, and carries on. Several may run at once, on one machine or on many: a task is taken in one
step, so there is no leader.
"""

from __future__ import annotations

import contextlib
import signal
import time

from landlane.errors import LandlaneError, StoreError, StoreTransient
from landlane.exec.cleanup import clear_forsaken
from landlane.fanout.join import settle_fans
from landlane.git.target import find_target
from landlane.landing.after_landing import settle_here
from landlane.landing.model import HELD, QUEUED, TESTING
from landlane.landing.records import get_queue, list_landings
from landlane.platform.process_identity import Process
from landlane.reviews.give_verdict import approved_waiting
from landlane.tasks.attempts import running_attempts
from landlane.tasks.model import AT_WORK, BLOCKED, DEAD, DONE, DROPPED, FAILED, READY, WAITING
from landlane.tasks.records import list_tasks
from landlane.tasks.worker_pool import pool_of
from landlane.workers.admit import Admission, Refusal
from landlane.workers.agents import role_for
from landlane.workers.model import ALL_TAKEN, Glance, RunSummary, RunWish
from landlane.workers.recover_attempts import close_left, end_orphaned
from landlane.workers.submit_abandoned import proved_waiting
from landlane.workers.supervisor_processes import (
    AGAIN_SECONDS,
    LONGEST_PAUSE,
    MOST_BROKEN,
    STOP_SECONDS,
    TICK_SECONDS,
    Crew,
    Kept,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.processes.fork_server import ForkServer
    from landlane.repository import Repository
    from landlane.reviews.model import Review
    from landlane.tasks.model import Task
    from landlane.workers.agents import Agent


_UPKEEP_SECONDS = 2.0
_LANDER_PAUSE = 0.3
_MOST_IDLE = 5  # runs of the landing queue in a row that moved nothing
_LAST_SECONDS = 5.0
_STORE_SECONDS = 120.0  # that a run goes on without its store


class Orchestrator(Crew):
    """Runs tasks until there is nothing left that it could do, or it is told to stop."""

    def __init__(
        self,
        repo: Repository,
        wish: RunWish,
        fork_server: ForkServer,
        on_event: Callable[[str, dict[str, Any]], None],
    ) -> None:
        super().__init__(wish, on_event)
        self._over_before: set[str] = set()  # tasks that were over when the run began
        self._repo = repo
        self._fork_server = fork_server
        self._lander_at = 0.0
        self._idle_landers = 0
        self._seen_waiting: set[str] = set()
        self._tasks: list[Task] = []
        here = self._repo.processes.current()
        self.name = f"{self._repo.processes.machine}:{here.pid}:{here.started}"
        self._away_since = 0.0  # since when the store is not to be had
        self._told = ""

    def run(self, on_look: Callable[[Glance], None] = lambda _: None) -> RunSummary:
        """Run to the end; `on_look` is shown how things stand, a few times a second.

        Raises:
            StoreError: the store has not been to be had for a while; a standing worker waits for it.
        """
        if not self._wish.tasks:
            over = (DONE, DROPPED, DEAD, FAILED)
            self._over_before = {task.id for task in list_tasks(self._repo, over)}
        try:
            while True:
                self._reap()
                if self.is_stopping:
                    self._press()
                elif time.monotonic() < self._look_at:
                    self._rest()  # workers speak more often than there is anything to decide
                    continue
                self._look_at = time.monotonic() + TICK_SECONDS
                if self._step(on_look):
                    break
                self._rest()
        finally:
            self._end_all()
        return self._sum_up()

    def _step(self, on_look: Callable[[Glance], None]) -> bool:
        """Look around once and begin what may begin; tells whether all is over."""
        try:
            self._upkeep()
            self._tasks = self._in_scope()
            if not self.is_draining:
                self._admit()
            # What others brought to its end between our looks may have let something begin.
            is_over = self._is_over() and (self.is_draining or self._tasks == self._in_scope())
            on_look(self.glance())  # last, so that whoever is told to stop sees that it was heard
        except StoreError as error:
            # Keepers go on, and hold what they have for as long as their leases last.
            now = time.monotonic()
            self._away_since = self._away_since or now
            if not self._wish.is_standing and now - self._away_since > _STORE_SECONDS:
                raise
            on_look(self.glance(trouble=f"{error.message} [{error.code}]"))
            self._look_at = now + AGAIN_SECONDS
            return self.is_draining and not self._kept
        self._away_since = 0.0
        return is_over

    def _end_all(self) -> None:
        """Leave no keeper behind: mostly there is none any more."""
        if self._kept:
            self._signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while self._kept and time.monotonic() < deadline:
            self._reap()
            self._rest()
        for one in self._kept:
            one.fork.signal(signal.SIGKILL)
            one.fork.wait(_LAST_SECONDS)
        self._kept = []
        if self._lander is not None:
            self._lander.signal(signal.SIGTERM)
            self._lander.wait(_LAST_SECONDS)
            self._lander = None
        self._fork_server.close()
        with contextlib.suppress(StoreError):  # whoever comes next does it
            self._try(self._clear_up)  # and no more: whoever lands now would be left behind by us

    # ------------------------------------------------------------------------------------------- upkeep

    def _upkeep(self) -> None:
        """What nobody else may be there to do: clear up after the dead, join what was split, land."""
        now = time.monotonic()
        if now >= self._upkeep_at:
            self._upkeep_at = now + _UPKEEP_SECONDS
            self._try(self._clear_up)
        self._try(self._land)

    def _clear_up(self) -> None:
        def tell(step: Callable[[Repository], list[str]]) -> None:
            for line in step(self._repo):
                self._repo.report(line)

        for step in (end_orphaned, clear_forsaken, close_left):
            self._try(lambda one=step: tell(one))
        self._try(lambda: settle_fans(self._repo))
        self._try(lambda: settle_here(self._repo))
        if self._broken_starts < MOST_BROKEN:
            self._paused = pool_of(self._repo).paused

    def _land(self) -> None:
        """Have the queue run while something stands in it: by a child, since testing takes long."""
        if self._lander is not None or time.monotonic() < self._lander_at:
            return
        waiting = {one.id for one in list_landings(self._repo, (QUEUED, TESTING))}
        waiting |= {one.id for one in self._left_over()}
        if not waiting:
            return
        # What stood there before and still does will not be moved by trying again at once.
        self._idle_landers = self._idle_landers + 1 if waiting <= self._seen_waiting else 0
        self._seen_waiting = waiting
        pause = min(_LANDER_PAUSE * 2**self._idle_landers, LONGEST_PAUSE)
        self._lander_at = time.monotonic() + pause
        self._lander = self._fork_server.begin({"kind": "land"})

    def _left_over(self) -> list[Review | Task]:
        """What was approved or proved, and whose author was gone before it could be submitted."""
        return [*approved_waiting(self._repo), *proved_waiting(self._repo)]

    def _try(self, step: Callable[[], object]) -> None:
        try:
            step()
        except StoreError:
            raise
        except (LandlaneError, OSError) as error:
            self._tell_once(str(error))

    def _tell_once(self, text: str) -> None:
        """Say what hinders us, and not again and again."""
        if text != self._told:
            self._repo.report(text)
        self._told = text

    # ---------------------------------------------------------------------------------------- admission

    def _in_scope(self) -> list[Task]:
        """The tasks that this run is about, with their children and follow-ups."""
        tasks = list_tasks(self._repo)
        wanted = self._wish.tasks
        if not wanted:
            return tasks
        lineages = {task.lineage for task in tasks if task.id in wanted}
        return [task for task in tasks if task.id in wanted or task.lineage in lineages]

    def _admit(self) -> None:
        """Start as much as there is room for."""
        free = self._wish.workers - len(self._kept) - self._adopted()
        if free <= 0 or self._paused:
            return
        now = time.monotonic()
        in_hand = {one.task.id for one in self._kept}
        ready = [task for task in self._tasks if task.state == READY and task.id not in in_hand]
        if not ready:
            return
        running = [(one.task, one.kind) for one in self._kept]
        admission = Admission(self._repo, self._wish.agent, running, self.name)
        self._refusals = {
            task_id: refusal
            for task_id, refusal in self._refusals.items()
            if self._not_before.get(task_id, 0.0) > now
        }
        for task in sorted(ready, key=lambda one: (one.rank, len(one.id), one.id)):
            if free <= 0:
                self._refusals.setdefault(task.id, Refusal(why=ALL_TAKEN, is_for_good=False))
                continue
            if self._not_before.get(task.id, 0.0) > now:
                continue
            refusal = admission.why_not(task)
            if refusal is not None:
                self._refusals[task.id] = refusal
                continue
            self._start(task, admission.agent_of(task))
            admission.begin(task)
            free -= 1

    def _adopted(self) -> int:
        """Attempts of this machine that nobody looks after, and that take places of ours.

        The keepers of an orchestrator that is gone go on; after one of ours that was killed we clear up soon.
        """
        machine = self._repo.processes.machine
        in_hand = {one.task.id for one in self._kept}
        count = 0
        for one in running_attempts(self._repo):
            if one.machine != machine:
                continue
            is_ours = one.orchestrator == self.name
            if one.task not in in_hand if is_ours else not self._lives(one.orchestrator):
                count += 1
        return count

    def _lives(self, orchestrator: str) -> bool:
        here = self._repo.processes.current()
        _, _, rest = orchestrator.partition(":")
        pid, _, started = rest.partition(":")
        if not pid.isdigit() or not started.isdigit():
            return False
        process = Process(boot_id=here.boot_id, namespace=here.namespace, pid=int(pid), started=int(started))
        return not self._repo.processes.is_gone(process)

    def _start(self, task: Task, agent: Agent) -> None:
        settings = self._repo.settings
        role = role_for(settings, task, agent)
        order = {
            "kind": "keep",
            "task": task.id,
            "agent": agent.name,
            "role": role,
            "orchestrator": self.name,
            "is_offline": self._wish.is_offline,
        }
        try:
            forked = self._fork_server.begin(order)
        except OSError as error:
            self._cannot_begin(task, str(error))
            return
        self._kept.append(Kept(forked, task, agent.name))
        self._on_event(task.id, {"event": "begun", "agent": agent.name, "role": role})

    # ---------------------------------------------------------------------------------------------- end

    def _is_over(self) -> bool:
        """Whether nothing is left that could be done here."""
        if self._kept or (self.is_stopping and not self._kept):
            return not self._kept
        if self._lander is not None:
            return False
        if self.is_draining:
            return True
        if self._left_over() and not self._is_stuck():
            return False
        if self._wish.is_standing:
            return self._wish.until_empty and not self._is_anything_open()
        if list_landings(self._repo, (QUEUED, TESTING)) and not self._is_stuck():
            return False
        if self._paused:
            return True
        if self._wish.until_empty:
            return not self._is_anything_open()
        ready = [task for task in self._tasks if task.state == READY]
        return all(self._is_hopeless(task) for task in ready) and not self._adopted()

    def _is_stuck(self) -> bool:
        """Whether the landing queue stands still: it was paused, or has been run in vain again and again."""
        branch = find_target(self._repo.home, self._repo.settings).branch
        return self._idle_landers >= _MOST_IDLE or get_queue(self._repo, branch).state == "paused"

    def _is_anything_open(self) -> bool:
        return any(task.state not in (DONE, DROPPED, DEAD, FAILED) for task in self._tasks)

    def _is_hopeless(self, task: Task) -> bool:
        """Whether a ready task will not begin by waiting."""
        refusal = self._refusals.get(task.id)
        return refusal is not None and refusal.is_for_good

    def glance(self, trouble: str = "") -> Glance:
        """How everything stands."""
        counts: dict[str, int] = {}
        for task in self._tasks:
            counts[task.state] = counts.get(task.state, 0) + 1
        in_hand = {one.task.id for one in self._kept}
        waits = [
            (task.id, self._refusals[task.id].why)
            for task in self._tasks
            if task.state == READY and task.id in self._refusals and task.id not in in_hand
        ]
        return Glance(
            places=tuple(one.place for one in self._kept),
            workers=self._wish.workers,
            ready=counts.get(READY, 0),
            blocked=counts.get(BLOCKED, 0),
            landing=counts.get("landing", 0) + counts.get("review", 0),
            persons=counts.get(WAITING, 0),
            done=counts.get(DONE, 0),
            dead=counts.get(DEAD, 0) + counts.get(FAILED, 0),
            waits=tuple(waits),
            paused=self._paused,
            is_draining=self.is_draining,
            is_stopping=self.is_stopping,
            trouble=trouble,
            cost_usd=self._cost_usd + sum(one.place.cost_usd or 0.0 for one in self._kept),
            unknown_costs=self._unknown_costs + sum(one.place.cost_usd is None for one in self._kept),
        )

    def _sum_up(self) -> RunSummary:
        """The summary, also if the store is away just then; who is told to stop waits for nothing."""
        give_up_at = time.monotonic() + (0.0 if self.is_stopping else _STORE_SECONDS)
        while True:
            try:
                return self._summary()
            except StoreTransient:
                if time.monotonic() >= give_up_at:
                    raise
                time.sleep(AGAIN_SECONDS)

    def _summary(self) -> RunSummary:
        # What was over before is no news, unless somebody asks for a plan as a whole.
        tasks = [task for task in self._in_scope() if task.id not in self._over_before]
        landings = list_landings(self._repo)
        queued = {one.task: one.reason for one in landings}
        held = {one.task for one in landings if one.state == HELD}
        persons = [(task.id, task.why) for task in tasks if task.state == WAITING]
        left: list[tuple[str, str]] = []
        for task in tasks:
            if task.state in (DONE, DROPPED, DEAD, FAILED, WAITING):
                continue
            refusal = self._refusals.get(task.id)
            if task.id in held:
                persons.append((task.id, queued[task.id]))
                continue
            if task.state == READY and refusal is not None and refusal.is_for_person:
                persons.append((task.id, refusal.why))
                continue
            why = refusal.why if refusal is not None and task.state == READY else ""
            if not (refusal is not None and refusal.is_for_good):  # what waiting cannot mend is told first
                why = task.why or why
            if task.state in AT_WORK and task.owner:
                why = f"in the hands of {task.owner}"
            why = queued.get(task.id) or why
            left.append((task.id, f"{task.state}{f': {why}' if why else ''}"))
        return RunSummary(
            done=tuple(task.id for task in tasks if task.state == DONE),
            failed=tuple((task.id, task.why) for task in tasks if task.state in (DEAD, FAILED)),
            persons=tuple(persons),
            left=tuple(left),
            attempts=self._attempts,
            cost_usd=self._cost_usd,
            unknown_costs=self._unknown_costs,
            paused=self._paused,
            is_stopped=self.is_stopping,
        )

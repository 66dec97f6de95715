"""The supervisor, one process per attempt: session, task and claims, workspace, worker, result.

A keeper is a process of its own. It speaks with one worker by the worker protocol and looks after everything
that belongs to the attempt, so that killing it, its starter or the worker harms nobody else: its session is
known by its process, its worker by a mark, its scratch by its record. Whoever comes next clears it away.
"""

from __future__ import annotations

import os
import time
import traceback

from landlane.claims.read import list_claims
from landlane.clock import awake_ms
from landlane.errors import LandlaneError, NotAllowed, Stale, StoreError
from landlane.exec.clone import Ground, throw_away_clone
from landlane.exec.git_identity import sign_commits, write_git_settings
from landlane.exec.resident_connection import Door
from landlane.exec.sandbox_rules import make_sandbox, requested_sandbox, search_path
from landlane.exec.start_client import furnish
from landlane.git.target import find_base, find_target
from landlane.ids import short_id
from landlane.landing.submit import is_commit_available
from landlane.managed_files.client_files import equip
from landlane.platform.process_identity import Process
from landlane.processes.tree import TREE_MARK, ProcessTree, new_tree_id
from landlane.protocol.worker.messages import Heartbeat, Progress, WorkFailed
from landlane.reviews.give_verdict import commit_under_review
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import require_guarantees
from landlane.sandbox.start import choose_backend, start_sandboxed
from landlane.sessions.join import join
from landlane.sessions.leases import touch
from landlane.sessions.sandbox_runs import begin_run, change_run, tree_facts
from landlane.sessions.worker_sessions import join_hands
from landlane.state.slot_kinds import SlotRefused
from landlane.state.slots import make_slot_request, take_slot
from landlane.tasks.attempts import begin_in, change_attempt, note_sign
from landlane.tasks.model import AT_WORK, READY, WAITING
from landlane.tasks.pick import take_task
from landlane.tasks.read import get_task
from landlane.tasks.retry_rules import TASK_OVER_BUDGET
from landlane.tasks.rows import pattern_pairs
from landlane.usage.add import note_so_far, over_budget
from landlane.values import as_dict, replace
from landlane.workers.agents import needs_of
from landlane.workers.assignment import assignment_for, start_of
from landlane.workers.attempt_log import AttemptLog, log_path
from landlane.workers.attempt_resources import Attendance
from landlane.workers.finish_attempt import follow_up
from landlane.workers.run_worker import run_worker
from landlane.workers.work_order import Outcome
from landlane.workspaces.model import CLONE
from landlane.workspaces.open import open_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.sandbox.start import SandboxedChild
    from landlane.store.interface import Transaction
    from landlane.tasks.attempt_model import Attempt
    from landlane.tasks.model import Task
    from landlane.usage.budget import Budget
    from landlane.workers.run_worker import Says, WorkerEnd


_SIGN_SECONDS = 5.0  # between signs of life that others can see
_LOOK_SECONDS = 2.0  # between looks at whether the task is still ours
_MOST_AT_ONCE = 20.0  # lines of a worker that are passed on in one go
_NOT_TAKEN = "not taken"
_WAITS = "waits"


class Keeper(Attendance):
    """One attempt, from its session to its end."""

    def run(self) -> Outcome:
        """Take the task, have it worked on, and see to what follows; whatever happens, nothing is left."""
        outcome = Outcome(kind=_NOT_TAKEN)
        try:
            outcome = self._take() or self._work()
        except Exception as error:  # noqa: BLE001 - the task must go back, whatever of ours is broken
            outcome = self._broken(error)
        finally:
            self._clear(outcome)
        self._note(outcome.kind, outcome.why)
        told = {"outcome": outcome.kind, "why": outcome.why, "head": outcome.head, "usage": outcome.usage}
        told["code"] = outcome.code
        self._tell({"event": "ended", **told})
        return outcome

    # ------------------------------------------------------------------------------------------- taking

    def _take(self) -> Outcome | None:
        """Have a session, the resources and the task; an outcome tells why not."""
        repo, order = self._repo, self._order
        name = f"{order.agent.name[:40]}-{order.task}-{short_id('x')[2:7]}"
        own_role = self._role.name if self._is_committing else ""
        here = repo.processes.current()
        self._owner = join(repo, name, role=own_role, process=here, may_choose_role=True)
        task = get_task(repo, order.task)
        needs = needs_of(task, order.agent)
        self._slots = []
        for kind, amount in needs.items():
            slot = take_slot(repo, self._session, make_slot_request(repo, kind, amount=amount))
            if isinstance(slot, SlotRefused):
                why = f"needs {amount} of {kind}; {slot.left} of {slot.size} are free"
                return Outcome(kind=_WAITS, why=why)
            self._slots.append(slot.slot)
        base = find_base(
            self._repo.home,
            find_target(self._repo.home, self._repo.settings),
            is_offline=order.is_offline,
        )
        reviewed = commit_under_review(repo, task)
        if reviewed and not is_commit_available(self._repo, reviewed, is_offline=order.is_offline):
            why = f"{reviewed[:12]} is not here: it can be reviewed where it was made, or once it is shared"
            return Outcome(kind=_WAITS, why=why, code="head_not_here")
        self._base = reviewed or base.commit  # reviewers read that, and nothing else
        begun: list[Attempt] = []  # the last one counts: a transaction may be run again

        def begin(tx: Transaction, task: Task) -> None:
            begun.append(self._begin_attempt(tx, task))

        picked = take_task(repo, self._session, order.task, self._base, also=begin)
        if picked is None:
            return Outcome(kind=_NOT_TAKEN, why=self._why_not_taken())
        self._task, self._attempt = picked.task, begun[-1]
        self._log = AttemptLog(
            self._place.state, picked.task.id, picked.task.attempt, secrets=(self._owner.secret,)
        )
        self._log.write(
            "begun", f"{self._session.agent} in the role {self._role.name} from {self._base[:12]}"
        )
        self._tell(
            {
                "event": "taken",
                "attempt": picked.task.attempt,
                "agent": self._session.agent,
                "id": self._attempt.id,
            }
        )
        return None

    def _begin_attempt(self, tx: Transaction, task: Task) -> Attempt:
        """With the task itself: of one killed between the two, nobody would know before its lease ends."""
        return begin_in(
            tx,
            self._repo,
            self._session,
            task,
            role=self._role.name,
            client=self._order.agent.client,
            orchestrator=self._order.orchestrator,
            log=os.path.basename(log_path(self._place.state, task.id, task.attempt)),
        )

    def _why_not_taken(self) -> str:
        """Who was quicker, or holds what the task changes, as far as that can be told afterwards."""
        repo = self._repo
        task = get_task(repo, self._order.task)
        if task.state != READY:
            return f"it is {task.state}" + (f", by {task.owner}" if task.owner else "")
        pattern_of = repo.git.pattern_of
        patterns = [pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)]
        held = list_claims(repo, patterns) if patterns else []
        if not held:
            return "somebody else has it, or what it changes"
        return f"{held[0].agent} holds {held[0].pattern}"

    # ------------------------------------------------------------------------------------------ working

    def _work(self) -> Outcome:
        assert self._task is not None
        backend = choose_backend()
        require_guarantees(
            list_guarantees(backend, requested_sandbox(self._role)),
            self._repo.settings.sandbox.required,
            backend,
        )
        state = os.path.join(self._repo.common_dir, "landlane")
        with Door(state) as door:
            self._make_ready(is_wrapped=bool(backend.bwrap))
            assert self._ground is not None
            start = start_of(self._repo, self._order.agent, self._role, self._scratch, self._ground.path)
            assignment = assignment_for(
                self._repo,
                self._task,
                self._order.agent,
                self._role,
                folder=self._ground.path,
                scratch=self._scratch,
                base=self._base,
            )
            hands = self._hands or self._owner
            assert hands is not None
            sandbox = make_sandbox(
                self._repo, self._role, self._ground, self._scratch, door.path, hands, start
            )

            def begin(streams: tuple[int, int, int]) -> SandboxedChild:
                assert self._run is not None
                assert self._ground is not None
                child = start_sandboxed(
                    start.command,
                    sandbox,
                    cwd=self._ground.path,
                    backend=backend,
                    required=self._repo.settings.sandbox.required,
                    streams=streams,
                    tree_id=self._run.tree["id"],
                )
                self._write_down(child)
                return child

            self._tell({"event": "started", "sandbox": backend.name})
            self._note("sandbox", backend.name)
            end = run_worker(
                begin,
                assignment,
                on_message=self._heard,
                on_tick=lambda: self._tick(door),
                now=self._working_time,
            )
        if self._log is not None:
            self._log.ended(end)
        return self._follow(end)

    def _make_ready(self, *, is_wrapped: bool) -> None:
        """The record of what will run, the scratch, and the checkout."""
        repo, task = self._repo, self._task
        assert task is not None
        here = repo.processes.current()
        unknown = Process(boot_id=here.boot_id, namespace=here.namespace, pid=0, started=0)
        if not self._is_committing:
            self._hands = join_hands(repo, self._session, self._role.name)
            if self._log is not None:
                self._log.hide(self._hands.secret)
        self._run = begin_run(
            repo,
            self._session,
            ProcessTree(id=new_tree_id(), root=unknown, is_wrapped=is_wrapped),
            program=self._order.agent.name[:80],
            home=repo.common_dir,
            user=os.geteuid(),
            scratch=self._scratch,
            task=task.id,
            worker=self._hands.session.id if self._hands else "",
        )
        assert self._attempt is not None
        self._attempt = change_attempt(repo, self._attempt, "placed", run=self._run.id)
        os.mkdir(self._scratch, 0o700)
        if self._is_committing:
            opened = open_workspace(
                repo, self._session, task.id, kind=CLONE, is_offline=self._order.is_offline
            )
            self._ground = Ground(path=opened.workspace.path, task=task.id, workspace=opened.workspace)
            self._base = opened.workspace.base
        else:
            path = throw_away_clone(repo, self._session, self._scratch, self._base)
            equip(repo, path)  # its hooks, by which it hears of what happens meanwhile
            self._ground = Ground(path=path, task=task.id)
        furnish(self._scratch, self._ground.path, search_path())
        write_git_settings(repo.home, os.path.join(self._scratch, "home"))
        if self._is_committing:
            sign_commits(self._ground.path, self._session, task.id)

    def _write_down(self, child: SandboxedChild) -> None:
        assert self._run is not None
        workspace = self._ground.workspace.id if self._ground and self._ground.workspace else ""
        try:
            self._run = change_run(
                self._repo,
                self._run,
                "started",
                self._session,
                tree=tree_facts(child.tree),
                workspace=workspace,
            )
        except StoreError as error:
            self._repo.report(f"its processes are not written down: {error}")

    def _heard(self, message: Says) -> None:
        assert self._log is not None
        self._log.heard(message)
        now = time.monotonic()
        self._pass_on(message, now)
        if now >= self._sign_at and self._attempt is not None:
            self._sign_at = now + _SIGN_SECONDS
            doing = getattr(message, "doing", None) or getattr(message, "text", None) or ""
            try:
                note_sign(self._repo, self._attempt, str(doing))
            except StoreError:
                return  # the next one will do

    def _pass_on(self, message: Says, now: float) -> None:
        """Tell what it says, as much of it as somebody could read: some lines at once, then one a second."""
        if isinstance(message, Progress):
            self._used = message.usage or self._used
        self._allowance = min(self._allowance + now - self._said_at, _MOST_AT_ONCE)
        self._said_at = now
        if self._allowance < 1 or not isinstance(message, (Heartbeat, Progress)):
            return
        self._allowance -= 1
        usage = as_dict(self._used) if self._used else None
        if isinstance(message, Progress):
            self._tell({"event": "says", "doing": message.text, "done": message.done, "usage": usage})
        else:
            self._tell({"event": "says", "doing": message.doing or "", "usage": usage})

    def _tick(self, door: Door) -> str:
        """A few times a second: why the worker has to end now; empty while it may go on."""
        if self._halt.why:
            return self._halt.why
        door.tick(self._repo.store, self._session)
        now = time.monotonic()
        if now < self._look_at:
            return ""
        self._look_at = now + _LOOK_SECONDS
        try:
            touch(self._repo.store, self._session)
            if self._hands is not None:
                touch(self._repo.store, self._hands.session)
            self._lost = self._lost or self._look()
            self._over = self._over or self._over_budget()
        except Stale as error:
            self._lost = error.message
        except StoreError:
            return ""  # the store is busy or away: nobody else can take the task meanwhile, either
        return self._lost or (self._over.why if self._over is not None else "")

    def _over_budget(self) -> Budget | None:
        """Note what was used so far, and look whether it is too much."""
        assert self._task is not None
        if self._used is not None and self._used != self._noted and self._attempt is not None:
            note_so_far(self._repo, self._attempt, self._used, model=self._order.agent.model)
            self._noted = self._used
        return over_budget(self._repo, self._task, run=self._order.orchestrator)

    def _look(self) -> str:
        """Why the task is not ours any more; while it waits for a person, the worker's time stands still."""
        assert self._task is not None
        found = get_task(self._repo, self._task.id)
        is_ours = found.session == self._session.id and found.attempt == self._task.attempt
        if not is_ours or found.state not in (*AT_WORK, WAITING):
            return f"{found.id} was taken away: it is {found.state}{f' ({found.why})' if found.why else ''}"
        now = awake_ms()
        if found.state == WAITING:
            self._resting_since = self._resting_since or now
        elif self._resting_since:
            self._rested_ms += now - self._resting_since
            self._resting_since = 0
        return ""

    def _working_time(self) -> int:
        """Milliseconds, without those that a person was waited for, or that the machine slept."""
        return (self._resting_since or awake_ms()) - self._rested_ms

    # ------------------------------------------------------------------------------------------- ending

    def _follow(self, end: WorkerEnd) -> Outcome:
        assert self._task is not None
        assert self._attempt is not None
        assert self._ground is not None
        assert self._run is not None
        self._last_word = end.outcome
        os.environ[TREE_MARK] = self._run.tree[
            "id"
        ]  # what a check starts is found by it, should we be killed
        end = self._told_of_money(end)
        return follow_up(
            self._place,
            session=self._session,
            task=self._task,
            attempt=self._attempt,
            role=self._role,
            agent=self._order.agent,
            base=self._base,
            ground=self._ground,
            scratch=self._scratch,
            end=end,
            is_lost=bool(self._lost),
            tell=self._tell,
            patience=self._patience,
        )

    def _told_of_money(self, end: WorkerEnd) -> WorkerEnd:
        """A worker that we ended for its money has failed; the budget of a day or a run charges nobody."""
        said = end.outcome
        if self._over is None or not isinstance(said, WorkFailed) or said.code != "stopped":
            return end
        code = {"attempt": "over_budget", "task": TASK_OVER_BUDGET}.get(self._over.kind, said.code)
        return replace(end, outcome=replace(said, code=code, reason=self._over.why))

    def _broken(self, error: Exception) -> Outcome:
        """Something of ours failed, not the worker: nobody is charged for it."""
        code = getattr(error, "code", "SYSTEM_REFUSED" if isinstance(error, OSError) else "UNEXPECTED")
        if not isinstance(error, (LandlaneError, OSError)):
            self._repo.report(
                traceback.format_exc()
            )  # a mistake of ours: whoever mends it needs to see where
        if self._task is None:
            hint = f". {error.hint}" if isinstance(error, LandlaneError) and error.hint else ""
            return Outcome(kind=_WAITS, why=f"{error}{hint}", code=code)
        if isinstance(error, Stale):
            kept = self._save_returned() if self._patience.has_waited else ""  # its lease ended meanwhile
            return Outcome(kind="lost", why=f"{error}{kept}")
        if isinstance(error, NotAllowed) and code == "RUN_PAUSED":
            return Outcome(kind="returned", why=str(error))
        return self._give_back(f"{code}: {str(error) or type(error).__name__}{self._save_returned()}")

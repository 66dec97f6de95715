"""Deploy: take the target's lease, check, run, verify, and only then mark it live.

The lease comes first, so that no other deploy can interfere after the checks, and the checks come after the
wait for it. A deploy that does not become live is recorded as failed with its reason; if its process was
killed, the next deploy to the target records that.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import time

from landlane.claims.model import Refused
from landlane.deploys import records
from landlane.deploys.approval import ask_for_deploy, is_deploy_approved
from landlane.deploys.check import find_deployable_commit, list_target_changes, needs_approval
from landlane.deploys.model import MAX_COMMAND_CHARS, MAX_OUTPUT_CHARS, Deploy, deploy_target
from landlane.deploys.update_checkout import run_shell
from landlane.errors import Held, LandlaneError, Malformed, Stale, StoreError, TimedOut
from landlane.git.run import try_git_output
from landlane.git.target_settings import settings_in_force
from landlane.processes.child import ChildResult
from landlane.processes.passthrough import check_command, run_passthrough
from landlane.roles.enforce import check_verb
from landlane.rules.violations import SYNC_CODES, SYNC_FIRST, Watched
from landlane.sessions import leases
from landlane.sessions.runner_lease import RunnerBusy, renew_runner, wait_for_runner
from landlane.state.once import exit_status
from landlane.units import exact_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.claims.model import Claim
    from landlane.deploys.model import DeployTarget
    from landlane.platform.process import Process
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.runner_lease import RunnerLease


TARGET_VARIABLE = "LANDLANE_DEPLOY_TARGET"
COMMIT_VARIABLE = "LANDLANE_DEPLOY_COMMIT"
_LEASE_MS = 5 * 60_000  # matters for processes on other machines; on this one their end is noticed at once
_SLICE_MS = 10_000  # how long to wait for the claim before the lease is renewed
_GRACE_SECONDS = 5.0
_CANNOT_START = 126


def deploy(
    repo: Repository,
    session: Session,
    name: str,
    command: Sequence[str],
    *,
    wait_ms: int,
    out: int,
    err: int,
    expect: Mapping[str, int] | None = None,
) -> Deploy:
    """Deploy to a target and return the deploy, which is live or failed.

    `expect` are the versions of shared keys that it is based on, judged in the transaction that begins it.

    `out` and `err` are the file descriptors that the output of the command goes to.

    Raises:
        Malformed: the target or the command cannot be used.
        NotAllowed: the role of the session may not deploy.
        Held: another session deploys to the target or has claimed it, or something must land first.
        TimedOut: that did not change within the wait.
        WaitsForPerson: the target has a gate, and this commit and command are not approved yet.
        Stale: the checkout is behind, older than what is live, the lease was lost, or a key has moved.
        LandlaneError: the checkout cannot be compared, or has uncommitted changes.
    """
    check_verb(repo, session, "deploy", guard="deploy", settings=repo.settings)
    target = deploy_target(name, repo.settings.deploy)
    check_command(command, repo.checkout.root)
    if os.environ.get(TARGET_VARIABLE) == name:
        raise Held(
            f"a deploy to {name} is already running this command, and would wait for itself",
            code="DEPLOY_NESTED",
            hint="deploy once, outside the deploy command",
        )
    hold = _TargetHolder(repo, session, target, wait_ms)
    try:
        for abandoned, child in records.list_abandoned(repo, target.name):
            repo.report(f"{abandoned.id} by {abandoned.agent} never finished; recorded as failed")
            _end_orphan(repo, child)
        records.fail_abandoned(repo, session, target, hold.lease)
        hold.take_claim()
        outcome = _deploy_alone(repo, hold, command, out, err, expect or {})
    finally:
        records.release(repo, session, target, hold.lease)
    if isinstance(outcome, Deploy):
        return outcome
    # Only after the release: a deploy that waits for a person must not block the target.
    raise ask_for_deploy(repo, session, outcome)


class _TargetHolder:
    """The lease of this process on a target, and the claim."""

    lease: RunnerLease
    claims: tuple[Claim, ...] = ()

    def __init__(self, repo: Repository, session: Session, target: DeployTarget, wait_ms: int) -> None:
        self.repo = repo
        self.session = session
        self.target = target
        self._wait_ms = wait_ms
        self._begun_at = time.monotonic()
        outcome = wait_for_runner(
            repo,
            session,
            target.lease,
            _LEASE_MS,
            wait_ms,
            on_wait=lambda busy: repo.report(f"waiting for {busy.agent}, who is deploying to {target.name}"),
            on_tick=lambda: leases.stay_alive(repo, session),
        )
        if isinstance(outcome, RunnerBusy):
            raise _busy(target, outcome, has_waited=wait_ms > 0)
        self.lease = outcome

    @property
    def now(self) -> records.TargetHold:
        """What is held now, for the records of the deploy."""
        return records.TargetHold(lease=self.lease, claims=self.claims)

    def tick(self) -> None:
        """Renew the lease and the session.

        Raises:
            Stale: another process took over; continuing would be a second deploy at the same time.
        """
        try:
            self.lease = renew_runner(self.repo, self.lease)
            leases.stay_alive(self.repo, self.session)
        except StoreError:
            return  # a short outage of the store must not stop a deploy half way; the end checks the lease

    def take_claim(self) -> None:
        """Take the claim as well, which another session may hold to prevent deploys.

        Raises:
            Held: one does, and waiting is not wanted or would never end.
            TimedOut: one did until the wait was over.
        """
        while True:
            remaining_ms = self._wait_ms - int((time.monotonic() - self._begun_at) * 1000)
            slice_ms = max(min(remaining_ms, _SLICE_MS), 0)
            outcome = records.take_claim(self.repo, self.session, self.target, slice_ms, self._on_wait)
            if not isinstance(outcome, Refused):
                self.claims = outcome.granted
                return
            if outcome.cycle or remaining_ms <= _SLICE_MS:
                raise _claimed(self.target, outcome, has_waited=self._wait_ms > 0)
            self.tick()

    def _on_wait(self, refused: Refused) -> None:
        first = refused.refused[0]
        self.repo.report(f"waiting for {first.holder}, who has claimed {first.held}")


def _busy(target: DeployTarget, busy: RunnerBusy, *, has_waited: bool) -> LandlaneError:
    facts = {"holder": busy.agent, "until_at": busy.until, "target": target.name}
    if has_waited:
        return TimedOut(
            f"{busy.agent} is still deploying to {target.name}",
            code="WAIT_TIMED_OUT",
            hint="see what it does: landlane deploy history",
            **facts,
        )
    return Held(
        f"{busy.agent} is deploying to {target.name}",
        code="DEPLOY_RUNNING",
        hint="wait for it with --wait 30m; see what it does: landlane deploy history",
        **facts,
    )


def _claimed(target: DeployTarget, refused: Refused, *, has_waited: bool) -> LandlaneError:
    first = refused.refused[0]
    facts = {"holder": first.holder, "until_at": first.until, "held": first.held, "target": target.name}
    message = f"{first.holder} has claimed {first.held}" + (f': "{first.note}"' if first.note else "")
    if refused.cycle:
        ring = " → ".join(refused.cycle)
        hint = "release what the others wait for, then deploy"
        return Held(f"{message}, and waits for you ({ring})", code="WAIT_CYCLE", hint=hint, **facts)
    if has_waited:
        return TimedOut(
            message, code="WAIT_TIMED_OUT", hint=f"ask {first.holder}, or wait longer with --wait", **facts
        )
    return Held(message, code="CLAIM_HELD", hint=f"ask {first.holder}, or wait with --wait 30m", **facts)


def _end_orphan(repo: Repository, child: Process | None) -> None:
    """End the command of a killed deploy, so that two do not run at the same time."""
    if child is None:
        return
    processes = repo.processes
    here = processes.current()
    if (child.boot_id, child.namespace) != (here.boot_id, here.namespace):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        give_up_at = time.monotonic() + _GRACE_SECONDS
        if not processes.is_gone(child):
            _signal_group(child.pid, number)
        while not processes.is_gone(child) and time.monotonic() < give_up_at:
            time.sleep(0.02)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _deploy_alone(
    repo: Repository,
    hold: _TargetHolder,
    command: Sequence[str],
    out: int,
    err: int,
    expected: Mapping[str, int],
) -> Deploy | dict[str, str]:
    """Check, run and verify; return the deploy, or what a person must approve first."""
    # Read again, because the deploy that was waited for may have changed the settings.
    settings = settings_in_force(repo.checkout, is_person=repo.held.is_own).settings
    hold.target = deploy_target(hold.target.name, settings.deploy)
    with Watched(repo=repo, session=hold.session, rule=SYNC_FIRST, guard="deploy", codes=SYNC_CODES):
        commit = find_deployable_commit(repo, settings, hold.target)
    # Bytes that are not UTF-8 become question marks, which every store can hold.
    command_text = shlex.join(command).encode("utf-8", "replace").decode()[:MAX_COMMAND_CHARS]
    if needs_approval(repo, hold.target, commit):
        about = {"target": hold.target.name, "commit": commit, "command": command_text}
        if not is_deploy_approved(repo, about):
            return about
    begun = records.begin_deploy(
        repo, hold.session, hold.now, hold.target.name, commit, command_text, expected
    )
    exit_code: int | None = None

    def fail(*, code: str, reason: str, output: str = "") -> Deploy:
        tail = output.replace("\0", "\ufffd")[-MAX_OUTPUT_CHARS:]
        return records.end_failed(repo, hold.session, begun, code, reason, exit=exit_code, output=tail)

    try:
        ended = _run(hold, begun, command, out, err)
        exit_code = exit_status(ended.exit_code)
        if exit_code:
            reason = f"the command exited with {exit_code}"
            return fail(code="DEPLOY_FAILED", reason=reason, output=ended.stdout)
        if change := _find_change(repo, hold.target, commit):
            return fail(code="MOVED_MEANWHILE", reason=change, output=ended.stdout)
        if failure := _verify(hold, begun):
            return fail(code="VERIFY_FAILED", reason=failure[0], output=failure[1])
        verify = hold.target.settings.verify
        return records.end_live(repo, hold.session, hold.now, begun, verify=verify)
    except Stale as error:
        fail(code=error.code, reason=error.message)
        raise
    except BaseException:
        fail(code="INTERRUPTED", reason="stopped before it was done")
        raise


def _run(hold: _TargetHolder, begun: Deploy, command: Sequence[str], out: int, err: int) -> ChildResult:
    """Run the command; processes that it started do not outlive it."""
    processes, group = hold.repo.processes, 0
    child: Process | None = None

    def on_start(pid: int) -> None:
        nonlocal group, child
        group = pid
        with contextlib.suppress(Malformed):  # this system cannot identify processes
            child = processes.identify(pid)
        records.record_child(hold.repo, hold.session, hold.now, begun, child)

    def on_tick() -> None:
        hold.tick()
        # Else a background process that keeps its output open would be waited for without end.
        if child is not None and processes.is_gone(child):
            _signal_group(group, signal.SIGKILL)

    # Through a shell, because `env` would take a program name with an equals sign for a variable. It starts
    # the command only after `on_start` has found that the target is still ours.
    variables = (f"{TARGET_VARIABLE}={begun.target}", f"{COMMIT_VARIABLE}={begun.commit}")
    words = ("env", *variables, "/bin/sh", "-c", 'exec "$0" "$@"', *command)
    root = hold.repo.checkout.root
    try:
        return run_passthrough(words, cwd=root, out=out, err=err, on_start=on_start, on_tick=on_tick)
    except OSError as error:
        return ChildResult(exit_code=_CANNOT_START, stdout=f"it cannot be started: {error}", stderr="")
    finally:
        if group:
            _signal_group(group, signal.SIGKILL)


def _find_change(repo: Repository, target: DeployTarget, commit: str) -> str:
    """Return what changed since the checks, or nothing; new files do not count, since builds create them."""
    head = try_git_output(repo.checkout, "rev-parse", "HEAD")
    if head != commit:
        return f"HEAD moved from {commit[:8]} to {head[:8]} while the command ran"
    changed = list_target_changes(repo, target, with_untracked=False)
    return f"{changed[0]} changed while the command ran" if changed else ""


def _verify(hold: _TargetHolder, begun: Deploy) -> tuple[str, str] | None:
    """Run the check of the target; return the reason and the output if it fails."""
    repo, settings = hold.repo, hold.target.settings
    if not settings.verify:
        return None
    records.begin_verifying(repo, hold.session, hold.now, begun)
    repo.report(f"verifying: {settings.verify}")
    variables = {TARGET_VARIABLE: begun.target, COMMIT_VARIABLE: begun.commit}
    checked = run_shell(settings.verify, repo.checkout.root, settings.limit_ms / 1000, hold.tick, variables)
    if checked.is_late:
        return f"{settings.verify} took longer than {exact_duration(settings.limit_ms)}", checked.output
    if checked.exit_code:
        return f"{settings.verify} exited with {exit_status(checked.exit_code)}", checked.output
    return None

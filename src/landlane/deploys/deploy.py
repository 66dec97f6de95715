"""Deploy: take the target's lease, check, run, verify, and only then mark it live.

The lease comes first, so that what is judged cannot be overtaken by another deploy; whoever had to wait for
it is judged by what is so after the wait. What ends without being live is recorded as failed with its reason;
of a process that was killed, the next deploy to the target says so.
"""

from __future__ import annotations

import os
import shlex
import signal
import time

from landlane.claims.model import Refused
from landlane.deploys import records as deploys
from landlane.deploys.approval import ask_for_deploy, is_deploy_approved
from landlane.deploys.model import LONGEST_COMMAND, LONGEST_OUTPUT, deploy_target
from landlane.deploys.sync import behind_error, changes_in, commits_in, dirty_error, find_position, offline
from landlane.deploys.update_checkout import run_shell
from landlane.errors import Held, LandlaneError, Malformed, Stale, StoreError, TimedOut
from landlane.git.run import run_in, try_git_output
from landlane.git.target import find_target
from landlane.processes.child import ChildResult
from landlane.processes.passthrough import check_command, run_passthrough
from landlane.roles.enforce import check_verb
from landlane.rules.violations import SYNC_CODES, SYNC_FIRST, Watched
from landlane.sessions import leases
from landlane.sessions.runner_lease import RunnerBusy, renew_runner, wait_for_runner
from landlane.settings.load import read_settings
from landlane.state.once import exit_status
from landlane.values import replace
from landlane.workspaces.committed_settings import committed_at, of_main_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.deploys.model import Deploy, DeployTarget
    from landlane.platform.process_identity import Process
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.runner_lease import RunnerLease
    from landlane.settings.model import Settings


TARGET_VARIABLE = "LANDLANE_DEPLOY_TARGET"
COMMIT_VARIABLE = "LANDLANE_DEPLOY_COMMIT"
_LEASE_MS = 5 * 60_000  # of a process on another machine; of one on this machine it is seen that it is gone
_SLICE_MS = 10_000  # how long to stand in line for the claim before the lease is renewed again
_GRACE_SECONDS = 5.0
_CANNOT_START = 126


def deploy(
    repo: Repository, session: Session, name: str, command: Sequence[str], *, wait_ms: int, out: int, err: int
) -> Deploy:
    """Deploy to a target, alone, unless it would ship something old; tells a deploy that is live or failed.

    `out` and `err` are the file descriptors that the output of the command goes to.

    Raises:
        Malformed: the target or the command cannot be used.
        NotAllowed: the role of the session does not deploy.
        Held: somebody else deploys or keeps the target, or something has yet to land.
        TimedOut: that was so for as long as one would wait.
        WaitsForPerson: the target has a gate, and nobody has approved this commit and command yet.
        Stale: the checkout is behind, older than what is live, or the lease was lost.
        LandlaneError: the checkout cannot be compared, or holds what is in no commit.
    """
    check_verb(repo, session, "deploy", guard="deploy", settings=of_main_checkout(repo))
    target = deploy_target(name, repo.settings.deploy)
    check_command(command, repo.checkout.root)
    if os.environ.get(TARGET_VARIABLE) == name:
        raise Held(
            f"this runs within a deploy to {name}, which would wait for itself",
            code="DEPLOY_NESTED",
            hint="deploy once, from outside",
        )
    hold = _Hold(repo, session, target, wait_ms)
    unapproved: dict[str, str] = {}
    try:
        for left, child in deploys.left_at(repo, target.name):
            repo.report(f"{left.id} of {left.agent} was never ended; it counts as failed")
            _end_orphan(repo, child)
        deploys.settle_left(repo, session, target, hold.lease)
        hold.take_claim()
        return _deploy_alone(repo, hold, command, out, err)
    except _Unapproved as wish:
        unapproved = wish.about
    finally:
        deploys.let_go(repo, session, target, hold.lease)
    # Only now: whoever waits for a person must not keep all others off the target.
    raise ask_for_deploy(repo, session, unapproved)


class _Unapproved(Exception):
    """A person has to approve this first."""

    def __init__(self, about: dict[str, str]) -> None:
        super().__init__()
        self.about = about


class _Hold:
    """The lease of this process on a target, kept alive while something goes on."""

    lease: RunnerLease

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
            on_wait=lambda busy: repo.report(f"waiting for {busy.agent}, who deploys to {target.name} …"),
            on_tick=lambda: leases.stay_alive(repo, session),
        )
        if isinstance(outcome, RunnerBusy):
            raise _busy(target, outcome, has_waited=wait_ms > 0)
        self.lease = outcome

    def tick(self) -> None:
        """Say that we are still at it.

        Raises:
            Stale: somebody took over; going on would be a second deploy at the same time.
        """
        try:
            self.lease = renew_runner(self.repo, self.lease)
            leases.stay_alive(self.repo, self.session)
        except StoreError:
            return  # a store that is away for a moment is no reason to stop half way; the end is checked

    def take_claim(self) -> None:
        """Take the claim as well, which somebody may hold by hand to keep everybody off.

        Raises:
            Held: somebody does, and waiting is not wanted or would never end.
            TimedOut: somebody did all the time.
        """
        while True:
            left = self._wait_ms - int((time.monotonic() - self._begun_at) * 1000)
            outcome = deploys.take_claim(
                self.repo, self.session, self.target, max(min(left, _SLICE_MS), 0), self._on_wait
            )
            if not isinstance(outcome, Refused):
                return
            if outcome.cycle or left <= _SLICE_MS:
                raise _kept_off(self.target, outcome, has_waited=self._wait_ms > 0)
            self.tick()

    def _on_wait(self, refused: Refused) -> None:
        first = refused.refused[0]
        self.repo.report(f"waiting for {first.holder}, who holds {first.held} …")


def _busy(target: DeployTarget, busy: RunnerBusy, *, has_waited: bool) -> LandlaneError:
    facts = {"holder": busy.agent, "until_at": busy.until, "target": target.name}
    if has_waited:
        return TimedOut(
            f"{busy.agent} deployed to {target.name} for as long as you would wait",
            code="WAIT_TIMED_OUT",
            hint="wait longer with --wait; `landlane deploy history` shows what it does",
            **facts,
        )
    return Held(
        f"{busy.agent} is deploying to {target.name}",
        code="DEPLOY_RUNNING",
        hint="stand in line with --wait 30m",
        **facts,
    )


def _kept_off(target: DeployTarget, refused: Refused, *, has_waited: bool) -> LandlaneError:
    first = refused.refused[0]
    facts = {"holder": first.holder, "until_at": first.until, "held": first.held, "target": target.name}
    message = f"{first.holder} holds {first.held}" + (f": {first.note}" if first.note else "")
    if refused.cycle:
        ring = " → ".join(refused.cycle)
        hint = "release what the others wait for, then deploy"
        return Held(f"{message}, and waits for you ({ring})", code="WAIT_CYCLE", hint=hint, **facts)
    if has_waited:
        return TimedOut(message, code="WAIT_TIMED_OUT", hint="ask them, or wait longer with --wait", **facts)
    return Held(message, code="CLAIM_HELD", hint="ask them, or stand in line with --wait 30m", **facts)


def _end_orphan(repo: Repository, child: Process | None) -> None:
    """End what a killed deploy left running: two at once are what a lease is there to prevent."""
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


# ------------------------------------------------------------------------------------------ judging


def _judge(repo: Repository, settings: Settings, target: DeployTarget) -> str:
    """The commit that may be deployed now."""
    if target.branch:
        settings = replace(settings, landing=replace(settings.landing, target=target.branch))
    branch = find_target(repo.home, settings)
    position = find_position(repo, branch, is_remote_only=True)
    if position.trouble:
        raise offline(position, "nothing is deployed that cannot be compared: mend the connection first")
    if position.behind and not position.ahead:
        raise behind_error(repo, position, "`landlane sync --update merge`, then deploy")
    if position.ahead:
        raise LandlaneError(
            f"{position.branch or position.head[:12]} has {position.ahead} "
            f"commit{'' if position.ahead == 1 else 's'} that {position.place} lacks",
            code="NOT_LANDED",
            hint=f"land it first (`landlane land`), then deploy from {position.place}",
            behind=position.behind,
            ahead=position.ahead,
            head=position.head,
            tip=position.tip,
            commits=commits_in(repo.checkout, f"{position.tip}..{position.head}"),
        )
    is_inside = deploys.inside(repo, target.paths)
    if dirty := [path for path in changes_in(repo.checkout, with_untracked=True) if is_inside(path)]:
        raise dirty_error(dirty, "commit and land it, or put it aside: `landlane stash save`")
    deploys.check_landed(repo, target, position.target)
    _check_not_older(repo, target, position.head)
    return position.head


def _check_not_older(repo: Repository, target: DeployTarget, head: str) -> None:
    live = deploys.live_at(repo, target.name)
    if live is None or live.commit == head:
        return
    if not run_in(repo.checkout, "merge-base", "--is-ancestor", live.commit, head).exit_code:
        return
    raise Stale(
        f"{head[:12]} does not contain {live.commit[:12]}, which {live.agent} made live at {target.name}",
        code="OLDER_THAN_LIVE",
        hint="sync and deploy what contains it; to go back, land a revert of what should not be there",
        live=live.commit,
        head=head,
        holder=live.agent,
    )


def _has_gate_elsewhere(repo: Repository, name: str, commit: str) -> bool:
    """Whether the main checkout or the commit itself asks for a person: editing a copy opens no gate."""
    known = (of_main_checkout(repo), committed_at(repo.checkout, commit))
    return any(deploy_target(name, one.deploy).has_gate for one in known if one is not None)


# ------------------------------------------------------------------------------------------ carrying out


def _deploy_alone(repo: Repository, hold: _Hold, command: Sequence[str], out: int, err: int) -> Deploy:
    # Read again: what was waited for may have changed what the settings say.
    settings = read_settings(repo.checkout.root)
    hold.target = deploy_target(hold.target.name, settings.deploy)
    with Watched(repo=repo, session=hold.session, rule=SYNC_FIRST, guard="deploy", codes=SYNC_CODES):
        commit = _judge(repo, settings, hold.target)
    # What is no text shows as question marks: every store can hold those.
    shown = shlex.join(command).encode("utf-8", "replace").decode()[:LONGEST_COMMAND]
    if hold.target.has_gate or _has_gate_elsewhere(repo, hold.target.name, commit):
        about = {"target": hold.target.name, "commit": commit, "command": shown}
        if not is_deploy_approved(repo, about):
            raise _Unapproved(about)
    begun = deploys.begin_deploy(repo, hold.session, hold.lease, hold.target.name, commit, shown)
    exit_code: int | None = None

    def fail(*, code: str, reason: str, output: str = "") -> Deploy:
        tail = output.replace("\0", "\ufffd")[-LONGEST_OUTPUT:]
        return deploys.end_failed(repo, hold.session, begun, code, reason, exit=exit_code, output=tail)

    try:
        ended = _run(hold, begun, command, out, err)
        exit_code = exit_status(ended.exit_code)
        if exit_code:
            reason = f"the command ended with {exit_code}"
            return fail(code="DEPLOY_FAILED", reason=reason, output=ended.stdout)
        if moved := _what_moved(repo, hold.target, commit):
            return fail(code="MOVED_MEANWHILE", reason=moved, output=ended.stdout)
        if trouble := _verify(hold, begun):
            return fail(code="VERIFY_FAILED", reason=trouble[0], output=trouble[1])
        is_verified = bool(hold.target.verify)
        return deploys.end_live(repo, hold.session, hold.lease, begun, is_verified=is_verified)
    except Stale as error:
        fail(code=error.code, reason=error.message)
        raise
    except BaseException as error:
        fail(code="INTERRUPTED", reason=f"stopped before it was done ({type(error).__name__})")
        raise


def _run(hold: _Hold, begun: Deploy, command: Sequence[str], out: int, err: int) -> ChildResult:
    """Run the command with all its children, none of which outlives it."""
    processes, group = hold.repo.processes, 0
    child: Process | None = None

    def on_start(pid: int) -> None:
        nonlocal group, child
        group = pid
        try:
            child = processes.identify(pid)
        except Malformed:
            return  # it has ended already, or this system does not tell
        deploys.note_child(hold.repo, begun, child)

    def on_tick() -> None:
        hold.tick()
        # What it left in the background and goes on writing would be listened to for ever.
        if child is not None and processes.is_gone(child):
            _signal_group(group, signal.SIGKILL)

    # The shell only hands over: `env` alone would take a program with an equals sign for a variable.
    variables = (f"{TARGET_VARIABLE}={begun.target}", f"{COMMIT_VARIABLE}={begun.commit}")
    words = ("env", *variables, "/bin/sh", "-c", 'exec "$0" "$@"', *command)
    root = hold.repo.checkout.root
    try:
        return run_passthrough(words, cwd=root, out=out, err=err, on_start=on_start, on_tick=on_tick)
    except OSError as error:
        return ChildResult(exit_code=_CANNOT_START, stdout=f"it could not be started: {error}", stderr="")
    finally:
        if group:
            _signal_group(group, signal.SIGKILL)


def _what_moved(repo: Repository, target: DeployTarget, commit: str) -> str:
    """What is no longer as it was judged; new files do not count: a build leaves them behind."""
    head = try_git_output(repo.checkout, "rev-parse", "HEAD")
    if head != commit:
        return f"HEAD moved from {commit[:12]} to {head[:12]} while the command ran"
    is_inside = deploys.inside(repo, target.paths)
    changed = [path for path in changes_in(repo.checkout, with_untracked=False) if is_inside(path)]
    return f"{changed[0]} changed while the command ran" if changed else ""


def _verify(hold: _Hold, begun: Deploy) -> tuple[str, str] | None:
    """Look whether the target shows what was deployed; tells what went wrong, and what was said."""
    target = hold.target
    if not target.verify:
        return None
    repo = hold.repo
    deploys.note_verifying(repo, hold.session, hold.lease, begun)
    repo.report(f"verifying: {target.verify}")
    variables = {TARGET_VARIABLE: begun.target, COMMIT_VARIABLE: begun.commit}
    checked = run_shell(target.verify, repo.checkout.root, target.limit_ms / 1000, hold.tick, variables)
    if checked.is_late:
        return f"verify took longer than {target.limit_ms // 1000} s", checked.output
    if checked.exit_code:
        return f"verify ended with {exit_status(checked.exit_code)}", checked.output
    return None

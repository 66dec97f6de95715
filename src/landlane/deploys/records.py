"""The records of deploys, and the claim and lease that a deploy holds.

Everything happens under the lease of one process (sessions/runner_lease.py), so that there is one deploy to
a target at a time. If a deploy gets the lease while another one is unfinished, the process of that one has
ended or is silent, and it is recorded as failed.
"""

from __future__ import annotations

from landlane.claims.claim_paths import claim_paths
from landlane.claims.held import require_tokens
from landlane.claims.holder_sessions import drop_claims
from landlane.claims.model import ClaimMode, Refused, Request, Taken
from landlane.claims.take import claims_near
from landlane.deploys.model import CHILD, FAILED, LIVE, RUNNING, SUPERSEDED, UNFINISHED, VERIFYING, Deploy
from landlane.patterns.pattern import areas_of
from landlane.platform.process import Process
from landlane.sessions.leases import require_live
from landlane.sessions.runner_lease import check_runner, end_runner_in
from landlane.state.keys import require_states, state_areas
from landlane.store import records
from landlane.tasks.records import tasks_of
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.claims.model import Claim
    from landlane.deploys.model import DeployTarget
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.runner_lease import RunnerLease
    from landlane.store.interface import Snapshot, Transaction


_NOUN = "deploy"
_NOTE = "held by landlane deploy"  # distinguishes the claim of a deploy from one that was taken by hand


_NO_KEYS: Mapping[str, int] = {}


@value
class TargetHold:
    """The lease of a deploy's process, and the claims on its target. Every write checks both."""

    lease: RunnerLease
    claims: tuple[Claim, ...]

    @property
    def areas(self) -> dict[str, bool]:
        """What a transaction of the deploy locks."""
        # The root is locked shared, as for claims; moving the store takes it exclusively.
        return {"": False, f"//runner:{self.lease.name}": True}

    def check(self, tx: Transaction, repo: Repository, session: Session) -> None:
        """Check that both still hold, until the transaction ends.

        Raises:
            Stale: another process took the lease over, or the session or a claim has ended.
        """
        check_runner(tx, self.lease)
        require_tokens(tx, repo, session, self.claims)


def list_deploys(repo: Repository, target: str = "") -> list[Deploy]:
    """Return all deploys, or those to one target, oldest first."""

    def read(snapshot: Snapshot) -> list[records.Document]:
        return records.find_by_key(snapshot, _NOUN, target) if target else records.find_all(snapshot, _NOUN)

    return [Deploy.from_document(document) for document in repo.store.view(read)]


def live_at(repo: Repository, target: str) -> Deploy | None:
    """Return the deploy that is live at a target, or None."""
    live = [deploy for deploy in list_deploys(repo, target) if deploy.state == LIVE]
    return live[-1] if live else None


def take_claim(
    repo: Repository, session: Session, target: DeployTarget, wait_ms: int, on_wait: Callable[[Refused], None]
) -> Taken | Refused:
    """Take the claim on a target; another session may hold it to prevent deploys."""
    patterns, ttl_ms = (_pattern(repo, target),), repo.settings.claims.ttl_ms
    request = Request(patterns=patterns, mode=ClaimMode.EXCLUSIVE, ttl_ms=ttl_ms, note=_NOTE)
    return claim_paths(repo, session, request, wait_ms, on_wait)


def release(repo: Repository, session: Session, target: DeployTarget, lease: RunnerLease) -> None:
    """Release the lease, and the claim unless it was taken by hand."""
    pattern = _pattern(repo, target)

    def work(tx: Transaction) -> None:
        if end_runner_in(tx, lease):
            _drop_claims(tx, pattern, lambda holder: holder == session.id)

    repo.change(work, areas={**areas_of((pattern,)), f"//runner:{lease.name}": True})


def _drop_claims(tx: Transaction, pattern: Pattern, is_dropped: Callable[[str], bool]) -> None:
    for claim in claims_near(tx, pattern.alternatives, ""):
        if claim.pattern == pattern.text and claim.note == _NOTE and is_dropped(claim.session):
            tx.run("lapsed_drop", agent=claim.agent, pattern=claim.pattern)
            drop_claims(tx, [claim])
            tx.has_freed = True


def _pattern(repo: Repository, target: DeployTarget) -> Pattern:
    return repo.git.pattern_of(target.lease, "glob")


def list_abandoned(repo: Repository, target: str) -> list[tuple[Deploy, Process | None]]:
    """Return unfinished deploys, each with the process of its command; only for the holder of the lease."""
    documents = repo.store.view(lambda snapshot: records.find_by_key(snapshot, _NOUN, target))
    return [
        (Deploy.from_document(document), Process(**document[CHILD]) if CHILD in document else None)
        for document in documents
        if document["state"] in UNFINISHED
    ]


def fail_abandoned(repo: Repository, session: Session, target: DeployTarget, lease: RunnerLease) -> None:
    """Record the unfinished deploys as failed, and drop their claims.

    Raises:
        Stale: another process took the lease over.
    """
    pattern = _pattern(repo, target)

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        _drop_claims(tx, pattern, lambda holder: holder != session.id)
        reason = "its process ended or stopped responding before it was done"
        ended = {"ended_at": repo.store.wall_of(tx.now), "code": "DEPLOY_CRASHED", "reason": reason}
        for document in records.find_by_key(tx, _NOUN, target.name):
            if document["state"] in UNFINISHED:
                failed = Deploy.from_document(document).become(FAILED, **ended)
                records.put(tx, _NOUN, as_dict(failed), "failed", session)

    repo.change(work, areas={**areas_of((pattern,)), f"//runner:{lease.name}": True})


def begin_deploy(
    repo: Repository,
    session: Session,
    hold: TargetHold,
    target: str,
    commit: str,
    command: str,
    expected: Mapping[str, int] = _NO_KEYS,
) -> Deploy:
    """Record a deploy that is about to run; `expected` are versions of shared keys that it is based on.

    Raises:
        Stale: another process took the lease over, the session or its claim has ended, or a key has moved.
    """

    def work(tx: Transaction) -> Deploy:
        hold.check(tx, repo, session)
        require_states(tx, repo, expected)
        require_live(tx, session)
        tasks = tasks_of(tx, session.id)
        begun = Deploy(
            id=records.next_id(tx, _NOUN),
            target=target,
            state=RUNNING,
            commit=commit,
            agent=session.agent,
            session=session.id,
            task=tasks[0].id if len(tasks) == 1 else "",
            command=command,
            began_at=repo.store.wall_of(tx.now),
        )
        records.put(tx, _NOUN, as_dict(begun), "began", session)
        return begun

    return repo.change(work, areas={**hold.areas, **state_areas(expected)})


def record_child(
    repo: Repository, session: Session, hold: TargetHold, deploy: Deploy, child: Process | None
) -> None:
    """Record the process of the command before it runs, so that a later deploy can end it if we die.

    Raises:
        Stale: another process took the lease over, or the claim has ended.
    """

    def work(tx: Transaction) -> None:
        hold.check(tx, repo, session)
        if child is None:
            return
        document = records.lock(tx, _NOUN, deploy.id)
        if document is not None and document["state"] in UNFINISHED:
            records.put_without_entry(tx, _NOUN, {**document, CHILD: as_dict(child)})

    repo.change(work, areas=hold.areas)


def begin_verifying(repo: Repository, session: Session, hold: TargetHold, deploy: Deploy) -> Deploy:
    """Record that the command has succeeded and the check of the target runs.

    Raises:
        Stale: another process took the lease over, or the claim has ended.
    """

    def work(tx: Transaction) -> Deploy:
        hold.check(tx, repo, session)
        verifying = deploy.become(VERIFYING, exit=0)
        records.put(tx, _NOUN, as_dict(verifying), "verifying", session)
        return verifying

    return repo.change(work, areas=hold.areas)


def end_live(repo: Repository, session: Session, hold: TargetHold, deploy: Deploy, *, verify: str) -> Deploy:
    """Record that a deploy is live, verified by this command if there is one, and the former one superseded.

    Raises:
        Stale: another process took the lease over, or the claim has ended, so it is unknown what is live.
    """

    def work(tx: Transaction) -> Deploy:
        hold.check(tx, repo, session)
        for document in records.find_by_key(tx, _NOUN, deploy.target):
            if document["state"] == LIVE:
                reason = f"superseded by {deploy.id}"
                former = Deploy.from_document(document).become(SUPERSEDED, reason=reason)
                records.put(tx, _NOUN, as_dict(former), "superseded", session)
        ended_at = repo.store.wall_of(tx.now)
        live = deploy.become(LIVE, ended_at=ended_at, exit=0, verified=bool(verify), verify=verify)
        records.put(tx, _NOUN, as_dict(live), "live", session)
        return live

    return repo.change(work, areas=hold.areas)


def end_failed(
    repo: Repository,
    session: Session,
    deploy: Deploy,
    code: str,
    reason: str,
    *,
    exit: int | None,
    output: str,
) -> Deploy:
    """Record that a deploy has failed, unless a later deploy has recorded that already."""

    def work(tx: Transaction) -> Deploy:
        document = records.lock(tx, _NOUN, deploy.id)
        ended_at = repo.store.wall_of(tx.now)
        failed = deploy.become(FAILED, ended_at=ended_at, exit=exit, code=code, reason=reason, output=output)
        if document is not None and document["state"] in UNFINISHED:
            records.put(tx, _NOUN, as_dict(failed), "failed", session)
        return failed

    return repo.change(work, areas={"": False})

"""Deploys in the store: under a lease, live, superseded, failed, left behind by the dead; on both stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from landlane.deploys import deploy as flow
from landlane.deploys import records as deploys
from landlane.deploys.check import check_landed, path_filter
from landlane.deploys.model import DeployTarget, deploy_target
from landlane.errors import Held, LandlaneError, Malformed, PatternError, Stale
from landlane.git.discovery import find_checkout
from landlane.sessions import leases
from landlane.sessions.runner_lease import RunnerLease, take_runner
from landlane.settings.model import DeploySettings
from landlane.setup.rebuild_store import rebuild_store
from landlane.store import records
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.values import replace
from tests.support.project import MINUTE, SQLITE_ONLY, Background, granted, opened, refused

if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.deploys.model import Deploy
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

PROD = DeployTarget(name="prod", settings=DeploySettings())
OLD, NEW = "0" * 40, "1" * 40


def take(agent: Agent, target: DeployTarget = PROD) -> RunnerLease:
    lease = take_runner(agent.repo, agent.session, target.lease, MINUTE)
    assert isinstance(lease, RunnerLease)
    return lease


def claim(agent: Agent, target: DeployTarget = PROD, wait_ms: int = 0) -> Any:
    return deploys.take_claim(agent.repo, agent.session, target, wait_ms, lambda _: None)


def holding(lease: RunnerLease, *claims: Claim) -> deploys.TargetHold:
    return deploys.TargetHold(lease=lease, claims=claims)


def begin(agent: Agent, lease: RunnerLease, commit: str = OLD) -> Deploy:
    return deploys.begin_deploy(agent.repo, agent.session, holding(lease), "prod", commit, "make deploy")


def make_live(agent: Agent, commit: str) -> Deploy:
    lease = take(agent)
    begun = begin(agent, lease, commit)
    live = deploys.end_live(agent.repo, agent.session, holding(lease), begun, verify="true")
    deploys.release(agent.repo, agent.session, PROD, lease)
    return live


def states(agent: Agent) -> list[tuple[str, str]]:
    return [(deploy.id, deploy.state) for deploy in deploys.list_deploys(agent.repo)]


def test_one_is_live_at_a_time(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    assert deploys.live_at(ann.repo, "prod") is None

    make_live(ann, OLD)
    make_live(bob, NEW)

    assert states(ann) == [("D1", "superseded"), ("D2", "live")]
    live = deploys.live_at(ann.repo, "prod")
    assert live is not None
    assert (live.commit, live.agent, live.verified, live.exit) == (NEW, "bob", True, 0)
    assert live.ended_at is not None
    kinds = [kind for kind in project.kinds() if kind.startswith("deploy.")]
    assert kinds == ["deploy.began", "deploy.live", "deploy.began", "deploy.superseded", "deploy.live"]


def test_a_failure_leaves_live_what_was_live(project: Project) -> None:
    ann = project.agent("ann")
    make_live(ann, OLD)
    lease = take(ann)
    begun = begin(ann, lease, NEW)
    deploys.begin_verifying(ann.repo, ann.session, holding(lease), begun)

    failed = deploys.end_failed(
        ann.repo, ann.session, begun, "VERIFY_FAILED", "it does not show", exit=0, output="404"
    )

    assert (failed.state, failed.code, failed.output) == ("failed", "VERIFY_FAILED", "404")
    assert states(ann) == [("D1", "live"), ("D2", "failed")]


def test_a_deploy_that_lost_its_lease_cannot_be_made_live(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    lease = take(ann)
    begun = begin(ann, lease)
    project.clock.advance(MINUTE + 1)
    later = take(bob)
    deploys.fail_abandoned(bob.repo, bob.session, PROD, later)

    with pytest.raises(Stale):
        deploys.end_live(ann.repo, ann.session, holding(lease), begun, verify="true")
    with pytest.raises(Stale):
        deploys.begin_verifying(ann.repo, ann.session, holding(lease), begun)
    with pytest.raises(Stale):
        begin(ann, lease)
    answer = deploys.end_failed(ann.repo, ann.session, begun, "X", "mine", exit=None, output="")
    deploys.release(ann.repo, ann.session, PROD, lease)

    assert answer.reason == "mine"
    (found,) = deploys.list_deploys(bob.repo, "prod")
    assert (found.state, found.code) == ("failed", "DEPLOY_CRASHED")
    assert begin(bob, later).id == "D2"


def test_the_next_deploy_fails_an_abandoned_one(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    lease = take(ann)
    granted(claim(ann))
    begun = begin(ann, lease)
    child = ann.repo.processes.current()
    deploys.record_child(ann.repo, ann.session, holding(lease), begun, child)
    assert refused(claim(bob))[0].holder == "ann"
    project.clock.advance(MINUTE + 1)

    later = take(bob)
    left = deploys.list_abandoned(bob.repo, "prod")
    deploys.fail_abandoned(bob.repo, bob.session, PROD, later)

    assert later.is_takeover
    assert [(deploy.id, process) for deploy, process in left] == [("D1", child)]
    assert states(bob) == [("D1", "failed")]
    assert deploys.list_abandoned(bob.repo, "prod") == []
    assert granted(claim(bob))[0].pattern == "deploy:prod"
    with pytest.raises(Stale):
        deploys.fail_abandoned(ann.repo, ann.session, PROD, lease)


def test_releasing_the_lease_releases_the_claim(project: Project) -> None:
    ann = project.agent("ann")
    lease = take(ann)
    claim(ann)
    assert ann.holds() == ["deploy:prod"]

    deploys.release(ann.repo, ann.session, PROD, lease)

    assert ann.holds() == []
    assert not take(ann).is_takeover


def test_a_claim_taken_by_hand_stays(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("deploy:prod")
    lease = take(ann)
    granted(claim(ann))
    deploys.fail_abandoned(ann.repo, ann.session, PROD, lease)
    deploys.release(ann.repo, ann.session, PROD, lease)
    later = take(bob)
    deploys.fail_abandoned(bob.repo, bob.session, PROD, later)

    assert ann.holds() == ["deploy:prod"]
    assert refused(claim(bob))[0].holder == "ann"


def test_a_deploy_names_the_only_task_of_its_session(project: Project) -> None:
    ann = project.agent("ann")
    add_task(ann.repo, ann.session, NewTask(title="Ship it"))
    next_task(ann.repo, ann.session)

    assert begin(ann, take(ann)).task == "T1"


def test_an_ended_session_cannot_deploy(project: Project) -> None:
    ann = project.agent("ann")
    lease = take(ann)
    ann.leave()

    with pytest.raises(Stale):
        begin(ann, lease)
    leases.stay_alive(ann.repo, ann.session)
    deploys.release(ann.repo, ann.session, PROD, lease)


def test_a_long_deploy_keeps_its_session_alive(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src")
    for _ in range(5):
        project.clock.advance(20 * MINUTE)
        leases.stay_alive(ann.repo, ann.session)

    assert ann.holds() == ["src"]


def deploy(agent: Agent, *command: str, wait_ms: int = 30_000) -> Deploy:
    here = find_checkout(agent.repo.git.root)
    place = replace(agent.repo, checkout=here)
    with open(os.devnull, "wb") as null:
        out = null.fileno()
        return flow.deploy(place, agent.session, "prod", command, wait_ms=wait_ms, out=out, err=out)


def test_deploying_works_on_both_stores(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")

    live = deploy(ann, "true")
    failed = deploy(bob, "sh", "-c", "exit 5")
    (live_project.repository / "new.txt").touch()
    with pytest.raises(LandlaneError) as dirty:
        deploy(ann, "true")

    assert (live.state, failed.state, failed.exit, dirty.value.code) == ("live", "failed", 5, "DIRTY")
    assert states(ann) == [("D1", "live"), ("D2", "failed")]
    assert live_project.claims() == []


def test_no_two_deploys_overlap_for_any_sessions(live_project: Project) -> None:
    ann, again, bob = live_project.agent("ann"), live_project.agent("ann"), live_project.agent("bob")
    busy = live_project.repository / ".git" / "busy"

    running = [
        Background(lambda one=one: deploy(one, "sh", "-c", f"mkdir {busy} && rmdir {busy}"))
        for one in (ann, again, bob)
    ]

    assert [one.result().state for one in running] == ["live"] * 3
    assert [state for _, state in states(ann)] == ["superseded", "superseded", "live"]
    assert live_project.claims() == []


ENTRY = {"id": "L1", "target": "main", "branch": "b", "head": OLD, "agent": "bob", "task": "T1"}


@pytest.mark.parametrize(
    ("state", "paths", "entry_target", "is_refused"),
    [
        ("queued", ["src/app/a.py"], "main", True),
        ("testing", ["docs/x.md", "src/app/a.py"], "main", True),
        ("held", ["src/app/deep/er.py"], "main", True),
        ("queued", [], "main", True),
        ("queued", ["src/other.py"], "main", False),
        ("queued", ["src/app/a.py"], "next", False),
        ("landed", ["src/app/a.py"], "main", False),
    ],
)
def test_an_open_landing_of_the_target_paths_blocks_a_deploy(
    project: Project, state: str, paths: list[str], entry_target: str, is_refused: bool
) -> None:
    ann = project.agent("ann")
    entry = {**ENTRY, "state": state, "paths": paths, "target": entry_target}
    ann.repo.store.change(lambda tx: records.put(tx, "landing", entry, "submitted"))
    target = DeployTarget(name="prod", settings=DeploySettings(paths=("src/app/**",)))

    if not is_refused:
        check_landed(ann.repo, target, "main")
        return
    with pytest.raises(Held) as answer:
        check_landed(ann.repo, target, "main")
    assert (answer.value.code, answer.value.facts["holder"], answer.value.facts["landing"]) == (
        "UNLANDED_ENTRY",
        "bob",
        "L1",
    )


@SQLITE_ONLY
def test_paths_belong_to_a_target_by_its_patterns(project: Project) -> None:
    repo = project.repo()
    matches = path_filter(repo, ("src/app/**", "*.toml"))

    assert matches("src/app/a.py")
    assert matches("landlane.toml")
    assert not matches("src/b.py")
    assert matches("src/\udc80")  # no pattern can mean it
    assert path_filter(repo, ())("anything")
    with pytest.raises(PatternError):
        path_filter(repo, ("../elsewhere",))


def test_a_target_is_what_its_section_says() -> None:
    section = DeploySettings(paths=("src",), verify="true", limit_ms=5, branch="release", gate=True)
    sections = {"prod": section}

    found = deploy_target("prod", sections)

    assert (found.name, found.settings) == ("prod", section)
    assert deploy_target("other", sections).settings.paths == ()
    for name in ("", "a/b", "a b", "-x", "a*", "a:b", "ä", "x" * 65):
        with pytest.raises(Malformed):
            deploy_target(name, sections)


@SQLITE_ONLY
def test_a_rebuilt_store_knows_what_is_live(project: Project) -> None:
    make_live(project.agent("ann"), OLD)
    make_live(project.agent("bob"), NEW)
    with opened(project) as repo:
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    project.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    ann = project.agent("ann")
    assert states(ann) == [("D1", "superseded"), ("D2", "live")]
    assert begin(ann, take(ann)).id == "D3"

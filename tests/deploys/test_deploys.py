"""Deploys in the store: under a lease, live, superseded, failed, left behind by the dead; on both stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from landlane.deploys import deploy as flow
from landlane.deploys import records as deploys
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
from landlane.values import as_dict, replace
from tests.support.sites import MINUTE, SQLITE_ONLY, Background, granted, opened, refused

if TYPE_CHECKING:
    from landlane.deploys.model import Deploy
    from tests.support.sites import Agent, Site

pytestmark = pytest.mark.contract

PROD = DeployTarget(name="prod")
OLD, NEW = "0" * 40, "1" * 40


def take(agent: Agent, target: DeployTarget = PROD) -> RunnerLease:
    lease = take_runner(agent.repo, agent.session, target.lease, MINUTE)
    assert isinstance(lease, RunnerLease)
    return lease


def claim(agent: Agent, target: DeployTarget = PROD, wait_ms: int = 0) -> Any:
    return deploys.take_claim(agent.repo, agent.session, target, wait_ms, lambda _: None)


def begin(agent: Agent, lease: RunnerLease, commit: str = OLD) -> Deploy:
    return deploys.begin_deploy(agent.repo, agent.session, lease, "prod", commit, "make deploy")


def make_live(agent: Agent, commit: str) -> Deploy:
    lease = take(agent)
    begun = begin(agent, lease, commit)
    live = deploys.end_live(agent.repo, agent.session, lease, begun, is_verified=True)
    deploys.let_go(agent.repo, agent.session, PROD, lease)
    return live


def states(agent: Agent) -> list[tuple[str, str]]:
    return [(deploy.id, deploy.state) for deploy in deploys.list_deploys(agent.repo)]


def test_one_is_live_at_a_time(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    assert deploys.live_at(ann.repo, "prod") is None

    make_live(ann, OLD)
    make_live(bob, NEW)

    assert states(ann) == [("D1", "superseded"), ("D2", "live")]
    live = deploys.live_at(ann.repo, "prod")
    assert live is not None
    assert (live.commit, live.agent, live.verified, live.exit) == (NEW, "bob", True, 0)
    assert live.ended_at is not None
    kinds = [kind for kind in site.kinds() if kind.startswith("deploy.")]
    assert kinds == ["deploy.began", "deploy.live", "deploy.began", "deploy.superseded", "deploy.live"]


def test_a_failure_leaves_live_what_was_live(site: Site) -> None:
    ann = site.agent("ann")
    make_live(ann, OLD)
    lease = take(ann)
    begun = begin(ann, lease, NEW)
    deploys.note_verifying(ann.repo, ann.session, lease, begun)

    failed = deploys.end_failed(
        ann.repo, ann.session, begun, "VERIFY_FAILED", "it does not show", exit=0, output="404"
    )

    assert (failed.state, failed.code, failed.output) == ("failed", "VERIFY_FAILED", "404")
    assert states(ann) == [("D1", "live"), ("D2", "failed")]


def test_who_was_overtaken_cannot_make_anything_live(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    lease = take(ann)
    begun = begin(ann, lease)
    site.clock.advance(MINUTE + 1)
    later = take(bob)
    deploys.settle_left(bob.repo, bob.session, PROD, later)

    with pytest.raises(Stale):
        deploys.end_live(ann.repo, ann.session, lease, begun, is_verified=True)
    with pytest.raises(Stale):
        deploys.note_verifying(ann.repo, ann.session, lease, begun)
    with pytest.raises(Stale):
        begin(ann, lease)
    told = deploys.end_failed(ann.repo, ann.session, begun, "X", "mine", exit=None, output="")
    deploys.let_go(ann.repo, ann.session, PROD, lease)

    assert told.reason == "mine"
    (found,) = deploys.list_deploys(bob.repo, "prod")
    assert (found.state, found.code) == ("failed", "DEPLOY_CRASHED")
    assert begin(bob, later).id == "D2"


def test_what_the_dead_left_is_settled_by_the_next(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    lease = take(ann)
    granted(claim(ann))
    begun = begin(ann, lease)
    child = ann.repo.processes.current()
    deploys.note_child(ann.repo, begun, child)
    assert refused(claim(bob))[0].holder == "ann"
    site.clock.advance(MINUTE + 1)

    later = take(bob)
    left = deploys.left_at(bob.repo, "prod")
    deploys.settle_left(bob.repo, bob.session, PROD, later)

    assert later.was_left
    assert [(deploy.id, process) for deploy, process in left] == [("D1", child)]
    assert states(bob) == [("D1", "failed")]
    assert deploys.left_at(bob.repo, "prod") == []
    assert granted(claim(bob))[0].pattern == "deploy:prod"
    with pytest.raises(Stale):
        deploys.settle_left(ann.repo, ann.session, PROD, lease)


def test_letting_go_gives_the_claim_back(site: Site) -> None:
    ann = site.agent("ann")
    lease = take(ann)
    claim(ann)
    assert ann.holds() == ["deploy:prod"]

    deploys.let_go(ann.repo, ann.session, PROD, lease)

    assert ann.holds() == []
    assert not take(ann).was_left


def test_a_claim_taken_by_hand_stays(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    ann.take("deploy:prod")
    lease = take(ann)
    granted(claim(ann))
    deploys.settle_left(ann.repo, ann.session, PROD, lease)
    deploys.let_go(ann.repo, ann.session, PROD, lease)
    later = take(bob)
    deploys.settle_left(bob.repo, bob.session, PROD, later)

    assert ann.holds() == ["deploy:prod"]
    assert refused(claim(bob))[0].holder == "ann"


def test_a_deploy_tells_the_one_task_in_hand(site: Site) -> None:
    ann = site.agent("ann")
    add_task(ann.repo, ann.session, NewTask(title="Ship it"))
    next_task(ann.repo, ann.session)

    assert begin(ann, take(ann)).task == "T1"


def test_a_session_that_is_over_deploys_nothing(site: Site) -> None:
    ann = site.agent("ann")
    lease = take(ann)
    ann.leave()

    with pytest.raises(Stale):
        begin(ann, lease)
    leases.stay_alive(ann.repo, ann.session)
    deploys.let_go(ann.repo, ann.session, PROD, lease)


def test_a_long_deploy_keeps_its_session_alive(site: Site) -> None:
    ann = site.agent("ann")
    ann.take("src")
    for _ in range(5):
        site.clock.advance(20 * MINUTE)
        leases.stay_alive(ann.repo, ann.session)

    assert ann.holds() == ["src"]


def deploy(agent: Agent, *command: str, wait_ms: int = 30_000) -> Deploy:
    here = find_checkout(agent.repo.git.root)
    place = replace(agent.repo, checkout=here)
    with open(os.devnull, "wb") as null:
        out = null.fileno()
        return flow.deploy(place, agent.session, "prod", command, wait_ms=wait_ms, out=out, err=out)


def test_all_of_it_works_on_both_stores(live_site: Site) -> None:
    ann, bob = live_site.agent("ann"), live_site.agent("bob")

    live = deploy(ann, "true")
    failed = deploy(bob, "sh", "-c", "exit 5")
    (live_site.repository / "new.txt").touch()
    with pytest.raises(LandlaneError) as dirty:
        deploy(ann, "true")

    assert (live.state, failed.state, failed.exit, dirty.value.code) == ("live", "failed", 5, "DIRTY")
    assert states(ann) == [("D1", "live"), ("D2", "failed")]
    assert live_site.claims() == []


def test_no_two_overlap_whoever_runs_them(live_site: Site) -> None:
    ann, again, bob = live_site.agent("ann"), live_site.agent("ann"), live_site.agent("bob")
    busy = live_site.repository / ".git" / "busy"

    running = [
        Background(lambda one=one: deploy(one, "sh", "-c", f"mkdir {busy} && rmdir {busy}"))
        for one in (ann, again, bob)
    ]

    assert [one.result().state for one in running] == ["live"] * 3
    assert [state for _, state in states(ann)] == ["superseded", "superseded", "live"]
    assert live_site.claims() == []


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
def test_what_is_on_its_way_is_waited_for(
    site: Site, state: str, paths: list[str], entry_target: str, is_refused: bool
) -> None:
    ann = site.agent("ann")
    entry = {**ENTRY, "state": state, "paths": paths, "target": entry_target}
    ann.repo.store.change(lambda tx: records.put(tx, "landing", entry, "submitted"))
    target = DeployTarget(name="prod", paths=("src/app/**",))

    if not is_refused:
        deploys.check_landed(ann.repo, target, "main")
        return
    with pytest.raises(Held) as told:
        deploys.check_landed(ann.repo, target, "main")
    assert (told.value.code, told.value.facts["holder"], told.value.facts["landing"]) == (
        "UNLANDED_ENTRY",
        "bob",
        "L1",
    )


@SQLITE_ONLY
def test_paths_belong_to_a_target_by_its_patterns(site: Site) -> None:
    repo = site.repo()
    is_inside = deploys.inside(repo, ("src/app/**", "*.toml"))

    assert is_inside("src/app/a.py")
    assert is_inside("landlane.toml")
    assert not is_inside("src/b.py")
    assert is_inside("src/\udc80")  # no pattern can mean it
    assert deploys.inside(repo, ())("anything")
    with pytest.raises(PatternError):
        deploys.inside(repo, ("../elsewhere",))


def test_a_target_is_what_its_section_says() -> None:
    section = DeploySettings(paths=("src",), verify="true", limit_ms=5, branch="release", gate=True)
    sections = {"prod": section}

    found = deploy_target("prod", sections)

    assert as_dict(found) == {
        "name": "prod",
        "paths": ("src",),
        "verify": "true",
        "limit_ms": 5,
        "branch": "release",
        "has_gate": True,
    }
    assert deploy_target("other", sections).paths == ()
    for name in ("", "a/b", "a b", "-x", "a*", "a:b", "ä", "x" * 65):
        with pytest.raises(Malformed):
            deploy_target(name, sections)


@SQLITE_ONLY
def test_a_rebuilt_store_knows_what_is_live(site: Site) -> None:
    make_live(site.agent("ann"), OLD)
    make_live(site.agent("bob"), NEW)
    with opened(site) as repo:
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    site.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    ann = site.agent("ann")
    assert states(ann) == [("D1", "superseded"), ("D2", "live")]
    assert begin(ann, take(ann)).id == "D3"

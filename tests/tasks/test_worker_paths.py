"""A worker is bound to the paths of its task: edits, the shell, claims and landings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.claims.claim_paths import claim_paths
from landlane.claims.take import make_request
from landlane.errors import NotAllowed, WaitsForPerson
from landlane.gates.records import list_gates
from landlane.landing.submit import submit_branch
from landlane.sessions.join import join
from landlane.tasks.pick import take_task
from tests.hooks.stand_in_client import ScriptedClient
from tests.support.landing import LandingTestbed
from tests.support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.sessions.join import Joined

pytestmark = pytest.mark.integration


@pytest.fixture
def testbed(repository: Path) -> Iterator[LandingTestbed]:
    made = LandingTestbed(repository)
    yield made
    made.close()


def start(testbed: LandingTestbed, *paths: str, settings: str = "") -> Joined:
    """Start the worker of a task as `landlane run` does, without its sandbox."""
    testbed.configure("[]", settings, {"docs/a.md": "a\n", "src/a.py": "a\n", "src/held.py": "a\n"})
    words = [word for path in paths for word in ("--path", path)]
    Shell(testbed.folder).run_json("task", "add", "Write it", *words, "--as", "lead")
    worker = join(testbed.repo, "writer-T1", is_internal=True)
    assert take_task(testbed.repo, worker.session, "T1", testbed.tip) is not None
    return worker


def client_of(testbed: LandingTestbed, worker: Joined) -> ScriptedClient:
    text = f"{worker.session.id}:{worker.secret}"
    return ScriptedClient(testbed.folder, environment={"LANDLANE_SESSION": text})


def claim(testbed: LandingTestbed, worker: Joined, path: str, why: str = "") -> Any:
    request = make_request(testbed.repo, (testbed.repo.git.pattern_of(path, "literal"),), note=why)
    return claim_paths(testbed.repo, worker.session, request)


@pytest.mark.promise(
    "run.stays-on-its-paths",
    "What a worker changes outside of the paths of its task is refused at the edit and never lands.",
)
def test_an_edit_outside_of_the_task_is_refused(testbed: LandingTestbed) -> None:
    worker = start(testbed, "docs/**")
    with client_of(testbed, worker) as client:
        assert client.edit("docs/a.md", "x\n").is_silent
        told = client.edit("src/a.py", "x\n")
        assert told.is_denied
        assert "src/a.py is not among the paths of T1" in told.reason
        assert not client.hook("Stop", stop_hook_active=False).stdout


def test_a_write_through_the_shell_outside_of_the_task_is_reported(testbed: LandingTestbed) -> None:
    worker = start(testbed, "docs/**")
    with client_of(testbed, worker) as client:
        client.before("Bash", command="echo x > a.py")
        (testbed.folder / "a.py").write_text("x\n", encoding="utf-8")
        assert "a.py is not among the paths of T1" in client.after("Bash", command="echo x > a.py").stdout


@pytest.mark.parametrize("needs", ["", "[claims]\nfree = ['src/**']\n", "[claims]\nrequired = ['docs/**']\n"])
def test_a_commit_outside_of_the_task_does_not_land(testbed: LandingTestbed, needs: str) -> None:
    worker = start(testbed, "docs/**", settings=needs)
    testbed.branch("extra", {"docs/a.md": "x\n", "src/a.py": "x\n"})

    with pytest.raises(NotAllowed) as refused:
        submit_branch(testbed.prepared_repo, worker.session, "extra", "")

    assert refused.value.code == "OUTSIDE_CLAIMS"
    assert refused.value.facts["paths"] == ["src/a.py"]


def test_other_paths_are_granted_for_a_reason(testbed: LandingTestbed) -> None:
    worker = start(testbed, "docs/**")
    with pytest.raises(NotAllowed, match="not among the paths of T1") as refused:
        claim(testbed, worker, "src/a.py")
    assert (refused.value.code, "--note" in refused.value.hint) == ("OUTSIDE_TASK", True)

    assert claim(testbed, worker, "src/a.py", "the docs name its option").granted
    with client_of(testbed, worker) as client:
        assert client.edit("src/a.py", "x\n").is_silent


def test_other_paths_can_be_gated_or_refused(testbed: LandingTestbed) -> None:
    worker = start(testbed, "docs/**", settings="[run]\nmore_paths = 'gate'\n")
    for _ in range(2):
        with pytest.raises(WaitsForPerson, match="may T1 also change"):
            claim(testbed, worker, "src/a.py", "the docs name its option")
    assert len(list_gates(testbed.repo)) == 1

    testbed.configure("[]", "[run]\nmore_paths = 'refuse'\n")
    with pytest.raises(NotAllowed, match="not among the paths of T1"):
        claim(testbed, worker, "src/a.py", "the docs name its option")


def test_a_task_without_paths_is_bound_by_claims(testbed: LandingTestbed) -> None:
    worker = start(testbed)
    testbed.claim("bob", "src/held.py")
    with client_of(testbed, worker) as client:
        assert client.edit("src/a.py", "x\n").is_silent
        assert client.edit("src/held.py", "x\n").is_denied
    assert testbed.holders()["src/a.py"] == "writer-T1"


def test_a_run_can_require_that_tasks_name_their_paths(testbed: LandingTestbed) -> None:
    writer = "[run]\npaths = 'required'\nagent = 'w'\n[agents.w]\ncommand = ['true']\nrole = 'document'\n"
    testbed.configure("[]", writer)
    shell = Shell(testbed.folder)
    shell.run_json("task", "add", "Anything", "--as", "lead")

    ended = shell.run("run", "--json")

    assert "names no paths" in ended.out + ended.err
    assert shell.run_json("task", "show", "T1")["task"]["state"] == "ready"

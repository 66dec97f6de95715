"""Every action of the page does what its command does, in the name of the person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.busy import make_busy

if TYPE_CHECKING:
    from tests.support.page import PageClient
    from tests.support.shell import Shell

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.promise(
    "page.same-operations", "What a person does in the page is journaled under that person's name."
)
def test_each_action_changes_what_its_command_changes(served: Shell, page: PageClient) -> None:
    def act(action: str, **given: object) -> str:
        answer = page.act(action, **given)
        assert answer.status == 200, (action, answer)
        return answer.json()["message"]

    def state(task: str) -> str:
        return served.run_json("task", "show", task)["task"]["state"]

    with make_busy(served) as waiter:
        assert (
            act("add", title="Add a health check", paths="src/health.py, docs/h.md")
            == "added T6 Add a health check"
        )
        similar = page.act("add", title="Add a health check", paths="src/health.py").json()
        assert (similar["code"], similar["can_force"]) == ("TASK_SIMILAR", True)
        act("add", title="Add a health check", paths="src/health.py", force="yes")
        act("edit", task="T6", title="Add a probe", priority="3")
        act("after", task="T7", before="T6")
        assert state("T7") == "blocked"
        act("block", task="T6", why="later")
        assert state("T6") == "blocked"
        act("unblock", task="T6")
        assert state("T6") == "ready"
        assert page.act("drop", task="T7").json()["code"] == "NO_REASON"
        act("drop", task="T7", why="not needed")
        assert state("T7") == "dropped"

        act("eject", id="L1", why="not now")
        assert served.run_json("queue", "show", "L1")["landing"]["state"] == "ejected"
        act("approve", id="G1", why="on staging only")
        gate = served.run_json("gate", "show", "G1")["gate"]
        assert (gate["state"], gate["answer"], gate["answered_by"]) == ("approved", "on staging only", "pat")
        head = served.run_json("review", "show", "V1")["review"]["head"]
        assert page.act("review", id="V1", verdict="approve", head="0" * 40).status == 409
        act("review", id="V1", verdict="approve", head=head)

        token = next(one for one in served.run_json("claims")["claims"] if one["pattern"] == "src/api.py")[
            "token"
        ]
        act("release", token=str(token), why="dan has left")
        assert waiter.end().exit == 0
        assert served.holders()["src/api.py"] == "eve"  # who waited for it
        assert page.act("release", token=str(token), why="again").json()["code"] == "LEASE_OVER"
        act("pause", why="lunch")
        assert served.run_json("status")["pool"]["paused"] == "lunch"
        act("resume")
        assert served.run_json("status")["pool"]["paused"] is None
        assert page.act("nothing").status == 404

    mine = {entry["kind"] for entry in served.run_json("log", "pat", "-v")["entries"]}
    wanted = {"task.added", "task.dropped", "gate.approved", "claim.released", "pool.paused"}
    assert wanted <= mine, mine
    shown = page.get().body
    assert "Nothing needs you" in shown

"""Two agents in one repository: claiming, being refused, waiting, releasing, coming back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance


def test_the_second_agent_is_told_who_holds_it_until_when_and_what_to_do(shell: Shell) -> None:
    granted = shell.run_json("claim", "src/api.py", "--as", "ann", "--task", "T7", "--note", "new endpoint")

    refused = shell.run_error("CLAIM_HELD", "claim", "src/api.py", "--as", "bob", exit=3)

    claim = granted["granted"][0]
    assert (claim["pattern"], claim["mode"], claim["holder"]) == ("src/api.py", "exclusive", "ann")
    refusal = refused["refused"][0]
    assert refused["granted"] == []
    assert (refusal["pattern"], refusal["held"], refusal["holder"]) == ("src/api.py", "src/api.py", "ann")
    assert (refusal["task"], refusal["note"], refusal["waiting"]) == ("T7", "new endpoint", False)
    # One instant, seen from two clocks that are each rounded to a millisecond.
    assert refusal["until"][:18] == claim["until"][:18]
    assert refusal["age"].endswith("s")
    assert "--wait" in refusal["hint"]
    assert refused["hint"] == "wait in line: landlane claim src/api.py --as bob --wait"
    assert [one["holder"] for one in refused["holders"]] == ["ann"]
    assert (refused["waiting"], refused["position"]) == ([], 1)


def test_a_refusal_for_people_names_holder_task_note_and_hint_on_stderr(shell: Shell) -> None:
    shell.run_json("claim", "src/api.py", "--as", "ann", "--task", "T7", "--note", "new endpoint")

    ended = shell.run("claim", "src/**", "--as", "bob")

    assert ended.exit == 3
    assert ended.out == ""
    assert "[CLAIM_HELD]" in ended.err
    assert 'src/** overlaps src/api.py, which is claimed by ann: T7 "new endpoint" (' in ended.err
    assert " ago, lease ends in 29 min) [CLAIM_HELD]" in ended.err
    assert "hint: wait in line: landlane claim 'src/**' --as bob --wait" in ended.err


def test_what_was_released_goes_to_the_other_under_a_higher_token(shell: Shell) -> None:
    first = shell.run_json("claim", "src/api.py", "--as", "ann")["granted"][0]
    assert shell.run_json("release", "src/api.py", "--as", "ann")["released"] == ["src/api.py"]

    second = shell.run_json("claim", "src/api.py", "--as", "bob")["granted"][0]

    assert second["token"] > first["token"]
    assert shell.holders() == {"src/api.py": "bob"}


def test_a_waiter_gets_it_as_soon_as_it_is_released(shell: Shell) -> None:
    shell.run_json("claim", "src/**", "--as", "ann")
    with shell.start("claim", "src/api.py", "--as", "bob", "--wait", "30s", "--json") as waiter:
        shell.wait_for_waiter()
        line = shell.run_json("status")["waiters"]
        shell.run_json("release", "--all", "--as", "ann")
        ended = waiter.end()

    assert [(one["agent"], one["patterns"]) for one in line] == [("bob", ["src/api.py"])]
    assert ended.exit == 0
    assert ended.json()["granted"][0]["holder"] == "bob"
    assert shell.run_json("status")["waiters"] == []


def test_a_wait_that_is_too_short_ends_with_exit_5_and_leaves_nobody_in_line(shell: Shell) -> None:
    shell.run_json("claim", "src/api.py", "--as", "ann")

    answer = shell.run_error(
        "WAIT_TIMED_OUT", "claim", "src/api.py", "--as", "bob", "--wait", "300ms", exit=5
    )

    assert answer["refused"][0]["holder"] == "ann"
    assert shell.run_json("status")["waiters"] == []


def test_a_waiter_keeps_later_comers_from_passing_it(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")
    with shell.start("claim", "a", "b", "--as", "bob", "--wait", "30s", "--json") as waiter:
        shell.wait_for_waiter()
        passing = shell.run_error("CLAIM_HELD", "claim", "b", "--as", "cat", exit=3)
        shell.run_json("release", "--all", "--as", "ann")
        assert waiter.end().exit == 0

    assert (passing["refused"][0]["holder"], passing["refused"][0]["waiting"]) == ("bob", True)
    assert shell.holders() == {"a": "bob", "b": "bob"}


def test_two_who_would_wait_for_each_other_for_ever_are_told_so(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")
    shell.run_json("claim", "b", "--as", "bob")
    with shell.start("claim", "b", "--as", "ann", "--wait", "30s", "--json") as waiter:
        shell.wait_for_waiter()
        answer = shell.run_error("WAIT_CYCLE", "claim", "a", "--as", "bob", "--wait", "30s", exit=3)
        shell.run_json("release", "b", "--as", "bob")
        assert waiter.end().exit == 0

    assert answer["cycle"] == ["bob", "ann", "bob"]


def test_all_or_nothing_unless_partial(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")

    nothing = shell.run_error("CLAIM_HELD", "claim", "a", "b", "--as", "bob", exit=3)
    some = shell.run_json("claim", "a", "b", "--as", "bob", "--partial")

    assert nothing["granted"] == []
    assert [claim["pattern"] for claim in some["granted"]] == ["b"]
    assert [refusal["pattern"] for refusal in some["refused"]] == ["a"]
    assert shell.holders() == {"a": "ann", "b": "bob"}


def test_shared_claims_stand_side_by_side_but_not_beside_an_exclusive_one(shell: Shell) -> None:
    shell.run_json("claim", "CHANGELOG.md", "--shared", "--as", "ann")
    shell.run_json("claim", "CHANGELOG.md", "--shared", "--as", "bob")

    answer = shell.run_error("CLAIM_HELD", "claim", "CHANGELOG.md", "--as", "cat", exit=3)

    assert answer["refused"][0]["mode"] == "shared"


def test_renewing_keeps_the_token_and_moves_the_end(shell: Shell) -> None:
    first = shell.run_json("claim", "src/api.py", "--as", "ann", "--ttl", "1h")["granted"][0]

    answer = shell.run_json("renew", "--as", "ann")

    assert answer["renewed"] == ["src/api.py"]
    assert answer["claims"][0]["token"] == first["token"]
    assert answer["claims"][0]["until"] > first["until"]


def test_releasing_or_renewing_what_one_does_not_hold_says_whose_it_is(shell: Shell) -> None:
    shell.run_json("claim", "src/api.py", "--as", "ann")
    shell.run_json("join", "bob")

    held = shell.run_error("CLAIM_HELD", "release", "src/api.py", "--as", "bob", exit=3)
    nobody = shell.run_error("NOT_HELD", "renew", "src/other.py", "--as", "bob", exit=1)

    assert held["holder"] == "ann"
    assert held["until"].endswith("Z")
    assert nobody["pattern"] == "src/other.py"


def test_a_late_release_with_an_old_token_is_stale(shell: Shell) -> None:
    token = shell.run_json("claim", "src/api.py", "--as", "ann")["granted"][0]["token"]
    shell.run_json("release", "--all", "--as", "ann")
    shell.run_json("claim", "src/api.py", "--as", "ann")

    shell.run_error("LEASE_OVER", "release", "src/api.py", "--token", str(token), "--as", "ann", exit=4)
    shell.run_error("LEASE_OVER", "check", "src/api.py", "--token", str(token), "--as", "ann", exit=4)

    assert shell.holders() == {"src/api.py": "ann"}


def test_a_lease_that_ran_out_goes_to_the_next_and_the_sleeper_is_told_so(shell: Shell) -> None:
    token = shell.run_json("claim", "src/api.py", "--as", "ann", "--ttl", "1s")["granted"][0]["token"]

    taken = shell.run_json("claim", "src/api.py", "--as", "bob", "--wait", "20s")

    assert taken["granted"][0]["token"] > token
    over = shell.run_error("LEASE_OVER", "renew", "src/api.py", "--as", "ann", exit=4)
    assert over["holder"] == "bob"
    shell.run_error("LEASE_OVER", "check", "src/api.py", "--token", str(token), "--as", "ann", exit=4)


def test_a_release_records_the_commit_the_work_ended_in(shell: Shell) -> None:
    shell.run_json("claim", "README.md", "--as", "ann")
    head = shell.git("rev-parse", "HEAD").strip()

    answer = shell.run_json("release", "README.md", "--commit", "HEAD", "--as", "ann")

    assert answer["commit"] == head
    assert shell.run_json("log", "--last", "1")["entries"][0]["data"]["commit"] == head


def test_names_of_things_are_claimed_like_paths_and_are_none(shell: Shell) -> None:
    token = shell.run_json("claim", "deploy:prod", "--as", "ann")["granted"][0]["token"]

    shell.run_error("CLAIM_HELD", "claim", "deploy:prod", "--as", "bob", exit=3)
    shell.run_json("claim", "./deploy:prod", "--as", "bob")

    assert shell.holders() == {"deploy:prod": "ann", "./deploy:prod": "bob"}
    assert shell.run_json("check", "deploy:prod", "--as", "ann", "--token", str(token))["ok"]
    shell.run_error("CLAIM_HELD", "check", "deploy:prod", "--as", "bob", exit=3)
    assert shell.run_json("check", "deploy:prod", "--literal", "--as", "bob")["ok"]
    assert shell.run_json("who", "deploy:prod")["claims"][0]["holder"] == "ann"

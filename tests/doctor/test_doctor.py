"""The doctor: all is well, each trouble by its name, and repairs that keep everything that was promised."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane import Landlane
from landlane.doctor.examine import examine
from landlane.doctor.summary import summarize
from landlane.version import install_command
from tests.support.shell import Shell, fingerprint
from tests.support.snapshots import check_snapshot

if TYPE_CHECKING:
    from tests.support.shell import Answer

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("programs")]

EPOCH = 2**32


def checks_of(answer: Answer) -> dict[str, bool]:
    return {check["name"]: check["ok"] for check in answer["checks"]}


def red(answer: Answer) -> list[str]:
    return [name for name, is_ok in checks_of(answer).items() if not is_ok]


@pytest.fixture
def used(shell: Shell) -> Shell:
    """A repository with some history: generations, claims that stand, were released and were lost."""
    with Landlane(shell.folder, agent="ann") as ann:
        ann.claim("old.py")
        ann.leave()
    with Landlane(shell.folder, agent="ann", role="code") as ann:
        ann.claim("src/**", "docs/a.md", note="at work", task="T1")
        ann.claim("app/[id].tsx", literal=True, shared=True)
        ann.release("docs/a.md")
    with Landlane(shell.folder, agent="bob") as bob:
        bob.claim("deploy:prod")
    return shell


def test_a_healthy_repository_passes_every_check(used: Shell) -> None:
    before = fingerprint(used.folder)

    answer = used.run_json("doctor")

    assert red(answer) == []
    assert list(checks_of(answer))[:4] == ["repository", "settings", "store", "journal"]
    assert all(
        set(check) == {"name", "ok", "enforced", "fixed", "found", "hint"} for check in answer["checks"]
    )
    assert [check["enforced"] for check in answer["checks"] if check["name"] == "guards"] == [False]
    after = fingerprint(used.folder)
    assert after.pop(".git/landlane/doctor.json")  # which guards held, for the page
    assert after == before


def mask(text: str, used: Shell) -> str:
    """Return the doctor's output without what differs between machines."""
    text = text.replace(str(used.folder.parent), "~")
    for pattern, mask in (
        (r"\d+ checks", "18 checks"),
        (r"(under )?\d+ s\b", "2 s"),
        (r"\(\d+ entries\)", "(258 entries)"),
        (r"(?m)^((?:  |– )sandbox:? +).*", r"\1Landlock"),
        (r"(?m)^– command: .*\n", ""),
    ):
        text = re.sub(pattern, mask, text)
    return text.rstrip("\n")


def test_the_doctor_sums_up_a_healthy_repository(used: Shell) -> None:
    check_snapshot("doctor/snapshots/healthy.txt", mask(used.run_text("doctor"), used))


def test_the_doctor_shows_problems_first_with_their_fix(used: Shell) -> None:
    (used.state / "sessions").chmod(0o755)

    check_snapshot("doctor/snapshots/problems.txt", mask(used.run_text("doctor", exit=1), used))
    assert "✗ secrets: other users can read" in used.run_text("doctor", "-v", exit=1)
    check_snapshot("doctor/snapshots/fixed.txt", mask(used.run_text("doctor", "--fix"), used))
    assert "✓ secrets: readable only by you" in used.run_text("doctor", "-v")
    assert used.run_text("doctor", "--fix").startswith("✓ nothing to fix (")


def test_a_report_has_every_check_and_no_secret(used: Shell) -> None:
    store = "postgresql://ann:hunter2hunter2@127.0.0.1:1/landlane"
    shell = used.with_env(LANDLANE_STORE=store)

    code = shell.run("doctor", "--report", "report.txt").exit
    text = (used.folder / "report.txt").read_text(encoding="utf-8")

    assert code == 1
    assert text.startswith("landlane ")
    assert "PROBLEM" in text
    assert "hunter2" not in text
    again = shell.run_error("FILE_EXISTS", "doctor", "--report", "report.txt")
    assert "already exists" in again["message"]


def test_the_doctor_lists_absent_extras(used: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landlane.doctor.examine.find_spec", lambda name: None if name == "mcp" else object())

    summary = summarize(examine(str(used.folder)))

    assert summary["extras"] == f"not installed: mcp (add them: {install_command('mcp')})"


def test_outside_a_repository_the_doctor_says_so(tmp_path: Path) -> None:
    answer = Shell(tmp_path).run_json("doctor", exit=1)

    assert (red(answer), answer["code"]) == (["repository"], "UNWELL")


def test_secrets_that_others_can_read_are_reported_and_closed(used: Shell) -> None:
    secret = used.state / "sessions" / "ann"
    secret.chmod(0o644)
    (used.state / "sessions").chmod(0o755)

    open_ones = used.run_json("doctor", exit=1)
    fixed = used.run_json("doctor", "--fix")

    assert red(open_ones) == ["secrets"]
    assert str(secret) in open_ones["message"]
    assert red(fixed) == []
    assert (secret.stat().st_mode & 0o777, secret.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_session_whose_secret_is_gone_is_reported(used: Shell) -> None:
    (used.state / "sessions" / "ann").unlink()

    refused = used.run_error("AGENT_IN_USE", "claim", "README.md", "--as", "ann", exit=3)
    answer = used.run_json("doctor", exit=1)

    assert "the secret of its session is gone" in refused["message"]
    assert red(answer) == ["sessions"]
    assert "--as ann is refused until the session lapses" in answer["message"]


def _truncate(path: Path) -> None:
    os.truncate(path, 6000)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _scribble(path: Path) -> None:
    path.write_bytes(os.urandom(30_000))


def _spoil_pages(path: Path) -> None:
    """Damage that only shows when those pages are read."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(size // 4096 // 2, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xa5" * 4096)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_truncate, _empty, _scribble, _spoil_pages, Path.unlink])
def test_a_broken_store_is_rebuilt_with_all_its_state(used: Shell, damage) -> None:
    damage(used.state / "store.db")  # all in one file: the last process to close it made it so

    answer = used.run_json("doctor", "--fix")

    assert red(answer) == []
    shown = next(check["found"] for check in answer["checks"] if check["name"] == "rebuild")
    assert shown.startswith("from 12 journal entries: 3 claims, 2 sessions, epoch ")
    assert len(list(used.state.glob("store.before-*.db"))) == (damage not in (Path.unlink, _empty))
    assert used.holders() == {"src/**": "ann", "app/[id].tsx": "ann", "deploy:prod": "bob"}
    assert used.run_json("log", "--verify")["trouble"] == []


def test_sessions_continue_after_a_rebuild(used: Shell) -> None:
    held = used.run_json("claims")["claims"]
    ann = used.run_json("join", "ann")["session"]
    journal = used.run_json("log")["entries"]
    (used.state / "store.db").write_bytes(os.urandom(30_000))
    for ending in ("-wal", "-shm"):
        (used.state / f"store.db{ending}").unlink(missing_ok=True)

    used.run_json("doctor", "--fix")

    assert without_times(used.run_json("claims")["claims"]) == without_times(held)
    again = used.run_json("log")["entries"]
    assert again[: len(journal)] == journal
    assert again[len(journal)]["kind"] == "store.rebuilt"
    # The secret still proves the session, its generation and role stand, new tokens are above all before.
    child = used.with_env(LANDLANE_SESSION=f"{ann['id']}:{ann['secret']}")
    you = child.run_json("status")["you"]
    assert (you["generation"], you["role"]) == (2, "code")
    assert child.run_json("check", "src/api.py", "--token", str(held[0]["token"]))["ok"]
    new = child.run_json("claim", "new.py")["granted"][0]["token"]
    assert new // EPOCH > max(one["token"] for one in held) // EPOCH
    used.run_error("CLAIM_HELD", "claim", "src/api.py", "--as", "bob", exit=3)
    child.run_json("leave")
    assert used.run_json("join", "ann")["session"]["generation"] == 3


def without_times(claims: list[Answer]) -> list[Answer]:
    return [{key: claim[key] for key in claim.keys() - {"since", "until"}} for claim in claims]


def test_the_log_of_a_lost_store_is_never_taken_for_that_of_the_new_one(used: Shell) -> None:
    used.run_json("claim", "late.py", "--as", "bob")
    assert (used.state / "store.db-wal").stat().st_size  # commands leave it to the next one
    held = used.holders()
    (used.state / "store.db").unlink()

    assert red(used.run_json("doctor", "--fix")) == []
    assert used.holders() == held
    used.run_json("claim", "later.py", "--as", "bob")
    assert red(used.run_json("doctor")) == []


def test_a_store_is_rebuilt_on_demand_and_nothing_is_lost(used: Shell) -> None:
    used.run_json("claim", "late.py", "--as", "bob")
    before = used.run_json("store", "info")["store"]

    answer = used.run_json("store", "rebuild")["rebuilt"]

    after = used.run_json("store", "info")["store"]
    assert (answer["claims"], answer["sessions"], answer["unreadable"]) == (4, 2, 0)
    assert (used.state / answer["kept"]).exists()
    assert int(after["epoch"]) == answer["epoch"] > int(before["epoch"])
    assert after["entries"] == before["entries"] + 1
    assert used.holders()["late.py"] == "bob"


def test_entries_missing_from_the_copy_come_from_a_readable_store(used: Shell) -> None:
    lines = (used.state / "journal.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (used.state / "journal.jsonl").write_text("".join(lines[:4]), encoding="utf-8")

    assert used.run_json("store", "rebuild")["rebuilt"]["entries"] == len(lines)


def test_lines_with_a_broken_chain_are_kept_but_not_replayed(used: Shell) -> None:
    copy = used.state / "journal.jsonl"
    lines = copy.read_text(encoding="utf-8").splitlines(keepends=True)
    copy.write_text("".join([*lines[:6], lines[6].replace("ann", "eve"), *lines[7:]]), encoding="utf-8")
    (used.state / "store.db").unlink()

    answer = used.run_json("doctor", "--fix")

    shown = next(check["found"] for check in answer["checks"] if check["name"] == "rebuild")
    assert f"{len(lines) - 6} lines of it could not be used and are kept" in shown
    assert len(list(used.state.glob("journal.before-*.jsonl"))) == 1
    assert used.run_json("log", "--verify")["trouble"] == []


def test_an_intact_store_is_rebuilt_even_when_its_copy_is_damaged(used: Shell) -> None:
    held = used.holders()
    (used.state / "journal.jsonl").write_text("nothing of ours\n", encoding="utf-8")

    rebuilt = used.run_json("store", "rebuild")["rebuilt"]

    assert (rebuilt["entries"], rebuilt["unreadable"]) == (12, 1)
    assert used.holders() == held
    assert used.run_json("log", "--verify")["trouble"] == []


def test_without_a_journal_there_is_nothing_to_rebuild_from(used: Shell) -> None:
    (used.state / "journal.jsonl").unlink()
    (used.state / "store.db").write_bytes(os.urandom(20_000))

    answer = used.run_json("doctor", "--fix", exit=1)

    assert red(answer) == ["rebuild"]
    used.run_error("NO_JOURNAL", "store", "rebuild", exit=1)


def test_a_store_elsewhere_is_not_rebuilt_from_the_journal_here(used: Shell, tmp_path: Path) -> None:
    elsewhere = used.with_env(LANDLANE_STORE=str(tmp_path / "x.db"))

    elsewhere.run_error("STORE_ELSEWHERE", "store", "rebuild", exit=1)


def test_a_process_that_has_the_store_open_goes_on_with_the_new_one(used: Shell) -> None:
    with Landlane(used.folder, agent="ann") as ann:
        used.run_json("store", "rebuild")
        taken = ann.claim("later.py")

    assert used.holders()["later.py"] == "ann"
    assert used.run_json("log", "--verify")["ok"]
    assert type(taken).__name__ == "Taken"


def test_a_waiter_outlives_a_rebuild(used: Shell) -> None:
    with used.start("claim", "src/api.py", "--as", "cat", "--wait", "60s", "--json") as waiter:
        used.wait_for_waiter()
        used.run_json("store", "rebuild")
        used.run_json("release", "src/**", "--as", "ann")
        ended = waiter.end(20)

    assert ended.json()["granted"][0]["holder"] == "cat"
    assert used.holders()["src/api.py"] == "cat"


def test_lost_claims_are_still_stale_after_a_rebuild(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann", "--ttl", "1s")
    shell.run_json("claim", "a", "--as", "bob", "--wait", "20s")

    shell.run_json("store", "rebuild")

    assert shell.run_error("LEASE_OVER", "renew", "a", "--as", "ann", exit=4)["holder"] == "bob"


def test_case_comparison_survives_a_rebuild(shell: Shell) -> None:
    shell.git("config", "core.ignorecase", "true")
    shell.run_json("claim", "src/Api.py", "--as", "ann")
    shell.git("config", "core.ignorecase", "false")

    shell.run_json("store", "rebuild")

    shell.run_error("CLAIM_HELD", "claim", "SRC/api.py", "--as", "bob", exit=3)


def test_pushes_are_not_called_unguarded_where_there_is_no_remote(used: Shell) -> None:
    used.run("init", "--yes", "--no-clients")
    line = next(line for line in used.run_text("doctor").splitlines() if line.startswith("  git "))
    assert line.startswith("  git       commits were refused when tried")
    assert line.endswith("; there is no remote to push to")
    assert "pushes" not in line

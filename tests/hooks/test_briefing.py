"""What a session is told at its start, in a real repository: each part of it, and each part that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.hooks.briefing.compose import brief
from landlane.protocol.hook_events import HookEvent, HookEventKind
from landlane.rules.model import MOST_BYTES, RULES_TEMPLATE, version_of
from landlane.rules.versions import find_acknowledgement
from landlane.tasks.add import add_task
from landlane.tasks.change import fail_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import git
from tests.support.git import commit_text
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def started(
    testbed: LandingTestbed,
    name: str = "ann",
    *,
    source: str = "startup",
    kind: HookEventKind = HookEventKind.START,
    agent: str = "",
) -> str:
    event = HookEvent(client="claude", kind=kind, session="c-1", source=source, agent=agent)
    return brief(testbed.prepared_repo, testbed.agent(name), event)


def write(testbed: LandingTestbed, name: str, text: str) -> None:
    path = testbed.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def settings(testbed: LandingTestbed, text: str) -> None:
    testbed.commit({"landlane.toml": text})
    testbed._repo = None


def acknowledged(testbed: LandingTestbed, agent: str = "ann") -> str:
    found = find_acknowledgement(testbed.repo, testbed.agent(agent).id)
    return found.version if found is not None else ""


def test_briefing_names_the_session_the_rules_and_the_other_sessions(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES_TEMPLATE, "src/api.py": "", "src/app.py": ""})
    testbed.claim("bob", "src/api.py")

    told = started(testbed)

    session = testbed.agent("ann")
    assert f"You are ann, session {session.id}" in told
    assert f"RULES.md, version {version_of(RULES_TEMPLATE)}" in told
    assert "5. Claim before you change: Change only paths that you hold" in told
    assert "- bob holds src/api.py" in told
    assert "three times" in told
    assert len(told) < 4000
    assert acknowledged(testbed) == version_of(RULES_TEMPLATE)


def test_a_session_that_has_read_them_is_only_reminded(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES_TEMPLATE})
    first = started(testbed)
    testbed.claim("ann", "README.md")
    resumed = started(testbed, source="resume")
    compacted = started(testbed, source="compact")

    assert "unchanged since you read them" in resumed
    assert "You hold: README.md" in resumed
    assert len(resumed) < len(first) / 2 + 500
    assert "Never go round a refusal" in compacted


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("auto", "Editing a free path claims it"),
        ("strict", "is refused: `landlane claim PATH` first"),
        ("watch", "only reported"),
    ],
)
def test_briefing_explains_the_policy(testbed: LandingTestbed, policy: str, words: str) -> None:
    settings(testbed, f'[hooks]\npolicy = "{policy}"\n')

    assert words in started(testbed)


def test_long_rules_are_named_and_must_be_read_by_oneself(testbed: LandingTestbed) -> None:
    text = "".join(f"## Rule {number}\n\n{'Word ' * 100}\n\n" for number in range(20))
    testbed.commit({"RULES.md": text})

    told = started(testbed)

    assert "Rule 0; Rule 1;" in told
    assert f"landlane rules ack {version_of(text)}" in told
    assert acknowledged(testbed) == ""


def make_link_out(testbed: LandingTestbed) -> None:
    secret = testbed.folder.parent / "secret.txt"
    secret.write_text("## Obey\n\nA stranger.\n", encoding="utf-8")
    (testbed.folder / "RULES.md").symlink_to(secret)
    git(testbed.folder, "add", "--all")
    git(testbed.folder, "commit", "--quiet", "--message", "A link")


@pytest.mark.promise(
    "sessions.start-whatever-fails",
    "A session starts even when its rules cannot be read, and reports that.",
)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda testbed: None, "there is no RULES.md"),
        (make_link_out, "there is no RULES.md"),
        (lambda testbed: testbed.commit({"RULES.md/law.md": "## Obey\n"}), "there is no RULES.md"),
        (lambda testbed: testbed.commit({"RULES.md": b"\x00\x01"}), "not UTF-8 text"),
        (lambda testbed: testbed.commit({"RULES.md": b"## caf\xe9\n"}), "not UTF-8 text"),
        (
            lambda testbed: testbed.commit({"RULES.md": b"a" * (MOST_BYTES + 1)}),
            "bytes; rules may have",
        ),
    ],
)
def test_rules_that_cannot_be_read_are_one_line(testbed: LandingTestbed, make: object, words: str) -> None:
    assert callable(make)
    make(testbed)

    told = started(testbed)

    assert words in told
    assert "You are ann" in told
    assert "Obey" not in told
    assert acknowledged(testbed) == ""


@pytest.mark.parametrize("file", ["../outside.md", "/etc/hostname", ".git/config"])
def test_rules_are_never_read_from_outside(testbed: LandingTestbed, file: str) -> None:
    (testbed.folder.parent / "outside.md").write_text("## Obey\n", encoding="utf-8")
    settings(testbed, f'[rules]\nfile = "{file}"\n')

    assert "outside of the repository" in started(testbed)


def test_a_branch_does_not_choose_its_own_rules(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": "## Be kind\n\nAlways.\n"})
    tree = testbed.folder.parent / "tree"
    git(testbed.folder, "worktree", "add", "--quiet", "--detach", str(tree))
    commit_text(tree, "RULES.md", "## Be rude\n\nAlways.\n")
    there = LandingTestbed(tree, FakeClock())

    told = started(there)

    there.close()
    assert "Be kind" in told
    assert "Be rude" not in told


def test_memory_files_are_shown_cut_to_size_and_the_missing_named(testbed: LandingTestbed) -> None:
    write(testbed, "STATE.md", "Half of it is done.\n")
    write(testbed, "notes/a.md", "Lesson A.\n")
    write(testbed, "notes/b.md", "é" * 5000)
    settings(
        testbed,
        "[memory]\nmax_bytes = 301\n"
        'files = ["STATE.md", "notes/*.md", "GONE.md", "x/*.md", "../*.md", "../out.md"]\n',
    )
    (testbed.folder.parent / "out.md").write_text("a secret", encoding="utf-8")

    told = started(testbed)

    assert "--- STATE.md\nHalf of it is done." in told
    assert "--- notes/a.md\nLesson A." in told
    assert "notes/b.md has 10,000 bytes" in told
    assert told.count("é") == 150
    assert "(GONE.md: there is no such memory file)" in told
    assert "(x/*.md: there is no such memory file)" in told
    assert "a secret" not in told
    assert "'../out.md' lies outside" in told


def test_a_memory_file_that_is_a_link_out_is_not_followed(testbed: LandingTestbed) -> None:
    secret = testbed.folder.parent / "secret.txt"
    secret.write_text("the password", encoding="utf-8")
    (testbed.folder / "notes").mkdir()
    (testbed.folder / "notes" / "a.md").symlink_to(secret)
    settings(testbed, '[memory]\nfiles = ["notes/*.md", "notes/a.md"]\n')

    told = started(testbed)

    assert "the password" not in told
    assert "leads out of it" in told


def test_memory_files_without_room_are_only_named(testbed: LandingTestbed) -> None:
    for number in range(9):
        write(testbed, f"notes/{number}.md", f"Note {number}. " + "x" * 3000)
    settings(testbed, '[memory]\nfiles = ["notes/*.md"]\n')

    told = started(testbed)

    assert "Note 0." in told
    assert "not shown, read them yourself" in told
    assert len(told) < 10_000


def test_briefing_includes_the_notes_of_earlier_attempts(testbed: LandingTestbed) -> None:
    repo = testbed.repo
    new = NewTask(title="Mend the parser", body="It drops commas.\n" + "x" * 2000, paths=("src/parse.py",))
    add_task(repo, None, new)
    next_task(repo, testbed.agent("bob"))
    fail_task(repo, testbed.agent("bob"), "T1", "the grammar is ambiguous")
    clock = testbed._clock
    assert isinstance(clock, FakeClock)
    clock.advance(3_600_000)
    next_task(repo, testbed.agent("ann"))

    told = started(testbed)

    assert "Your task T1 (active, attempt 2): Mend the parser" in told
    assert "It drops commas." in told
    assert "`landlane task show T1` shows the rest" in told
    assert "Paths: src/parse.py" in told
    assert "Attempt 1 of bob left: the grammar is ambiguous" in told


def test_many_others_are_counted(testbed: LandingTestbed) -> None:
    for number in range(14):
        testbed.agent(f"a{number:02}")
    testbed.claim("zoe", "README.md")

    told = started(testbed)

    assert told.index("- zoe holds README.md") < told.index("- a00 holds nothing")
    assert "and 5 more: `landlane status`" in told


def test_stale_base_is_reported_without_contacting_a_remote(testbed: LandingTestbed) -> None:
    git(testbed.folder, "checkout", "--quiet", "-b", "topic")
    git(testbed.folder, "checkout", "--quiet", "main")
    testbed.commit({"a.py": ""}, "One")
    testbed.commit({"b.py": ""}, "Two")
    git(testbed.folder, "checkout", "--quiet", "topic")
    git(testbed.folder, "remote", "add", "origin", "ssh://nowhere.invalid/x.git")

    assert "2 commits behind main" in started(testbed)


def test_a_repository_without_a_commit_starts_all_the_same(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    testbed = LandingTestbed(tmp_path, FakeClock())

    told = started(testbed)

    testbed.close()
    assert "You are ann" in told
    assert "(your base is unknown: there is no branch to work on yet)" in told


def test_uncommitted_work_of_others_is_named_with_its_holder(testbed: LandingTestbed) -> None:
    testbed.claim("bob", "src/api.py")
    write(testbed, "src/api.py", "half done\n")
    write(testbed, "stray.txt", "whose?\n")
    git(testbed.folder, "add", "--intent-to-add", "src/api.py")

    told = started(testbed)

    assert "- bob: src/api.py" in told
    assert "- not claimed: stray.txt" in told


def test_subagent_gets_the_rules_under_its_own_name(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES_TEMPLATE})

    told = started(testbed, "ann.sub", kind=HookEventKind.CHILD_START, agent="sub")

    assert "You are ann.sub (a subagent)" in told
    assert acknowledged(testbed, "ann.sub") == version_of(RULES_TEMPLATE)


def test_a_part_that_breaks_is_one_line(testbed: LandingTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise RecursionError("no end")

    monkeypatch.setattr("landlane.hooks.briefing.compose.describe_base", fail)

    told = started(testbed)

    assert "(your base is unknown: RecursionError: no end)" in told
    assert "No other session is here now." in told


def test_briefing_names_the_path_of_a_command_that_is_not_on_path(
    testbed: LandingTestbed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from landlane.processes import own_command

    everywhere = tmp_path / "bin"
    everywhere.mkdir()
    monkeypatch.setattr(own_command, "_EVERYWHERE", (str(everywhere),))
    path = own_command.own_command()
    assert path.endswith("/landlane")

    assert f"If `landlane` is not found, call it as {path}." in started(testbed)

    (everywhere / "landlane").symlink_to(path)
    assert "is not found, call" not in started(testbed, "bob")

"""What a session is told at its start, in a real repository: each part of it, and each part that fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from landlane.hooks.briefing.compose import brief
from landlane.protocol.hook_events import CHILD_START, START, HookEvent
from landlane.rules.model import MOST_BYTES, RULES_TEMPLATE, version_of
from landlane.rules.versions import find_acknowledgement
from landlane.tasks.add import add_task
from landlane.tasks.change import fail_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import git
from tests.support.landing import Yard

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def started(
    yard: Yard, name: str = "ann", *, source: str = "startup", kind: str = START, agent: str = ""
) -> str:
    event = HookEvent(client="claude", kind=kind, session="c-1", source=source, agent=agent)
    return brief(yard.site, yard.agent(name), event)


def write(yard: Yard, name: str, text: str) -> None:
    path = yard.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def settings(yard: Yard, text: str) -> None:
    yard.commit({"landlane.toml": text})
    yard._repo = None


def acknowledged(yard: Yard, agent: str = "ann") -> str:
    found = find_acknowledgement(yard.repo, yard.agent(agent).id)
    return found.version if found is not None else ""


def test_a_session_hears_who_it_is_the_rules_and_who_else_is_here(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES_TEMPLATE, "src/api.py": "", "src/app.py": ""})
    yard.claim("bob", "src/api.py")

    told = started(yard)

    session = yard.agent("ann")
    assert f"You are ann, session {session.id}" in told
    assert f"RULES.md, version {version_of(RULES_TEMPLATE)}" in told
    assert "5. Claim before you change: Change only paths that you hold" in told
    assert "- bob holds src/api.py" in told
    assert "three times" in told
    assert len(told) < 4000
    assert acknowledged(yard) == version_of(RULES_TEMPLATE)


def test_a_session_that_has_read_them_is_only_reminded(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES_TEMPLATE})
    first = started(yard)
    yard.claim("ann", "README.md")
    resumed = started(yard, source="resume")
    compacted = started(yard, source="compact")

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
def test_the_policy_is_told_in_words(yard: Yard, policy: str, words: str) -> None:
    settings(yard, f'[hooks]\npolicy = "{policy}"\n')

    assert words in started(yard)


def test_long_rules_are_named_and_must_be_read_by_oneself(yard: Yard) -> None:
    text = "".join(f"## Rule {number}\n\n{'Word ' * 100}\n\n" for number in range(20))
    yard.commit({"RULES.md": text})

    told = started(yard)

    assert "Rule 0; Rule 1;" in told
    assert f"landlane rules ack {version_of(text)}" in told
    assert acknowledged(yard) == ""


def make_link_out(yard: Yard) -> None:
    secret = yard.folder.parent / "secret.txt"
    secret.write_text("## Obey\n\nA stranger.\n", encoding="utf-8")
    (yard.folder / "RULES.md").symlink_to(secret)


def make_pipe(yard: Yard) -> None:
    os.mkfifo(yard.folder / "RULES.md")


@pytest.mark.promise(
    "sessions.start-whatever-fails",
    "A session starts even when its rules cannot be read, and reports that.",
)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda yard: None, "there is no RULES.md"),
        (make_link_out, "leads out of it"),
        (make_pipe, "no plain file"),
        (lambda yard: (yard.folder / "RULES.md").mkdir(), "cannot be read"),
        (lambda yard: (yard.folder / "RULES.md").write_bytes(b"\x00\x01"), "no text in UTF-8"),
        (lambda yard: (yard.folder / "RULES.md").write_bytes(b"## caf\xe9\n"), "no text in UTF-8"),
        (
            lambda yard: (yard.folder / "RULES.md").write_bytes(b"a" * (MOST_BYTES + 1)),
            "bytes; rules may have",
        ),
    ],
)
def test_rules_that_cannot_be_read_are_one_line(yard: Yard, make: object, words: str) -> None:
    assert callable(make)
    make(yard)

    told = started(yard)

    assert words in told
    assert "You are ann" in told
    assert "Obey" not in told
    assert acknowledged(yard) == ""


@pytest.mark.parametrize("file", ["../outside.md", "/etc/hostname", ".git/config"])
def test_rules_are_never_read_from_outside(yard: Yard, file: str) -> None:
    (yard.folder.parent / "outside.md").write_text("## Obey\n", encoding="utf-8")
    settings(yard, f'[rules]\nfile = "{file}"\n')

    assert "outside of the repository" in started(yard)


def test_a_branch_does_not_choose_its_own_rules(yard: Yard) -> None:
    yard.commit({"RULES.md": "## Be kind\n\nAlways.\n"})
    tree = yard.folder.parent / "tree"
    git(yard.folder, "worktree", "add", "--quiet", "--detach", str(tree))
    (tree / "RULES.md").write_text("## Be rude\n\nAlways.\n", encoding="utf-8")
    there = Yard(tree, FakeClock())

    told = started(there)

    there.close()
    assert "Be kind" in told
    assert "Be rude" not in told


def test_memory_files_are_shown_cut_to_size_and_the_missing_named(yard: Yard) -> None:
    write(yard, "STATE.md", "Half of it is done.\n")
    write(yard, "notes/a.md", "Lesson A.\n")
    write(yard, "notes/b.md", "é" * 5000)
    settings(
        yard,
        "[memory]\nmax_bytes = 301\n"
        'files = ["STATE.md", "notes/*.md", "GONE.md", "x/*.md", "../*.md", "../out.md"]\n',
    )
    (yard.folder.parent / "out.md").write_text("a secret", encoding="utf-8")

    told = started(yard)

    assert "--- STATE.md\nHalf of it is done." in told
    assert "--- notes/a.md\nLesson A." in told
    assert "notes/b.md has 10,000 bytes" in told
    assert told.count("é") == 150
    assert "(GONE.md: there is no such memory file)" in told
    assert "(x/*.md: there is no such memory file)" in told
    assert "a secret" not in told
    assert "'../out.md' lies outside" in told


def test_a_memory_file_that_is_a_link_out_is_not_followed(yard: Yard) -> None:
    secret = yard.folder.parent / "secret.txt"
    secret.write_text("the password", encoding="utf-8")
    (yard.folder / "notes").mkdir()
    (yard.folder / "notes" / "a.md").symlink_to(secret)
    settings(yard, '[memory]\nfiles = ["notes/*.md", "notes/a.md"]\n')

    told = started(yard)

    assert "the password" not in told
    assert "leads out of it" in told


def test_much_memory_is_named_where_there_is_no_room(yard: Yard) -> None:
    for number in range(9):
        write(yard, f"notes/{number}.md", f"Note {number}. " + "x" * 3000)
    settings(yard, '[memory]\nfiles = ["notes/*.md"]\n')

    told = started(yard)

    assert "Note 0." in told
    assert "not shown, read them yourself" in told
    assert len(told) < 10_000


def test_a_task_comes_with_what_earlier_attempts_left(yard: Yard) -> None:
    repo = yard.repo
    new = NewTask(title="Mend the parser", body="It drops commas.\n" + "x" * 2000, paths=("src/parse.py",))
    add_task(repo, None, new)
    next_task(repo, yard.agent("bob"))
    fail_task(repo, yard.agent("bob"), "T1", "the grammar is ambiguous")
    clock = yard._clock
    assert isinstance(clock, FakeClock)
    clock.advance(3_600_000)
    next_task(repo, yard.agent("ann"))

    told = started(yard)

    assert "Your task T1 (active, attempt 2): Mend the parser" in told
    assert "It drops commas." in told
    assert "`landlane task show T1` shows the rest" in told
    assert "Paths: src/parse.py" in told
    assert "Attempt 1 of bob left: the grammar is ambiguous" in told


def test_many_others_are_counted(yard: Yard) -> None:
    for number in range(14):
        yard.agent(f"a{number:02}")
    yard.claim("zoe", "README.md")

    told = started(yard)

    assert told.index("- zoe holds README.md") < told.index("- a00 holds nothing")
    assert "and 5 more: `landlane status`" in told


def test_a_stale_base_is_told_without_asking_a_remote(yard: Yard) -> None:
    git(yard.folder, "checkout", "--quiet", "-b", "topic")
    git(yard.folder, "checkout", "--quiet", "main")
    yard.commit({"a.py": ""}, "One")
    yard.commit({"b.py": ""}, "Two")
    git(yard.folder, "checkout", "--quiet", "topic")
    git(yard.folder, "remote", "add", "origin", "ssh://nowhere.invalid/x.git")

    assert "2 commits behind main" in started(yard)


def test_a_repository_without_a_commit_starts_all_the_same(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    yard = Yard(tmp_path, FakeClock())

    told = started(yard)

    yard.close()
    assert "You are ann" in told
    assert "(your base cannot be told: there is no branch to work on yet)" in told


def test_uncommitted_work_of_others_is_named_with_its_holder(yard: Yard) -> None:
    yard.claim("bob", "src/api.py")
    write(yard, "src/api.py", "half done\n")
    write(yard, "stray.txt", "whose?\n")
    git(yard.folder, "add", "--intent-to-add", "src/api.py")

    told = started(yard)

    assert "- bob: src/api.py" in told
    assert "- nobody holds: stray.txt" in told


def test_a_subagent_hears_the_rules_under_its_own_name(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES_TEMPLATE})

    told = started(yard, "ann.sub", kind=CHILD_START, agent="sub")

    assert "You are ann.sub (a subagent)" in told
    assert acknowledged(yard, "ann.sub") == version_of(RULES_TEMPLATE)


def test_a_part_that_breaks_is_one_line(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise RecursionError("no end")

    monkeypatch.setattr("landlane.hooks.briefing.compose.tell_base", fail)

    told = started(yard)

    assert "(your base cannot be told: RecursionError: no end)" in told
    assert "Nobody else is here now." in told


def test_who_may_not_find_our_command_is_told_where_it_is(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from landlane.processes import own_command

    everywhere = tmp_path / "bin"
    everywhere.mkdir()
    monkeypatch.setattr(own_command, "_EVERYWHERE", (str(everywhere),))
    path = own_command.own_command()
    assert path.endswith("/landlane")

    assert f"If `landlane` is not found, call it as {path}." in started(yard)

    (everywhere / "landlane").symlink_to(path)
    assert "is not found, call" not in started(yard, "bob")

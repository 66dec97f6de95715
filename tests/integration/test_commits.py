"""Commits of chosen paths, with real git: what goes into them, what is refused, and what hooks may do."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from interlock.bootstrap import STORE_NAME
from interlock.config import Settings
from interlock.errors import (
    Held,
    InterlockError,
    Malformed,
    NotAllowed,
    PatternError,
    RepositoryError,
    Stale,
    TimedOut,
)
from interlock.flows.commits import Made, commit, make_wish
from interlock.flows.site import Site
from interlock.git import commits as git
from interlock.git.layout import HOME_POINTER, find_checkout
from interlock.git.lock import git_lock, under_lock
from interlock.operations import journal
from interlock.testing.clock import FakeClock
from tests import support
from tests.support import MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.git.run import Output


class Crew:
    """Agents that commit in one repository; `told` is what a watching person was told."""

    def __init__(self, repository: Path) -> None:
        self.root = repository
        state = repository / ".git" / "interlock"
        state.mkdir()
        self.site = support.Site(repository, str(state / STORE_NAME), FakeClock())
        self.told: list[str] = []

    def agent(
        self, name: str, *claimed: str, settings: Settings | None = None, task: str = ""
    ) -> support.Agent:
        agent = self.site.agent(name, settings=settings)
        for pattern in claimed:
            agent.take(pattern, task=task)
        return agent

    def commit(
        self,
        agent: support.Agent,
        *paths: str,
        message: str = "Work",
        at: Path | None = None,
        task: str = "",
        may_undo: bool = False,
    ) -> Made:
        here = find_checkout(str(at or self.root))
        site = Site(context=agent.context, here=here, home=here.home_checkout, tell=self.told.append)
        wish = make_wish(site, paths, str(at or self.root), message=message, task=task, may_undo=may_undo)
        return commit(site, agent.session, wish)

    def write(self, path: str, text: str = "text\n", at: Path | None = None) -> None:
        file = (at or self.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def git(self, *words: str, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=at or self.root, capture_output=True, timeout=30, check=True, text=True
        )
        return done.stdout

    def land(self, path: str, text: str, message: str = "Theirs") -> str:
        """A commit by somebody else, with plain git."""
        self.write(path, text)
        self.git("add", path)
        self.git("commit", "--quiet", "-m", message, "--", path)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def paths_of(self, commit_id: str = "HEAD") -> list[str]:
        words = ("show", "--format=", "--name-only", "--no-renames", "-z", commit_id)
        return [path for path in self.git(*words).split("\0") if path]

    def status(self) -> str:
        return self.git("status", "--porcelain", "--untracked-files=all")

    def hook(self, name: str, script: str) -> None:
        file = self.root / ".git" / "hooks" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    def message(self, commit_id: str = "HEAD") -> str:
        return self.git("show", "--no-patch", "--format=%B", commit_id)


@pytest.fixture
def crew(repository: Path) -> Iterator[Crew]:
    crew = Crew(repository)
    yield crew
    crew.site.close()


def refuse(kind: type[InterlockError], code: str) -> pytest.RaisesExc[InterlockError]:
    return pytest.RaisesExc(kind, check=lambda error: error.code == code)


# What goes into a commit


def test_only_the_named_paths_are_committed_and_what_others_staged_stays_staged(crew: Crew) -> None:
    ann = crew.agent("ann", "mine.py", "README.md")
    crew.write("mine.py")
    crew.write("README.md", "changed\n")
    crew.write("theirs.py")
    crew.git("add", "theirs.py")

    made = crew.commit(ann, "mine.py", "README.md")

    assert crew.paths_of(made.commit) == ["README.md", "mine.py"]
    assert made.paths == ("README.md", "mine.py")
    assert made.branch == "main"
    assert made.left_alone == 1
    assert crew.status() == "A  theirs.py\n"


def test_a_staged_change_of_a_named_path_is_committed_as_it_is_on_disk(crew: Crew) -> None:
    ann = crew.agent("ann", "README.md")
    crew.write("README.md", "staged\n")
    crew.git("add", "README.md")
    crew.write("README.md", "on disk\n")

    crew.commit(ann, "README.md")

    assert crew.git("show", "HEAD:README.md") == "on disk\n"
    assert crew.status() == ""


def test_what_was_staged_by_others_is_not_committed_even_if_it_is_a_deletion_or_a_rename(crew: Crew) -> None:
    crew.land("old.py", "1\n")
    ann = crew.agent("ann", "mine.py")
    crew.write("mine.py")
    crew.git("rm", "--quiet", "README.md")
    crew.git("mv", "old.py", "new.py")

    made = crew.commit(ann, "mine.py")

    assert crew.paths_of() == ["mine.py"]
    assert made.left_alone == 3
    assert crew.status() == "R  old.py -> new.py\nD  README.md\n" or "D  README.md" in crew.status()


def test_deletions_and_both_ends_of_a_rename_are_committed(crew: Crew) -> None:
    crew.land("old.py", "1\n")
    crew.land("gone.py", "2\n")
    ann = crew.agent("ann", "old.py", "new.py", "gone.py")
    crew.git("mv", "old.py", "new.py")
    (crew.root / "gone.py").unlink()
    crew.land("last.py", "3\n")

    crew.commit(ann, "old.py", "new.py", "gone.py")

    assert sorted(crew.paths_of()) == ["gone.py", "new.py", "old.py"]
    assert crew.status() == ""


def test_a_folder_means_all_that_changed_below_it_but_nothing_ignored(crew: Crew) -> None:
    crew.land(".gitignore", "*.log\n")
    crew.land("src/gone.py", "1\n")
    crew.land("other.py", "1\n")
    ann = crew.agent("ann", "src/**")
    (crew.root / "src/gone.py").unlink()
    crew.write("src/deep/new.py")
    crew.write("src/deep/noise.log")
    crew.write("beside.py")

    made = crew.commit(ann, "src")

    assert made.paths == ("src/deep/new.py", "src/gone.py")
    assert crew.status() == "?? beside.py\n"


@pytest.mark.parametrize(
    "name",
    [
        "with space.py",
        "*.py",
        "[id].tsx",
        ":(top)x",
        "-m",
        "öß.py",
        'quote".py',
        "a\\b",
        "new\nline",
        "{a,b}",
        "!x",
    ],
)
def test_odd_names_are_taken_as_they_are(crew: Crew, name: str) -> None:
    ann = crew.agent("ann", ".")
    crew.write(name)
    crew.write("plain.py")

    made = crew.commit(ann, f"./{name}")

    assert crew.paths_of() == [name]
    assert made.paths == (name,)


def test_a_name_that_is_no_text_is_judged_by_its_folder(crew: Crew) -> None:
    ann = crew.agent("ann", "data")
    name = os.fsdecode(b"data/\xff\xfe")
    (crew.root / "data").mkdir()
    (crew.root / name).write_bytes(b"1")

    assert crew.commit(ann, "data").paths == (name,)


def test_paths_count_from_the_folder_one_stands_in(crew: Crew) -> None:
    ann = crew.agent("ann", "src/a.py", "b.py")
    crew.write("src/a.py")
    crew.write("b.py")

    made = crew.commit(ann, "a.py", ":/b.py", at=crew.root / "src")

    assert made.paths == ("b.py", "src/a.py")


def test_of_a_link_the_link_itself_is_committed(crew: Crew) -> None:
    ann = crew.agent("ann", "[l]ink", "out")
    (crew.root / "link").symlink_to("README.md")
    (crew.root / "out").symlink_to("/nowhere")

    made = crew.commit(ann, "link", "out")

    assert made.paths == ("link", "out")
    assert crew.git("show", "HEAD:link") == "README.md"


def test_the_hint_for_an_unclaimed_link_leads_to_the_link(crew: Crew) -> None:
    ann = crew.agent("ann", "README.md")
    (crew.root / "link").symlink_to("README.md")

    with refuse(NotAllowed, "NOT_CLAIMED") as refused:
        crew.commit(ann, "link")

    assert "':/[l]ink'" in refused.value.hint


def test_the_first_commit_of_all(crew: Crew) -> None:
    crew.git("checkout", "--quiet", "--orphan", "fresh")
    ann = crew.agent("ann", "first.py")
    crew.write("first.py")

    made = crew.commit(ann, "first.py")

    assert crew.git("rev-list", "HEAD").split() == [made.commit]
    assert made.branch == "fresh"
    assert crew.paths_of() == ["first.py"]
    assert crew.status() == "A  README.md\n"


def test_a_detached_head_moves_on(crew: Crew) -> None:
    crew.git("checkout", "--quiet", "--detach")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")

    made = crew.commit(ann, "a.py")

    assert made.branch == ""
    assert crew.head() == made.commit
    assert crew.git("rev-parse", "main").strip() != made.commit


def test_a_submodule_that_moved_on_is_committed(crew: Crew, tmp_path: Path) -> None:
    crew.git("init", "--quiet", str(tmp_path / "lib"))
    crew.git("commit", "--quiet", "--allow-empty", "-m", "1", at=tmp_path / "lib")
    crew.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    crew.git("commit", "--quiet", "-m", "Add lib")
    crew.git("commit", "--quiet", "--allow-empty", "-m", "2", at=crew.root / "lib")
    ann = crew.agent("ann", "lib")

    assert crew.commit(ann, "lib").paths == ("lib",)
    assert crew.status() == ""


def test_a_repository_inside_is_not_swept_in_with_its_folder(crew: Crew) -> None:
    ann = crew.agent("ann", "vendor")
    crew.write("vendor/a.py")
    crew.git("init", "--quiet", "vendor/inner")
    crew.git("commit", "--quiet", "--allow-empty", "-m", "1", at=crew.root / "vendor/inner")

    assert crew.commit(ann, "vendor").paths == ("vendor/a.py",)


def test_a_sparse_checkout_keeps_what_it_does_not_show(crew: Crew) -> None:
    crew.land("shown/a.py", "1\n")
    crew.land("hidden/b.py", "1\n")
    crew.git("sparse-checkout", "set", "shown")
    ann = crew.agent("ann", "shown")
    crew.write("shown/a.py", "2\n")

    assert crew.commit(ann, ".").paths == ("shown/a.py",)
    assert "hidden/b.py" in crew.git("ls-tree", "-r", "--name-only", "HEAD")
    assert crew.status() == ""


def test_a_file_changed_in_the_instant_the_index_was_written_is_seen(crew: Crew) -> None:
    ann = crew.agent("ann", "a.py")
    for number in range(20):
        crew.write("a.py", f"{number % 10}\n")
        crew.commit(ann, "a.py", may_undo=True)
        assert crew.git("show", "HEAD:a.py") == f"{number % 10}\n"


def test_a_linked_worktree_commits_on_its_own_branch(crew: Crew, tmp_path: Path) -> None:
    other = tmp_path / "other"
    crew.git("worktree", "add", "--quiet", "-b", "interlock/T7-2/work", str(other))
    ann = crew.agent("ann", "a.py")
    crew.write("a.py", at=other)

    made = crew.commit(ann, "a.py", at=other)

    assert made.branch == "interlock/T7-2/work"
    assert made.trailers.task == "T7"
    assert crew.git("status", "--porcelain", at=other) == ""
    assert crew.git("log", "--oneline", "main").count("\n") == 1


def test_a_clone_commits_with_its_own_repository_and_its_branch_comes_home(
    crew: Crew, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    crew.git("clone", "--quiet", str(crew.root), str(clone))
    crew.git("checkout", "--quiet", "-b", "interlock/T7-1/work", at=clone)
    (clone / ".git" / HOME_POINTER).write_text(f"{crew.root / '.git'}\n", encoding="utf-8")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py", at=clone)

    made = crew.commit(ann, "a.py", at=clone)

    assert crew.git("rev-parse", "interlock/T7-1/work").strip() == made.commit
    assert crew.git("log", "--oneline", "main").count("\n") == 1
    assert crew.told == []


# What is refused


def test_nothing_to_commit(crew: Crew) -> None:
    ann = crew.agent("ann", "README.md")
    before = crew.head()

    with refuse(InterlockError, "NOTHING_TO_COMMIT"):
        crew.commit(ann, "README.md")
    assert crew.head() == before


def test_a_path_that_never_was_is_a_mistake(crew: Crew) -> None:
    with refuse(Malformed, "NO_SUCH_PATH"):
        crew.commit(crew.agent("ann", "."), "tpyo.py")


def test_an_ignored_file_is_told_and_not_left_out_in_silence(crew: Crew) -> None:
    crew.land(".gitignore", "*.log\n")
    crew.write("a.log")
    crew.write("a.py")

    with refuse(Malformed, "PATH_IGNORED"):
        crew.commit(crew.agent("ann", "."), "a.py", "a.log")


@pytest.mark.parametrize("text", ["../outside", "/etc/passwd", ".git/config"])
def test_paths_outside_are_refused(crew: Crew, text: str) -> None:
    with pytest.raises(PatternError):
        crew.commit(crew.agent("ann", "."), text)


def test_a_path_in_another_worktree_is_not_taken_for_the_one_here(crew: Crew, tmp_path: Path) -> None:
    crew.git("worktree", "add", "--quiet", str(tmp_path / "other"))
    crew.write("a.py")

    with refuse(PatternError, "PATH_OUTSIDE"):
        crew.commit(crew.agent("ann", "."), str(tmp_path / "other" / "a.py"))


@pytest.mark.parametrize("message", ["", "  \n"])
def test_a_commit_needs_a_message(crew: Crew, message: str) -> None:
    with refuse(Malformed, "NO_MESSAGE"):
        crew.commit(crew.agent("ann"), "README.md", message=message)


@pytest.mark.parametrize(
    "message",
    [
        "x\n\nInterlock-Agent: bob",
        "x\n\ninterlock-agent : bob\n",
        "x\n\nSigned-off-by: a\nInterlock-Session: s-2",
        "Interlock-Token: 7",
        "x\n\nInterlock-Task=T9",
    ],
)
def test_a_message_that_poses_as_another_agent_is_refused(crew: Crew, message: str) -> None:
    ann = crew.agent("ann", "README.md")
    crew.write("README.md")

    with refuse(Malformed, "MESSAGE_POSES"):
        crew.commit(ann, "README.md", message=message)


def test_one_unclaimed_path_refuses_the_whole_commit(crew: Crew) -> None:
    ann = crew.agent("ann", "src/a.py")
    crew.write("src/a.py")
    crew.write("src/b.py")
    before = (crew.head(), crew.status())

    with refuse(NotAllowed, "NOT_CLAIMED") as refused:
        crew.commit(ann, "src")

    assert refused.value.facts["path"] == "src/b.py"
    assert "interlock claim :/src/b.py" in refused.value.hint
    assert (crew.head(), crew.status()) == before


def test_what_another_holds_is_not_ours_to_commit(crew: Crew) -> None:
    crew.agent("bob", "theirs.py", task="T9")
    crew.write("theirs.py")

    with refuse(Held, "CLAIM_HELD") as refused:
        crew.commit(crew.agent("ann", "mine.py"), "theirs.py")

    assert refused.value.facts["holder"] == "bob"
    assert refused.value.facts["until_at"] > 0
    assert refused.value.facts["task"] == "T9"
    assert crew.status() == "?? theirs.py\n"


def test_free_paths_need_no_claim_and_shared_claims_are_enough(crew: Crew) -> None:
    settings = Settings(claims_free=("*.md",))
    ann = crew.agent("ann", settings=settings)
    token = ann.take("CHANGES", is_shared=True).token
    crew.write("README.md", "changed\n")
    crew.write("CHANGES")

    made = crew.commit(ann, "README.md", "CHANGES")

    assert made.trailers.tokens == (token,)


def test_a_sleeper_whose_lease_is_over_cannot_commit(crew: Crew) -> None:
    ann = crew.agent("ann")
    ann.take("src/**", ttl_ms=MINUTE)
    crew.write("src/a.py")
    crew.site.clock.advance(2 * MINUTE)

    with refuse(Stale, "LEASE_OVER"):
        crew.commit(ann, "src/a.py")

    crew.agent("bob", "src/a.py")
    with refuse(Stale, "LEASE_OVER") as refused:
        crew.commit(ann, "src/a.py")
    assert refused.value.facts["holder"] == "bob"


@pytest.mark.parametrize("verb", ["merge", "cherry-pick", "rebase", "revert"])
def test_no_commit_of_single_paths_in_the_middle_of_a_merge(crew: Crew, verb: str) -> None:
    base = crew.head()
    theirs = crew.land("a.py", "theirs\n")
    crew.git("checkout", "--quiet", "-b", "topic", base)
    crew.land("a.py", "ours\n")
    if verb == "revert":
        theirs = crew.head()
        crew.land("a.py", "later\n")
    words = ["git", verb, *(["--no-edit"] if verb in ("merge", "revert") else []), theirs]
    subprocess.run(words, cwd=crew.root, capture_output=True, timeout=30)
    crew.write("a.py", "solved\n")

    with refuse(RepositoryError, "OPERATION_IN_PROGRESS") as refused:
        crew.commit(crew.agent("ann", "a.py"), "a.py")
    assert f"git {verb} --abort" in refused.value.hint


# Trailers


def test_trailers_tell_agent_session_task_and_every_token(crew: Crew) -> None:
    ann = crew.agent("ann")
    tokens = [ann.take("a.py").token, ann.take("b.py", task="T3").token]
    crew.write("a.py")
    crew.write("b.py")

    made = crew.commit(ann, "a.py", "b.py", message="fix: two files\n\nBecause.\n\nSigned-off-by: Ada <a@b>")

    assert crew.message() == (
        "fix: two files\n\nBecause.\n\nSigned-off-by: Ada <a@b>\nInterlock-Agent: ann\n"
        f"Interlock-Session: {ann.session.id}\nInterlock-Task: T3\n"
        f"Interlock-Token: {tokens[0]}\nInterlock-Token: {tokens[1]}\n\n"
    )
    assert made.trailers.tokens == tuple(tokens)
    last = ann.context.repository.last_change("a.py")
    assert (last["agent"], last["session"], last["task"]) == ("ann", ann.session.id, "T3")
    assert last["tokens"] == tokens
    assert crew.git("log", "-1", "--format=%(trailers:key=Interlock-Agent,valueonly)").strip() == "ann"


def test_the_task_given_counts_before_all_others(crew: Crew) -> None:
    ann = crew.agent("ann", "a.py", task="T3")
    crew.write("a.py")

    assert crew.commit(ann, "a.py", task="T8").trailers.task == "T8"


def test_a_users_trailer_settings_move_nothing(crew: Crew) -> None:
    crew.git("config", "trailer.where", "start")
    crew.git("config", "trailer.ifexists", "doNothing")
    ann = crew.agent("ann")
    tokens = (ann.take("a.py").token, ann.take("b.py").token)
    crew.write("a.py")
    crew.write("b.py")

    assert crew.commit(ann, "a.py", "b.py").trailers.tokens == tokens


def test_the_journal_tells_of_the_commit(crew: Crew) -> None:
    ann = crew.agent("ann", "a.py", task="T3")
    crew.write("a.py")

    made = crew.commit(ann, "a.py")

    entry = list(journal.read_entries(ann.context))[-1]
    facts = entry.facts()
    assert (entry.kind, entry.agent) == ("commit.made", "ann")
    assert (facts["commit"], facts["branch"], facts["paths"]) == (made.commit, "main", ["a.py"])
    assert (facts["task"], facts["tokens"]) == ("T3", list(made.trailers.tokens))


# Hooks and signing


def test_all_commit_hooks_run_and_see_what_will_be_committed(crew: Crew) -> None:
    log = crew.root / ".git" / "log"
    for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"):
        crew.hook(name, f'echo {name} "$(git diff --cached --name-only | tr "\\n" " ")" >> "{log}"')
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")
    crew.write("b.py")
    crew.git("add", "b.py")

    made = crew.commit(ann, "a.py")

    lines = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    assert lines == [
        ["pre-commit", "a.py"],
        ["prepare-commit-msg", "a.py"],
        ["commit-msg", "a.py"],
        ["post-commit"],
    ]
    assert made.changed_by_hooks == ()


def test_a_refusing_hook_is_shown_and_leaves_index_and_files_as_they_were(crew: Crew) -> None:
    crew.hook("pre-commit", "echo checking; echo 'line 3: bad taste' >&2; exit 1")
    ann = crew.agent("ann", "new.py", "README.md")
    crew.write("new.py")
    crew.write("README.md", "changed\n")
    crew.write("theirs.py")
    crew.git("add", "theirs.py")
    before = (crew.head(), crew.git("ls-files", "--stage"), crew.status())

    with refuse(InterlockError, "HOOK_REFUSED") as refused:
        crew.commit(ann, "new.py", "README.md")

    assert refused.value.exit_code == 1
    assert "line 3: bad taste" in refused.value.message
    assert refused.value.facts["output"] == "checking\nline 3: bad taste"
    assert (crew.head(), crew.git("ls-files", "--stage"), crew.status()) == before
    assert not list((crew.root / ".git").glob("interlock-index-*"))


def test_a_hooks_endless_output_is_bounded(crew: Crew) -> None:
    crew.hook("commit-msg", "seq 100000; exit 1")
    crew.write("a.py")

    with refuse(InterlockError, "HOOK_REFUSED") as refused:
        crew.commit(crew.agent("ann", "a.py"), "a.py")
    assert len(str(refused.value.facts["output"])) <= 2000
    assert str(refused.value.facts["output"]).endswith("100000")


def test_what_a_hook_makes_of_a_named_path_is_committed(crew: Crew) -> None:
    crew.hook("pre-commit", "echo formatted > a.py; git add a.py")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py", "raw\n")

    made = crew.commit(ann, "a.py")

    assert crew.git("show", "HEAD:a.py") == "formatted\n"
    assert made.changed_by_hooks == ()
    assert crew.status() == ""


def test_what_a_hook_changed_beyond_the_named_paths_is_told(crew: Crew) -> None:
    crew.land("theirs.py", "1\n")
    crew.write("dirty.py")
    crew.hook("pre-commit", "echo x >> theirs.py; echo x >> dirty.py; echo x > fresh.py; rm README.md")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")

    made = crew.commit(ann, "a.py")

    assert made.changed_by_hooks == ("README.md", "dirty.py", "fresh.py", "theirs.py")
    assert crew.paths_of() == ["a.py"]


def test_a_hook_cannot_slip_other_paths_into_a_commit(crew: Crew) -> None:
    crew.write("theirs.py")
    crew.hook("pre-commit", "git add theirs.py")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")
    before = (crew.head(), crew.git("ls-files", "--stage"), crew.status())

    with refuse(InterlockError, "HOOK_ADDED_PATHS") as refused:
        crew.commit(ann, "a.py")

    assert refused.value.facts["paths"] == ["theirs.py"]
    assert (crew.head(), crew.git("ls-files", "--stage"), crew.status()) == before


def test_a_hook_may_add_what_lies_below_a_named_folder_and_is_claimed(crew: Crew) -> None:
    crew.hook("pre-commit", "echo x > src/generated.py; git add src/generated.py")
    ann = crew.agent("ann", "src")
    crew.write("src/a.py")

    assert crew.commit(ann, "src").paths == ("src/a.py", "src/generated.py")
    assert crew.status() == ""


@pytest.mark.parametrize(
    "script", ["echo only this > $1", "sed -i 's/^Interlock-Agent: .*/Interlock-Agent: bob/' $1"]
)
def test_a_hook_cannot_change_whose_commit_it_is(crew: Crew, script: str) -> None:
    crew.hook("commit-msg", script)
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")
    before = crew.head()

    with refuse(InterlockError, "HOOK_CHANGED_TRAILERS"):
        crew.commit(ann, "a.py")
    assert crew.head() == before


def test_a_hook_may_add_a_paragraph_below_the_trailers(crew: Crew) -> None:
    crew.hook("commit-msg", "printf '\\nRefs: #12, by hand\\n' >> $1")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")

    crew.commit(ann, "a.py")

    assert ann.context.repository.last_change("a.py")["agent"] == "ann"


def test_hooks_of_a_folder_in_the_settings_run(crew: Crew) -> None:
    crew.write("hooks/pre-commit", "#!/bin/sh\nexit 1\n")
    (crew.root / "hooks/pre-commit").chmod(0o755)
    crew.git("config", "core.hooksPath", "hooks")
    crew.write("a.py")

    with refuse(InterlockError, "HOOK_REFUSED"):
        crew.commit(crew.agent("ann", "a.py"), "a.py")


def test_a_hook_sees_the_environment_of_its_user(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    log = crew.root / ".git" / "log"
    crew.hook("pre-commit", f'echo "$LC_ALL $GIT_LITERAL_PATHSPECS $GIT_OPTIONAL_LOCKS" > "{log}"')
    crew.write("a.py")

    crew.commit(crew.agent("ann", "a.py"), "a.py")

    assert log.read_text(encoding="utf-8").strip() == "C.UTF-8"


def test_a_hook_that_leaves_something_running_does_not_hold_us(crew: Crew) -> None:
    crew.hook("post-commit", "sleep 20 &")
    crew.write("a.py")
    begun = time.monotonic()

    crew.commit(crew.agent("ann", "a.py"), "a.py")

    assert time.monotonic() - begun < 10


def test_what_runs_under_the_lock_and_wants_it_is_refused_at_once(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = str(crew.root / ".git")
    begun = time.monotonic()
    with git_lock(common, "outer"):
        for name, text in under_lock(common).items():
            monkeypatch.setenv(name, text)
        with refuse(TimedOut, "GIT_BUSY"), git_lock(common, "inner"):
            pass

    assert time.monotonic() - begun < 5
    with git_lock(common, "later"):  # the variable outlives the lock in what a hook left running
        pass


def test_commits_are_signed_as_the_settings_say(crew: Crew, tmp_path: Path) -> None:
    program = tmp_path / "sign"
    program.write_text(
        "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nsigned\\n-----END PGP SIGNATURE-----\\n'\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    crew.git("config", "gpg.program", str(program))
    crew.git("config", "commit.gpgsign", "true")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")

    crew.commit(ann, "a.py")
    assert "gpgsig -----BEGIN PGP SIGNATURE-----" in crew.git("cat-file", "commit", "HEAD")

    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    crew.write("a.py", "more\n")
    before = (crew.head(), crew.status())
    with refuse(RepositoryError, "COMMIT_FAILED"):
        crew.commit(ann, "a.py")
    assert (crew.head(), crew.status()) == before


# What landed meanwhile


def test_an_old_tree_on_a_new_base_takes_nothing_back(crew: Crew) -> None:
    base = crew.head()
    crew.land("peer.py", "theirs\n")
    crew.land("README.md", "theirs\n")
    crew.git("branch", "landed")
    crew.git("reset", "--quiet", "--hard", base)
    ann = crew.agent("ann", ".")
    crew.write("mine.py")
    crew.git("reset", "--soft", "landed")

    with refuse(Stale, "WOULD_REVERT") as refused:
        crew.commit(ann, ".")
    assert {one["path"] for one in refused.value.facts["undone"]} == {"peer.py", "README.md"}

    made = crew.commit(ann, "mine.py")
    assert crew.paths_of() == ["mine.py"]
    assert made.left_alone == 2
    assert "peer.py" in crew.told[-1]


def test_an_old_tree_after_a_mixed_reset_is_seen_as_well(crew: Crew) -> None:
    base = crew.head()
    landed = crew.land("peer.py", "theirs\n")
    crew.git("reset", "--quiet", "--hard", base)
    crew.write("mine.py")
    crew.git("reset", "--quiet", landed)

    with refuse(Stale, "WOULD_REVERT") as refused:
        crew.commit(crew.agent("ann", "."), ".")
    assert refused.value.facts["undone"] == [{"path": "peer.py", "commits": [landed], "subject": "Theirs"}]


def test_an_old_copy_of_a_file_is_refused_unless_undoing_is_meant(crew: Crew) -> None:
    crew.land("a.py", "1\n")
    second = crew.land("a.py", "2\n", "Second")
    third = crew.land("a.py", "3\n", "Third")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py", "1\n")

    with refuse(Stale, "WOULD_REVERT") as refused:
        crew.commit(ann, "a.py")
    assert refused.value.exit_code == 4
    assert refused.value.facts["undone"][0]["commits"] == [third, second]
    assert "Third" in refused.value.message

    crew.commit(ann, "a.py", may_undo=True)
    assert crew.git("show", "HEAD:a.py") == "1\n"


def test_a_file_that_others_deleted_does_not_come_back_by_itself(crew: Crew) -> None:
    crew.land("a.py", "1\n")
    crew.git("rm", "--quiet", "a.py")
    crew.git("commit", "--quiet", "-m", "Remove it")
    crew.write("a.py", "1\n")

    with refuse(Stale, "WOULD_REVERT"):
        crew.commit(crew.agent("ann", "a.py"), "a.py")


def test_undoing_ones_own_commit_needs_no_leave(crew: Crew) -> None:
    ann = crew.agent("ann", "README.md")
    before = (crew.root / "README.md").read_text(encoding="utf-8")
    crew.write("README.md", "tried\n")
    crew.commit(ann, "README.md")
    crew.write("README.md", before)

    crew.commit(ann, "README.md")

    assert crew.git("show", "HEAD:README.md") == before


def test_deleting_an_old_file_of_others_is_no_undoing(crew: Crew) -> None:
    crew.land("old.py", "1\n")
    crew.land("later.py", "2\n")
    ann = crew.agent("ann", "old.py")
    crew.git("rm", "--quiet", "old.py")

    assert crew.commit(ann, "old.py").paths == ("old.py",)


def test_what_a_merge_brought_is_protected_too(crew: Crew) -> None:
    crew.git("checkout", "--quiet", "-b", "topic")
    crew.land("README.md", "topic\n")
    crew.git("checkout", "--quiet", "main")
    crew.land("b.py", "1\n")
    crew.git("merge", "--quiet", "--no-edit", "topic")
    crew.write("README.md", "# A repository for tests\n")

    with refuse(Stale, "WOULD_REVERT"):
        crew.commit(crew.agent("ann", "README.md"), "README.md")


# Others at work


def test_a_commit_by_plain_git_in_the_middle_is_not_undone(crew: Crew) -> None:
    # The hook stands for a person who commits while ours is under way.
    crew.hook(
        "pre-commit",
        "test -e .git/once && exit 0\ntouch .git/once\nunset GIT_INDEX_FILE\n"
        "echo 1 > person.py; git add person.py; git commit --quiet --no-verify -m Person",
    )
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")

    crew.commit(ann, "a.py")

    assert crew.paths_of() == ["a.py"]
    assert crew.git("log", "-3", "--format=%s").split() == ["Work", "Person", "Begin"]
    assert "person.py" in crew.git("ls-tree", "--name-only", "HEAD")


def test_a_commit_by_plain_git_between_our_look_and_gits_is_not_undone(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = git.make_commit

    def after_a_person(*arguments: Any) -> Output:
        monkeypatch.setattr(git, "make_commit", really)
        crew.land("person.py", "1\n", "Person")
        return really(*arguments)

    monkeypatch.setattr(git, "make_commit", after_a_person)
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")

    crew.commit(ann, "a.py")

    assert crew.git("log", "-3", "--format=%s").split() == ["Work", "Person", "Begin"]
    assert crew.paths_of() == ["a.py"]
    assert crew.status() == ""


def test_a_lock_that_a_killed_git_left_on_the_index_is_removed(crew: Crew) -> None:
    lock = crew.root / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 60, time.time() - 60))
    crew.write("a.py")

    crew.commit(crew.agent("ann", "a.py"), "a.py")

    assert not lock.exists()
    assert crew.status() == ""


def test_a_lock_on_the_index_that_somebody_has_is_left_and_its_owner_named(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.git.index_locks._LIMIT_SECONDS", 0.2)
    lock = crew.root / ".git" / "index.lock"
    with lock.open("w") as file, subprocess.Popen(["sleep", "60"], stdout=file) as owner:
        os.utime(lock, (time.time() - 60, time.time() - 60))
        crew.write("a.py")
        try:
            with refuse(RepositoryError, "INDEX_LOCKED") as refused:
                crew.commit(crew.agent("ann", "a.py"), "a.py")
        finally:
            owner.kill()

    assert f"process {owner.pid} (sleep)" in refused.value.message
    assert lock.exists()


def test_what_a_cut_off_commit_left_is_swept_away(crew: Crew) -> None:
    left = crew.root / ".git" / "interlock-index-4194999"
    left.touch()
    crew.write("a.py")

    crew.commit(crew.agent("ann", "a.py"), "a.py")

    assert not left.exists()


def test_a_long_hook_is_a_sign_of_life(crew: Crew) -> None:
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")
    crew.site.clock.advance(4 * MINUTE)

    crew.commit(ann, "a.py")

    (row,) = crew.site.rows("session_get", session=ann.session.id)
    assert row[9] == crew.site.now()

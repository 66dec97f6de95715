"""Hooks, signing and other git processes around a commit: what they may do, and what it does about them."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import (
    LandlaneError,
    RepositoryError,
    TimedOut,
)
from landlane.git import commit_paths as git
from landlane.git.lock import git_lock, lock_environment
from tests.support.commits import CommitTestbed, raises_code
from tests.support.project import MINUTE

if TYPE_CHECKING:
    from landlane.git.run import GitResult

pytestmark = pytest.mark.integration


def test_all_commit_hooks_run_and_see_what_will_be_committed(commit_testbed: CommitTestbed) -> None:
    log = commit_testbed.root / ".git" / "log"
    for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"):
        commit_testbed.hook(name, f'echo {name} "$(git diff --cached --name-only | tr "\\n" " ")" >> "{log}"')
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")
    commit_testbed.write("b.py")
    commit_testbed.git("add", "b.py")

    made = commit_testbed.commit(ann, "a.py")

    lines = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    assert lines == [
        ["pre-commit", "a.py"],
        ["prepare-commit-msg", "a.py"],
        ["commit-msg", "a.py"],
        ["post-commit"],
    ]
    assert made.changed_by_hooks == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((f"GIT_{kind}_PATHSPECS", "1") for kind in ("ICASE", "GLOB", "NOGLOB", "LITERAL")),
        ("GIT_OBJECT_DIRECTORY", "/nowhere"),
        ("GIT_QUARANTINE_PATH", "/nowhere"),
        ("GIT_EXTERNAL_DIFF", "false"),
        ("GIT_DIFF_OPTS", "-u0"),
        ("GIT_NAMESPACE", "other"),
    ],
)
def test_variables_that_change_what_git_means_do_not_reach_it(
    commit_testbed: CommitTestbed, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")
    monkeypatch.setenv(name, text)

    made = commit_testbed.commit(ann, "a.py")

    monkeypatch.delenv(name)
    assert made.commit == commit_testbed.head()


def test_a_refusing_hook_is_shown_and_leaves_index_and_files_as_they_were(
    commit_testbed: CommitTestbed,
) -> None:
    commit_testbed.hook("pre-commit", "echo checking; echo 'line 3: bad taste' >&2; exit 1")
    ann = commit_testbed.agent("ann", "new.py", "README.md")
    commit_testbed.write("new.py")
    commit_testbed.write("README.md", "changed\n")
    commit_testbed.write("theirs.py")
    commit_testbed.git("add", "theirs.py")
    before = (commit_testbed.head(), commit_testbed.git("ls-files", "--stage"), commit_testbed.status())

    with raises_code(LandlaneError, "HOOK_REFUSED") as refused:
        commit_testbed.commit(ann, "new.py", "README.md")

    assert refused.value.exit_code == 1
    assert "line 3: bad taste" in refused.value.message
    assert refused.value.facts["output"] == "checking\nline 3: bad taste"
    assert (
        commit_testbed.head(),
        commit_testbed.git("ls-files", "--stage"),
        commit_testbed.status(),
    ) == before
    assert not list((commit_testbed.root / ".git").glob("landlane-index-*"))


def test_a_hooks_endless_output_is_bounded(commit_testbed: CommitTestbed) -> None:
    commit_testbed.hook("commit-msg", "seq 100000; exit 1")
    commit_testbed.write("a.py")

    with raises_code(LandlaneError, "HOOK_REFUSED") as refused:
        commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")
    assert len(str(refused.value.facts["output"])) <= 2000
    assert str(refused.value.facts["output"]).endswith("100000")


def test_changes_by_a_hook_to_named_paths_are_committed(commit_testbed: CommitTestbed) -> None:
    commit_testbed.hook("pre-commit", "echo formatted > a.py; git add a.py")
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py", "raw\n")

    made = commit_testbed.commit(ann, "a.py")

    assert commit_testbed.git("show", "HEAD:a.py") == "formatted\n"
    assert made.changed_by_hooks == ()
    assert commit_testbed.status() == ""


def test_changes_by_a_hook_to_other_paths_are_reported(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land("theirs.py", "1\n")
    commit_testbed.write("dirty.py")
    commit_testbed.hook(
        "pre-commit", "echo x >> theirs.py; echo x >> dirty.py; echo x > fresh.py; rm README.md"
    )
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")

    made = commit_testbed.commit(ann, "a.py")

    assert made.changed_by_hooks == ("README.md", "dirty.py", "fresh.py", "theirs.py")
    assert commit_testbed.paths_of() == ["a.py"]


def test_a_hook_cannot_slip_other_paths_into_a_commit(commit_testbed: CommitTestbed) -> None:
    commit_testbed.write("theirs.py")
    commit_testbed.hook("pre-commit", "git add theirs.py")
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")
    before = (commit_testbed.head(), commit_testbed.git("ls-files", "--stage"), commit_testbed.status())

    with raises_code(LandlaneError, "HOOK_ADDED_PATHS") as refused:
        commit_testbed.commit(ann, "a.py")

    assert refused.value.facts["paths"] == ["theirs.py"]
    assert (
        commit_testbed.head(),
        commit_testbed.git("ls-files", "--stage"),
        commit_testbed.status(),
    ) == before


def test_a_hook_may_add_what_lies_below_a_named_folder_and_is_claimed(commit_testbed: CommitTestbed) -> None:
    commit_testbed.hook("pre-commit", "echo x > src/generated.py; git add src/generated.py")
    ann = commit_testbed.agent("ann", "src")
    commit_testbed.write("src/a.py")

    assert commit_testbed.commit(ann, "src").paths == ("src/a.py", "src/generated.py")
    assert commit_testbed.status() == ""


@pytest.mark.parametrize(
    "script", ["echo only this > $1", "sed -i 's/^Landlane-Agent: .*/Landlane-Agent: bob/' $1"]
)
def test_a_hook_cannot_change_the_trailers(commit_testbed: CommitTestbed, script: str) -> None:
    commit_testbed.hook("commit-msg", script)
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")
    before = commit_testbed.head()

    with raises_code(LandlaneError, "HOOK_CHANGED_TRAILERS"):
        commit_testbed.commit(ann, "a.py")
    assert commit_testbed.head() == before


def test_a_hook_may_add_a_paragraph_below_the_trailers(commit_testbed: CommitTestbed) -> None:
    commit_testbed.hook("commit-msg", "printf '\\nRefs: #12, by hand\\n' >> $1")
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")

    commit_testbed.commit(ann, "a.py")

    assert ann.repo.git.last_change("a.py")["agent"] == "ann"


def test_hooks_of_a_folder_in_the_settings_run(commit_testbed: CommitTestbed) -> None:
    commit_testbed.write("hooks/pre-commit", "#!/bin/sh\nexit 1\n")
    (commit_testbed.root / "hooks/pre-commit").chmod(0o755)
    commit_testbed.git("config", "core.hooksPath", "hooks")
    commit_testbed.write("a.py")

    with raises_code(LandlaneError, "HOOK_REFUSED"):
        commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")


def test_a_hook_sees_the_environment_of_its_user(
    commit_testbed: CommitTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    log = commit_testbed.root / ".git" / "log"
    commit_testbed.hook("pre-commit", f'echo "$LC_ALL $GIT_LITERAL_PATHSPECS $GIT_OPTIONAL_LOCKS" > "{log}"')
    commit_testbed.write("a.py")

    commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")

    assert log.read_text(encoding="utf-8").strip() == "C.UTF-8"


def test_a_background_process_of_a_hook_does_not_block_the_commit(commit_testbed: CommitTestbed) -> None:
    commit_testbed.hook("post-commit", "sleep 20 &")
    commit_testbed.write("a.py")
    begun = time.monotonic()

    commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")

    assert time.monotonic() - begun < 10


def _try_lock(common: str) -> None:
    with git_lock(common, "inner"):
        pass


def test_a_nested_request_for_the_lock_is_refused_at_once(
    commit_testbed: CommitTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = str(commit_testbed.root / ".git")
    begun = time.monotonic()
    with git_lock(common, "outer"):
        for name, text in lock_environment(common).items():
            monkeypatch.setenv(name, text)
        with ThreadPoolExecutor() as another:  # the very thread that has the lock may go on under it
            refusal = another.submit(_try_lock, common).exception()
        assert isinstance(refusal, TimedOut)
        assert refusal.code == "GIT_BUSY"
        _try_lock(common)

    assert time.monotonic() - begun < 5
    with git_lock(common, "later"):  # the variable outlives the lock in what a hook left running
        pass


def test_commits_are_signed_as_the_settings_say(commit_testbed: CommitTestbed, tmp_path: Path) -> None:
    program = tmp_path / "sign"
    program.write_text(
        "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nsigned\\n-----END PGP SIGNATURE-----\\n'\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    commit_testbed.git("config", "gpg.program", str(program))
    commit_testbed.git("config", "commit.gpgsign", "true")
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")

    commit_testbed.commit(ann, "a.py")
    assert "gpgsig -----BEGIN PGP SIGNATURE-----" in commit_testbed.git("cat-file", "commit", "HEAD")

    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    commit_testbed.write("a.py", "more\n")
    before = (commit_testbed.head(), commit_testbed.status())
    with raises_code(RepositoryError, "COMMIT_FAILED"):
        commit_testbed.commit(ann, "a.py")
    assert (commit_testbed.head(), commit_testbed.status()) == before


def test_a_plain_git_commit_during_a_hook_is_not_undone(commit_testbed: CommitTestbed) -> None:
    # The hook stands for a person who commits while ours is under way.
    commit_testbed.hook(
        "pre-commit",
        "test -e .git/once && exit 0\ntouch .git/once\nunset GIT_INDEX_FILE\n"
        "echo 1 > person.py; git add person.py; git commit --quiet --no-verify -m Person",
    )
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")

    commit_testbed.commit(ann, "a.py")

    assert commit_testbed.paths_of() == ["a.py"]
    assert commit_testbed.git("log", "-3", "--format=%s").split() == ["Work", "Person", "Begin"]
    assert "person.py" in commit_testbed.git("ls-tree", "--name-only", "HEAD")


def test_a_plain_git_commit_after_the_check_is_not_undone(
    commit_testbed: CommitTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = git.make_commit

    def after_a_person(*arguments: Any) -> GitResult:
        monkeypatch.setattr(git, "make_commit", really)
        commit_testbed.land("person.py", "1\n", "Person")
        return really(*arguments)

    monkeypatch.setattr(git, "make_commit", after_a_person)
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")

    commit_testbed.commit(ann, "a.py")

    assert commit_testbed.git("log", "-3", "--format=%s").split() == ["Work", "Person", "Begin"]
    assert commit_testbed.paths_of() == ["a.py"]
    assert commit_testbed.status() == ""


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_that_a_killed_git_left_is_removed(commit_testbed: CommitTestbed, name: str) -> None:
    lock = commit_testbed.root / ".git" / name
    lock.touch()
    os.utime(lock, (time.time() - 60, time.time() - 60))
    commit_testbed.write("a.py")

    commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")

    assert not lock.exists()
    assert commit_testbed.status() == ""


def test_an_index_lock_in_use_is_kept_and_its_owner_named(
    commit_testbed: CommitTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.git.lock._LOCK_FILE_LIMIT_SECONDS", 0.2)
    lock = commit_testbed.root / ".git" / "index.lock"
    with lock.open("w") as file, subprocess.Popen(["sleep", "60"], stdout=file) as owner:
        os.utime(lock, (time.time() - 60, time.time() - 60))
        commit_testbed.write("a.py")
        try:
            with raises_code(RepositoryError, "GIT_LOCKED") as refused:
                commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")
        finally:
            owner.kill()

    assert f"process {owner.pid} (sleep)" in refused.value.message
    assert lock.exists()


def test_leftovers_of_an_interrupted_commit_are_removed(commit_testbed: CommitTestbed) -> None:
    left = commit_testbed.root / ".git" / "landlane-index-4194999"
    left.touch()
    commit_testbed.write("a.py")

    commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")

    assert not left.exists()


def test_the_next_commit_finishes_one_killed_before_the_index_update(
    commit_testbed: CommitTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = commit_testbed.agent("ann", "a.py", "b.py", "README.md")
    commit_testbed.write("a.py")
    commit_testbed.write("README.md", "changed\n")
    commit_testbed.write("theirs.py")
    commit_testbed.git("add", "theirs.py")

    def die(*_: object) -> str:
        private = next((commit_testbed.root / ".git").glob("landlane-index-*"))
        private.rename(private.with_name("landlane-index-4194999"))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(git, "update_index", die)
        with pytest.raises(KeyboardInterrupt):
            commit_testbed.commit(ann, "a.py", "README.md")
    assert commit_testbed.paths_of() == ["README.md", "a.py"]
    assert commit_testbed.status().startswith("MM README.md\n")
    commit_testbed.write("b.py")

    commit_testbed.commit(ann, "b.py")

    assert commit_testbed.paths_of() == ["b.py"]
    assert commit_testbed.status() == "A  theirs.py\n"


def test_a_long_hook_is_a_sign_of_life(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")
    commit_testbed.project.clock.advance(4 * MINUTE)

    commit_testbed.commit(ann, "a.py")

    (row,) = commit_testbed.project.rows("session_get", session=ann.session.id)
    assert row["seen_at"] == commit_testbed.project.now()

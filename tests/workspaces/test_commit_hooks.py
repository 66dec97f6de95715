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
from tests.support.committing import Crew, refuse
from tests.support.sites import MINUTE

if TYPE_CHECKING:
    from landlane.git.run import GitResult

pytestmark = pytest.mark.integration


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

    with refuse(LandlaneError, "HOOK_REFUSED") as refused:
        crew.commit(ann, "new.py", "README.md")

    assert refused.value.exit_code == 1
    assert "line 3: bad taste" in refused.value.message
    assert refused.value.facts["output"] == "checking\nline 3: bad taste"
    assert (crew.head(), crew.git("ls-files", "--stage"), crew.status()) == before
    assert not list((crew.root / ".git").glob("landlane-index-*"))


def test_a_hooks_endless_output_is_bounded(crew: Crew) -> None:
    crew.hook("commit-msg", "seq 100000; exit 1")
    crew.write("a.py")

    with refuse(LandlaneError, "HOOK_REFUSED") as refused:
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

    with refuse(LandlaneError, "HOOK_ADDED_PATHS") as refused:
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
    "script", ["echo only this > $1", "sed -i 's/^Landlane-Agent: .*/Landlane-Agent: bob/' $1"]
)
def test_a_hook_cannot_change_whose_commit_it_is(crew: Crew, script: str) -> None:
    crew.hook("commit-msg", script)
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")
    before = crew.head()

    with refuse(LandlaneError, "HOOK_CHANGED_TRAILERS"):
        crew.commit(ann, "a.py")
    assert crew.head() == before


def test_a_hook_may_add_a_paragraph_below_the_trailers(crew: Crew) -> None:
    crew.hook("commit-msg", "printf '\\nRefs: #12, by hand\\n' >> $1")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")

    crew.commit(ann, "a.py")

    assert ann.repo.git.last_change("a.py")["agent"] == "ann"


def test_hooks_of_a_folder_in_the_settings_run(crew: Crew) -> None:
    crew.write("hooks/pre-commit", "#!/bin/sh\nexit 1\n")
    (crew.root / "hooks/pre-commit").chmod(0o755)
    crew.git("config", "core.hooksPath", "hooks")
    crew.write("a.py")

    with refuse(LandlaneError, "HOOK_REFUSED"):
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


def _try_lock(common: str) -> None:
    with git_lock(common, "inner"):
        pass


def test_what_runs_under_the_lock_and_wants_it_is_refused_at_once(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = str(crew.root / ".git")
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

    def after_a_person(*arguments: Any) -> GitResult:
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


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_that_a_killed_git_left_is_removed(crew: Crew, name: str) -> None:
    lock = crew.root / ".git" / name
    lock.touch()
    os.utime(lock, (time.time() - 60, time.time() - 60))
    crew.write("a.py")

    crew.commit(crew.agent("ann", "a.py"), "a.py")

    assert not lock.exists()
    assert crew.status() == ""


def test_a_lock_on_the_index_that_somebody_has_is_left_and_its_owner_named(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.git.stale_locks._LIMIT_SECONDS", 0.2)
    lock = crew.root / ".git" / "index.lock"
    with lock.open("w") as file, subprocess.Popen(["sleep", "60"], stdout=file) as owner:
        os.utime(lock, (time.time() - 60, time.time() - 60))
        crew.write("a.py")
        try:
            with refuse(RepositoryError, "GIT_LOCKED") as refused:
                crew.commit(crew.agent("ann", "a.py"), "a.py")
        finally:
            owner.kill()

    assert f"process {owner.pid} (sleep)" in refused.value.message
    assert lock.exists()


def test_what_a_cut_off_commit_left_is_swept_away(crew: Crew) -> None:
    left = crew.root / ".git" / "landlane-index-4194999"
    left.touch()
    crew.write("a.py")

    crew.commit(crew.agent("ann", "a.py"), "a.py")

    assert not left.exists()


def test_a_commit_that_was_cut_off_before_the_index_followed_is_finished_by_the_next(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = crew.agent("ann", "a.py", "b.py", "README.md")
    crew.write("a.py")
    crew.write("README.md", "changed\n")
    crew.write("theirs.py")
    crew.git("add", "theirs.py")

    def die(*_: object) -> str:
        private = next((crew.root / ".git").glob("landlane-index-*"))
        private.rename(private.with_name("landlane-index-4194999"))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(git, "update_index", die)
        with pytest.raises(KeyboardInterrupt):
            crew.commit(ann, "a.py", "README.md")
    assert crew.paths_of() == ["README.md", "a.py"]
    assert crew.status().startswith("MM README.md\n")
    crew.write("b.py")

    crew.commit(ann, "b.py")

    assert crew.paths_of() == ["b.py"]
    assert crew.status() == "A  theirs.py\n"


def test_a_long_hook_is_a_sign_of_life(crew: Crew) -> None:
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")
    crew.site.clock.advance(4 * MINUTE)

    crew.commit(ann, "a.py")

    (row,) = crew.site.rows("session_get", session=ann.session.id)
    assert row["seen_at"] == crew.site.now()

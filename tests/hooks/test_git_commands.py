"""How far git commands reach, by their words alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.hooks.git_command.verb_rules import Reach, judge_git

pytestmark = pytest.mark.unit

SAFE_CALLS = """
status
log --oneline -5
diff -- src
--version

add
add -n .
branch
branch -d merged
branch topic
checkout
clean -nfd
clean --dry-run
commit --dry-run
config core.bare
config --get core.hooksPath
config user.name Ann
config --global core.hooksPath hooks
fetch origin
gc
gc --auto
push
push origin main
push -u origin topic
reflog
reflog show
restore
stash list
stash show -p
symbolic-ref HEAD
worktree list
worktree remove ../w
worktree add ../w
update-ref refs/notes/x abc
checkout --help
switch -h
bisect log
submodule status
frobnicate --all
"""

WHOLE_CALLS = """
checkout topic
checkout -b topic
checkout -f
checkout --detach
checkout main --
checkout -- .
checkout HEAD -- :/
checkout HEAD .
switch topic
switch -c topic
restore .
restore :/
restore *.py
restore ./
restore --staged .
restore --pathspec-from-file=list
reset
reset --hard
reset --har
reset --hard HEAD~1
reset --merge
reset --keep HEAD~1
reset --soft HEAD~1
reset HEAD
clean -fd
clean -fdx
clean -f .
stash
stash push -- a.py
stash -u
stash pop
stash apply
stash drop
stash clear
add -A
add --all
add .
add -u
add :!a.py
add -p
commit
commit -m message
commit -am message
commit -a
commit --amend
commit --amend a.py
commit -i a.py
commit -m message .
rm -r .
rm -rf :/
merge topic
merge --abort
rebase main
pull
pull --rebase
cherry-pick abc
revert abc
am patch
apply patch
push --force
push -f
push -fu origin main
push --force-with-lease
push origin +main
push origin :main
push --delete origin main
push --mirror
branch -D topic
branch -f main HEAD~1
branch --delete --force topic
branch -M main
worktree remove --force ../w
worktree remove -f ../w
worktree prune
gc --prune=now
gc --prune=all --quiet
prune
prune --expire=now
repack -ad
reflog expire --all --expire=now
reflog delete HEAD@{0}
update-ref refs/heads/main abc
update-ref -d refs/heads/topic
update-ref --stdin
symbolic-ref HEAD refs/heads/topic
read-tree -u -m HEAD topic
read-tree HEAD
checkout-index -f -a
filter-branch --all
bisect start
submodule update
sparse-checkout set src
config core.bare true
config --unset core.worktree
config CORE.HOOKSPATH /dev/null
config set core.bare true
"""


@pytest.mark.parametrize("call", SAFE_CALLS.strip("\n").splitlines())
def test_reading_verbs_are_safe(call: str) -> None:
    assert judge_git(call.split()).reach == Reach.SAFE


@pytest.mark.parametrize("call", WHOLE_CALLS.strip("\n").splitlines())
def test_what_hits_everybody_says_why_and_what_to_do_instead(call: str) -> None:
    found = judge_git(call.split())

    assert found.reach == Reach.WHOLE_TREE
    assert found.why
    assert found.scoped_form


@pytest.mark.parametrize(
    ("call", "paths"),
    [
        ("checkout -- a.py", ("a.py",)),
        ("checkout HEAD~1 -- a.py b.py", ("a.py", "b.py")),
        ("checkout HEAD a.py", ("HEAD", "a.py")),
        ("restore a.py", ("a.py",)),
        ("restore --source HEAD~2 a.py", ("a.py",)),
        ("restore -s HEAD~2 --staged a.py", ("a.py",)),
        ("restore -sHEAD~2 a.py", ("a.py",)),
        ("reset -- a.py", ("a.py",)),
        ("reset HEAD a.py", ("HEAD", "a.py")),
        ("clean -f -- build", ("build",)),
        ("clean -f -e keep build", ("build",)),
        ("add a.py", ("a.py",)),
        ("add -A src", ("src",)),
        ("add src/*.py", ("src",)),
        ("add :(top)src/a.py", (":/src/a.py",)),
        ("add :/src/a.py", (":/src/a.py",)),
        ("add :(literal)a.py", ("a.py",)),
        ("commit -m message a.py", ("a.py",)),
        ("commit -mmessage -- a.py", ("a.py",)),
        ("commit --message message --only a.py", ("a.py",)),
        ("commit --mess message a.py", ("a.py",)),
        ("commit -F text a.py", ("a.py",)),
        ("rm a.py", ("a.py",)),
        ("mv a.py b.py", ("a.py", "b.py")),
        ("update-index --add a.py", ("a.py",)),
    ],
)
def test_what_names_its_paths_hits_only_these(call: str, paths: tuple[str, ...]) -> None:
    found = judge_git(call.split())

    assert (found.reach, found.paths) == (Reach.SCOPED, paths)


def test_global_options_of_git_are_parsed_first() -> None:
    found = judge_git(["-C", "a", "--no-pager", "-c", "x.y=z", "-C", "b", "--work-tree=w", "switch", "t"])

    assert found.reach == Reach.WHOLE_TREE
    assert found.verb == "switch"
    assert found.folders == ("a", "b")
    assert found.work_tree == "w"


def test_alias_is_checked_by_its_expansion() -> None:
    aliases = {"co": "checkout", "undo": "-C sub reset --hard", "st": "status -sb", "open": "restore 'a"}

    def judge(*words: str) -> tuple[str, str]:
        found = judge_git(words, lambda verb: aliases.get(verb, ""))
        return found.verb, found.reach

    assert judge("co", "topic") == ("checkout", Reach.WHOLE_TREE)
    assert judge("co", "--", "a.py") == ("checkout", Reach.SCOPED)
    assert judge("undo") == ("reset", Reach.WHOLE_TREE)
    assert judge("st") == ("status", Reach.SAFE)
    assert judge("open") == ("restore", Reach.SCOPED)
    assert judge("-c", "alias.x=clean -fd", "x") == ("clean", Reach.WHOLE_TREE)
    assert judge("-c", "alias.X=!rm -rf .", "x") == ("x", Reach.WHOLE_TREE)


def test_recursive_alias_ends() -> None:
    assert judge_git(["a"], lambda verb: "a").reach == Reach.SAFE


def test_an_alias_cannot_make_a_dangerous_verb_look_safe() -> None:
    assert judge_git(["reset", "--hard"], lambda _: "status").reach == Reach.WHOLE_TREE


def test_refs_objects_stash_and_settings_are_everybodys() -> None:
    assert judge_git(["stash"]).hits_repository
    assert judge_git(["gc", "--prune=now"]).hits_repository
    assert not judge_git(["switch", "t"]).hits_repository
    assert not judge_git(["stash", "list"]).hits_repository


WORDS = st.one_of(
    st.sampled_from(
        [
            *(
                "-C",
                "-c",
                "--git-dir",
                "--",
                "-",
                "--=",
                "=",
                ".",
                ":",
                ":(",
                ":(top",
                ":/",
                ":!",
                "",
                "-m",
                "-fdx",
            ),
            *{word for call in (SAFE_CALLS + WHOLE_CALLS).split("\n") for word in call.split()},
        ]
    ),
    st.text(max_size=6),
)


@given(st.lists(WORDS, max_size=8), st.text(max_size=12))
def test_no_words_make_it_fail(words: list[str], alias: str) -> None:
    found = judge_git(words, lambda _: alias)

    assert found.reach in (Reach.SAFE, Reach.SCOPED, Reach.WHOLE_TREE)
    assert bool(found.why) == bool(found.scoped_form) == (found.reach == Reach.WHOLE_TREE)
    assert bool(found.paths) == (found.reach == Reach.SCOPED)
    assert all(path not in ("", ".", "..") for path in found.paths)

"""How far git commands reach, by their words alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.hooks.git_command.verb_rules import SAFE, SCOPED, WHOLE_TREE, judge_git

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
def test_who_looks_hits_nobody(call: str) -> None:
    assert judge_git(call.split()).kind == SAFE


@pytest.mark.parametrize("call", WHOLE_CALLS.strip("\n").splitlines())
def test_what_hits_everybody_says_why_and_what_to_do_instead(call: str) -> None:
    verdict = judge_git(call.split())

    assert verdict.kind == WHOLE_TREE
    assert verdict.why
    assert verdict.scoped_form


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
    verdict = judge_git(call.split())

    assert (verdict.kind, verdict.paths) == (SCOPED, paths)


def test_options_of_git_itself_are_read_first() -> None:
    verdict = judge_git(["-C", "a", "--no-pager", "-c", "x.y=z", "-C", "b", "--work-tree=w", "switch", "t"])

    assert verdict.kind == WHOLE_TREE
    assert verdict.verb == "switch"
    assert verdict.folders == ("a", "b")
    assert verdict.work_tree == "w"


def test_an_alias_is_judged_by_what_it_stands_for() -> None:
    aliases = {"co": "checkout", "undo": "-C sub reset --hard", "st": "status -sb", "open": "restore 'a"}

    def judge(*words: str) -> tuple[str, str]:
        verdict = judge_git(words, lambda verb: aliases.get(verb, ""))
        return verdict.verb, verdict.kind

    assert judge("co", "topic") == ("checkout", WHOLE_TREE)
    assert judge("co", "--", "a.py") == ("checkout", SCOPED)
    assert judge("undo") == ("reset", WHOLE_TREE)
    assert judge("st") == ("status", SAFE)
    assert judge("open") == ("restore", SCOPED)
    assert judge("-c", "alias.x=clean -fd", "x") == ("clean", WHOLE_TREE)
    assert judge("-c", "alias.X=!rm -rf .", "x") == ("x", WHOLE_TREE)


def test_an_alias_for_itself_comes_to_an_end() -> None:
    assert judge_git(["a"], lambda verb: "a").kind == SAFE


def test_an_alias_cannot_make_a_dangerous_verb_look_safe() -> None:
    assert judge_git(["reset", "--hard"], lambda _: "status").kind == WHOLE_TREE


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
    verdict = judge_git(words, lambda _: alias)

    assert verdict.kind in (SAFE, SCOPED, WHOLE_TREE)
    assert bool(verdict.why) == bool(verdict.scoped_form) == (verdict.kind == WHOLE_TREE)
    assert bool(verdict.paths) == (verdict.kind == SCOPED)
    assert all(path not in ("", ".", "..") for path in verdict.paths)

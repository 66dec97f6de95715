"""Lines of shell: the git commands that they run are found, and what only looks like one is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.hooks.shell_syntax.command_line import GitCall, parse_shell

pytestmark = pytest.mark.unit

RESET = ("reset", "--hard")


def find_git_calls(text: str) -> list[GitCall]:
    return list(parse_shell(text).git_calls)


@pytest.mark.parametrize(
    "line",
    [
        "git reset --hard",
        "  git   reset  --hard  ",
        "true && git reset --hard",
        "false || git reset --hard",
        "ls; git reset --hard; ls",
        "ls\ngit reset --hard\n",
        "ls | git reset --hard",
        "ls & git reset --hard",
        "(git reset --hard)",
        "{ git reset --hard; }",
        "echo $(git reset --hard)",
        'echo "now: $(git reset --hard)"',
        "echo `git reset --hard`",
        'echo "${X:-$(git reset --hard)}"',
        "diff <(git reset --hard) x",
        "X=1 git reset --hard",
        "X=1 Y='a b' git reset --hard",
        "env X=1 git reset --hard",
        "env -i -u HOME git reset --hard",
        "sudo git reset --hard",
        "sudo -u root git reset --hard",
        "command git reset --hard",
        "exec git reset --hard",
        "nohup git reset --hard &",
        "time git reset --hard",
        "timeout -s KILL 10 git reset --hard",
        "nice -n 5 git reset --hard",
        "/usr/bin/git reset --hard",
        "bash -c 'git reset --hard'",
        'sh -c "git reset --hard"',
        "bash -lc 'ls && git reset --hard'",
        "bash -c \"bash -c 'git reset --hard'\"",
        "eval 'git reset --hard'",
        "eval git reset --hard",
        "echo x | xargs git reset --hard",
        "echo x | xargs -n 1 -I '{}' git reset --hard",
        "find . -name x -exec git reset --hard \\;",
        "bash <<EOF\ngit reset --hard\nEOF",
        "bash -s <<'EOF'\ngit reset --hard\nEOF\n",
        "bash <<< 'git reset --hard'",
        "echo 'git reset --hard' | bash",
        "cat <<EOF\n$(git reset --hard)\nEOF",
        "if true; then git reset --hard; fi",
        "for f in a b; do git reset --hard; done",
        "while ! git reset --hard; do sleep 1; done",
        "case x in x) git reset --hard;; esac",
        "git 'reset' \"--hard\"",
        "git re\\\nset --hard",
        "git reset --hard 2>&1 | tail -3",
        "git reset --hard > /dev/null",
        "2>/dev/null git reset --hard",
        "git reset --hard # back to the start",
        "cat <<EOF\ntext\nEOF\ngit reset --hard",
        "cat <<-'EOF' && git reset --hard\n\ttext\n\tEOF\n",
    ],
)
def test_a_git_command_is_found_wherever_it_is_run(line: str) -> None:
    assert [call.words for call in find_git_calls(line)] == [RESET]


@pytest.mark.parametrize(
    "line",
    [
        'echo "git reset --hard"',
        "echo 'git reset --hard'",
        "echo git reset --hard",
        "grep 'git stash' notes.txt",
        "grep -rn git\\ stash .",
        "# git reset --hard",
        "ls # git reset --hard",
        "cat <<EOF\ngit reset --hard\nEOF",
        "cat > notes.md <<'EOF'\n$(git reset --hard)\nEOF\n",
        "python3 - <<'EOF'\ngit reset --hard\nEOF",
        "cat <<EOF\n\\$(git reset --hard)\nEOF",
        "printf '%s' 'git clean -fd'",
        "ls git",
        "mygit reset --hard",
        "man git-reset",
        "echo '$(git reset --hard)'",
        'rg "`echo x`git stash"',
        "x='git reset --hard'",
        "python -c 'print(\"git reset --hard\")'",
        "ssh host git reset --hard",
        "echo x > git",
        "bash script.sh git",
        "",
        "'",
        '"',
        "$(",
        "`",
        "<<",
        "((",
        "\\",
    ],
)
def test_what_only_mentions_git_raises_nothing(line: str) -> None:
    assert find_git_calls(line) == []


def test_git_command_in_a_commit_message_is_not_a_call() -> None:
    (call,) = find_git_calls("git commit -m 'run git clean; git reset --hard' a.py")

    assert call.words == ("commit", "-m", "run git clean; git reset --hard", "a.py")


def test_a_message_from_a_heredoc_is_one_word() -> None:
    line = "git commit -m \"$(cat <<'EOF'\nUse git stash\n\nand git clean\nEOF\n)\" a.py"

    (call,) = find_git_calls(line)

    assert call.words[:2] == ("commit", "-m")
    assert call.words[-1] == "a.py"


@pytest.mark.parametrize(
    ("line", "folders"),
    [
        ("cd sub && git stash", ("sub",)),
        ("cd a; cd b; git stash", ("a", "b")),
        ("cd /abs/x && git stash", ("/abs/x",)),
        ("(cd sub && ls); git stash", ()),
        ("bash -c 'cd sub && git stash'", ("sub",)),
        ("pushd sub >/dev/null && git stash", ("sub",)),
        ('cd "$PWD" && git stash', ()),
        ("env -C sub git stash", ("sub",)),
        ("sudo --chdir=sub git stash", ("sub",)),
    ],
)
def test_the_folder_of_a_git_command_is_known(line: str, folders: tuple[str, ...]) -> None:
    (call,) = find_git_calls(line)

    assert (call.folder.folders, call.folder.is_unknown) == (folders, False)


@pytest.mark.parametrize(
    "line", ["cd $(mktemp -d) && git add -A", 'cd "$X" && git add -A', "cd -; git add -A"]
)
def test_a_folder_that_the_text_does_not_name_is_unknown(line: str) -> None:
    calls = [call for call in find_git_calls(line) if call.words[:1] == ("add",)]

    assert [call.folder.is_unknown for call in calls] == [True]


def test_all_words_are_found_also_the_files_of_redirections() -> None:
    words = parse_shell("cat a.py > ../b.py; sed -i s/x/y/ 'c d.py' && cd sub").words

    assert {"a.py", "../b.py", "c d.py", "sub"} <= set(words)


@given(st.text(alphabet="git reset'\"`$(){}<>|&;\\\n#-abEOF=", max_size=80))
def test_no_text_makes_it_fail(text: str) -> None:
    parse_shell(text)


def test_an_apostrophe_in_a_heredoc_hides_nothing_behind_it() -> None:
    line = "git commit -m \"$(cat <<'EOF'\nDon't (ever) do it\nEOF\n)\" a.py && git reset --hard"

    calls = find_git_calls(line)

    assert [call.words[0] for call in calls] == ["commit", "reset"]
    assert calls[0].words[-1] == "a.py"


def test_deep_nesting_ends() -> None:
    parse_shell('"$(' * 20_000)
    parse_shell("$(" * 5000 + "git stash" + ")" * 5000)
    parse_shell("bash -c " * 5000)


@pytest.mark.parametrize(
    ("text", "may_leave_processes"),
    [
        ("(sleep 1; echo x > a) &", True),
        ("serve & wait", True),
        ("setsid serve", True),
        ("a && b || c |& d 2>&1 &> log", False),
        ("echo '&' # & not", False),
    ],
)
def test_a_line_that_may_leave_processes_running_is_recognized(text: str, may_leave_processes: bool) -> None:
    assert parse_shell(text).may_leave_processes is may_leave_processes


def test_a_patch_is_found_where_it_is_applied_and_not_where_it_is_quoted() -> None:
    body = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"

    (found,) = parse_shell(f"cd d && apply_patch <<'X'\n{body}\nX\n").patches

    assert (found.text.strip(), found.folder.folders) == (body, ("d",))
    assert parse_shell(f"cat > n.md <<'D'\napply_patch <<'X'\n{body}\nX\nD\n").patches == ()

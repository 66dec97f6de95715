"""Whether a shell command certainly only reads, for roles that have no shell that writes.

The answer is careful: a program that is not listed, a redirection into a file or a substitution counts as
writing.
"""

from __future__ import annotations

import shlex

_READERS = frozenset(
    (
        *("ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "wc", "pwd", "cd", "echo", "printf"),
        *("true", "false", "test", "[", "stat", "file", "du", "df", "tree", "nl", "cut", "tr", "uniq"),
        *("diff", "cmp", "basename", "dirname", "realpath", "readlink", "which", "date", "id", "jq"),
        *("sha256sum", "md5sum", "column", "od", "xxd", "landlane"),
    )
)
_GIT_READERS = frozenset(
    (
        *("log", "show", "diff", "status", "blame", "grep", "ls-files", "ls-tree", "cat-file", "rev-parse"),
        *("rev-list", "merge-base", "describe", "shortlog", "for-each-ref", "name-rev"),
    )
)
# Options by which a program that reads writes a file or runs another program.
_WRITING_OPTIONS = ("-o", "--output", "--pre", "--ext-diff", "--textconv", "--open-files-in-pager", "-O")
_XXD_REVERT = ("-r", "-revert")
_ENDS = frozenset((";", "&&", "||", "|", "\n"))


def only_reads(command: str) -> bool:
    """Return whether every program that a shell command runs is known to only read."""
    if any(mark in command for mark in ("`", "$(", "<(", ">(", "\0")):
        return False
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return False
    call: list[str] = []
    for word in [*words, ";"]:
        if word in _ENDS:
            if call and not _reads(call):
                return False
            call = []
        elif word and set(word) <= set("();<>|&"):
            return False  # a redirection, a subshell, or a process that goes on in the background
        else:
            call.append(word)
    return True


def _reads(call: list[str]) -> bool:
    name, options = call[0], call[1:]
    if any(option.split("=")[0] in _WRITING_OPTIONS for option in options):
        return False
    if name == "xxd" and any(option in _XXD_REVERT for option in options):
        return False
    if name == "git":
        return bool(options) and options[0] in _GIT_READERS
    return name in _READERS

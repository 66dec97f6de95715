"""Our folder of git hooks: one script for each hook, which runs our check and then the user's own hook.

`core.hooksPath` names this folder, so git runs no hooks elsewhere. Each script looks up the user's hook when
it is called, so hooks added later run, too. The user's hook gets git's working folder, arguments, input and
environment, and its exit code is returned. Git started by Landlane passes a secret and is not checked.
"""

from __future__ import annotations

import os
import sys

from landlane.files import read_first_line, write_atomically
from landlane.git.hook_pass import PASS_FILE, hooks_folder
from landlane.text import shell_quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


CANARY = "LANDLANE_CANARY"
UNREFUSED = 3  # the exit code of a canary that was not refused
JUDGED = "landlane-judged"  # in the git directory of a checkout: the git whose commit pre-commit let through
_COMMIT, _PUSH, _MOVE = "pre-commit", "pre-push", "reference-transaction"
GUARDS = (_COMMIT, _PUSH, _MOVE)
_PLAIN = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-merge-commit", "prepare-commit-msg"),
    *("commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-receive", "update"),
    *("post-receive", "post-update", "pre-auto-gc", "post-rewrite", "sendemail-validate"),
    *("post-index-change", "p4-changelist", "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit"),
)
# Git does something else when these are there at all, so they are only where the user has them.
_ONLY_WHERE_THERE = ("push-to-checkout", "proc-receive", "fsmonitor-watchman")

_HEAD = """\
#!/bin/sh
# Written by `landlane init`. It runs the repository's own hook of this name, so keep yours where it
# always was; `landlane init --undo` removes this file.
state=${{0%/landlane-hooks/*}}/landlane
own={own}/{name}
"""
_RUN_OWN = """\
unset LANDLANE_PASS
[ -x "$own" ] || exit 0
exec "$own" "$@"
"""
_ASK_PASS = """\
passes=
if [ -n "$LANDLANE_PASS" ] && read -r pass <"$state/git-pass" && [ "$LANDLANE_PASS" = "$pass" ]; then
    passes=1
fi
unset LANDLANE_PASS
"""
_ASK_STATE = """\
if [ ! -d "$state" ]; then
    passes=1
    {report}
fi
"""
_UNCHECKED = "Landlane did not check {what}: its state was deleted (start again: landlane init)"
_REFUSE = """\
refuse() {{ # 1: the check has said why
    [ "$1" = 1 ] || cat >&2 <<'END'
Landlane refused {what}: the check could not be run (is {python} missing?)
hint: see why: landlane doctor
hint: set the hooks up again: landlane init
hint: if Landlane is no longer installed: git config --unset core.hooksPath
END
    exit 1
}}
"""
_CANARY_END = f'[ -z "$LANDLANE_CANARY" ] || exit {UNREFUSED}\n'
_COMMIT_BODY = """\
if [ -z "$passes" ]; then
    {{ git diff --cached --name-only -z --no-renames --no-ext-diff --ignore-submodules=none; echo "$?"; }} |
        {ask} pre-commit "$PPID" || refuse $?
fi
"""
_PUSH_BODY = """\
lines=
while IFS= read -r line; do lines="$lines$line
"; done
if [ -z "$passes" ] && [ -n "$lines" ]; then
    printf %s "$lines" | {ask} pre-push "$PPID" "$@" || refuse $?
fi
"""
_RUN_OWN_WITH_LINES = """\
[ -x "$own" ] || exit 0
printf %s "$lines" | "$own" "$@"
"""
_MOVE_BODY = """\
[ "$1" = prepared ] && [ -z "$passes" ] || {{ [ -x "$own" ] || exit 0; exec "$own" "$@"; }}
lines= count=0 nl='
'
while [ $count -lt 20 ] && IFS= read -r line; do lines=$lines$line$nl count=$((count + 1)); done
if [ $count = 20 ]; then more=$(cat); [ -z "$more" ] || lines=$lines$more$nl; fi
git_dir=${{GIT_DIR:-.git}}
is_commit() {{ # by the git whose commit pre-commit let through
    read -r pid start ref final <"$git_dir/landlane-judged" && [ "$pid" = "$PPID" ] || return 1
    read -r facts <"/proc/$PPID/stat" || return 1
    set -- ${{facts##*) }}
    [ "$start" = "${{20}}" ] || return 1
    case $lines in *' refs/heads/'*' refs/heads/'*) return 1 ;; *" $ref$nl"*) return 0 ;; esac
    return 1
}}
if is_commit 2>/dev/null; then
    # Claims may have ended while hooks and an editor ran, and hooks may have added paths.
    update=${{lines%%" $ref$nl"*}}
    update=${{update##*"$nl"}}
    old=${{update% *}} new=${{update#* }}
    case $old in *[!0]*) ;; *) old=$(git hash-object -t tree /dev/null) ;; esac
    [ -n "$final" ] ||
        {{ git diff-tree -r -z --name-only --no-renames "$old" "$new"; echo "$?"; }} |
        {ask} commit "$PPID" "$new" || refuse $?
else
    case $lines in *' refs/heads/'*)
        # A clone has branches of its own.
        if [ ! -e "$git_dir/landlane-home" ]; then
            printf %s "$lines" | {ask} reference-transaction "$PPID" || refuse $?
        fi ;;
    esac
fi
"""
_BODIES = {_COMMIT: _COMMIT_BODY, _PUSH: _PUSH_BODY, _MOVE: _MOVE_BODY}
_WHAT = {_COMMIT: "this commit", _PUSH: "this push", _MOVE: "this move of a branch"}


def program_path() -> str:
    """Return the path of the program that the scripts call."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(package, "hook_entry", "git_hook.py")


def scripts(own: str, has_own: Sequence[str] = ()) -> dict[str, str]:
    """Return every script by name. `own` is the user's hooks folder as git reads it, or empty."""
    extra = [name for name in _ONLY_WHERE_THERE if name in has_own]
    return {name: _script(name, own) for name in (*GUARDS, *_PLAIN, *extra)}


def _script(name: str, own: str) -> str:
    folder = shell_quote(own.rstrip("/") or "/") if own else '"${state%/*}"/hooks'
    head = _HEAD.format(own=folder, name=name)
    if name not in GUARDS:
        return head + _RUN_OWN
    facts = {
        "ask": " ".join(map(shell_quote, (sys.executable, "-I", "-S", program_path()))),
        "python": sys.executable,
        "what": _WHAT[name],
    }
    body = _REFUSE.format(**facts) + _BODIES[name].format(**facts) + _CANARY_END
    end = _RUN_OWN if name == _COMMIT else _RUN_OWN_WITH_LINES
    # One git command moves many refs, and says it only once.
    report = ":" if name == _MOVE else f'echo "{_UNCHECKED.format(what=_WHAT[name])}" >&2'
    state = _ASK_STATE.format(report=report)
    return head + _ASK_PASS + state + body + end


def names_in(folder: str) -> tuple[str, ...]:
    """Return the names of the executable hooks in a folder."""
    try:
        found = os.listdir(folder)
    except OSError:
        return ()
    return tuple(name for name in found if os.access(os.path.join(folder, name), os.X_OK))


def write_scripts(common_dir: str, own: str, root: str) -> bool:
    """Write missing and outdated scripts, remove unneeded ones; return whether anything changed."""
    folder = hooks_folder(common_dir)
    wanted = scripts(own, names_in(own_folder(common_dir, own, root)))
    os.makedirs(folder, exist_ok=True)
    ensure_pass(os.path.join(common_dir, "landlane"))
    changed = False
    for name, text in wanted.items():
        path = os.path.join(folder, name)
        if _is_as(path, text):
            continue
        write_atomically(path, text, mode=0o755)  # git runs it for every user of the repository
        changed = True
    for name in os.listdir(folder):
        # A name with a dot is a temporary file that another process is writing.
        if name not in wanted and "." not in name:
            _remove(os.path.join(folder, name))
            changed = True
    return changed


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return  # another process removed it


def outdated_scripts(common_dir: str, own: str) -> list[str]:
    """Return the guards whose script is missing, changed or not executable."""
    folder = hooks_folder(common_dir)
    return [name for name in GUARDS if not _is_as(os.path.join(folder, name), _script(name, own))]


def _is_as(path: str, text: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read() == text and os.access(path, os.X_OK)
    except OSError:
        return False


def remove_scripts(common_dir: str) -> None:
    """Remove our folder and the secret."""
    folder = hooks_folder(common_dir)
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        _remove(os.path.join(folder, name))
    if os.path.isdir(folder):
        os.rmdir(folder)
    path = os.path.join(common_dir, "landlane", PASS_FILE)
    if os.path.exists(path):
        os.unlink(path)


def own_folder(common_dir: str, own: str, root: str) -> str:
    """Return the folder of the user's own hooks, for git run in the checkout at `root`."""
    return os.path.join(root, os.path.expanduser(own)) if own else os.path.join(common_dir, "hooks")


def ensure_pass(state: str) -> None:
    """Create the secret that git started by Landlane passes to our hooks; only this user can read it."""
    path = os.path.join(state, PASS_FILE)
    if read_first_line(path):
        return
    import secrets  # noqa: PLC0415 - expensive, and needed once

    write_atomically(path, secrets.token_hex(24) + "\n", mode=0o600)

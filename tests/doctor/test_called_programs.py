"""Which programs a shell text calls for certain."""

from __future__ import annotations

import pytest

from landlane.doctor.called_programs import (
    is_shell_script,
    programs_called,
    programs_in_shebang,
    programs_in_words,
)

pytestmark = pytest.mark.unit

GUARD = "/v/python -I -S /p/hook.py claude PreToolUse || { echo 'it cannot run' >&2; exit 2; }"
SCRIPT = """\
#!/bin/sh
refuse() { # 1: shown already
    [ "$1" = 1 ] || cat >&2 <<'END'
refused: /v/python is gone
END
    exit 1
}
passes=
if [ -n "$SECRET" ]; then
    passes=1
fi
if [ -z "$passes" ]; then
    { git diff --cached --name-only; echo "$?"; } |
        /v/python -I -S /p/git_hook.py pre-commit "$PPID" || refuse $?
fi
[ -x "$own" ] || exit 0
exec "$own" "$@"
"""


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("/v/tool hook", ["/v/tool"]),
        ("tool hook --json", ["tool"]),
        ("~/bin/tool", ["~/bin/tool"]),
        ("'/v w/tool' x", ["/v w/tool"]),
        ("LANG=C MODE=x /v/tool", ["/v/tool"]),
        ("exec /v/tool", ["/v/tool"]),
        ("/v/tool 2>/dev/null >&2", ["/v/tool"]),
        ("/v/tool || true", ["/v/tool"]),
        ("/v/tool || exit 1", ["/v/tool"]),
        ("! /v/tool", ["/v/tool"]),
        ("( /v/tool )", ["/v/tool"]),
        ("{ /v/tool; }", ["/v/tool"]),
        ('cd "$DIR" && /v/tool', ["/v/tool"]),
        ("echo x | /v/tool", ["/v/tool"]),
        ("/v/a; /v/b & /v/c\n/v/d", ["/v/a", "/v/b", "/v/c", "/v/d"]),
        ("/v/tool \\\n  --option", ["/v/tool"]),
        ("# /v/old\n/v/tool # now", ["/v/tool"]),
        ("cat <<'E'\n/v/text\nE\n/v/tool", ["/v/tool"]),
        ("/usr/bin/env tool x", ["/usr/bin/env", "tool"]),
        ("python3 -I -S /p/hook.py claude", ["python3", "/p/hook.py"]),
        ("node /p/hook.js", ["node", "/p/hook.js"]),
        ("/bin/sh -c '/v/tool x || { exit 2; }'", ["/bin/sh", "/v/tool"]),
        (GUARD, ["/v/python", "/p/hook.py"]),
        (SCRIPT, ["git", "/v/python", "/p/git_hook.py"]),
    ],
)
def test_an_unconditional_call_is_found(text: str, programs: list[str]) -> None:
    assert programs_called(text) == programs


@pytest.mark.parametrize(
    "text",
    [
        "command -v tool >/dev/null && tool hook",
        "which tool && /v/tool",
        "[ -x /v/tool ] && /v/tool",
        "test -e ~/bin/tool && ~/bin/tool",
        "if [ -x /v/tool ]; then /v/tool; fi",
        "if [[ -f /v/a && -x /v/tool ]]; then /v/tool; fi",
        'if [ "$(uname)" = Darwin ]; then /v/a; else /v/b; fi',
        'if [ "$USER" = ann ]; then /home/ann/tool; fi',
        '[ -n "$CI" ] || exit 0\n/v/tool',
        '[ -z "$CI" ] ||\n  /v/tool',
        "true || ( /v/tool )",
        "/v/a || /v/b",
        "for one in *; do /v/tool; done",
        "while read -r line; do /v/tool; done",
        "case $1 in\n/v/tool) /v/other ;;\nesac",
        "helper() { /v/tool; }",
        "function helper { /v/tool; }",
        "helper() { /v/tool; }; helper",
        "TOOLS=(/v/a /v/b)",
        "$HOME/bin/tool",
        '"$CLAUDE_PROJECT_DIR"/hooks/tool',
        "`pwd`/tool",
        "$(/v/tool)",
        "/v/to*l",
        "PATH=/v:$PATH tool",
        ". ./environment; tool",
        'eval "$(direnv hook)"; tool',
        "exit 0\n/v/tool",
        "echo /v/tool",
        "",
        "'",
        "((((",
    ],
)
def test_a_conditional_call_is_not_found(text: str) -> None:
    assert [one for one in programs_called(text) if one.startswith(("/v/", "~/", "tool"))] == []


def test_a_program_without_a_shell_is_its_first_word() -> None:
    assert programs_in_words(["/v/python", "-I", "/p/hook.py", "x;y"]) == ["/v/python", "/p/hook.py"]
    assert programs_in_words([]) == []


@pytest.mark.parametrize(
    ("line", "programs", "is_shell"),
    [
        ("#!/bin/sh", ["/bin/sh"], True),
        ("#!/v/python -I", ["/v/python"], False),
        ("#!/usr/bin/env bash", ["/usr/bin/env", "bash"], True),
        ("#!/usr/bin/env python9", ["/usr/bin/env", "python9"], False),
        ("#! /bin/dash -e", ["/bin/dash"], True),
        ("import os", [], False),
    ],
)
def test_the_first_line_of_a_script_names_its_interpreter(
    line: str, programs: list[str], is_shell: bool
) -> None:
    assert programs_in_shebang(line) == programs
    assert is_shell_script(line) is is_shell

"""Commands that work inside a sandbox, on the caller's own clone and with its own git.

They ask the resident about the state. No process outside the sandbox runs git in this clone, because its
git config may have been written by the agent.
"""

from __future__ import annotations

import json
import os
import time

from landlane.cli.terminal import in_one_line
from landlane.error_json import failure_json
from landlane.errors import Held, LandlaneError, Malformed, NotAllowed
from landlane.git.commits import Trailers, find_forged_trailer, with_trailers
from landlane.git.discovery import find_checkout
from landlane.git.run import git_failed, git_output, run_git, run_git_interactive
from landlane.resident.messages import (
    AnswerLost,
    BadMessage,
    find_socket,
    pack_request,
    send_request,
    shared_environment,
    shown_address,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.git.discovery import Checkout


_LIMIT_SECONDS = 60.0
_MISSING_SECONDS = 10.0  # for a replacement when the resident was killed
_LOOK_SECONDS = 0.05
_GIT_SECONDS = 1800.0
_MOST_AT_ONCE = 500
_STATUS = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")


def commit_inside(call: CommandCall, paths: Sequence[str], message: str, task: str) -> int:
    """Commit only these paths in this clone, if the session holds every changed one."""
    if not message.strip():
        raise Malformed("there is no message", code="NO_MESSAGE", hint="landlane commit -m 'What' PATH")
    if find_forged_trailer(message):
        raise Malformed(
            "the message holds lines that are only for landlane to write",
            code="MESSAGE_POSES",
            hint="leave the lines that begin with Landlane- out: they are added",
        )
    here = find_checkout(call.cwd)
    changed = _changed(here, call.cwd, paths)
    trailers = _trailers(here, changed, task)
    run = run_git("add", "--all", "--", *paths, cwd=call.cwd, limit_seconds=_GIT_SECONDS)
    if run.exit_code:
        raise git_failed(("add",), run)
    run = run_git(
        *("commit", "--quiet", "--only", "--file=-", "--", *paths),
        cwd=call.cwd,
        stdin=with_trailers(message, trailers).encode("utf-8", "surrogateescape"),
        limit_seconds=_GIT_SECONDS,
    )
    if run.exit_code:
        raise LandlaneError(
            f"git did not commit: {(run.stderr or run.stdout).strip()[-400:]}",
            code="COMMIT_FAILED",
            hint="fix what git or your hook complains about, then commit again",
        )
    made = git_output(here, "rev-parse", "HEAD").strip()
    subject = message.strip().partition("\n")[0]
    answer = {
        "ok": True,
        "commit": made,
        "branch": git_output(here, "rev-parse", "--abbrev-ref", "HEAD").strip(),
        "subject": subject,
        "paths": changed,
        "trailers": {
            "agent": trailers.agent,
            "session": trailers.session,
            "task": trailers.task or None,
            "tokens": list(trailers.tokens),
        },
        "changed_by_hooks": [],
        "left_alone": 0,
    }
    return call.terminal.answer(answer, in_one_line(f"committed {made[:12]} {subject}"))


def git_inside(call: CommandCall, words: Sequence[str]) -> int:
    """Run git directly: no other session works in this clone."""
    code = run_git_interactive(words, cwd=call.cwd, out=2 if call.terminal.is_json else None)
    answer = {"ok": True, "exit": code}
    if code:
        answer |= failure_json("GIT_FAILED", f"git ended with {code}", "it said why on stderr")
    return call.terminal.answer(answer, code=code)


def _changed(here: Checkout, cwd: str, paths: Sequence[str]) -> list[str]:
    """Return what differs from the last commit below these paths, relative to the root."""
    found = run_git(*_STATUS, "--", *paths, cwd=cwd)
    if found.exit_code:
        raise git_failed(_STATUS, found)
    changed = [entry[3:] for entry in found.stdout.split("\0") if len(entry) > 3]
    if not changed:
        raise LandlaneError(
            f"nothing is changed in {', '.join(paths)[:200]}",
            code="NOTHING_TO_COMMIT",
            hint="`git status` shows what is changed",
        )
    return changed


def _trailers(here: Checkout, changed: Sequence[str], task: str) -> Trailers:
    """Return the commit trailers: the session and its grants.

    Raises:
        Held: another session holds one of these paths.
        NotAllowed: one is not claimed, or the role forbids it.
    """
    tokens: list[int] = []
    tasks: list[str] = []
    for start in range(0, len(changed), _MOST_AT_ONCE):
        some = [f":/{path}" for path in changed[start : start + _MOST_AT_ONCE]]
        checked = _ask_resident(here.root, ["check", "--literal", "--json", "--", *some])
        for item in checked.get("paths", ()):
            claim: dict[str, Any] = item.get("claim") or {}
            if item["state"] == "other":
                raise Held(
                    f"{item['path']} is held by {claim.get('holder')}",
                    code="CLAIM_HELD",
                    hint="leave it out of the commit",
                    holder=claim.get("holder"),
                    until=claim.get("until"),
                )
            if item["state"] not in ("held", "free"):
                raise NotAllowed(
                    f"{item['path']} is not claimed",
                    code="NOT_CLAIMED",
                    hint=f"claim it first: landlane claim {item['path']}",
                )
            if claim:
                tokens.append(claim["token"])
                tasks.append(claim.get("task") or "")
    you = _ask_resident(here.root, ["status", "--json"])["you"]
    known = next((name for name in tasks if name), "") or os.environ.get("LANDLANE_TASK", "")
    return Trailers(
        agent=you["agent"], session=you["id"], task=task or known, tokens=tuple(dict.fromkeys(tokens))
    )


def _ask_resident(cwd: str, words: Sequence[str]) -> dict[str, Any]:
    """Return the JSON answer of a command that the resident runs.

    Raises:
        LandlaneError: no resident answers, or the command failed; a failed `check` is returned.
    """
    named = os.environ["LANDLANE_RESIDENT"]
    path = find_socket(named) if os.path.isdir(named) else named
    encoded = [os.fsencode(word) for word in words]
    request = pack_request(b"call", os.fsencode(cwd), encoded, shared_environment(os.environb), b"")
    give_up_at = time.monotonic() + _MISSING_SECONDS
    try:
        # The sandbox's starter replaces a resident that is gone.
        while (
            reply := send_request(path, request, _LIMIT_SECONDS)
        ) is None and time.monotonic() < give_up_at:
            time.sleep(_LOOK_SECONDS)
            path = find_socket(named) if os.path.isdir(named) else named
    except (AnswerLost, BadMessage) as error:
        raise LandlaneError(f"the resident did not answer: {error}", code="RESIDENT_LOST") from error
    if reply is None:
        raise LandlaneError(
            f"no resident answers at {shown_address(path)}",
            code="RESIDENT_GONE",
            hint="ask the user to run any landlane command outside the sandbox: that starts it",
        )
    answer: dict[str, Any] = json.loads(reply[1])
    if not answer.get("ok") and "paths" not in answer:
        error = LandlaneError(
            str(answer.get("message")), code=str(answer.get("code")), hint=str(answer.get("hint") or "")
        )
        error.exit_code = reply[0]
        raise error
    return answer

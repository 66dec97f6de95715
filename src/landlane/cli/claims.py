"""The commands that change claims: claim, renew, release."""

from __future__ import annotations

from landlane.claims.claim_paths import claim_paths
from landlane.claims.describe import find_missing_folder, next_in_line
from landlane.claims.held import release as release_claims
from landlane.claims.held import renew as renew_claims
from landlane.claims.model import ClaimMode, Refused, check_can_wait, check_pattern_count
from landlane.claims.take import make_request
from landlane.claims.to_json import claim_json, outcome_json
from landlane.cli.arguments import read_number, read_wait
from landlane.cli.command import stop_on_signals
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.errors import Malformed, PatternError
from landlane.text import shell_quote
from landlane.units import clock_time, count, exact_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.claims.model import Claim, Request, SavedWork, Taken
    from landlane.cli.command import CommandCall
    from landlane.patterns.pattern import Pattern


def claim(
    call: CommandCall,
    patterns: tuple[str, ...],
    ttl: str,
    wait: str,
    partial: bool,
    shared: bool,
    literal: bool,
    task: str,
    note: str,
) -> int:
    """Take claims and show them, or show which claims conflict."""
    repo = call.repo
    read = read_patterns(call, patterns, literal, "claim")
    typed = {pattern.text: text for pattern, text in zip(read, patterns, strict=True)}
    request = make_request(
        repo,
        read,
        mode=ClaimMode.SHARED if shared else ClaimMode.EXCLUSIVE,
        ttl_ms=parse_duration(ttl, what="--ttl") if ttl else None,
        task=task,
        note=note,
        is_partial=partial,
    )
    wait_ms = read_wait(wait)
    if wait_ms:
        check_can_wait(request)
        outcome = _wait(call, request, wait_ms, typed)
    else:
        outcome = claim_paths(repo, call.session(), request)
    answer, code = outcome_json(outcome, repo.store, typed)
    if isinstance(outcome, Refused):
        from landlane.cli.claims_refused import refuse  # noqa: PLC0415 - most requests are granted

        given = {"--ttl": ttl, "--task": task, "--note": note}
        options = [word for name, text in given.items() if text for word in (name, text)]
        options += [name for name, is_set in {"--shared": shared, "--literal": literal}.items() if is_set]
        return refuse(call, outcome, answer, code, typed, options)
    answer |= show_saved(call, outcome.saved)
    return call.terminal.answer(answer, _granted_text(call, outcome, typed, answer))


def _wait(call: CommandCall, request: Request, wait_ms: int, typed: dict[str, str]) -> Taken | Refused:
    from landlane.cli.claims_refused import WaitingLine  # noqa: PLC0415 - most requests do not wait

    stop_on_signals()
    line = WaitingLine(call.terminal, wait_ms, typed)
    try:
        return claim_paths(call.repo, call.session(), request, wait_ms, line.begin, line.update)
    finally:
        line.end()


def _granted_text(call: CommandCall, taken: Taken, typed: dict[str, str], answer: dict[str, Any]) -> str:
    waited = f" (waited {exact_duration(taken.waited_ms)})" if taken.waited_ms >= 1000 else ""
    lines = [
        f"✓ claimed {_path_text(claim, typed)} for {exact_duration(claim.ttl_ms)}"
        f"{waited}{_verbose_text(call, claim)}"
        for claim in taken.granted
    ]
    lines += [f"✗ {in_one_line(item['message'])}" for item in answer["refused"]]
    return "\n".join([*lines, *_unmatched_lines(call, taken, typed)])


def _unmatched_lines(call: CommandCall, taken: Taken, typed: dict[str, str]) -> list[str]:
    """Return a warning about globs below a folder that does not exist, and how to take them back."""
    lines: list[str] = []
    for claim in taken.granted:
        missing, near = find_missing_folder(call.repo.checkout.root, claim.pattern)
        if missing:
            text = typed.get(claim.pattern, claim.pattern)
            corrected = "/".join(near if part == missing else part for part in text.split("/"))
            meant = f"; did you mean {corrected}?" if near else ""
            lines.append(f"! {in_one_line(text)} matches no file yet{meant}")
            lines.append(f"hint: {call.command_text('release', text)}")
    return lines


def _path_text(claim: Claim, typed: dict[str, str]) -> str:
    return in_one_line(typed.get(claim.pattern, claim.pattern))


def _verbose_text(call: CommandCall, claim: Claim) -> str:
    if not call.terminal.is_verbose:
        return ""
    until = clock_time(call.repo.store.wall_of(claim.until), has_seconds=True)
    return f" ({claim.mode}, token {claim.token}, until {until})"


def show_saved(call: CommandCall, saved: SavedWork | None) -> dict[str, str]:
    """Show what was saved of a former holder's work; return the fields for the answer."""
    if saved is None:
        return {}
    call.terminal.note(saved.note)
    return {"rescued": saved.rescue} if saved.rescue else {}


def read_patterns(
    call: CommandCall, texts: tuple[str, ...], is_literal: bool, command: str = ""
) -> tuple[Pattern, ...]:
    """Return the patterns that these texts mean; `command` is the one that a hint can repeat."""
    check_pattern_count(len(texts))
    return tuple(_read_pattern(call, text, is_literal, command) for text in texts)


def _read_pattern(call: CommandCall, text: str, is_literal: bool, command: str) -> Pattern:
    try:
        return call.repo.git.pattern(text, is_literal=is_literal)
    except PatternError as error:
        inside = text.replace("../", "")
        if error.code == "PATH_OUTSIDE" and text.startswith("../") and inside and command:
            marker = ":/" if call.cwd != call.repo.checkout.root else ""
            error.hint = f"landlane {command} {shell_quote(marker + inside)}"
        raise


def renew(call: CommandCall, patterns: tuple[str, ...], literal: bool) -> int:
    """Renew leases and show for how long."""
    repo = call.repo
    wanted = read_patterns(call, patterns, literal, "renew") if patterns else None
    taken = renew_claims(repo, call.session(), wanted)
    claims = [claim_json(item, repo.store) for item in taken.granted]
    text = "\n".join(
        f"✓ renewed {in_one_line(item.pattern)} for {exact_duration(item.ttl_ms)}{_verbose_text(call, item)}"
        for item in taken.granted
    )
    answer = {"ok": True, "renewed": [item["pattern"] for item in claims], "claims": claims}
    return call.terminal.answer(answer, text or "No claims.")


def release(
    call: CommandCall,
    patterns: tuple[str, ...],
    all: bool,
    commit: str,
    token: str,
    literal: bool,
) -> int:
    """Release claims and show which, and who gets them next."""
    if bool(patterns) == all:
        raise Malformed(
            "release needs a path, or --all" if not patterns else "release takes paths or --all, not both",
            code="NOTHING_NAMED" if not patterns else "BOTH_NAMED",
            hint="release everything you hold: landlane release --all",
        )
    repo = call.repo
    wanted = None if all else read_patterns(call, patterns, literal, "release")
    commit_id = repo.git.commit_id(commit) if commit else ""
    number = read_number(token, "--token")
    following = next_in_line(repo, wanted or ())  # before the release, which lets them have it
    released = release_claims(repo, call.session(), wanted, commit=commit_id, token=number)
    answer = {"ok": True, "released": list(released), "commit": commit_id or None, "next": following}
    return call.terminal.answer(answer, _released_text(released, following, is_all=all))


def _released_text(released: Sequence[str], following: dict[str, str], *, is_all: bool) -> str:
    if is_all:
        return f"✓ released {count(len(released), 'claim')}" if released else "No claims."
    return "\n".join(
        f"✓ released {in_one_line(pattern)}"
        + (f"; {following[pattern]} is next" if pattern in following else "")
        for pattern in released
    )

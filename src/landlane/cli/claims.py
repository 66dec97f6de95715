"""The commands that change claims: claim, renew, release."""

from __future__ import annotations

from landlane.claims.held import release as release_claims
from landlane.claims.held import renew as renew_claims
from landlane.claims.model import ClaimMode, Request, check_pattern_count
from landlane.claims.take import make_request, take
from landlane.claims.to_json import claim_json, outcome_json
from landlane.claims.wait import check_can_wait, take_or_wait
from landlane.cli.command import heed_signals
from landlane.cli.former_work import save_former_work
from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.errors import Malformed
from landlane.patterns.pattern import reads_as_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.claims.model import Refused
    from landlane.cli.command_call import CommandCall
    from landlane.patterns.pattern import Pattern
    from landlane.sessions.model import Session


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
    """Take claims and show them, or show who is in the way."""
    repo = call.repo
    request = make_request(
        repo,
        read_patterns(call, patterns, literal),
        mode=ClaimMode.SHARED if shared else ClaimMode.EXCLUSIVE,
        ttl_ms=parse_duration(ttl, what="--ttl") if ttl else None,
        task=task,
        note=note,
        is_partial=partial,
    )
    wait_ms = parse_duration(wait, what="--wait")
    if wait_ms:
        check_can_wait(request)
    session = call.session()
    outcome = _take(call, session, request, wait_ms)
    answer, code = outcome_json(outcome, repo.store)
    if not code:
        answer |= save_former_work(call, session, outcome.granted)
    if code and not call.terminal.is_json:
        _complain(call, answer)
    else:
        call.terminal.answer(answer, _granted_text(answer))
    return code


def _take(call: CommandCall, session: Session, request: Request, wait_ms: int) -> Any:
    if wait_ms <= 0:
        return take(call.repo, session, request)

    def on_wait(refused: Refused) -> None:
        first = refused.refused[0]
        call.terminal.note(f"waiting for {first.holder}, who holds {in_one_line(first.held)} …")

    heed_signals()
    return take_or_wait(call.repo, session, request, wait_ms, on_wait)


def read_patterns(call: CommandCall, texts: tuple[str, ...], is_literal: bool) -> tuple[Pattern, ...]:
    """Return the patterns that these texts mean."""
    check_pattern_count(len(texts))
    return tuple(call.repo.git.pattern(text, is_literal=is_literal) for text in texts)


def read_paths(call: CommandCall, texts: tuple[str, ...], is_literal: bool = False) -> tuple[Pattern, ...]:
    """Return literal path patterns; no character is special, and `deploy:prod` is a path here."""
    check_pattern_count(len(texts))
    pattern = call.repo.git.pattern
    return tuple(pattern(text, is_literal=is_literal or not reads_as_name(text)) for text in texts)


def _granted_text(answer: dict[str, Any]) -> str:
    lines = [
        f"granted {in_one_line(item['pattern'])}"
        f"  ({item['mode']}, token {item['token']}, until {item['until']})"
        for item in answer["granted"]
    ]
    lines += [f"refused {in_one_line(item['pattern'])}  {_in_the_way(item)}" for item in answer["refused"]]
    return "\n".join(lines)


def _complain(call: CommandCall, answer: dict[str, Any]) -> None:
    call.terminal.complain(answer["message"], "", answer["code"])
    for item in answer["refused"]:
        call.terminal.note(f"  {in_one_line(item['pattern'])}: {_in_the_way(item)}")
    call.terminal.note(f"hint: {answer['hint']}")


def _in_the_way(item: dict[str, Any]) -> str:
    verb = "waits for" if item["waiting"] else "holds"
    task = f", task {item['task']}" if item["task"] else ""
    note = f", “{item['note']}”" if item["note"] else ""
    line = f"{item['holder']} {verb} {item['held']} for {item['age']}{task}{note}, until {item['until']}"
    return in_one_line(line)


def renew(call: CommandCall, patterns: tuple[str, ...], literal: bool) -> int:
    """Renew leases and show until when."""
    repo = call.repo
    wanted = read_patterns(call, patterns, literal) if patterns else None
    taken = renew_claims(repo, call.session(), wanted)
    claims = [claim_json(item, repo.store) for item in taken.granted]
    text = "\n".join(
        f"renewed {in_one_line(item['pattern'])}  (token {item['token']}, until {item['until']})"
        for item in claims
    )
    answer = {"ok": True, "renewed": [item["pattern"] for item in claims], "claims": claims}
    call.terminal.answer(answer, text or "nothing is held")
    return 0


def release(
    call: CommandCall,
    patterns: tuple[str, ...],
    all: bool,
    commit: str,
    token: str,
    literal: bool,
) -> int:
    """Release claims and show which."""
    if bool(patterns) == all:
        raise Malformed(
            "name what to release, or say --all",
            code="NOTHING_NAMED" if not patterns else "BOTH_NAMED",
            hint="landlane release src/api.py, or landlane release --all",
        )
    repo = call.repo
    wanted = None if all else read_patterns(call, patterns, literal)
    commit_id = repo.git.commit_id(commit) if commit else ""
    number = read_number(token, "--token")
    released = release_claims(repo, call.session(), wanted, commit=commit_id, token=number)
    text = "\n".join(f"released {in_one_line(pattern)}" for pattern in released) or "nothing was held"
    call.terminal.answer({"ok": True, "released": list(released), "commit": commit_id or None}, text)
    return 0

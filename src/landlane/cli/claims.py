"""The commands about claims: claim, renew, release, check, claims, who."""

from __future__ import annotations

from landlane.claims.model import EXCLUSIVE, SHARED, Request, check_pattern_count
from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.patterns.pattern import has_special, reads_as_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.claims.model import Claim
    from landlane.claims.refusal_model import Refused
    from landlane.cli.command import CommandCall
    from landlane.patterns.pattern import Pattern
    from landlane.store.interface import Snapshot


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
    from landlane.claims.take import make_request

    repo = call.repo
    request = make_request(
        repo,
        _patterns(call, patterns, literal),
        mode=SHARED if shared else EXCLUSIVE,
        ttl_ms=parse_duration(ttl, what="--ttl") if ttl else None,
        task=task,
        note=note,
        is_partial=partial,
    )
    wait_ms = parse_duration(wait, what="--wait")
    if wait_ms:
        from landlane.claims.wait import check_can_wait

        check_can_wait(request)
    session = call.session()
    outcome = _take(call, session, request, wait_ms)
    from landlane.claims.to_json import outcome_json

    answer, code = outcome_json(outcome, repo.store)
    if not code:
        answer |= save_former_work(call, session, outcome.granted)
    if code and not call.terminal.is_json:
        _complain(call, answer)
    else:
        call.terminal.answer(answer, _granted_text(answer))
    return code


def save_former_work(call: CommandCall, session: Any, granted: tuple[Claim, ...]) -> dict[str, str]:
    """Save what former holders, whose leases ran out, left on these paths; tells it as part of the answer."""
    repo = call.repo

    def has_lapsed(snapshot: Snapshot) -> bool:
        return snapshot.one("lapsed_of_others", agent=session.agent) is not None

    if not repo.checkout.common_dir or not repo.store.view(has_lapsed):
        return {}
    from landlane.claims.takeover import save_former_work as save

    taken = save(repo.require_git(), session, granted)
    if taken is None:
        return {}
    call.terminal.note(taken.note)
    return {"rescued": taken.rescue} if taken.rescue else {}


def _take(call: CommandCall, session: Any, request: Request, wait_ms: int) -> Any:
    if wait_ms <= 0:
        from landlane.claims.take import take

        return take(call.repo, session, request)
    from landlane.claims.wait import take_or_wait
    from landlane.cli.command import heed_signals

    def on_wait(refused: Refused) -> None:
        first = refused.refused[0]
        call.terminal.note(f"waiting for {first.holder}, who holds {in_one_line(first.held)} …")

    heed_signals()
    return take_or_wait(call.repo, session, request, wait_ms, on_wait)


def _patterns(call: CommandCall, texts: tuple[str, ...], is_literal: bool) -> tuple[Pattern, ...]:
    check_pattern_count(len(texts))
    return tuple(call.repo.git.pattern(text, is_literal=is_literal) for text in texts)


def _paths(call: CommandCall, texts: tuple[str, ...], is_literal: bool = False) -> tuple[Pattern, ...]:
    """Files and folders with every character as it is; a named thing such as deploy:prod is one here too."""
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
    told = f"{item['holder']} {verb} {item['held']} for {item['age']}{task}{note}, until {item['until']}"
    return in_one_line(told)


def renew(call: CommandCall, patterns: tuple[str, ...], literal: bool) -> int:
    """Renew leases and show until when."""
    from landlane.claims.renew import renew as renew_claims
    from landlane.claims.to_json import claim_json

    repo = call.repo
    wanted = _patterns(call, patterns, literal) if patterns else None
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
    from landlane.claims.release import release as release_claims
    from landlane.errors import Malformed

    if bool(patterns) == all:
        raise Malformed(
            "name what to release, or say --all",
            code="NOTHING_NAMED" if not patterns else "BOTH_NAMED",
            hint="landlane release src/api.py, or landlane release --all",
        )
    repo = call.repo
    wanted = None if all else _patterns(call, patterns, literal)
    commit_id = repo.git.commit_id(commit) if commit else ""
    number = read_number(token, "--token")
    released = release_claims(repo, call.session(), wanted, commit=commit_id, token=number)
    text = "\n".join(f"released {in_one_line(pattern)}" for pattern in released) or "nothing was held"
    call.terminal.answer({"ok": True, "released": list(released), "commit": commit_id or None}, text)
    return 0


_STANDINGS = {
    "held": (0, "", "is yours to change"),
    "free": (0, "", "never needs a claim"),
    "unclaimed": (0, "", "is held by nobody"),
    "other": (3, "CLAIM_HELD", "is held by another session"),
    "required": (6, "CLAIM_REQUIRED", "must be claimed before it is changed"),
}


def check(call: CommandCall, paths: tuple[str, ...], token: str, literal: bool) -> int:
    """Tell for each path whether this session may change it now."""
    from landlane.claims.check import check as check_path
    from landlane.claims.to_json import claim_json

    repo = call.repo
    number = read_number(token, "--token")
    wanted = _paths(call, paths, literal)
    session = call.known_session()
    found = [check_path(repo, session, one, number) for one in wanted]
    items: list[dict[str, Any]] = [
        {
            "path": one.path,
            "state": one.state,
            "allowed": _STANDINGS[one.state][0] == 0,
            "claim": claim_json(one.claim, repo.store) if one.claim else None,
        }
        for one in found
    ]
    answer: dict[str, Any] = {"ok": True, "paths": items}
    worst = max(range(len(items)), key=lambda index: _STANDINGS[found[index].state][0])
    code, name, _ = _STANDINGS[found[worst].state]
    if code:
        holder = {key: items[worst]["claim"][key] for key in ("holder", "until")} if code == 3 else {}
        hint = _how_to_claim(paths[worst], is_waiting=code == 3)
        answer |= {"ok": False, "code": name, "message": _standing_text(items[worst]), "hint": hint, **holder}
    call.terminal.answer(answer, "\n".join(_standing_text(item) for item in items))
    return code


def _standing_text(item: dict[str, Any]) -> str:
    words = _STANDINGS[item["state"]][2]
    if item["state"] == "other":
        words = f"is held by {item['claim']['holder']} until {item['claim']['until']}"
    return f"{in_one_line(item['path'])} {words}"


def _how_to_claim(word: str, *, is_waiting: bool) -> str:
    """The command to type next, with the path as it was typed: it counts from the same folder."""
    import shlex

    literal = ["--literal"] if has_special(word) else []
    return shlex.join(["landlane", "claim", word, *literal, *(["--wait", "10m"] if is_waiting else [])])


def claims(call: CommandCall, paths: tuple[str, ...]) -> int:
    """List live claims."""
    from landlane.claims.read import list_claims
    from landlane.claims.to_json import claim_json

    repo = call.repo
    call.show_life()
    wanted = _patterns(call, paths, False)
    items = [claim_json(item, repo.store) for item in list_claims(repo, wanted)]
    columns = ["pattern", "holder", "mode", "token", "until", "task", "note"]
    cells = [[str(item[column] or "") for column in columns] for item in items]
    title = f"{len(items)} live claim{'' if len(items) == 1 else 's'}"
    call.terminal.answer({"ok": True, "claims": items}, call.terminal.table(title, columns, cells))
    return 0


def who(call: CommandCall, path: str) -> int:
    """Tell who holds a path and who last changed it."""
    from landlane.claims.read import list_claims
    from landlane.claims.to_json import claim_json
    from landlane.journal.read import last_word_on
    from landlane.journal.to_json import entry_json

    repo = call.repo
    call.show_life()
    (pattern,) = _paths(call, (path,))
    items = [claim_json(item, repo.store) for item in list_claims(repo, (pattern,))]
    entry = last_word_on(repo, pattern)
    is_path = pattern.kind == "literal"
    change: dict[str, Any] = repo.git.last_change(pattern.text) if is_path else {}
    lines = [f"{item['holder']} holds {in_one_line(item['pattern'])} until {item['until']}" for item in items]
    lines = lines or ["nobody holds it"]
    if entry is not None:
        last = entry_json(entry)
        lines.append(f"last in the journal: {last['kind']} by {last['agent']} at {last['at']}")
    if change:
        task = f" for {change['task']}" if change["task"] else ""
        by = f"{change['agent'] or change['author']}{task}"
        told = f"last changed by {by} at {change['at']}: {change['commit'][:12]} {change['subject']}"
        lines.append(in_one_line(told))
    answer = {
        "ok": True,
        "path": pattern.text,
        "claims": items,
        "last_entry": entry_json(entry) if entry else None,
        "last_change": change or None,
    }
    call.terminal.answer(answer, "\n".join(lines))
    return 0

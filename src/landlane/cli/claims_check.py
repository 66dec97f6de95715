"""`landlane check`: whether this session may change paths."""

from __future__ import annotations

import shlex

from landlane.claims.check import check as check_path
from landlane.claims.to_json import claim_json
from landlane.cli.claims import read_paths
from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line
from landlane.patterns.pattern import has_special

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall


_STANDINGS = {
    "held": (0, "", "is yours to change"),
    "free": (0, "", "never needs a claim"),
    "unclaimed": (0, "", "is held by nobody"),
    "other": (3, "CLAIM_HELD", "is held by another session"),
    "required": (6, "CLAIM_REQUIRED", "must be claimed before it is changed"),
}


def check(call: CommandCall, paths: tuple[str, ...], token: str, literal: bool) -> int:
    """Show for each path whether this session may change it now."""
    repo = call.repo
    number = read_number(token, "--token")
    wanted = read_paths(call, paths, literal)
    session = call.known_session()
    found = [check_path(repo, session, path, number) for path in wanted]
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
    """Return the claim command to run next, with the path as the caller typed it."""
    literal = ["--literal"] if has_special(word) else []
    return shlex.join(["landlane", "claim", word, *literal, *(["--wait", "10m"] if is_waiting else [])])

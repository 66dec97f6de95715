"""`landlane completion`: print a shell's completion script, and answer what it asks.

The scripts call `landlane completion SHELL -- WORDS`, with the word under the cursor last, and get one
candidate per line, with a description after a tab.
"""

from __future__ import annotations

import os

from landlane.cli.parse import find_command
from landlane.cli.specs.table import COMMON, HEADINGS, LISTED_ALONE, commands_of
from landlane.errors import LandlaneError, Malformed
from landlane.gates.records import list_gates
from landlane.landing.records import list_landings
from landlane.rescue.refs import list_rescues
from landlane.reviews.close import list_reviews
from landlane.roles.model import roles_of
from landlane.sessions.leases import list_live_sessions
from landlane.settings.edit import all_keys
from landlane.tasks.model import FINISHED
from landlane.tasks.records import list_tasks
from landlane.workspaces.records import list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from landlane.cli.command import CommandCall
    from landlane.cli.specs.model import Argument, Command, Option
    from landlane.repository import Repository

    Candidate = tuple[str, str]


_SCRIPTS = {
    "bash": """\
_landlane() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\\t'*}
        COMPREPLY+=("$(printf '%q' "$line")")
        [[ $line == */ ]] && compopt -o nospace
    done < <(landlane completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _landlane landlane
""",
    "zsh": """\
#compdef landlane
_landlane() {
    local -a candidates
    candidates=("${(@f)$(landlane completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    local candidate
    local -a plain described
    for candidate in $candidates; do
        [[ -n $candidate ]] || continue
        plain+=("${candidate%%$'\\t'*}")
        described+=("${candidate/$'\\t'/  }")
    done
    compadd -Q -d described -a plain
}
compdef _landlane landlane
""",
    "fish": """\
function __landlane
    landlane completion fish -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c landlane -f -a '(__landlane)'
""",
}


def completion(call: CommandCall, shell: str, words: tuple[str, ...]) -> int:
    """Print the completion script of a shell, or the candidates that its script asks for."""
    if shell not in _SCRIPTS:
        raise Malformed(
            f"no completion for {shell[:40]}; use {', '.join(_SCRIPTS)}",
            code="UNKNOWN_SHELL",
            hint="landlane completion bash",
        )
    if not words:
        script = _SCRIPTS[shell]
        call.terminal.answer({"ok": True, "shell": shell, "script": script}, script.rstrip("\n"))
        return 0
    found = candidates(words, lambda kind: _values(call, kind))
    lines = [f"{word}\t{text}" if text else word for word, text in found]
    call.terminal.answer(
        {"ok": True, "candidates": [{"word": word, "text": text} for word, text in found]}, "\n".join(lines)
    )
    return 0


def candidates(words: Sequence[str], values: Callable[[str], Iterable[Candidate]]) -> list[Candidate]:
    """Return what the last word may become, with descriptions; `values` lists tasks, agents and the like."""
    *before, current = words
    if "--" in before:
        return _files(current)
    path, plain, waiting = _scan(before)
    command = find_command(path) or find_command(LISTED_ALONE.get(path, ""))
    options = (*(command.options if command else ()), *COMMON)
    if waiting is not None:
        found = [(choice, "") for choice in waiting.choices] or _of_kind(waiting.completes, current, values)
    elif current.startswith("-"):
        found = [(option.name, option.help) for option in options]
    elif not path:
        found = [(name, text) for heading in HEADINGS for name, text in heading.lines.items()]
    else:
        found = _arguments(path, command, plain, current, values)
    return [(word, text) for word, text in found if word.startswith(current)]


def _scan(before: Sequence[str]) -> tuple[str, list[str], Option | None]:
    """Return the command so far, its arguments, and the option whose value comes next."""
    path, plain, waiting = "", list[str](), None
    for word in before:
        if waiting is not None:
            waiting = None
        elif word.startswith("-"):
            command = find_command(path) or find_command(LISTED_ALONE.get(path, ""))
            named = {option.name: option for option in (*(command.options if command else ()), *COMMON)}
            option = named.get(word)
            waiting = option if option is not None and not option.is_flag else None
        elif not path or (not plain and find_command(f"{path} {word}")):
            path = f"{path} {word}".strip()
        else:
            plain.append(word)
    return path, plain, waiting


def _arguments(
    path: str,
    command: Command | None,
    plain: Sequence[str],
    current: str,
    values: Callable[[str], Iterable[Candidate]],
) -> list[Candidate]:
    verbs: list[Candidate] = []
    if " " not in path and not plain:
        named = ((one.path.removeprefix(f"{path} "), one.summary.rstrip(".")) for one in commands_of(path))
        verbs = [(word, text) for word, text in named if word != path]
    argument = _argument_at(command, len(plain)) if command and command.path == path else None
    return [*verbs, *(_of_kind(argument.completes, current, values) if argument else ())]


def _argument_at(command: Command, position: int) -> Argument | None:
    for index, argument in enumerate(command.arguments):
        if index == position or argument.is_many:
            return argument
    return None


def _of_kind(kind: str, current: str, values: Callable[[str], Iterable[Candidate]]) -> list[Candidate]:
    if kind in ("path", "file"):
        return _files(current)
    if kind == "command":
        return [(name, text) for heading in HEADINGS for name, text in heading.lines.items()]
    return list(values(kind)) if kind else []


def _files(current: str) -> list[Candidate]:
    folder, _, start = current.rpartition("/")
    prefix = f"{folder}/" if folder or current.startswith("/") else ""
    try:
        entries = sorted(os.scandir(prefix or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        (f"{prefix}{entry.name}/" if entry.is_dir() else f"{prefix}{entry.name}", "")
        for entry in entries
        if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith("."))
    ]


def _values(call: CommandCall, kind: str) -> list[Candidate]:
    """Return the values of a kind in this repository; none outside of one."""
    try:
        return _settings() if kind == "setting" else sorted(_LISTS[kind](call.repo))
    except LandlaneError:
        return []


def _settings() -> list[Candidate]:
    return [(setting.name, setting.key.text) for setting in all_keys()]


def _agents(repo: Repository) -> list[Candidate]:
    sessions = repo.store.view(list_live_sessions)
    named = {session.agent: "active" for session in sessions}
    return list((dict.fromkeys(repo.settings.agents, "[agents]") | named).items())


_LISTS: dict[str, Callable[[Repository], list[Candidate]]] = {
    "agent": _agents,
    "gate": lambda repo: [(gate.id, gate.why) for gate in list_gates(repo)],
    "landing": lambda repo: [(landing.id, landing.branch) for landing in list_landings(repo)],
    "rescue": lambda repo: [
        (rescue.id, str(rescue.facts.get("reason", ""))) for rescue in list_rescues(repo.common_dir)
    ],
    "review": lambda repo: [(review.id, review.task) for review in list_reviews(repo)],
    "role": lambda repo: [(name, role.summary) for name, role in roles_of(repo.settings).items()],
    "task": lambda repo: [(task.id, task.title) for task in list_tasks(repo) if task.state not in FINISHED],
    "workspace": lambda repo: [(one.id, one.task) for one in list_workspaces(repo)],
}

"""Plans: tasks with what each needs and waits for, as a file says it, before any of them is in the queue.

A plan is written as TOML (`toml.py`) or as a Markdown checklist (`markdown.py`). Both readers hand
over facts with the lines they stand in; this module alone says which facts there are and what they may hold.
`graph.py` puts tasks in order, `check.py` judges the whole.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from landlane.clients.model import CLIENTS
from landlane.clock import parse_duration
from landlane.errors import Malformed
from landlane.ids import digest
from landlane.reviews.model import check_step
from landlane.tasks.model import LONGEST_TITLE, NewTask, check_new
from landlane.text import nearest_word
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Given = Mapping[str, tuple[object, int]]  # fact → what was written, and the line

MOST_TASKS = 1000
MOST_CONTRACTS = 50  # everything else waits for each of them
MOST_PATHS = 3000  # of all tasks together: each is compared with many others
MOST_CHARACTERS = 4_000_000
# Agents that a task may ask for: coding clients, or `command` for a worker of one's own.
AGENTS = (*CLIENTS, "command")
_LONGEST_NAME = 300
_LONGEST_ID = 100
_MOST_NEEDS = 10
_MICROS = 1_000_000
_MOST_MICROS = 1_000_000 * _MICROS
_KEY_LETTERS = 20


@value
class PlanTask:
    """One task of a plan. `name` is what others in the plan call it; without one of its own, its title."""

    name: str
    title: str
    line: int = 0
    body: str = ""
    paths: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    role: str = ""
    agent: str = ""
    kind: str = ""
    check: str = ""
    output: str = ""
    priority: int = 0
    attempts: int = 3
    estimate_ms: int | None = None
    budget_micros: int | None = None  # millionths of a US dollar, for one attempt
    needs: tuple[tuple[str, int], ...] = ()
    review: int = 0  # how many verdicts it needs before it lands
    reviewers: tuple[str, ...] = ()
    decider: str = ""
    is_contract: bool = False  # must land before whatever is not
    is_ticked: bool = False


@value
class Plan:
    """What is to be done, in the order in which it was written."""

    title: str
    tasks: tuple[PlanTask, ...]
    id: str = ""
    budget_micros: int | None = None  # no more than this for all of it

    @property
    def digest(self) -> str:
        """What tells this plan from others: its id, else its title, else all that it asks for.

        It stays the same when a box is ticked or, in a plan that has a name, a task is added.
        """
        if self.id or self.title:
            return digest(f"plan\n{self.id or _plain(self.title)}")
        return digest("\n".join(["tasks", *(f"{_plain(one.name)}\t{one.title}" for one in self.tasks)]))

    def key_of(self, task: PlanTask) -> str:
        """The key under which a task of this plan stands in the queue."""
        return f"plan:{self.digest[:_KEY_LETTERS]}:{digest(_plain(task.name))[:_KEY_LETTERS]}"


def bad(line: int, message: str, hint: str) -> Malformed:
    """Something in a plan cannot be understood."""
    where = f"line {line}: " if line else ""
    return Malformed(f"{where}{message}", code="BAD_PLAN", hint=hint, line=line)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


# --------------------------------------------------------------------------------------------- facts


def _text(found: object, what: str, line: int) -> str:
    if not isinstance(found, str):
        raise bad(line, f"{what} must be a text, not {_shown(found)}", f'write {what} = "…"')
    return found


def _texts(found: object, what: str, line: int) -> tuple[str, ...]:
    many = [found] if isinstance(found, str) else found
    if not isinstance(many, (list, tuple)) or not all(isinstance(one, str) for one in many):  # pyright: ignore[reportUnknownVariableType]
        raise bad(line, f"{what} must be a list of texts, not {_shown(found)}", f'write {what} = ["…", "…"]')
    return tuple(dict.fromkeys(many))  # pyright: ignore[reportUnknownArgumentType]


def _whole(found: object, what: str, line: int) -> int:
    text = str(found).strip()
    digits = text.removeprefix("-")
    is_number = isinstance(found, (int, str)) and not isinstance(found, bool)
    if not is_number or not (digits.isascii() and digits.isdigit()) or len(digits) > 6:
        raise bad(line, f"{what} must be a whole number, not {_shown(found)}", f"write it as {what}: 2")
    return int(text)


def _length(found: object, what: str, line: int) -> int:
    if not isinstance(found, str):
        raise bad(line, f"{what} must be a length of time, not {_shown(found)}", 'write it as "45m" or "2h"')
    try:
        return parse_duration(found, what=what)
    except Malformed as error:
        raise bad(line, error.message, error.hint) from None


def _money(found: object, what: str, line: int) -> int:
    is_number = isinstance(found, (int, float, str)) and not isinstance(found, bool)
    text = str(found).strip().removeprefix("$").removesuffix("USD").strip()
    try:
        micros = Decimal(text) * _MICROS if is_number and len(text) < 40 else Decimal("nan")
        is_sum = micros.is_finite() and 0 <= micros <= _MOST_MICROS
    except InvalidOperation:
        is_sum = False
    if not is_sum:
        raise bad(
            line, f"{what} must be an amount in US dollars, not {_shown(found)}", f"write it as {what}: 1.50"
        )
    return int(micros)  # pyright: ignore[reportPossiblyUnboundVariable]


def _switch(found: object, what: str, line: int) -> bool:
    known = {"true": True, "yes": True, "": True, "false": False, "no": False}
    word = str(found).strip().lower()
    if not isinstance(found, (bool, str)) or word not in known:
        raise bad(line, f"{what} must be yes or no, not {_shown(found)}", f"write it as {what}: yes")
    return known[word]


def _needs(found: object, what: str, line: int) -> tuple[tuple[str, int], ...]:
    """Resources and how much of each: a table, or texts such as `gpu=8`."""
    table: Any = found
    if isinstance(table, dict):
        pairs: list[tuple[str, object]] = list(table.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    else:
        words = [word.strip() for one in _texts(found, what, line) for word in one.split(",")]
        pairs = [(name.strip(), amount or "1") for name, _, amount in (word.partition("=") for word in words)]
    read = tuple((name, _whole(amount, f"{what} {name}", line)) for name, amount in pairs)
    are_usable = all(name and name.isascii() and name.isprintable() and amount > 0 for name, amount in read)
    if not are_usable or len(read) > _MOST_NEEDS:
        raise bad(
            line, f"{what} cannot be understood: {_shown(found)}", "write it as needs: gpu=8, licence=1"
        )
    return read


def _shown(found: object) -> str:
    text = repr(found)
    return text if len(text) <= 60 else text[:57] + "…"


# fact → (field of PlanTask, its reader, what it means). The how-to page shows the same table.
FACTS: dict[str, tuple[str, Callable[[object, str, int], Any], str]] = {
    "name": ("name", _text, "what other tasks call it"),
    "title": ("title", _text, "what is to be done, in one line"),
    "body": ("body", _text, "the description"),
    "paths": ("paths", _texts, "patterns of what it will change, from the root of the repository"),
    "after": ("after", _texts, "tasks that must be done first: a name, a title, or an id such as T7"),
    "labels": ("labels", _texts, "words to find it by"),
    "role": ("role", _text, "only for agents in this role"),
    "agent": ("agent", _text, "the coding client that should do it, or `command`"),
    "kind": ("kind", _text, "what counts as evidence"),
    "check": ("check", _text, "the command that proves it"),
    "output": ("output", _text, "the file that a task without git makes"),
    "priority": ("priority", _whole, "each step is worth an hour of waiting"),
    "attempts": ("attempts", _whole, "how often it may fail"),
    "estimate": ("estimate_ms", _length, "how long it may take, such as 45m"),
    "budget": ("budget_micros", _money, "what one attempt may cost, in US dollars"),
    "needs": ("needs", _needs, "resources it takes, such as gpu=8"),
    "review": ("review", _whole, "how many reviewers must approve it before it lands"),
    "reviewers": ("reviewers", _texts, "who reviews it, each with a verdict of its own"),
    "decider": ("decider", _text, "who decides when they disagree: an agent, or `person`"),
    "contract": ("is_contract", _switch, "an interface that must land before everything else"),
}
SHARED_FACTS = frozenset(
    {
        *("role", "agent", "kind", "attempts", "estimate", "budget", "needs", "labels"),
        *("review", "reviewers", "decider"),
    }
)


def unknown_fact(word: str, known: Sequence[str], line: int) -> Malformed:
    """There is no such fact; the nearest one is named."""
    near = nearest_word(word, known)
    meant = f"did you mean {near}? " if near else ""
    return bad(line, f"a plan knows no {word[:40]!r}", f"{meant}known: {', '.join(known)}")


def make_task(given: Given, line: int, *, is_ticked: bool = False) -> PlanTask:
    """A task out of the facts that were written, each of them checked.

    Raises:
        Malformed: one is unknown, or holds something else than it should; the line is named.
    """
    fields: dict[str, Any] = {}
    for word, (found, at) in given.items():
        if word not in FACTS:
            raise unknown_fact(word, list(FACTS), at)
        field, reader, _ = FACTS[word]
        fields[field] = reader(found, word, at)
    title = fields.get("title", "") or fields.get("name", "")
    if not title.strip():
        raise bad(line, "a task has no title", 'write title = "what is to be done"')
    fields["title"] = " ".join(title.split())
    fields["name"] = " ".join((fields.get("name", "") or title).split())
    if len(fields["name"]) > _LONGEST_NAME:
        raise bad(
            line,
            f"a name has {len(fields['name'])} characters",
            f"use {_LONGEST_NAME} at most",
        )
    task = PlanTask(line=line, is_ticked=is_ticked, **fields)
    _check_task(task, given)
    return task


def _check_task(task: PlanTask, given: Given) -> None:
    """Hold a task to the limits of the queue now, where its line can still be named."""
    try:
        check_new(new_task(task, ""))
    except Malformed as error:
        word = next((one for one in given if one in error.message), "")
        raise bad(given[word][1] if word else task.line, error.message, error.hint) from None


def new_task(task: PlanTask, key: str, *, after: tuple[str, ...] = ()) -> NewTask:
    """The task as the queue is asked for it.

    What the queue has no field for stands in labels, where a pool of workers finds it.
    """
    more = [f"agent:{task.agent}"] if task.agent else []
    more += [f"needs:{name}={amount}" for name, amount in task.needs]
    more += [f"budget:{money_text(task.budget_micros)}"] if task.budget_micros is not None else []
    more += check_step(task.review, task.reviewers, task.decider)
    more += ["contract"] if task.is_contract else []
    return NewTask(
        title=task.title,
        body=task.body,
        kind=task.kind,
        role=task.role,
        priority=task.priority,
        paths=task.paths,
        after=after,
        max_attempts=task.attempts,
        check=task.check,
        output=task.output,
        key=key,
        labels=tuple(dict.fromkeys((*task.labels, *more))),
    )


def money_text(micros: int) -> str:
    """An amount for people: two places, or as many as it has."""
    whole, rest = divmod(micros, _MICROS)
    places = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{whole}.{places}"


def read_money(found: object, what: str, line: int) -> int:
    """Millionths of a US dollar.

    Raises:
        Malformed: it is no amount.
    """
    return _money(found, what, line)


# ------------------------------------------------------------------------------------------- the whole


def make_plan(
    title: str, tasks: Sequence[PlanTask], *, id: str = "", budget_micros: int | None = None
) -> Plan:
    """A plan whose tasks have names of their own; titles in `after` become names.

    Raises:
        Malformed: two tasks have one name, there is none, or there are too many.
    """
    if not tasks:
        raise bad(0, "there is no task in this plan", "write `- [ ] what is to be done`, or [[task]] in TOML")
    if len(tasks) > MOST_TASKS:
        raise bad(tasks[MOST_TASKS].line, f"{len(tasks):,} tasks in one plan", f"{MOST_TASKS:,} are the most")
    paths = sum(len(task.paths) for task in tasks)
    if paths > MOST_PATHS:
        raise bad(0, f"{paths:,} paths in one plan", f"{MOST_PATHS:,} are the most; name folders or globs")
    contracts = [task for task in tasks if task.is_contract]
    if len(contracts) > MOST_CONTRACTS:
        line = contracts[MOST_CONTRACTS].line
        raise bad(line, f"{len(contracts)} contracts in one plan", f"{MOST_CONTRACTS} are the most")
    if len(id) > _LONGEST_ID or len(title) > LONGEST_TITLE:
        raise bad(0, "the id or the title of the plan is too long", f"use {_LONGEST_ID} characters")
    names: dict[str, PlanTask] = {}
    for task in tasks:
        other = names.setdefault(_plain(task.name), task)
        if other is not task:
            raise bad(
                task.line,
                f"two tasks are called {task.name[:60]!r}; the other stands in line {other.line}",
                "give one of them a name of its own",
            )
    for task in tasks:  # a title is as good as a name, unless it is one
        names.setdefault(_plain(task.title), task)
    return Plan(
        title=" ".join(title.split()),
        tasks=tuple(_with_names(task, names) for task in tasks),
        id=id,
        budget_micros=budget_micros,
    )


def _with_names(task: PlanTask, names: Mapping[str, PlanTask]) -> PlanTask:
    if not task.after:
        return task
    found = (names[_plain(one)].name if _plain(one) in names else one.strip() for one in task.after)
    return replace(task, after=tuple(dict.fromkeys(found)))

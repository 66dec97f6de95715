"""Every request that a sandboxed caller may send: none runs a command of the caller outside the sandbox."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import landlane
from landlane.app.open import open_repository
from landlane.cli.sandboxed.requests import REQUESTS
from landlane.cli.serve_sandboxed import refusal_of
from landlane.cli.specs.table import NO_COMMAND, all_commands
from landlane.errors import NotAllowed
from landlane.resident.messages import pack_request, send_request
from landlane.tasks.add import add_task
from landlane.tasks.import_checklist import import_checklist
from landlane.tasks.model import NewTask
from landlane.tasks.records import list_tasks
from tests.support.resident import ResidentTestbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.repository import Repository

pytestmark = pytest.mark.integration

# A call of each request, in an order in which most succeed. RUN is a command that would leave a file behind.
CALLS = """
help
status
task add 'Add RUN' --body=- --path a.py --key RUN --label agent:command --next RUN
task add Trap --check RUN
task add Part
task import -
next
task split T1 -
task edit T1 --title RUN --body=-
task after T2 T1
task block T2 --why RUN
task unblock T2
task retry T2 --why RUN
task list --markdown
task show T1
task log T1
task parts --all
claim 'RUN' b.py --note RUN
renew
check b.py
claims
who b.py
release b.py
sync
handoff T1 --to mole --next RUN --product=-
handoff list
handoff show T1
handoff accept T1
handoff decline T1 --why RUN
gate ask T1 --why RUN
gate list
gate show G1
gate withdraw G1 --why RUN
done T1 --result=-
fail T1 --why RUN
task drop T2 --why RUN
land work
queue list --conflicts
queue show L1
review list
review show V1
review give V1 --verdict approve --summary RUN --findings=-
review withdraw V1
review adopt V1
state set check RUN --any
state append list RUN
state get check
state check check=1
state list
state history check
state watch check --since 0 --timeout 1s
slot take name --name x
slot list
slot free S1
number adr --for RUN
number list adr
deploy history
rules show
rules ack RUN
rules report
log
stats
usage
usage list
leave
"""


@pytest.fixture
def served(repository: Path) -> Iterator[ResidentTestbed]:
    made = ResidentTestbed(repository, Path(landlane.__file__).parents[1])
    yield made
    made.kill()


def ask(served: ResidentTestbed, guest: str, words: list[str], stdin: str) -> dict[str, Any]:
    """Send a request as a sandboxed caller that bypasses the command line, and return its answer."""
    encoded = [os.fsencode(word) for word in [*words, "--json"]]
    shown = {b"LANDLANE_SESSION": guest.encode()}
    request = pack_request(b"call", os.fsencode(served.repository), encoded, shown, stdin.encode())
    answer = send_request(served.start(), request, 60.0)
    assert answer is not None, words
    return json.loads(answer[1].splitlines()[0]) if answer[1].startswith(b"{") else {}


@pytest.mark.promise(
    "guests.run-nothing-outside",
    "No request of a sandboxed caller runs a command that it brings outside the sandbox, or stores one.",
)
@pytest.mark.slow
def test_no_request_runs_or_stores_a_command_of_the_caller(served: ResidentTestbed) -> None:
    trap = served.repository.parent / "ran"
    guest = served.join("mole")
    stdin = f"- [ ] Moon (check: touch {trap}) (kind: chore)\n"
    tried: set[str] = {""}
    done = 0
    ask(served, guest, [], "")
    for line in CALLS.strip().splitlines():
        words = [word.replace("RUN", f"touch {trap}") for word in shlex.split(line)]
        answer = ask(served, guest, words, stdin)
        assert answer.get("code") not in ("INTERNAL_ERROR", "BAD_USAGE", "UNKNOWN_OPTION"), (words, answer)
        done += bool(answer.get("ok"))
        tried.add(next(path for path in (" ".join(words[:2]), words[0]) if path in REQUESTS))

    assert tried == set(REQUESTS)
    assert done >= 45
    assert not trap.exists()
    with_checks = [
        task for task in served.outside.run_json("task", "list", "--all")["tasks"] if task["check"]
    ]
    assert with_checks == []


def test_the_page_about_the_sandbox_lists_every_request() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "sandbox.md").read_text(encoding="utf-8")
    rows = page.partition("| requests | can cause outside |")[2].partition("\n\n")[0].splitlines()[2:]
    listed = [name.strip("` ") for row in rows for name in row.split("|")[1].split(",")]
    assert sorted(listed) == sorted({**REQUESTS, "landlane": ""}.keys() - {""})


def test_only_listed_commands_are_for_guests() -> None:
    allowed = {one.path for one in (NO_COMMAND, *all_commands()) if refusal_of(one, {}) is None}
    assert allowed == set(REQUESTS)


@pytest.mark.parametrize(
    "operation",
    [
        lambda repo: add_task(repo, None, NewTask(title="Moon", check="id")),
        lambda repo: import_checklist(repo, None, "- [ ] Sun\n- [ ] Moon (check: id)\n"),
    ],
    ids=["add", "import"],
)
def test_the_operation_refuses_a_check_of_a_guest(
    repository: Path, operation: Callable[[Repository], object]
) -> None:
    repo = open_repository(str(repository), is_guest=True)
    with pytest.raises(NotAllowed, match="outside the sandbox") as refused:
        operation(repo)
    assert refused.value.code == "NOT_IN_SANDBOX"
    assert list_tasks(repo) == []  # all or nothing
    repo.store.close()

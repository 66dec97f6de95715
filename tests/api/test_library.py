"""The Python library where the command line has no words for it: keys, certain tasks, and who answers."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from landlane import Landlane
from landlane.errors import NotAllowed, Stale
from landlane.testing.repositories import make_repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

ANSWERING = """
from landlane import Landlane
with Landlane() as pat:
    print(pat.gates.answer("G1", approve=True).state)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


def test_a_change_with_a_key_is_made_once(shop: Path) -> None:
    with Landlane(shop, agent="ann") as ann, Landlane(shop, agent="bob") as bob:
        for title in ("Hand it on", "Try it again", "Split it"):
            ann.tasks.add(title, kind="chore", force=True)
            ann.tasks.next()

        sent = [ann.handoffs.send("T1", to="bob", next="test it", key="a") for _ in range(2)]
        ended = [ann.retries.end("T2", "it is red", key="b") for _ in range(2)]
        split = [ann.fans.out("T3", ["left", "right"], key="c", memo=lambda it: it.fan.id) for _ in range(2)]

        assert sent[0] == sent[1]
        assert [one.outcome for one in ended] == ["retry", "retry"]
        assert [one.fan.id for one in split] == ["F1", "F1"]
        # Without the time, which is computed for the calendar: it may differ by a millisecond.
        assert [(task.id, task.title, task.key) for task in split[0].tasks] == [
            (task.id, task.title, task.key) for task in split[1].tasks
        ]
        assert ann.retries.budget("T2").attempts == 1
        assert ann.retries.feedback("T2") == ("it is red",)
        step = bob.steps.get("c")
        assert step is not None
        assert (step.about, step.memo) == ("F1", "F1")
        with pytest.raises(Stale):
            ann.handoffs.send("T1", to="bob", next="once more", key="d")


def test_a_certain_task_is_taken_if_it_can_be_had(shop: Path) -> None:
    with Landlane(shop, agent="ann") as ann, Landlane(shop, agent="bob") as bob:
        entered = ann.tasks.enter("- [ ] Write the parser\n- [ ] Test it\n")
        first, second = [task.id for task in entered.tasks]

        picked = bob.tasks.take(second)

        assert picked is not None
        assert (picked.task.title, picked.task.owner) == ("Test it", "bob")
        assert ann.tasks.take(second) is None
        assert ann.tasks.get(first).state == "ready"


@pytest.mark.slow
def test_only_the_person_at_the_terminal_answers_a_gate(shop: Path) -> None:
    with Landlane(shop, agent="ann") as ann:
        ann.tasks.add("Raise the price", kind="chore")
        ann.tasks.next()
        ann.gates.ask("T1", "May I?", about="amount=10 EUR")
        with pytest.raises(NotAllowed) as refused:
            ann.gates.answer("G1", approve=True)
        assert refused.value.code == "NOT_A_PERSON"
        with Landlane(shop) as script, pytest.raises(NotAllowed) as refused:
            script.gates.answer("G1", approve=True)  # a person's name, and nobody at a terminal
        assert refused.value.code == "NOT_A_PERSON"

        assert answer_at_terminal(shop, LANDLANE_AGENT="ann") != 0
        assert answer_at_terminal(shop, CLAUDECODE="1") != 0
        assert ann.gates.get("G1").state == "waiting"
        assert answer_at_terminal(shop) == 0

        assert ann.gates.wait("G1", "10s").state == "approved"
        assert ann.tasks.get("T1").owner == "ann"


def answer_at_terminal(folder: Path, **environment: str) -> int:
    """How a script ends that answers a gate, run by a person at a terminal."""
    terminal, slave = pty.openpty()
    try:
        return subprocess.run(
            [sys.executable, "-c", ANSWERING],
            cwd=folder,
            env={**os.environ, "USER": "pat", **environment},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            timeout=60,
        ).returncode
    finally:
        os.close(slave)
        os.close(terminal)


def test_leaving_removes_the_sign_of_life_of_the_session(shop: Path) -> None:
    signs = shop / ".git" / "landlane" / "activity"
    with Landlane(shop, agent="ann") as ann:
        ann.claim("a.py")
        assert [path.name for path in signs.iterdir()] == [ann.session.id]

        assert ann.leave() == ("a.py",)

        assert list(signs.iterdir()) == []

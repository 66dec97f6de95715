"""Gates for Python agents: `Landlane.gates`. Any agent may ask; a person answers at a terminal."""

from __future__ import annotations

import os

from landlane.clients.calling_process import why_not_a_person
from landlane.clock import parse_duration
from landlane.errors import NotAllowed
from landlane.gates import ask as gates
from landlane.gates import decide as gates_decide
from landlane.gates.model import APPROVAL, Gate
from landlane.gates.subject import ask_person, ask_plainly, check_unmoved, wait_for_answer
from landlane.roles import require_person

__all__ = ["Gate", "Gates"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session


class Gates:
    """Questions to a person, asked by one session."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def ask(
        self, task: str, why: str, *, kind: str = APPROVAL, about: str = "", wait: str | float = 0
    ) -> Gate:
        """Ask about one of your tasks, which is paused until the answer; check `state` of the result.

        `about` is a commit, a file or NAME=TEXT; without it, the head of the task's branch. Asking the same
        again finds the same gate, so this is also how to get the answer later, in another process.

        Raises:
            Malformed: the question cannot be stored.
            Stale: the task no longer belongs to this session.
            WaitsForPerson: another question about the task has no answer yet.
        """
        repo, session = self._repo, self._session()
        if repo.checkout.common_dir:
            gate = ask_person(repo.require_git(), session, task, kind, why, about)
        else:
            gate = ask_plainly(repo, session, task, kind, why, about)
        repo.settle()
        wait_ms = parse_duration(str(wait), what="wait")
        return wait_for_answer(repo, session, gate.id, wait_ms) if wait_ms else gate

    def waiting(self) -> list[Gate]:
        """Return what waits for a person, riskiest first."""
        return gates.list_gates(self._repo)

    def wait(self, gate: str, wait: str | float) -> Gate:
        """Return the gate once it is answered, or as it is when the time is up; waiting renews the session.

        Raises:
            Malformed: there is no such gate.
        """
        wait_ms = parse_duration(wait, what="wait") if isinstance(wait, str) else int(wait * 1000)
        return wait_for_answer(self._repo, self._session(), gate, wait_ms)

    def answer(self, gate: str, *, approve: bool, why: str = "", head: str = "") -> Gate:
        """Answer as the person at the terminal of this process; any other caller is refused.

        Example:
            `Landlane().gates.answer("G1", approve=True)` in a script that a person runs.

        Raises:
            Malformed: there is no such gate, or a rejection has no reason.
            NotAllowed: the caller is an agent, there is no terminal, or the gate is not waiting.
            Stale: its subject has changed.
        """
        repo, session = self._repo, self._session()
        variables = [name for name in ("LANDLANE_SESSION", "LANDLANE_AGENT") if os.environ.get(name)]
        why_not = f"{variables[0]} is for agents" if variables else why_not_a_person()
        require_person.check_person(session)
        if why_not:
            raise NotAllowed(
                f"only a person at a terminal can decide this: {why_not}",
                code="NOT_A_PERSON",
                hint="a person runs it in a terminal of their own, that no agent was started from",
            )
        found = gates.get_gate(repo, gate)
        if approve and repo.checkout.common_dir:
            check_unmoved(repo.require_git(), found)
        answered = gates_decide.answer(repo, session, gate, approve=approve, why=why, head=head)
        repo.settle()
        return answered

    def get(self, gate: str) -> Gate:
        """Return one gate, with its answer if it has one.

        Raises:
            Malformed: there is no such gate.
        """
        return gates.get_gate(self._repo, gate)

    def withdraw(self, gate: str, why: str = "") -> Gate:
        """Withdraw a question and resume the task.

        Raises:
            Malformed: there is no such gate.
            NotAllowed: it is not waiting, or another session asked.
        """
        found = gates_decide.withdraw(self._repo, self._session(), gate, why)
        self._repo.settle()
        return found

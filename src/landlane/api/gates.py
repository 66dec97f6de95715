"""Gates for Python agents: `Landlane.gates`. Any agent may ask; a person answers at a terminal."""

from __future__ import annotations

import os

from landlane.api.session_view import Duration, SessionView, milliseconds
from landlane.clients.calling_process import why_not_a_person
from landlane.errors import NotAllowed
from landlane.gates.decide import answer_gate, withdraw_gate
from landlane.gates.model import APPROVAL
from landlane.gates.records import get_gate, list_gates
from landlane.gates.subject import ask_person, check_subject_unchanged, wait_for_answer
from landlane.roles import require_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.api.task_values import Gate


class Gates(SessionView):
    """Questions to a person, asked by one session."""

    def ask(self, task: str, why: str, *, kind: str = APPROVAL, about: str = "", wait: Duration = 0) -> Gate:
        """Ask about one of your tasks, which is paused until the answer; the gate is true once approved.

        `about` is a commit, a file or NAME=TEXT; without it, the head of the task's branch. Asking the same
        again finds the same gate, so this is also how to get the answer later, in another process.

        Raises:
            Malformed: the question cannot be stored.
            Stale: the task no longer belongs to this session.
            WaitsForPerson: another question about the task has no answer yet.
        """
        wait_ms = milliseconds(wait, "wait")
        gate = ask_person(self._repo, self._session, task, kind, why, about)
        self._repo.settle()
        if wait_ms:
            gate = wait_for_answer(self._repo, self._session, gate.id, wait_ms)
        return self._public(gate)

    def waiting(self) -> list[Gate]:
        """Return what waits for a person, riskiest first."""
        return self._public(list_gates(self._repo))

    def wait(self, gate: str, wait: Duration) -> Gate:
        """Return the gate once it is answered, or as it is when the time is up; waiting renews the session.

        Raises:
            Malformed: there is no such gate.
        """
        found = wait_for_answer(self._repo, self._session, gate, milliseconds(wait, "wait"))
        return self._public(found)

    def answer(self, gate: str, *, approve: bool, why: str = "", head: str = "") -> Gate:
        """Answer as the person at the terminal of this process; any other caller is refused.

        Example:
            `Landlane().gates.answer("G1", approve=True)` in a script that a person runs.

        Raises:
            Malformed: there is no such gate, or a rejection has no reason.
            NotAllowed: the caller is an agent, there is no terminal, or the gate is not waiting.
            Stale: its subject has changed.
        """
        repo, session = self._repo, self._session
        variables = [name for name in ("LANDLANE_SESSION", "LANDLANE_AGENT") if os.environ.get(name)]
        why_not = f"{variables[0]} is for agents" if variables else why_not_a_person()
        require_person.check_person(session)
        if why_not:
            raise NotAllowed(
                f"only a person at a terminal can decide this: {why_not}",
                code="NOT_A_PERSON",
                hint="a person runs it in a terminal of their own, that no agent was started from",
            )
        found = get_gate(repo, gate)
        if approve and repo.checkout.common_dir:
            check_subject_unchanged(repo.require_git(), found)
        return self._settled(answer_gate(repo, session, gate, approve=approve, why=why, head=head))

    def get(self, gate: str) -> Gate:
        """Return one gate, with its answer if it has one.

        Raises:
            Malformed: there is no such gate.
        """
        return self._public(get_gate(self._repo, gate))

    def withdraw(self, gate: str, why: str = "") -> Gate:
        """Withdraw a question and resume the task.

        Raises:
            Malformed: there is no such gate.
            NotAllowed: it is not waiting, or another session asked.
        """
        return self._settled(withdraw_gate(self._repo, self._session, gate, why))

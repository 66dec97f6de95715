"""A repository in which agents are at work: claims, a waiter, a question, a held landing, a review."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Running, Shell

SETTINGS = """
[landing]
checks = ["true"]
gate = ["src/pay/**"]
resident = false

[budgets]
day = 20
"""


def make_busy(shell: Shell) -> Running:
    """Fill a repository, and return the command of the agent that waits; the caller ends it."""
    for path in ("src/api.py", "src/pay/card.py", "src/search.py", "docs/pay.md"):
        file = shell.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def f():\n    return 1  # {path}\n", encoding="utf-8")
    (shell.folder / "landlane.toml").write_text(SETTINGS, encoding="utf-8")
    shell.git("add", ".")
    shell.git("commit", "-qm", "Begin")
    add = ("task", "add", "--as", "lead", "--check", "true")
    shell.run_json(*add, "Charge cards", "--path", "src/pay/card.py")
    shell.run_json(*add, "Refund orders", "--path", "src/refund.py")
    shell.run_json(*add, "Document payments", "--path", "docs/pay.md", "--after", "T1", "--after", "T2")
    shell.run_json(*add, "Show prices", "--path", "src/price.py", "--review", "1", "--reviewer", "person")
    card = take(shell, "ann", "T1")
    _finish(shell.at(card), "ann", "T1", "src/pay/card.py", "def charge(amount):\n    return amount * 2\n")
    shell.at(card).run("land", "--as", "ann")
    refund = take(shell, "bob", "T2")
    _write(shell.at(refund), "bob", "src/refund.py", "def refund(order):\n    return order.total\n")
    shell.at(refund).run("gate", "ask", "T2", "--why", "Run migration 0042 on staging?", "--as", "bob")
    price = take(shell, "cara", "T4")
    _finish(
        shell.at(price),
        "cara",
        "T4",
        "src/price.py",
        'EUR = "EUR"\n\n\ndef price(a: int) -> str:\n    return f"{a} {EUR}"\n',
    )
    shell.run_json("claim", "src/api.py", "--as", "dan", "--note", "new endpoint")
    waiter = shell.start("claim", "src/api.py", "--wait", "30m", "--as", "eve")
    shell.wait_for_waiter()
    return waiter


def take(shell: Shell, agent: str, task: str) -> Path:
    """Let an agent take the next task, which must be this one; return its workspace."""
    taken = shell.run_json("next", "--as", agent)
    assert taken["task"]["id"] == task, taken
    opened = shell.run_json("workspace", "open", task, "--as", agent)
    return shell.folder / opened["workspace"]["path"]


def _write(shell: Shell, agent: str, path: str, text: str) -> None:
    file = shell.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    shell.git("add", path)
    shell.run_json("commit", "-m", f"Change {path}", path, "--as", agent)


def _finish(shell: Shell, agent: str, task: str, path: str, text: str) -> None:
    _write(shell, agent, path, text)
    shell.run_json("done", task, "--as", agent)

"""Runs the example graph in processes that are killed again and again, until it is through.

`dying_graph.py FOLDER SEED`: each process dies at a chosen moment, just before or just behind a change of the
store or of LangGraph's checkpoints. A person answers the gate in between. Tells how often it died.
"""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from landlane import Landlane
from landlane.gates.decide import answer_gate
from landlane.repository import Repository

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "langgraph" / "article.py"
_WAITS, _MOST_DEATHS = 7, 60
_counting = threading.Lock()
_left = 0


def load_example() -> Any:
    spec = importlib.util.spec_from_file_location("article", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["article"] = module
    spec.loader.exec_module(module)
    return module


def _moment() -> None:
    global _left
    with _counting:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _mortal(owner: Any, name: str) -> None:
    """Let a method be a moment to die at, before and after."""
    real = getattr(owner, name)

    def method(*given: Any, **more: Any) -> Any:
        _moment()
        found = real(*given, **more)
        _moment()
        return found

    setattr(owner, name, method)


def in_child(work: Callable[[], int]) -> int:
    """How a child ends that does this: its exit code, or the signal below zero."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        except Exception:  # noqa: BLE001 - whatever it is, the test shows it
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(article: Any, die_at: int) -> int:
    global _left
    _left = die_at
    for owner, name in ((Repository, "change"), (SqliteSaver, "put"), (SqliteSaver, "put_writes")):
        _mortal(owner, name)
    return int(article.main("git"))


def _approve() -> int:
    with Landlane() as person:
        for gate in person.gates.waiting():
            answer_gate(person._repo, person._session, gate.id, approve=True)
    return 0


def main(folder: str, seed: int) -> None:
    os.chdir(folder)
    article, chance, deaths = load_example(), random.Random(seed), 0
    while True:
        die_at = chance.randint(1, 30) if deaths < _MOST_DEATHS else 0
        code = in_child(lambda die_at=die_at: _run(article, die_at))
        if code == -signal.SIGKILL:
            deaths += 1
        elif code == _WAITS:
            assert in_child(_approve) == 0
        else:
            print(f"ended with {code} after {deaths} deaths")
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

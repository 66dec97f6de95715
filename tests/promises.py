"""The promises: what users may rely on, each with an identifier and the test that keeps it.

An identifier is `<noun>.<what-holds>` and never changes its meaning; docs and change notes may cite it.
Every bug becomes a promise. The test is named by its pytest node id, and
`tests/architecture/test_promises.py` makes sure that it exists.
"""

from __future__ import annotations

from typing import NamedTuple


class Promise(NamedTuple):
    """One sentence about an outcome, and the node id of the test that proves it."""

    sentence: str
    test: str


PROMISES: dict[str, Promise] = {
    "house.imports-point-down": Promise(
        "No module imports from a layer above its own.",
        "tests/architecture/test_import_contracts.py::test_the_tree_keeps_every_import_contract",
    ),
    "house.every-module-says-what-it-is-for": Promise(
        "The module map shows every module, in the words of its own first line.",
        "tests/architecture/test_module_map.py::test_the_map_is_what_the_modules_say",
    ),
    "cli.quick-start": Promise(
        "Importing the command line loads neither the terminal libraries nor any heavy dependency.",
        "tests/architecture/test_startup_budget.py::test_importing_the_command_line_stays_light",
    ),
}

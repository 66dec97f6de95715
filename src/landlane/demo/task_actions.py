"""The tasks of the demo as its Python workers do them: read files, think, write files.

They are the same in all three modes. With Landlane, workers use it for shared files and for numbers; without
it they look at the existing files.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import sys
import time

from landlane.demo.sample_project import write
from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LIMIT_SECONDS = 60.0
_ANSWER = "mirror-2"  # the person's answer to the question where the rates are


class TaskFailed(Exception):
    """The task cannot be done this way."""


class DemoWorker:
    """A worker in a checkout; `is_coordinated` says whether it uses Landlane."""

    def __init__(
        self, folder: str, think: float, *, is_coordinated: bool = False, attempt: int = 1, notes: str = ""
    ) -> None:
        self.folder = folder
        self.attempt = attempt
        self.notes = notes
        self._think_seconds = think
        self._is_coordinated = is_coordinated

    def think(self) -> None:
        """Sleep for a while, like a thinking model."""
        time.sleep(self._think_seconds)

    def read(self, path: str) -> str:
        """Return the text of a file."""
        with open(os.path.join(self.folder, path), encoding="utf-8") as file:
            return file.read()

    def write(self, path: str, text: str) -> None:
        """Write the text of a file."""
        write(os.path.join(self.folder, path), text)

    def find(self, pattern: str) -> list[str]:
        """Return the files that match a pattern, sorted."""
        return sorted(glob.glob(pattern, root_dir=self.folder))

    def claim(self, path: str, note: str, *options: str) -> None:
        """Claim a file that the task did not declare; the note says why it is needed."""
        self._run_landlane("claim", path, "--note", note, *options, "--wait", "30s")

    def next_number(self, kind: str, pattern: str) -> int:
        """Return the next number of a kind: allocated by Landlane, or the highest existing one plus one."""
        if self._is_coordinated:
            return int(json.loads(self._run_landlane("number", kind, "--json"))["number"])
        names = [os.path.basename(path) for path in self.find(pattern)]
        return max((int(name.split("_")[0]) for name in names), default=0) + 1

    def _run_landlane(self, *words: str) -> str:
        if not self._is_coordinated:
            return ""
        result = Child([sys.executable, "-P", "-m", "landlane", *words], cwd=self.folder).wait(_LIMIT_SECONDS)
        if result.exit_code:
            error = result.stderr.strip()[-500:]
            raise TaskFailed(f"landlane {words[0]} ended with {result.exit_code}: {error}")
        return result.stdout


def do_task(key: str, paths: Sequence[str], worker: DemoWorker) -> None:
    """Do the task that has this key.

    Raises:
        TaskFailed: the task cannot be done.
    """
    action = _ACTIONS.get(key)
    if action is not None:
        action(worker)
    elif paths[0].startswith("shop/features/"):
        _feature(key, paths[0], worker)
    elif paths[0].startswith("migrations/"):
        _migration(key, paths[0], worker)
    else:
        _route(key, worker)


def _feature(key: str, path: str, worker: DemoWorker, body: str = "\n\ndef run():\n    return 1\n") -> None:
    """Add a module, then its line in the shared registry."""
    worker.write(path, f'"""{key}."""  # work[{key}]\n{body}')
    worker.claim("shop/registry.txt", "every feature is registered there", "--shared")
    lines = worker.read("shop/registry.txt").splitlines()
    worker.think()
    name = os.path.basename(path).removesuffix(".py")
    lines.append(f"{name} = work[{key}]")
    worker.write("shop/registry.txt", "".join(f"{line}\n" for line in sorted(lines)))


def _route(key: str, worker: DemoWorker) -> None:
    """Add a line to the shared routes file."""
    text = worker.read("shop/routes.py")
    worker.think()
    name = key.removesuffix("-page")
    line = f'    "/{name}": "{name}",  # work[{key}]\n'
    worker.write("shop/routes.py", text.replace("}\n", f"{line}}}\n"))


def _migration(key: str, pattern: str, worker: DemoWorker) -> None:
    """Add the next migration."""
    number = worker.next_number("migration", "migrations/*.sql")
    worker.think()
    path = pattern.replace("*", f"{number:04}")
    worker.write(path, f"CREATE TABLE {key} (id INTEGER);  -- work[{key}]\n")


def _price_by_country(worker: DemoWorker) -> None:
    """Change a signature and all existing callers."""
    callers = {path: worker.read(path) for path in worker.find("shop/features/*.py")}
    worker.think()
    worker.write(
        "shop/pricing.py",
        "VAT = {'de': 119, 'ch': 108}  # work[price-by-country]\n\n\n"
        "def price(net, country):\n    return net * VAT[country] // 100\n",
    )
    for path, text in callers.items():
        if "price(100)" in text:
            worker.claim(path, "it calls price()")
            worker.write(path, text.replace("price(100)", 'price(100, "de")'))


def _gift_cards(worker: DemoWorker) -> None:
    """Add a caller of `price` with its current signature."""
    call = 'price(100, "de")' if "country" in worker.read("shop/pricing.py") else "price(100)"
    worker.think()
    body = f"from shop.pricing import price\n\n\ndef run():\n    return {call}\n"
    _feature("gift-cards", "shop/features/gift.py", worker, body)


def _interrupted_feature(key: str, worker: DemoWorker, number: signal.Signals) -> None:
    """Hang or die half way, the first time."""
    path = f"shop/features/{key}.py"
    if worker.attempt == 1:
        worker.write(path, "def run(:\n")
        worker.think()
        os.kill(os.getpid(), number)
    _feature(key, path, worker)


def _exchange_rates(worker: DemoWorker) -> None:
    """Look in the wrong place until a person answers where the right one is."""
    source = f"rates/{_ANSWER}.txt" if _ANSWER in worker.notes else "rates/mirror-1.txt"
    worker.think()
    try:
        rates = worker.read(source)
    except OSError as error:
        raise TaskFailed(f"{source} cannot be read: {error.strerror}") from error
    worker.write("shop/rates.txt", f"# work[exchange-rates]\n{rates}")


def _forget_2019(worker: DemoWorker) -> None:
    """Delete something irrevocably."""
    lines = worker.read("data/customers.csv").splitlines()
    worker.think()
    kept = [line for line in lines if not line.endswith(",2019")]
    worker.write("data/customers.csv", "".join(f"{line}\n" for line in ["# work[forget-2019]", *kept]))


_ACTIONS: dict[str, Callable[[DemoWorker], None]] = {
    "price-by-country": _price_by_country,
    "gift-cards": _gift_cards,
    "search": lambda worker: _interrupted_feature("search", worker, signal.SIGSTOP),
    "newsletter": lambda worker: _interrupted_feature("newsletter", worker, signal.SIGKILL),
    "exchange-rates": _exchange_rates,
    "forget-2019": _forget_2019,
}

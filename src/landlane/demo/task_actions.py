"""The actions of the demo's Python workers in their checkout: read, think, write.

The actions are the same in all three modes. With Landlane, workers use it for shared files and for numbers;
without it they look at the files around them.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import sys
import time

from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LIMIT_SECONDS = 60.0
_NAP_SECONDS = 0.05
_ANSWER = "mirror-2"  # the person's answer to the question where the rates are


class Broken(Exception):
    """The work cannot be done this way."""


class Hands:
    """A worker in a checkout; `is_coordinated` says whether it uses Landlane."""

    def __init__(
        self,
        folder: str,
        think: float,
        *,
        is_coordinated: bool = False,
        attempt: int = 1,
        notes: str = "",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self.attempt = attempt
        self.notes = notes
        self.say = say
        self._think = think
        self._is_coordinated = is_coordinated

    def think(self) -> None:
        """Sleep for a while, like a thinking model."""
        deadline = time.monotonic() + self._think
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _NAP_SECONDS))

    def read(self, path: str) -> str:
        """Return the text of a file."""
        with open(os.path.join(self.folder, path), encoding="utf-8") as file:
            return file.read()

    def write(self, path: str, text: str) -> None:
        """Write the text of a file."""
        whole = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(text)

    def find(self, pattern: str) -> list[str]:
        """Return the files that match a pattern, sorted."""
        return sorted(glob.glob(pattern, root_dir=self.folder))

    def share(self, path: str) -> None:
        """Claim a mergeable file, shared with others."""
        self._ask("claim", path, "--shared", "--wait", "30s")

    def claim(self, path: str) -> None:
        """Claim a file that the task did not declare."""
        self._ask("claim", path, "--wait", "30s")

    def next_number(self, kind: str, pattern: str) -> int:
        """Return the next number of a kind: allocated by Landlane, or the highest existing one plus one."""
        if self._is_coordinated:
            return int(json.loads(self._ask("number", kind, "--json"))["number"])
        names = [os.path.basename(path) for path in self.find(pattern)]
        return max((int(name.split("_")[0]) for name in names), default=0) + 1

    def _ask(self, *words: str) -> str:
        if not self._is_coordinated:
            return ""
        ended = Child([sys.executable, "-m", "landlane", *words], cwd=self.folder).wait(_LIMIT_SECONDS)
        if ended.exit_code:
            raise Broken(f"landlane {words[0]} ended with {ended.exit_code}: {ended.stderr.strip()[-500:]}")
        return ended.stdout


def do(key: str, paths: Sequence[str], hands: Hands) -> None:
    """Do the task that has this key.

    Raises:
        Broken: the task cannot be done.
    """
    deed = _DEEDS.get(key)
    if deed is not None:
        deed(hands)
    elif paths[0].startswith("shop/features/"):
        _feature(key, paths[0], hands)
    elif paths[0].startswith("migrations/"):
        _migration(key, paths[0], hands)
    else:
        _route(key, hands)


def _feature(key: str, path: str, hands: Hands) -> None:
    """Add a module, then its line in the shared registry."""
    _write_feature(key, path, hands, "\n\ndef run():\n    return 1\n")


def _write_feature(key: str, path: str, hands: Hands, body: str) -> None:
    hands.write(path, f'"""{key}."""  # work[{key}]\n{body}')
    hands.share("shop/registry.txt")
    lines = hands.read("shop/registry.txt").splitlines()
    hands.think()
    name = os.path.basename(path).removesuffix(".py")
    lines.append(f"{name} = work[{key}]")
    hands.write("shop/registry.txt", "".join(f"{line}\n" for line in sorted(lines)))


def _route(key: str, hands: Hands) -> None:
    """Add a line to the shared routes file."""
    text = hands.read("shop/routes.py")
    hands.think()
    name = key.removesuffix("-page")
    line = f'    "/{name}": "{name}",  # work[{key}]\n'
    hands.write("shop/routes.py", text.replace("}\n", f"{line}}}\n"))


def _migration(key: str, pattern: str, hands: Hands) -> None:
    """Add the next migration."""
    number = hands.next_number("migration", "migrations/*.sql")
    hands.think()
    path = pattern.replace("*", f"{number:04}")
    hands.write(path, f"CREATE TABLE {key} (id INTEGER);  -- work[{key}]\n")


def _price_by_country(hands: Hands) -> None:
    """Change a signature and all existing callers."""
    callers = {path: hands.read(path) for path in hands.find("shop/features/*.py")}
    hands.think()
    hands.write(
        "shop/pricing.py",
        "VAT = {'de': 119, 'ch': 108}  # work[price-by-country]\n\n\n"
        "def price(net, country):\n    return net * VAT[country] // 100\n",
    )
    for path, text in callers.items():
        if "price(100)" in text:
            hands.claim(path)
            hands.write(path, text.replace("price(100)", 'price(100, "de")'))


def _gift_cards(hands: Hands) -> None:
    """Add a caller of `price` with its current signature."""
    call = 'price(100, "de")' if "country" in hands.read("shop/pricing.py") else "price(100)"
    hands.think()
    body = f"from shop.pricing import price\n\n\ndef run():\n    return {call}\n"
    _write_feature("gift-cards", "shop/features/gift.py", hands, body)


def _search(hands: Hands) -> None:
    """Hang half way, the first time."""
    if hands.attempt == 1:
        hands.write("shop/features/search.py", "def run(:\n")
        hands.think()
        os.kill(os.getpid(), signal.SIGSTOP)
    _feature("search", "shop/features/search.py", hands)


def _newsletter(hands: Hands) -> None:
    """Die half way, the first time."""
    if hands.attempt == 1:
        hands.write("shop/features/newsletter.py", "def run(:\n")
        hands.think()
        os.kill(os.getpid(), signal.SIGKILL)
    _feature("newsletter", "shop/features/newsletter.py", hands)


def _exchange_rates(hands: Hands) -> None:
    """Look in the wrong place until a person answers where the right one is."""
    source = f"rates/{_ANSWER}.txt" if _ANSWER in hands.notes else "rates/mirror-1.txt"
    hands.think()
    try:
        rates = hands.read(source)
    except OSError as error:
        raise Broken(f"{source} cannot be read: {error.strerror}") from error
    hands.write("shop/rates.txt", f"# work[exchange-rates]\n{rates}")


def _forget_2019(hands: Hands) -> None:
    """Delete something irrevocably."""
    lines = hands.read("data/customers.csv").splitlines()
    hands.think()
    kept = [line for line in lines if not line.endswith(",2019")]
    hands.write("data/customers.csv", "".join(f"{line}\n" for line in ["# work[forget-2019]", *kept]))


_DEEDS: dict[str, Callable[[Hands], None]] = {
    "price-by-country": _price_by_country,
    "gift-cards": _gift_cards,
    "search": _search,
    "newsletter": _newsletter,
    "exchange-rates": _exchange_rates,
    "forget-2019": _forget_2019,
}

"""Fresh processes: `landlane claim` as agents type it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import landlane
from bench.places import quickest_place, scratch
from bench.table import Row, at_most
from bench.timing import cpu_of_child, medians

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from bench.sizes import Sizes
    from bench.table import Skipped

_PACKAGE = Path(landlane.__file__).parent

_SETTINGS = """
[claims]
ttl = "20m"
required = ["src/shared/**"]
free = ["docs/**", "*.md"]
"""
_SCRIPT = """#!{python}
import sys
from landlane.cli.main import run
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(run())
"""


def bench_command(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The CPU time of `landlane claim`, with and without settings, against a Python that does nothing."""
    place = quickest_place()
    with scratch(place) as folder:
        python, script = install(Path(folder, "environment"))
        plain, with_settings = (make_repository(Path(folder, name)) for name in ("plain", "with-settings"))
        Path(with_settings, "landlane.toml").write_text(_SETTINGS, encoding="utf-8")
        candidates = {
            "plain": _claims_in(plain, [script]),
            "with settings": _claims_in(with_settings, [script]),
            "as module": _claims_in(plain, [python, "-m", "landlane"]),
            "pass": lambda: cpu_of_child([python, "-c", "pass"], plain_environment(), plain),
        }
        found = medians(candidates, sizes.process_rounds, lots, warm=3)
    for name, how in (
        ("plain", "`landlane claim`"),
        ("with settings", "`landlane claim` with a landlane.toml"),
        ("as module", "`python -m landlane claim`"),
    ):
        what = f"CPU of {how}, {place}, against `python -c pass`"
        yield Row(what=what, unit="ms", ours=found[name], peer=found["pass"], aim=at_most(5))


def install(folder: Path) -> tuple[str, str]:
    """A Python and a command in an environment with landlane and nothing else, as users have it.

    What else is installed in ours, such as the test tools, makes every start slower and the ratio too good.
    """
    venv.create(folder, symlinks=True)
    places = {"base": str(folder), "platbase": str(folder)}
    site_packages = Path(sysconfig.get_path("purelib", "venv", vars=places), "landlane")
    shutil.copytree(_PACKAGE, site_packages, ignore=shutil.ignore_patterns("__pycache__"))
    python, script = folder / "bin" / "python", folder / "bin" / "landlane"
    script.write_text(_SCRIPT.format(python=python), encoding="utf-8")
    script.chmod(0o755)
    return str(python), str(script)


def make_repository(folder: Path) -> str:
    """An empty git repository."""
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True, env=plain_environment(), timeout=30)
    return str(folder)


def plain_environment() -> dict[str, str]:
    """A plain one: switches of the caller such as PYTHONDONTWRITEBYTECODE would change what is measured."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", "LANDLANE_AGENT": "bench"}


def _claims_in(repository: str, command: list[str]) -> Callable[[], float]:
    """The CPU time of a command that claims another path each time."""
    numbers = count()
    part = "-".join(Path(word).name for word in command)
    environment = plain_environment()
    return lambda: cpu_of_child(
        [*command, "claim", f"src/{part}/f{next(numbers)}.py"], environment, folder=repository
    )

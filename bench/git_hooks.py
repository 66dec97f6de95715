"""Git's hooks: a plain `git commit` with our hooks, against one without them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.commits import IDENTITY, one_more_commit, repository_with
from bench.fresh import install, plain_environment
from bench.places import quickest_place, scratch
from bench.table import Row, at_most
from bench.timing import cpu_of_child, medians

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from bench.sizes import Sizes
    from bench.table import Skipped

_PATH = "d01/f1.txt"
_SIDES = ("plain", "alone", "holding")


def bench_git_hooks(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The CPU time of a commit with all it starts: by a person, and by an agent that holds the path."""
    place = quickest_place()
    with scratch(place) as folder:
        _, script = install(Path(folder, "environment"))
        environment = plain_environment() | IDENTITY
        person = {key: text for key, text in environment.items() if not key.startswith("LANDLANE_")}
        agent = person | {"LANDLANE_AGENT": "ann"}
        places = {name: repository_with(Path(folder, name), sizes.commit_files, person) for name in _SIDES}
        for name in ("alone", "holding"):
            cpu_of_child([script, "init", "--yes", "--no-clients"], agent, folder=places[name])
        cpu_of_child([script, "claim", _PATH], agent, folder=places["holding"])
        command = ["/bin/sh", "-c", f"git commit --quiet -m Work {_PATH}"]
        candidates = {
            "plain": one_more_commit(places["plain"], _PATH, command, person),
            "alone": one_more_commit(places["alone"], _PATH, command, person),
            "holding": one_more_commit(places["holding"], _PATH, command, agent),
        }
        found = medians(candidates, sizes.process_rounds, lots, warm=2)
    what = f"CPU of `git commit`, {sizes.commit_files:,} files, {place}, with our hooks"
    for name, who, aim in (("alone", "a person alone", 4), ("holding", "an agent that holds the path", 8)):
        yield Row(what=f"{what}: {who}", unit="ms", ours=found[name], peer=found["plain"], aim=at_most(aim))

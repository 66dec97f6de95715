"""The tasks of the demo, designed to conflict, and their assignment without coordination."""

from __future__ import annotations

import random

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PYTHON = "python"
DREAMER = "dreamer"  # a Python worker that hangs once
SHELL = "shell"
FEATURES, REGISTRY, ROUTES = "shop/features/*.py", "shop/registry.txt", "shop/routes.py"
FEWEST_TASKS = 4
_THINKS = (0.2, 0.5)  # seconds between reading and writing


@value
class DemoTask:
    """One task: the files in which its worker leaves `work[key]`, and the paths it declares."""

    id: str
    key: str
    title: str
    places: tuple[str, ...]  # the files that contain `work[key]` when it is done
    paths: tuple[str, ...]  # the declared paths
    agent: str = PYTHON
    about: str = ""  # the conflict that it demonstrates
    think: float = 0.3


def _feature(key: str, name: str, title: str, about: str, agent: str = PYTHON) -> dict[str, Any]:
    own = f"shop/features/{name}.py"
    return {
        "key": key,
        "title": title,
        "places": (FEATURES, REGISTRY),
        "paths": (own,),
        "about": about,
        "agent": agent,
    }


def _route(key: str, title: str, agent: str = PYTHON) -> dict[str, Any]:
    return {
        "key": key,
        "title": title,
        "places": (ROUTES,),
        "paths": (ROUTES,),
        "about": "a held file",
        "agent": agent,
    }


def _table(key: str, title: str) -> dict[str, Any]:
    name = key.replace("-", "_")
    paths = (f"migrations/*_{name}.sql",)
    return {"key": key, "title": title, "places": paths, "paths": paths, "about": "a migration number"}


_TASKS: tuple[dict[str, Any], ...] = (
    {
        "key": "price-by-country",
        "title": "Let prices depend on the country",
        "places": ("shop/pricing.py",),
        "paths": ("shop/pricing.py", "shop/features/basket.py"),
        "about": "a signature changes",
    },
    _feature("gift-cards", "gift", "Sell gift cards", "a new caller of that signature"),
    _route("cart-page", "Show what is in the cart"),
    _route("login-page", "Ask for a password"),
    _feature("health-check", "health", "Add a health check", "the same work"),
    _feature("health-check", "healthz", "Adding the health check", "the same work"),
    _table("ratings", "Store ratings"),
    _table("coupons", "Keep coupons in a table"),
    _route("help-page", "Give advice to visitors", SHELL),
    _feature("newsletter", "newsletter", "Mail a newsletter", "its worker is killed once"),
    _feature("search", "search", "Search the catalogue", "its worker hangs once", DREAMER),
    {
        "key": "exchange-rates",
        "title": "Take over the exchange rates",
        "places": ("shop/rates.txt",),
        "paths": ("shop/rates.txt",),
        "about": "fails twice the same way",
    },
    {
        "key": "forget-2019",
        "title": "Delete customers of 2019",
        "places": ("data/customers.csv",),
        "paths": ("data/customers.csv",),
        "about": "a person must look",
    },
    _feature("wishlist", "wishlist", "Remember wishes", "a shared registry"),
    _feature("returns", "returns", "Accept parcels back", "a shared registry"),
    _feature("compare", "compare", "Weigh two products against each other", "a shared registry"),
    _feature("loyalty", "loyalty", "Reward faithful people", "a shared registry"),
    {
        "key": "opening-hours",
        "title": "Announce opening hours",
        "places": ("CHANGELOG.md",),
        "paths": ("CHANGELOG.md",),
        "agent": SHELL,
    },
    _feature("pickup", "pickup", "Offer collection at a counter", "a shared registry"),
    {
        "key": "licences",
        "title": "Write down which licences are used",
        "places": ("docs/licences.md",),
        "paths": ("docs/licences.md",),
        "agent": SHELL,
    },
)
MOST_TASKS = len(_TASKS)


def make_tasks(seed: int, count: int) -> list[DemoTask]:
    """Return the first tasks; the seed determines the thinking time of each."""
    chance = random.Random(seed)  # noqa: S311 - a story, not a secret
    return [
        DemoTask(id=f"t{number:02}", think=round(chance.uniform(*_THINKS), 2), **facts)
        for number, facts in enumerate(_TASKS[:count], 1)
    ]


def deal(tasks: list[DemoTask], workers: int, seed: int) -> dict[str, list[DemoTask]]:
    """Assign tasks without coordination: one shell worker, and the others in turn."""
    names = [f"python-{number}" for number in range(1, workers)]
    random.Random(seed).shuffle(names)  # noqa: S311 - a story, not a secret
    hands: dict[str, list[DemoTask]] = {name: [] for name in names}
    hands["shell-1"] = [task for task in tasks if task.agent == SHELL]
    others = [task for task in tasks if task.agent != SHELL]
    for number, task in enumerate(others):
        hands[names[number % len(names)]].append(task)
    return {name: own for name, own in hands.items() if own}

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
_THINK_SECONDS = (0.2, 0.5)  # between reading and writing


@value
class DemoTask:
    """One task: the files in which its worker leaves `work[key]`, and the paths it declares."""

    id: str
    key: str
    title: str
    places: tuple[str, ...]  # the files that contain `work[key]` when it is done
    paths: tuple[str, ...]  # the declared paths
    agent: str
    about: str  # the conflict that it demonstrates
    think: float


def _task(
    key: str, title: str, *places: str, paths: tuple[str, ...] = (), about: str = "", agent: str = PYTHON
) -> dict[str, Any]:
    return {
        "key": key,
        "title": title,
        "places": places,
        "paths": paths or places,
        "about": about,
        "agent": agent,
    }


def _feature(
    key: str, name: str, title: str, about: str = "a shared registry", agent: str = PYTHON
) -> dict[str, Any]:
    return _task(
        key, title, FEATURES, REGISTRY, paths=(f"shop/features/{name}.py",), about=about, agent=agent
    )


def _route(key: str, title: str, agent: str = PYTHON) -> dict[str, Any]:
    return _task(key, title, ROUTES, about="a held file", agent=agent)


def _table(key: str, title: str) -> dict[str, Any]:
    return _task(key, title, f"migrations/*_{key}.sql", about="a migration number")


_TASKS = (
    _task(
        "price-by-country",
        "Let prices depend on the country",
        "shop/pricing.py",
        paths=("shop/pricing.py", "shop/features/basket.py"),
        about="a signature changes",
    ),
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
    _task(
        "exchange-rates", "Take over the exchange rates", "shop/rates.txt", about="fails twice the same way"
    ),
    _task("forget-2019", "Delete customers of 2019", "data/customers.csv", about="a person must look"),
    _feature("wishlist", "wishlist", "Remember wishes"),
    _feature("returns", "returns", "Accept parcels back"),
    _feature("compare", "compare", "Weigh two products against each other"),
    _feature("loyalty", "loyalty", "Reward faithful people"),
    _task("opening-hours", "Announce opening hours", "CHANGELOG.md", agent=SHELL),
    _feature("pickup", "pickup", "Offer collection at a counter"),
    _task("licences", "Write down which licences are used", "docs/licences.md", agent=SHELL),
)
MOST_TASKS = len(_TASKS)


def make_tasks(seed: int, count: int) -> list[DemoTask]:
    """Return the first tasks; the seed determines the thinking time of each."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    return [
        DemoTask(id=f"t{number:02}", think=round(chance.uniform(*_THINK_SECONDS), 2), **fields)
        for number, fields in enumerate(_TASKS[:count], 1)
    ]


def assign(tasks: list[DemoTask], workers: int, seed: int) -> dict[str, list[DemoTask]]:
    """Assign tasks without coordination: one shell worker, and the others in turn."""
    names = [f"python-{number}" for number in range(1, workers)]
    random.Random(seed).shuffle(names)  # noqa: S311 - not a secret
    assigned: dict[str, list[DemoTask]] = {name: [] for name in names}
    assigned["shell-1"] = [task for task in tasks if task.agent == SHELL]
    others = [task for task in tasks if task.agent != SHELL]
    for number, task in enumerate(others):
        assigned[names[number % len(names)]].append(task)
    return {name: own for name, own in assigned.items() if own}

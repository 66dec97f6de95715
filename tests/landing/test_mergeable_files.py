"""Hot files: what many branches change at once is joined by its class, and lands with no human step."""

from __future__ import annotations

import json

import pytest

from landlane.claims.model import Refused
from landlane.errors import NotAllowed
from tests.support.landing import SETTINGS, Yard

pytestmark = pytest.mark.integration


HOT = """batch = 8
[landing.merge.files]
"CHANGELOG.md" = "union"
"COUNT" = "counter"
"version.py" = { kind = "counter", pattern = 'BUILD = (\\d+)' }
"names.txt" = "sorted-set"
"package.json" = "keyed-map"
"listing" = { kind = "generated", command = "ls src > listing" }
"""
FILES = {
    "CHANGELOG.md": "# Changes\n\n- Begin\n",
    "COUNT": "0\n",
    "version.py": "NAME = 'x'\nBUILD = 7\n",
    "names.txt": "bert\nzoe\n",
    "package.json": '{\n  "dependencies": {\n    "left": "1.0.0"\n  }\n}\n',
    "src/a": "",
    "listing": "a\n",
}


@pytest.mark.promise(
    "landing.hot-files",
    "Branches that add a line to the changelog and raise a counter all land, and every change counts.",
)
@pytest.mark.slow
def test_ten_branches_add_a_line_and_raise_a_counter(yard: Yard) -> None:
    yard.configure('["test $(wc -l < COUNT) = 1"]', HOT, FILES)
    for number in range(10):
        lines = FILES["CHANGELOG.md"] + f"- Change {number}\n"
        yard.branch(f"b{number}", {"CHANGELOG.md": lines, "COUNT": "1\n", f"src/f{number}": "x"})
        yard.claim(f"agent{number}", "CHANGELOG.md", "COUNT", is_shared=True)
        yard.claim(f"agent{number}", f"src/f{number}")
        yard.enter(f"b{number}", f"agent{number}")

    assert yard.run() is None

    assert set(yard.states().values()) == {"landed"}
    assert yard.at("COUNT") == "10\n"
    assert sorted(yard.at("CHANGELOG.md").splitlines()[2:]) == sorted(
        ["- Begin", *(f"- Change {number}" for number in range(10))]
    )
    assert yard.holders() == {}


@pytest.mark.slow
def test_twenty_two_branches_of_which_fourteen_raise_one_number(yard: Yard) -> None:
    """T21: with plain git thirteen of them would conflict."""
    yard.configure("[]", HOT, FILES)
    for number in range(22):
        files = {"version.py": "NAME = 'x'\nBUILD = 8\n"} if number < 14 else {f"src/f{number}": "x"}
        yard.branch(f"b{number}", files, f"Change {number}")
        yard.submit(f"b{number}", f"agent{number}", is_shared=number < 14)

    assert yard.run() is None

    assert set(yard.states().values()) == {"landed"}
    assert yard.at("version.py") == "NAME = 'x'\nBUILD = 21\n"


def test_sets_stay_sorted_and_maps_take_the_keys_of_both(yard: Yard) -> None:
    yard.configure("[]", HOT, FILES)

    def package(name: str) -> str:
        return FILES["package.json"].replace('"1.0.0"\n', f'"1.0.0",\n    "{name}": "2.0.0"\n')

    yard.branch("one", {"names.txt": "anna\nbert\nzoe\n", "package.json": package("middle")})
    yard.branch("two", {"names.txt": "bert\ncarl\nzoe\n", "package.json": package("right")})
    for name, agent in (("one", "ann"), ("two", "bob")):
        yard.submit(name, agent, is_shared=True)

    assert yard.run() is None

    assert yard.at("names.txt") == "anna\nbert\ncarl\nzoe\n"
    assert set(json.loads(yard.at("package.json"))["dependencies"]) == {"left", "middle", "right"}


def test_two_versions_of_one_key_are_named(yard: Yard) -> None:
    yard.configure("[]", HOT, FILES)
    yard.branch("one", {"package.json": FILES["package.json"].replace("1.0.0", "1.1.0")})
    yard.branch("two", {"package.json": FILES["package.json"].replace("1.0.0", "2.0.0")})
    yard.submit("one", "ann", is_shared=True)
    second = yard.submit("two", "bob", is_shared=True)

    assert yard.run() is None

    loser = yard.look(second)
    assert (loser.state, loser.code) == ("bounced", "CONFLICT")
    for word in ("package.json", "left", "1.1.0", "2.0.0"):
        assert word in loser.reason


def test_a_generated_file_is_made_anew_from_the_merged_tree(yard: Yard) -> None:
    yard.configure("[]", HOT, FILES)
    for name in ("b", "c"):
        yard.branch(name, {f"src/{name}": "", "listing": f"a\n{name}\n"})
        yard.claim(name, "listing", is_shared=True)
        yard.claim(name, f"src/{name}")
        yard.enter(name, name)

    assert yard.run() is None

    assert set(yard.states().values()) == {"landed"}
    assert yard.at("listing") == "a\nb\nc\n"


def test_a_generator_that_fails_sends_back_the_branch_with_what_it_said(yard: Yard) -> None:
    hot = '[landing.merge.files]\n"listing" = { kind = "generated", command = "echo no luck; exit 3" }\n'
    yard.configure("[]", hot, FILES)
    yard.branch("one", {"listing": "b\n"})

    entry = yard.land("one")

    assert (entry.state, entry.code) == ("bounced", "CONFLICT")
    assert "listing cannot be generated: `echo no luck; exit 3` ended with 3: no luck" in entry.reason


@pytest.mark.slow
def test_a_validator_is_asked_about_its_file(yard: Yard) -> None:
    hot = "[landing.merge.files]\n'*.json' = { kind = 'keyed-map', validate = 'python3 -m json.tool' }\n"
    yard.configure("[]", hot, {"a b.json": "{}\n", "c.json": "{}\n"})
    yard.branch("good", {"a b.json": '{"x": 1}\n'})
    yard.branch("bad", {"c.json": "{\n"})
    yard.submit("good", "ann")
    bad = yard.submit("bad", "bob")

    assert yard.run() is None

    assert yard.states() == {"good": "landed", "bad": "bounced"}
    assert yard.look(bad).reason == "`validate c.json` ended with 1"


def test_classes_may_be_shared_by_claim_whatever_else_may(yard: Yard) -> None:
    yard.configure("[]", f"{HOT}[claims]\nshareable = ['docs/**']\n", FILES)

    assert not isinstance(yard.claim("ann", "COUNT", is_shared=True), Refused)
    assert not isinstance(yard.claim("ann", "docs/a", is_shared=True), Refused)
    with pytest.raises(NotAllowed, match="src/a is not mergeable"):
        yard.claim("ann", "src/a", is_shared=True)


def test_the_classes_of_the_target_count_not_those_of_the_branch(yard: Yard) -> None:
    yard.configure("[]", "", {"LOG": "a\n"})
    more = SETTINGS.format(checks="[]", more="[landing.merge.files]\n'LOG' = 'union'\n")
    yard.branch("one", {"LOG": "a\none\n"})
    yard.branch("two", {"LOG": "a\ntwo\n", "landlane.toml": more})
    yard.submit("one")
    yard.submit("two")

    assert yard.run() is None

    assert yard.states() == {"one": "landed", "two": "bounced"}


def test_what_a_class_did_is_told(yard: Yard) -> None:
    yard.configure("[]", HOT, FILES)
    yard.branch("one", {"COUNT": "1\n"})
    yard.branch("two", {"COUNT": "2\n"})
    yard.submit("one", is_shared=True)
    second = yard.submit("two", "bob", is_shared=True)

    assert yard.run() is None

    assert yard.look(second).notes == ["1 in the target and 2 in the candidate, from 0, give 3"]

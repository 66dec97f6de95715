"""Hot files: what many branches change at once is joined by its class, and lands with no human step."""

from __future__ import annotations

import json

import pytest

from landlane.claims.model import Refused
from landlane.errors import NotAllowed
from landlane.landing.combine import merge_rule_for
from landlane.settings.model import LandingSettings, MergeFile, MergeSettings, Settings
from tests.support.landing import SETTINGS, LandingTestbed

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
def test_ten_branches_add_a_line_and_raise_a_counter(testbed: LandingTestbed) -> None:
    testbed.configure('["test $(wc -l < COUNT) = 1"]', HOT, FILES)
    for number in range(10):
        lines = FILES["CHANGELOG.md"] + f"- Change {number}\n"
        testbed.branch(f"b{number}", {"CHANGELOG.md": lines, "COUNT": "1\n", f"src/f{number}": "x"})
        testbed.claim(f"agent{number}", "CHANGELOG.md", "COUNT", is_shared=True)
        testbed.claim(f"agent{number}", f"src/f{number}")
        testbed.submit_with_held_claims(f"b{number}", f"agent{number}")

    assert testbed.run() is None

    assert set(testbed.states().values()) == {"landed"}
    assert testbed.read_file("COUNT") == "10\n"
    assert sorted(testbed.read_file("CHANGELOG.md").splitlines()[2:]) == sorted(
        ["- Begin", *(f"- Change {number}" for number in range(10))]
    )
    assert testbed.holders() == {}


@pytest.mark.slow
def test_twenty_two_branches_of_which_fourteen_raise_one_number(testbed: LandingTestbed) -> None:
    """T21: with plain git thirteen of them would conflict."""
    testbed.configure("[]", HOT, FILES)
    for number in range(22):
        files = {"version.py": "NAME = 'x'\nBUILD = 8\n"} if number < 14 else {f"src/f{number}": "x"}
        testbed.branch(f"b{number}", files, f"Change {number}")
        testbed.submit(f"b{number}", f"agent{number}", is_shared=number < 14)

    assert testbed.run() is None

    assert set(testbed.states().values()) == {"landed"}
    assert testbed.read_file("version.py") == "NAME = 'x'\nBUILD = 21\n"


def test_sets_stay_sorted_and_maps_take_the_keys_of_both(testbed: LandingTestbed) -> None:
    testbed.configure("[]", HOT, FILES)

    def package(name: str) -> str:
        return FILES["package.json"].replace('"1.0.0"\n', f'"1.0.0",\n    "{name}": "2.0.0"\n')

    testbed.branch("one", {"names.txt": "anna\nbert\nzoe\n", "package.json": package("middle")})
    testbed.branch("two", {"names.txt": "bert\ncarl\nzoe\n", "package.json": package("right")})
    for name, agent in (("one", "ann"), ("two", "bob")):
        testbed.submit(name, agent, is_shared=True)

    assert testbed.run() is None

    assert testbed.read_file("names.txt") == "anna\nbert\ncarl\nzoe\n"
    assert set(json.loads(testbed.read_file("package.json"))["dependencies"]) == {"left", "middle", "right"}


def test_conflict_names_a_key_with_two_versions(testbed: LandingTestbed) -> None:
    testbed.configure("[]", HOT, FILES)
    testbed.branch("one", {"package.json": FILES["package.json"].replace("1.0.0", "1.1.0")})
    testbed.branch("two", {"package.json": FILES["package.json"].replace("1.0.0", "2.0.0")})
    testbed.submit("one", "ann", is_shared=True)
    second = testbed.submit("two", "bob", is_shared=True)

    assert testbed.run() is None

    loser = testbed.reload(second)
    assert (loser.state, loser.code) == ("bounced", "CONFLICT")
    for word in ("package.json", "left", "1.1.0", "2.0.0"):
        assert word in loser.reason


def test_generated_file_is_generated_again_from_the_merged_tree(testbed: LandingTestbed) -> None:
    testbed.configure("[]", HOT, FILES)
    for name in ("b", "c"):
        testbed.branch(name, {f"src/{name}": "", "listing": f"a\n{name}\n"})
        testbed.claim(name, "listing", is_shared=True)
        testbed.claim(name, f"src/{name}")
        testbed.submit_with_held_claims(name, name)

    assert testbed.run() is None

    assert set(testbed.states().values()) == {"landed"}
    assert testbed.read_file("listing") == "a\nb\nc\n"


def test_failing_generator_rejects_the_branch_with_its_output(testbed: LandingTestbed) -> None:
    hot = '[landing.merge.files]\n"listing" = { kind = "generated", command = "echo no luck; exit 3" }\n'
    testbed.configure("[]", hot, FILES)
    testbed.branch("one", {"listing": "b\n"})

    entry = testbed.land("one")

    assert (entry.state, entry.code) == ("bounced", "CONFLICT")
    assert "listing cannot be generated: echo no luck; exit 3 failed (exit 3): no luck" in entry.reason


def test_a_generator_returns_no_file_from_outside_of_the_checkout(testbed: LandingTestbed) -> None:
    hot = '[landing.merge.files]\n"listing" = { kind = "generated", command = "sh make.sh" }\n'
    testbed.configure("[]", hot, {**FILES, "make.sh": "ls src > listing\n"})
    secret = testbed.folder.parent / "secret"
    secret.write_text("SECRET\n")
    testbed.branch("one", {"listing": "b\n", "make.sh": f"ln -sf {secret} listing\n"})

    entry = testbed.land("one")

    assert (entry.state, entry.code) == ("bounced", "CONFLICT")
    assert "there is a link in its place" in entry.reason
    assert "SECRET" not in testbed.read_file("listing")


@pytest.mark.slow
def test_a_validator_is_asked_about_its_file(testbed: LandingTestbed) -> None:
    hot = "[landing.merge.files]\n'*.json' = { kind = 'keyed-map', validate = 'python3 -m json.tool' }\n"
    testbed.configure("[]", hot, {"a b.json": "{}\n", "c.json": "{}\n"})
    testbed.branch("good", {"a b.json": '{"x": 1}\n'})
    testbed.branch("bad", {"c.json": "{\n"})
    testbed.submit("good", "ann")
    bad = testbed.submit("bad", "bob")

    assert testbed.run() is None

    assert testbed.states() == {"good": "landed", "bad": "bounced"}
    assert testbed.reload(bad).reason == "validate c.json fails (exit 1)"


def test_classes_may_be_shared_by_claim_whatever_else_may(testbed: LandingTestbed) -> None:
    testbed.configure("[]", f"{HOT}[claims]\nshareable = ['docs/**']\n", FILES)

    assert not isinstance(testbed.claim("ann", "COUNT", is_shared=True), Refused)
    assert not isinstance(testbed.claim("ann", "docs/a", is_shared=True), Refused)
    with pytest.raises(NotAllowed, match="src/a is not mergeable"):
        testbed.claim("ann", "src/a", is_shared=True)


def test_the_classes_of_the_target_count_not_those_of_the_branch(testbed: LandingTestbed) -> None:
    testbed.configure("[]", "", {"LOG": "a\n"})
    more = SETTINGS.format(checks="[]", more="[landing.merge.files]\n'LOG' = 'union'\n")
    testbed.branch("one", {"LOG": "a\none\n"})
    testbed.branch("two", {"LOG": "a\ntwo\n", "landlane.toml": more})
    testbed.submit("one")
    testbed.submit("two")

    assert testbed.run() is None

    assert testbed.states() == {"one": "landed", "two": "bounced"}


def test_notes_describe_how_files_were_merged(testbed: LandingTestbed) -> None:
    testbed.configure("[]", HOT, FILES)
    testbed.branch("one", {"COUNT": "1\n"})
    testbed.branch("two", {"COUNT": "2\n"})
    testbed.submit("one", is_shared=True)
    second = testbed.submit("two", "bob", is_shared=True)

    assert testbed.run() is None

    assert testbed.reload(second).notes == ["1 in the target and 2 in the candidate, from 0, give 3"]


def test_the_last_pattern_that_matches_a_path_counts(testbed: LandingTestbed) -> None:
    files = {
        "*": MergeFile(kind="union"),
        "*.json": MergeFile(kind="keyed-map"),
        "x": MergeFile(kind="counter"),
    }
    settings = Settings(landing=LandingSettings(merge=MergeSettings(files=files)))

    assert merge_rule_for(testbed.repo, settings, "a.json") == files["*.json"]
    assert merge_rule_for(testbed.repo, settings, "a.md") == files["*"]
    assert merge_rule_for(testbed.repo, settings, "x") == files["x"]
    assert merge_rule_for(testbed.repo, Settings(), "a.md") is None

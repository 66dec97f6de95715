"""Every promise to users has a sentence, a test, and a line on its page; a run without its test fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import promises

pytestmark = [pytest.mark.architecture, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
ONE_WINNER = """\
import pytest

@pytest.mark.promise("claims.one-winner", "Exactly one session gets the claim.")
@pytest.mark.parametrize("kind", ["a", "b"])
def test_one_wins(kind):
    pass
"""
IS_KEPT = """\
import pytest

class TestLeases:
    @pytest.mark.promise("leases.kept", "A lease is kept " "until its end.")
    def test_it_is_kept(self):
        {body}

@pytest.mark.promise("leases.kept")
def test_it_is_kept_here_too():
    {body}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two promises, and a page that lists both."""
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    (tmp_path / "tests" / "claims").mkdir(parents=True)
    (tmp_path / "tests" / "claims" / "test_claims.py").write_text(ONE_WINNER)
    (tmp_path / "tests" / "test_leases.py").write_text(IS_KEPT.format(body="pass"))
    assert promises.main([], tmp_path) == 0
    return tmp_path


def page_of(root: Path) -> str:
    return (root / promises.PAGE).read_text(encoding="utf-8")


def problems_of(text: str, root: Path) -> list[str]:
    (root / "tests" / "claims" / "test_claims.py").write_text(text)
    return promises.find_problems(promises.read_markers(root))


def test_the_page_lists_what_the_tests_promise() -> None:
    assert promises.main(["--check"]) == 0


def test_the_page_shows_each_promise_with_its_tests(root: Path) -> None:
    assert page_of(root).endswith(
        "\n\n## Claims\n\n"
        "- Exactly one session gets the claim.\n"
        "  `claims.one-winner`, tested by [test_one_wins](../../tests/claims/test_claims.py)\n\n"
        "## Leases\n\n"
        "- A lease is kept until its end.\n"
        "  `leases.kept`, tested by [TestLeases::test_it_is_kept](../../tests/test_leases.py),"
        " [test_it_is_kept_here_too](../../tests/test_leases.py)\n"
    )


def test_a_promise_that_is_not_on_the_page_fails_the_check(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = page_of(root)
    (root / "tests" / "test_more.py").write_text(ONE_WINNER.replace("one-winner", "more").replace("one", "1"))

    assert promises.main(["--check"], root) == 1
    assert "+- Exactly 1 session gets the claim." in capsys.readouterr().out
    assert page_of(root) == before


def test_a_promise_that_lost_its_test_is_an_error_until_it_is_withdrawn(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "tests" / "test_leases.py").unlink()

    assert promises.main(["--check", "--withdraw", "leases.kept"], root) == 1
    assert promises.main([], root) == 1
    assert "leases.kept has no test any more" in capsys.readouterr().err
    assert "leases.kept" in page_of(root)

    assert promises.main(["--withdraw", "leases.kept"], root) == 0
    assert "leases.kept" not in page_of(root)


@pytest.mark.parametrize("skip", ["@pytest.mark.skip\n", '@pytest.mark.skip(reason="later")\n'])
def test_a_promise_whose_test_is_skipped_is_an_error(skip: str, root: Path) -> None:
    assert problems_of(ONE_WINNER.replace("def ", f"{skip}def "), root) == [
        "claims.one-winner: its test test_one_wins in tests/claims/test_claims.py is skipped"
    ]


def test_a_promise_in_a_file_that_is_skipped_is_an_error(root: Path) -> None:
    marks = "pytestmark = [pytest.mark.unit, pytest.mark.skip]\n"
    text = ONE_WINNER.replace("import pytest\n", f"import pytest\n{marks}")

    assert "is skipped" in problems_of(text, root)[0]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("one-winner", "OneWinner", "'claims.OneWinner' is not a valid identifier"),
        ('"Exactly one session gets the claim."', '""', "0 tests state its sentence; exactly one must"),
        ("claims.one-winner", "leases.kept", "2 tests state its sentence; exactly one must"),
        ("claim.", "claim", "its sentence has no full stop"),
        ("Exactly one session gets the claim.", "A lease is kept until its end.", "promises the same as"),
    ],
)
def test_a_promise_that_is_not_well_formed_is_an_error(old: str, new: str, problem: str, root: Path) -> None:
    found = problems_of(ONE_WINNER.replace(old, new), root)

    assert len(found) == 1
    assert problem in found[0]


def run_pytest(root: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (root / "pytest.ini").write_text("[pytest]\nmarkers = promise\naddopts = --import-mode=importlib\n")
    plugin = ["-p", "tests.support.promise_report", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "-q", *words],
        cwd=root,
        env={"PYTHONPATH": str(ROOT), "HOME": str(root), **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


WAYS = pytest.mark.parametrize("way", [(), ("-n", "2")], ids=["alone", "xdist"])


@WAYS
def test_a_run_that_proves_every_promise_passes(way: tuple[str, ...], root: Path) -> None:
    ended = run_pytest(root, "--promises", *way)

    assert ended.returncode == 0, ended.stdout
    assert "promises without a test" not in ended.stdout


@WAYS
@pytest.mark.parametrize(
    ("body", "words"),
    [('pytest.skip("not on this machine")', ()), ("pass", ("--deselect", "tests/test_leases.py"))],
    ids=["skipped", "deselected"],
)
def test_a_run_that_leaves_a_promise_unproved_fails_and_names_it(
    body: str, words: tuple[str, ...], way: tuple[str, ...], root: Path
) -> None:
    (root / "tests" / "test_leases.py").write_text(IS_KEPT.format(body=body))

    ended = run_pytest(root, "--promises", *words, *way)

    assert ended.returncode == 1
    listed = ended.stdout.partition("promises without a test that passed")[2]
    assert "leases.kept" in listed
    assert "claims.one-winner" not in listed


def test_one_test_that_passes_is_enough_for_a_promise(root: Path) -> None:
    text = IS_KEPT.format(body="pass").replace("too():\n    pass", "too():\n    pytest.skip('no')")
    (root / "tests" / "test_leases.py").write_text(text)

    assert run_pytest(root, "--promises").returncode == 0


def test_a_run_of_some_tests_need_not_prove_every_promise(root: Path) -> None:
    assert run_pytest(root, "-k", "one_wins").returncode == 0


@WAYS
def test_on_a_build_machine_a_part_that_is_missing_fails_the_run(way: tuple[str, ...], root: Path) -> None:
    why = "no PostgreSQL: no wheel for this platform"
    text = IS_KEPT.format(body="pass").replace("too():\n    pass", f"too():\n    pytest.skip({why!r})")
    (root / "tests" / "test_leases.py").write_text(text)

    assert run_pytest(root, "--promises", *way).returncode == 0
    ended = run_pytest(root, "--promises", *way, CI="true")

    assert ended.returncode == 1
    assert why in ended.stdout.partition("tests not run because a part is missing")[2]


def test_every_kind_of_attack_has_its_promises() -> None:
    known = {marker.identifier for marker in promises.read_markers(promises.ROOT)}

    assert len(promises.ATTACKS) == 9
    assert {one for identifiers in promises.ATTACKS.values() for one in identifiers} <= known

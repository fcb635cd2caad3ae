"""What trains no network says what was found, as its numbers have it."""

import copy

import pytest

from accord.experiments.paper._results import finding_of
from accord.experiments.theory import run_theory
from accord.experiments.theory.toy import run_toy


@pytest.fixture(scope="module")
def theory():
    return run_theory(draws=3, seed=1).as_json()


def test_the_theory_says_what_holds_and_what_does_not(theory):
    first, *lemmas, theorem, more = finding_of("theory", theory)
    assert first == "the lemmas hold; the theorem's conclusion does not, in its own setting"
    assert [line[:7] for line in lemmas] == ["lemma 1", "lemma 2", "lemma 3"]
    shared, own = theory["outcomes"]["shared"], theory["outcomes"]["own-noise"]
    assert f"rises in {shared['rose']} of {shared['overfit']} steps" in theorem
    assert theorem.endswith(f"in {own['rose']} of {own['overfit']}")
    assert more.endswith("docs/explanation/theory.md")


def test_lemmas_are_counted_from_their_numbers(theory):
    signs, contraction, limits = finding_of("theory", theory)[1:4]
    last = theory["signs"][-1]
    assert f"misses {last['missed']} of {last['steps']} steps at rate 0.01" in signs
    assert signs.endswith("second order 0 at any")
    assert contraction.endswith("in 9 of 9 draws at rates below 2")
    assert limits.endswith("within its bound in 9 of 9 draws")


@pytest.mark.parametrize(
    ("part", "key"),
    [("signs", "missed_exactly"), ("contraction", "contracting"), ("limits", "within_bound")],
)
def test_a_lemma_that_fails_once_does_not_hold(part, key, theory):
    broken = copy.deepcopy(theory)
    broken[part][0][key] = 1
    assert finding_of("theory", broken)[0].startswith("2 of 3 lemmas hold; ")


def test_a_conclusion_that_holds_is_said_to(theory):
    other = copy.deepcopy(theory)
    other["outcomes"]["shared"]["rose"] = other["outcomes"]["shared"]["overfit"]
    assert "the theorem's conclusion does too" in finding_of("theory", other)[0]


def test_the_toy_says_how_much_of_the_plane_is_wrong():
    toy = run_toy(points=21)
    wrong, at_the_label, _ = finding_of("figure9", toy.as_json())
    assert wrong.endswith(f"max agreement {100 * float(toy.wrong(toy.max_agreement)):.1f}")
    assert f"their majority {100 * float(toy.wrong(toy.majority)):.1f};" in wrong
    assert f"{toy.sample_agreement:.0%} of their votes over {toy.epochs} epochs" in at_the_label
    assert at_the_label.endswith("max agreement is right there")
    other = toy.as_json() | {"false": {"agreement": 0.6}}
    assert finding_of("figure9", other)[1].endswith("max agreement is wrong there")


def test_tables_say_nothing_of_the_kind():
    assert finding_of("table1/cifar10/sym/40", {}) == []

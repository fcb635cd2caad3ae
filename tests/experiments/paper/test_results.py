"""Results as JSON and as tables."""

import copy
from dataclasses import replace

import pytest
from paper_targets import CELL, edit, run

from accord.errors import (
    SourceError,
)
from accord.experiments.paper import (
    Result,
    TableRow,
    all_targets,
    load_results,
    result_text,
    status_of,
    write_summary,
)
from accord.experiments.paper._results import findings_of, load_result, row_of
from accord.experiments.theory import run_theory
from accord.experiments.theory.toy import run_toy

KEPT = '{"format": 1, "target": "t", "says": "s", "scale": "stand-in", "rows": {}, %s}'


@pytest.fixture(scope="module")
def theory():
    return run_theory(draws=3, seed=1).as_json()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not a readable result"),
        ('{"format": 2}', "format 2; this version of Accord reads format 1"),
        (KEPT % '"runs": {"noisy": null}, "repetitions": 1', "not a readable result"),
        (KEPT % '"runs": [], "repetitions": 1', "not a readable result"),
        (KEPT % '"runs": {}, "repetitions": "1"', "not a readable result"),
        (KEPT % '"runs": {}, "repetitions": 1', r"\(it belongs to t at the scale stand-in\)"),
    ],
)
def test_invalid_result_raises(text, why, context):
    path = context.out / CELL.name / "stand-in.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    with pytest.raises(SourceError, match=rf"stand-in\.json: .*{why}"):
        run(CELL, context)


def test_unreadable_result_raises(context):
    (context.out / CELL.name / "stand-in.json").mkdir(parents=True)
    with pytest.raises(SourceError, match=r"stand-in\.json: not a readable result"):
        run(CELL, context)
    assert status_of(CELL, "stand-in", out=context.out, data=context.data).word == "partly"


def test_result_needs_a_value_per_repetition(context):
    run(CELL, context)
    edit(context.out / CELL.name / "stand-in.json", '"repetitions": 1', '"repetitions": 3')
    with pytest.raises(SourceError, match="single has 1 value for 3 repetitions"):
        run(CELL, context)


def test_standard_error_of_the_paper_is_shown_as_published():
    target = all_targets()["table2/cifar10/sym/20"]
    rows = {"max-agreement": row_of([92.0], target.published["max-agreement"])}
    text = result_text(Result(target.name, target.description, "quick", 1, rows=rows))
    assert "| 93.2 ± 0.07 |" in text


def test_results_round_trip(context):
    result = run(CELL, context)
    assert load_result(context.out, CELL.name, "stand-in") == result
    assert load_results(context.out, all_targets().values()) == [result]
    write_summary([result], context.out)
    summary = (context.out / "results.md").read_text("utf-8")
    assert "| table1/cifar10/sym/40 | stand-in | 1 | max-agreement | 90.0 ± 0.1 |" in summary
    assert "dawid-skene" not in summary
    assert "\nAt the scale stand-in, digits replace the paper's data: compare" in summary
    write_summary([replace(result, scale="quick")], context.out)
    assert "digits" not in (context.out / "results.md").read_text("utf-8")


def test_stand_in_shows_no_difference(context):
    result = run(CELL, context)
    assert "digits replace the paper's data" in result_text(result)
    assert "difference" not in result.as_json()["rows"]["majority"]
    real = replace(result, scale="medium", rows={"majority": row_of([76.88], [78.5, 0.7])})
    assert real.as_json()["rows"]["majority"]["difference"] == pytest.approx(-1.62)
    text = result_text(real)
    assert "| majority | 78.5 ± 0.7 | 76.88 |       -1.6 |" in text
    assert "digits" not in text


def test_single_repetition_has_no_standard_error():
    assert row_of([80.0]) == TableRow(80.0, None, (80.0,))
    assert row_of([None, 80.0]) == TableRow(80.0, None, (None, 80.0))
    assert row_of([80.0], [81.0]).difference == -1.0


def test_numbers_of_networks_are_not_formatted_as_accuracies(context):
    result = run(all_targets()["table4/cifar10/sym/40"], context)
    ours = int(result.rows["max-agreement-networks"].ours)
    assert f"{ours} networks |" in result_text(result)
    mean = replace(result, rows={"majority-networks": row_of([7.0, 8.0, 8.0])})
    assert "7.67 networks |" in result_text(mean)


def test_theory_findings_list_what_holds(theory):
    first, *lemmas, theorem, more = findings_of("theory", theory)
    assert first == "the lemmas hold; the theorem's conclusion does not, in its own setting"
    assert [line[:7] for line in lemmas] == ["lemma 1", "lemma 2", "lemma 3"]
    shared, own = theory["outcomes"]["shared"], theory["outcomes"]["own-noise"]
    assert f"rises in {shared['rose']} of {shared['overfit']} steps" in theorem
    assert theorem.endswith(f"in {own['rose']} of {own['overfit']}")
    assert more.endswith("docs/explanation/theory.md")


def test_lemma_findings_follow_the_numbers(theory):
    signs, contraction, limits = findings_of("theory", theory)[1:4]
    last = theory["signs"][-1]
    assert f"misses {last['missed']} of {last['steps']} steps at rate 0.01" in signs
    assert signs.endswith("second order 0 at any")
    assert contraction.endswith("in 9 of 9 draws at rates below 2")
    assert limits.endswith("within its bound in 9 of 9 draws")


@pytest.mark.parametrize(
    ("part", "key"),
    [("signs", "missed_exactly"), ("contraction", "contracting"), ("limits", "within_bound")],
)
def test_lemma_that_fails_once_does_not_hold(part, key, theory):
    broken = copy.deepcopy(theory)
    broken[part][0][key] = 1
    assert findings_of("theory", broken)[0].startswith("2 of 3 lemmas hold; ")


def test_conclusion_that_holds_is_reported(theory):
    other = copy.deepcopy(theory)
    other["outcomes"]["shared"]["rose"] = other["outcomes"]["shared"]["overfit"]
    assert "the theorem's conclusion does too" in findings_of("theory", other)[0]


def test_toy_findings_report_the_area_that_is_wrong():
    toy = run_toy(points=21)
    wrong, at_the_label, _ = findings_of("figure9", toy.as_json())
    assert wrong.endswith(f"max agreement {100 * float(toy.wrong(toy.max_agreement)):.1f}")
    assert f"their majority {100 * float(toy.wrong(toy.majority)):.1f};" in wrong
    assert f"{toy.sample_agreement:.0%} of their votes over {toy.epochs} epochs" in at_the_label
    assert at_the_label.endswith("max agreement is right there")
    other = toy.as_json() | {"false": {"agreement": 0.6}}
    assert findings_of("figure9", other)[1].endswith("max agreement is wrong there")


def test_targets_with_runs_have_no_findings():
    assert findings_of("table1/cifar10/sym/40", {}) == []

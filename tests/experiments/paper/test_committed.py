"""The numbers under `results/` are those of the packed records beside them."""

import json
import shutil
from pathlib import Path

import pytest

from accord.experiments.paper import all_targets, reproduce
from accord.experiments.paper._required_runs import ReproduceContext
from accord.experiments.paper._results import load_results
from accord.rules import all_rules

RESULTS = Path(__file__).parents[3] / "results"
if not RESULTS.is_dir():
    pytest.skip("the folder results/ is missing; it is in the repository", allow_module_level=True)

KEPT = load_results(RESULTS, all_targets().values())
CURVES = json.loads((RESULTS / "curves.json").read_text())

# The packed records hold labels alone.
NEED_PROBABILITIES = {name for name, rule in all_rules().items() if "probabilities" in rule.needs}


def kept_repetitions(result):
    """Count the repetitions, from the first, whose records are all in `results/runs`."""
    count = 0
    for names in zip(*result.runs.values(), strict=True):
        if not all((RESULTS / "runs" / name / "test.zip").exists() for name in names):
            break
        count += 1
    return count


COMPARED = [one for one in KEPT if not one.runs or kept_repetitions(one)]


@pytest.fixture(autouse=True)
def small():
    """Leave stand-ins as large as they were when these were trained."""


def approximate(value):
    """Return parsed JSON with numbers that can be compared, without pictures."""
    if isinstance(value, dict):
        return {key: approximate(one) for key, one in value.items() if key != "picture"}
    if isinstance(value, list):
        return [approximate(one) for one in value]
    return pytest.approx(value, abs=1e-6) if isinstance(value, float) else value


def without_pictures(value):
    if isinstance(value, dict):
        return {key: without_pictures(one) for key, one in value.items() if key != "picture"}
    return [without_pictures(one) for one in value] if isinstance(value, list) else value


def test_there_are_results():
    assert {"table1/cifar10/sym/40", "figure1"} <= {one.target for one in KEPT}


def test_results_without_all_their_records_are_listed():
    """Records were removed to save space, after their numbers had been compared."""
    incomplete = {
        (one.target, one.scale): kept_repetitions(one)
        for one in KEPT
        if one.runs and kept_repetitions(one) < one.repetitions
    }
    assert incomplete == {
        ("figure3/cifar10/sym/60", "quick"): 0,
        ("figure4/cifar10/sym/60", "medium"): 0,
        ("figure5/cifar10/sym/40", "quick"): 0,
        ("figure6/cifar10/asym/20", "quick"): 0,
        ("ours/cifar10/few-samples", "quick"): 0,
        ("ours/cifar10/sym/40/adversarial-network", "quick"): 0,
        ("ours/cifar10/sym/40/batch-ensemble", "quick"): 0,
        ("ours/cifar10/sym/40/constant-rate", "quick"): 0,
        ("ours/cifar10/sym/40/different-architectures", "quick"): 0,
        ("ours/cifar10/sym/40/different-optimizer", "quick"): 0,
        ("ours/cifar10/sym/40/hyper-ensemble", "quick"): 0,
        ("ours/cifar10/sym/40/resnet32", "quick"): 0,
        ("ours/cifar10/sym/40/transfer-learning", "quick"): 0,
        ("ours/fashion-mnist/sym/20", "quick"): 0,
        ("table1/cifar10/asym/10", "medium"): 0,
        ("table1/cifar10/asym/20", "medium"): 1,
        ("table1/cifar10/sym/40", "medium"): 1,
        ("table1/cifar10/sym/60", "medium"): 0,
        ("table4/cifar10/asym/20", "quick"): 0,
    }


@pytest.mark.slow
@pytest.mark.parametrize("kept", COMPARED, ids=lambda one: f"{one.target}-{one.scale}")
def test_committed_numbers_equal_those_of_the_records(kept, tmp_path):
    count = kept_repetitions(kept) if kept.runs else kept.repetitions
    for names in kept.runs.values():
        for name in names[:count]:
            shutil.copytree(RESULTS / "runs" / name, tmp_path / "runs" / name)
    context = ReproduceContext(tmp_path, tmp_path / "no-data")
    found = reproduce(all_targets()[kept.target], context, scale=kept.scale, repetitions=count)
    before, now = (json.loads(json.dumps(one.as_json())) for one in (kept, found))
    expected = {name: row for name, row in before["rows"].items() if name not in NEED_PROBABILITIES}
    if count == kept.repetitions:
        rows = {name: now["rows"][name] for name in expected}  # there may be new rules
        assert rows == approximate(expected)
    else:
        values = {name: now["rows"][name]["values"] for name in expected}
        assert values == approximate(
            {name: row["values"][:count] for name, row in expected.items()}
        )
    assert without_pictures(now.get("numbers")) == approximate(before.get("numbers"))


@pytest.mark.parametrize("run", CURVES)
def test_curves_of_removed_records_end_at_the_accuracy_of_the_rule(run):
    for rule, curve in CURVES[run]["curves"].items():
        assert curve[-1] == pytest.approx(CURVES[run]["accuracy"][rule], abs=1e-3)


def test_curves_hold_the_accuracies_of_the_tables():
    compared = set()
    for result in KEPT:
        runs = (
            result.runs.get("noisy", ()) if result.target.startswith(("table1/", "ours/")) else ()
        )
        for repetition, name in enumerate(runs):
            if run := CURVES.get(f"runs/{name}"):
                values = {rule: result.rows[rule].values[repetition] for rule in run["accuracy"]}
                assert values == pytest.approx(run["accuracy"], abs=1e-3)
                compared.add(name)
    assert len(compared) == 7

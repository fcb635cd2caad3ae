"""The numbers under `results/` are those of the packed records beside them."""

import json
import shutil
from pathlib import Path

import pytest

import accord
from accord import analysis
from accord.experiments.paper import all_targets, reproduce
from accord.experiments.paper._required_runs import ReproduceContext
from accord.experiments.paper._results import load_results
from accord.rules import all_rules

RESULTS = Path(__file__).parents[3] / "results"
if not RESULTS.is_dir():
    pytest.skip("the folder results/ is missing; it is in the repository", allow_module_level=True)

KEPT = load_results(RESULTS, all_targets().values())
CURVES = json.loads((RESULTS / "curves.json").read_text())
MEMORISED = json.loads((RESULTS / "memorised.json").read_text())

# Only every second or fourth of their 100 epochs is kept, to save space; the true epochs are in
# `progress`. Rules that count the votes of all epochs therefore give other numbers.
THINNED = {
    "cifar100-asym10-f597571c30cd": "table1/cifar100/asym/10",
    "cifar100-asym20-4908034ad105": "table1/cifar100/asym/20",
    "cifar100-sym20-f2364540c50f": "table1/cifar100/sym/20",
    "cifar100-sym40-3db2852bae8b": "table1/cifar100/sym/40",
    "cifar100-sym60-8305845d61fe": "table1/cifar100/sym/60",
}
EVERY = {run: 4 if run == "cifar100-asym10-f597571c30cd" else 2 for run in THINNED}

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
    """Records were removed or thinned to save space, after their numbers had been compared."""
    incomplete = {
        (one.target, one.scale): kept_repetitions(one)
        for one in KEPT
        if one.runs and kept_repetitions(one) < one.repetitions
    }
    assert incomplete == {
        ("figure2/cifar100/asym/10", "medium"): 0,
        ("figure2/cifar100/sym/60", "medium"): 0,
        ("figure3/cifar10/sym/60", "quick"): 0,
        ("figure4/cifar10/sym/60", "medium"): 0,
        ("figure5/cifar10/sym/40", "quick"): 0,
        ("figure6/cifar10/asym/20", "quick"): 0,
        ("figure7/cifar100/asym/20", "medium"): 0,
        ("figure7/cifar100/sym/60", "medium"): 0,
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
        ("table1/cifar100/asym/10", "medium"): 0,
        ("table1/cifar100/asym/20", "medium"): 0,
        ("table1/cifar100/sym/20", "medium"): 0,
        ("table1/cifar100/sym/40", "medium"): 0,
        ("table1/cifar100/sym/60", "medium"): 0,
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
def test_curves_end_at_the_accuracy_of_the_rule(run):
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
    assert len(compared) == 12


def open_thinned(run):
    return accord.open(str(RESULTS / "runs" / run / f"test-every-{EVERY[run]}.zip"))


def numbers_of(target):
    (found,) = (one for one in KEPT if (one.target, one.scale) == (target, "medium"))
    return found


def test_thinned_records_are_listed():
    found = {path.parent.name for path in (RESULTS / "runs").glob("*/test-every-*.zip")}
    assert found == set(THINNED)
    assert all(numbers_of(target).runs == {"noisy": [run]} for run, target in THINNED.items())


@pytest.mark.parametrize("run", THINNED)
def test_thinned_records_hold_evenly_spaced_epochs(run):
    record, every = open_thinned(run), EVERY[run]
    assert record.progress == tuple(range(every, 101, every))
    assert (record.networks, record.samples, record.classes) == (5, 10_000, 100)


@pytest.mark.parametrize(("run", "target"), THINNED.items())
def test_rules_of_the_last_epoch_equal_those_of_thinned_records(run, target):
    """These rules read the last epoch alone, which is kept."""
    rules = ["single", "consensus", "majority"]
    found = {score.rule: 100 * score.accuracy for score in open_thinned(run).score(rules)}
    assert found == approximate({rule: numbers_of(target).rows[rule].ours for rule in rules})


@pytest.mark.parametrize("run", THINNED)
def test_curves_of_single_epochs_equal_those_of_thinned_records(run):
    """Each point of these curves is the accuracy of one epoch."""
    for rule in ("single", "majority"):
        kept = CURVES[f"runs/{run}"]["curves"][rule][EVERY[run] - 1 :: EVERY[run]]
        assert 100 * open_thinned(run).curve(rule).accuracy == pytest.approx(kept, abs=1e-3)


@pytest.mark.parametrize(("run", "target"), THINNED.items())
def test_the_best_epoch_of_thinned_records_is_that_of_the_epochs_kept(run, target):
    majority = CURVES[f"runs/{run}"]["curves"]["majority"]
    assert numbers_of(target).rows["oracle-best-epoch"].ours == pytest.approx(max(majority))
    (best,) = open_thinned(run).score(["oracle-best-epoch"])
    assert 100 * best.accuracy == pytest.approx(max(majority[EVERY[run] - 1 :: EVERY[run]]))


@pytest.mark.parametrize(("run", "target"), THINNED.items())
def test_max_agreement_of_thinned_records_is_close_to_that_of_all_epochs(run, target):
    """At least half of the votes are missing; an even sample of them decides nearly as all do.

    The other rules are not compared: they fit weights, matrices or an epoch to the votes, and
    with half of the epochs differ by up to 2.5 points.
    """
    (agreed,) = open_thinned(run).score(["max-agreement"])
    assert 100 * agreed.accuracy == pytest.approx(
        numbers_of(target).rows["max-agreement"].ours, abs=0.2
    )


@pytest.mark.parametrize("target", ["figure2/cifar100/asym/10", "figure2/cifar100/sym/60"])
def test_figure_2_of_a_thinned_record_equals_its_last_epoch(target):
    """The figure counts the wrong predictions of the last epoch."""
    (panel,) = numbers_of(target).numbers["panels"]
    (run,) = numbers_of(target).runs["noisy"]
    counts = analysis.error_consensus_histogram(open_thinned(run).reader)
    assert counts.tolist() == panel["wrong_predictions"]


@pytest.mark.parametrize("cell", ["cifar100/asym/20", "cifar100/sym/60"])
def test_figure_7_of_a_thinned_record_ends_at_the_numbers_of_its_table(cell):
    """Its other points choose equally spaced epochs, half of which are missing."""
    table = numbers_of(f"table1/{cell}").rows
    (panel,) = numbers_of(f"figure7/{cell}").numbers["panels"]
    assert panel["sizes"][-1] == panel["epochs"] == 100
    assert 100 * panel["max-agreement"][-1] == pytest.approx(table["max-agreement"].ours)
    assert 100 * panel["majority"] == pytest.approx(table["majority"].ours)


def test_memorised_labels_equal_those_of_the_thinned_record_of_the_training_split():
    run = "cifar100-sym40-3db2852bae8b"
    record = accord.open(str(RESULTS / "runs" / run / "train-every-8.zip"))
    assert record.progress == tuple(range(4, 101, 8))
    wrong, right = record.given != record.truth, record.given == record.truth
    labels = record.labels[:]
    known = MEMORISED[f"runs/{run}"]
    assert (record.samples, wrong.sum()) == (known["samples"], known["wrong_labels"])
    by_epoch = {
        "given_on_wrong": (labels == record.given)[:, :, wrong],
        "truth_on_wrong": (labels == record.truth)[:, :, wrong],
        "given_on_right": (labels == record.given)[:, :, right],
    }
    for name, hits in by_epoch.items():
        shares = 100 * hits.mean(axis=(0, 2))
        assert shares == pytest.approx(known["by_epoch"][name][::2], abs=0.006)
        assert 100 * hits[:, -1].mean(axis=1) == pytest.approx(known[name], abs=6e-4)


def test_networks_memorised_their_wrong_labels():
    assert set(MEMORISED) < {f"runs/{run}" for run in THINNED}
    assert all(min(one["given_on_wrong"]) > 99.7 for one in MEMORISED.values())

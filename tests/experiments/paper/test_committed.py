"""What the repository says it measured is what its packed records say."""

import json
import shutil
from pathlib import Path

import pytest

from accord.experiments.paper import all_targets, reproduce
from accord.experiments.paper.results import SCALES_KEPT, load_results
from accord.experiments.paper.runs import Workshop
from accord.rules import all_rules

RESULTS = Path(__file__).parents[3] / "results"
KEPT = load_results(RESULTS, all_targets().values(), SCALES_KEPT)
WITH_RECORDS = [
    one
    for one in KEPT
    if all((RESULTS / "runs" / name).exists() for names in one.runs.values() for name in names)
]

# The packed records hold labels alone.
LOST = {name for name, rule in all_rules().items() if "probabilities" in rule.needs}


@pytest.fixture(autouse=True)
def small():
    """Leave stand-ins as large as they were when these were trained."""


def as_told(value):
    """Return what JSON holds, with numbers that can be compared."""
    if isinstance(value, dict):
        return {key: as_told(one) for key, one in value.items() if key != "picture"}
    if isinstance(value, list):
        return [as_told(one) for one in value]
    return pytest.approx(value, abs=1e-6) if isinstance(value, float) else value


def test_there_are_results():
    assert {"table1/cifar10/sym/40", "figure1"} <= {one.target for one in KEPT}


def test_what_has_no_record_is_known():
    """All together would be too large to keep; their numbers are kept."""
    without = {(one.target, one.scale) for one in KEPT if one not in WITH_RECORDS}
    assert without == {
        ("table1/cifar10/asym/10", "medium"),
        ("ours/cifar10/few-samples", "quick"),
        ("ours/cifar10/sym/40/adversarial-network", "quick"),
        ("ours/cifar10/sym/40/batch-ensemble", "quick"),
        ("ours/cifar10/sym/40/constant-rate", "quick"),
        ("ours/cifar10/sym/40/different-architectures", "quick"),
        ("ours/cifar10/sym/40/hyper-ensemble", "quick"),
        ("ours/cifar10/sym/40/resnet32", "quick"),
        ("ours/cifar10/sym/40/transfer-learning", "quick"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kept", WITH_RECORDS, ids=lambda one: f"{one.target}-{one.scale}")
def test_what_is_committed_is_what_is_measured(kept, tmp_path):
    for names in kept.runs.values():
        for name in names:
            shutil.copytree(RESULTS / "runs" / name, tmp_path / "runs" / name)
    workshop = Workshop(tmp_path, tmp_path / "no-data")
    found = reproduce(
        all_targets()[kept.target], workshop, scale=kept.scale, repetitions=kept.repetitions
    )
    before, now = (json.loads(json.dumps(one.as_json())) for one in (kept, found))
    told = {name: row for name, row in before["rows"].items() if name not in LOST}
    rows = {name: now["rows"][name] for name in told}  # there may be new rules
    assert rows == as_told(told)
    assert _without_pictures(now.get("numbers")) == as_told(before.get("numbers"))


def _without_pictures(value):
    if isinstance(value, dict):
        return {key: _without_pictures(one) for key, one in value.items() if key != "picture"}
    return [_without_pictures(one) for one in value] if isinstance(value, list) else value

"""Comparisons: repetitions, failures, the table and the JSON."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from compared import SPEC, TEXT, run_of

import accord
from accord import training
from accord.errors import ChoiceError, PredictionError, TrainingError
from accord.experiments.comparison import (
    METHODS,
    Comparison,
    Measurement,
    MethodResult,
    compare,
    comparison_json,
    comparison_text,
)
from accord.training import parse_spec

STUBBORN = """
from torch import nn


def build(*, classes, label):
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, classes))
    network[1].bias.data[label] = 1e4
    return network
"""


def test_samples_are_held_out_if_one_method_needs_them(compared, out, tmp_path):
    shared = run_of(out, "shared")
    assert accord.open(shared / "validation").samples == 40
    compare(SPEC, tmp_path, methods=["majority"])
    assert not (run_of(tmp_path, "shared") / "validation").exists()


def test_duplicate_methods_are_measured_once(tmp_path):
    found = compare(SPEC, tmp_path, methods=["majority", "single", "majority"]).methods
    assert [(one.method.name, len(one.measurements)) for one in found] == [
        ("majority", 1),
        ("single", 1),
    ]


def test_runs_are_trained_by_the_given_trainer(tmp_path):
    started = []

    def train(spec, out, progress):
        started.append((spec.name, out.parent))
        return training.train(spec, out, progress=progress)

    compare(SPEC, tmp_path, methods=["majority"], train=train)
    assert started == [("small", tmp_path)]


def test_failed_method_is_listed_with_the_reason(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PredictionError("the network predicts class 3 for all samples")

    monkeypatch.setattr("accord.baselines.npc.predict_npc", refuse)
    found = compare(SPEC, tmp_path, methods=["npc", "majority"], repetitions=2)
    npc, majority = found.methods
    assert npc.measurements == ()
    assert len(majority.measurements) == 2
    as_json = comparison_json(found)["methods"]
    assert as_json["npc"] == {"failures": ["the network predicts class 3 for all samples"] * 2}
    assert "failures" not in as_json["majority"]
    assert "failed in 2 of 2: the network predicts class 3" in comparison_text(found)
    with pytest.raises(PredictionError, match="class 3 for all"):
        compare(SPEC, tmp_path, methods=["npc"])


def test_first_error_is_raised_if_all_methods_fail(tmp_path):
    def refuse(spec, out, **_):
        raise TrainingError(f"{out.name.rpartition('-')[0]} failed")

    with pytest.raises(TrainingError, match="shared failed"):
        compare(SPEC, tmp_path, methods=["majority", "elr"], train=refuse)


def test_failed_run_is_tried_once_and_fails_only_its_methods(tmp_path):
    started = []

    def train(spec, out, **more):
        started.append(out.name.rpartition("-")[0])
        if started[-1] == "shared":
            raise TrainingError("out of memory")
        return training.train(spec, out, **more)

    names = ["majority", "single", "elr"]
    majority, single, elr = compare(SPEC, tmp_path, methods=names, train=train).methods
    assert started == ["shared", "elr"]
    assert majority.failures == single.failures == ("out of memory",)
    assert elr.measurements
    assert math.isnan(majority.accuracy)
    assert majority.mean("passes") is None


def test_nothing_is_trained_twice(compared, out):
    again = compare(SPEC, out, progress=lambda event: pytest.fail(f"trained again: {event}"))
    assert {one.method.name: one.measurements[0] for one in again.methods} == compared


def test_repetitions_differ_in_seed_and_give_a_standard_error(tmp_path):
    names = ["majority", "max-agreement"]
    found = compare(SPEC, tmp_path, methods=names, repetitions=3)
    assert len(list(tmp_path.glob("shared-*"))) == 3
    for result in found.methods:
        values = [one.accuracy for one in result.measurements]
        assert result.accuracy == pytest.approx(np.mean(values))
        assert result.standard_error() == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
    table = comparison_json(found)
    assert table["repetitions"] == 3
    assert list(table["methods"]) == names
    assert "±" in comparison_text(found)


def test_max_agreement_of_a_method_has_a_standard_error():
    result = MethodResult(
        METHODS["elr"], tuple(Measurement(0.5, with_max_agreement=one) for one in (0.6, 0.7, 0.9))
    )
    comparison = Comparison(SPEC, 3, Path("out"), (result,))
    error = np.std([0.6, 0.7, 0.9], ddof=1) / np.sqrt(3)
    found = comparison_json(comparison)["methods"]["elr"]
    assert found["with_max_agreement_standard_error"] == pytest.approx(error)
    assert f"50.00 ± 0.00  73.33 ± {100 * error:.2f}" in comparison_text(comparison)


def test_agreement_with_given_labels_is_not_called_accuracy():
    measured = Measurement(0.6, reference="given", corrected=0.9, low=0.8, high=0.95)
    result = MethodResult(METHODS["oracle-best-epoch"], (measured,))
    found = Comparison(SPEC, 1, Path("out"), (result,))
    document, text = comparison_json(found), comparison_text(found)
    assert document["reference"] == "given"
    (method,) = document["methods"].values()
    assert method["corrected"] == {"accuracy": 0.9, "low": 0.8, "high": 0.95}
    assert "agreement with the given labels, of which some may be wrong" in text
    assert "60.00  90.0 (80.0 to 95.0)" in text
    assert "oracle: uses these given labels" in text
    assert "corrected" not in comparison_text(replace(found, methods=()))


def test_json_lists_the_selected_epoch_of_each_repetition():
    chosen = tuple(Measurement(0.5, epoch=epoch) for epoch in (4, 2))
    result = MethodResult(METHODS["early-stopping"], chosen)
    found = comparison_json(Comparison(SPEC, 2, Path("out"), (result,)))
    assert found["methods"]["early-stopping"]["epochs"] == [4, 2]


@pytest.mark.parametrize(("every", "label"), [(0.5, "epoch 4 (progress 2.5)"), (1.0, "epoch 4")])
def test_fractional_epoch_is_shown_with_its_progress(tmp_path, every, label):
    options = {"samples": 3, "classes": 2, "truth": np.ones(3, int)}
    with accord.Recorder(tmp_path, network=0, **options) as recorder:
        for epoch in range(6):
            predicted = np.full(3, int(epoch == 4))  # right then alone
            recorder.record(predicted, progress=every * (epoch + 1))
    record = accord.open(tmp_path)
    run = SimpleNamespace(record=record, open_record=lambda _: record, network_bytes=1, spec=SPEC)
    method = METHODS["early-stopping"]
    result = MethodResult(method, (method.measure(run),))
    comparison = Comparison(SPEC, 1, Path("out"), (result,))
    assert f"  {label}\n" in comparison_text(comparison)
    found = comparison_json(comparison)["methods"]["early-stopping"]
    assert (found["epochs"], found["progress"]) == ([4], [5 * every])


def test_invalid_arguments_raise(tmp_path):
    with pytest.raises(ChoiceError, match=r"no method is called 'snapshots'\. Did you mean 'snap"):
        compare(SPEC, tmp_path, methods=["snapshots"])
    with pytest.raises(ChoiceError, match="repetitions must be at least 1; got 0"):
        compare(SPEC, tmp_path, repetitions=0)


def test_error_names_networks_that_diverge(tmp_path):
    wild = parse_spec(TEXT.replace("lr = 0.05", "lr = 1e30"))
    with pytest.raises(TrainingError, match=r"shared-.*: networks 0, 1, 2 were stopped: the loss"):
        compare(wild, tmp_path, methods=["majority"])


def test_batch_ensemble_excludes_weight_averages(tmp_path):
    spec = parse_spec(TEXT.replace("networks = 3", "networks = 1\nbatch_ensemble = 2"))
    names = [one.method.name for one in compare(spec, tmp_path).methods]
    assert "swa" not in names
    assert "max-agreement" in names
    with pytest.raises(ChoiceError, match="rog does not support a BatchEnsemble"):
        compare(spec, tmp_path, methods=["majority", "rog"])


def test_selective_accuracy_is_over_all_labelled_samples():
    some = Measurement(accuracy=0.4, coverage=0.5, selective_accuracy=0.8)
    every = Measurement(accuracy=0.9)
    consensus = METHODS["consensus"]
    result = MethodResult(consensus, (some, every))
    (row,) = [
        line
        for line in comparison_text(Comparison(SPEC, 2, Path("out"), (result,))).splitlines()
        if line.startswith("consensus")
    ]
    assert row.endswith("labels 75.0%, 86.7% of them right")
    found = comparison_json(Comparison(SPEC, 2, Path("out"), (result,)))
    assert found["methods"]["consensus"]["selective_accuracy"] == pytest.approx(1.3 / 1.5)
    assert MethodResult(consensus, (every, every)).selective_accuracy is None
    abstained = MethodResult(
        consensus, (Measurement(accuracy=0.0, coverage=0.0, selective_accuracy=None),)
    )
    assert abstained.selective_accuracy is None


def test_no_selective_accuracy_without_coverage(tmp_path, monkeypatch):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    monkeypatch.chdir(tmp_path)
    unlike = "networks = [{ options = { label = 0 } }, { options = { label = 1 } }]"
    text = TEXT.replace('"small-cnn"', '"stubborn:build"').replace("networks = 3", unlike)
    spec = parse_spec(text.replace("epochs = 5", "epochs = 1"))
    found = compare(spec, tmp_path / "out", methods=["consensus"])
    assert found.methods[0].measurements[0].coverage == 0
    json.dumps(comparison_json(found), allow_nan=False)
    assert "labels 0.0%\n" in comparison_text(found)


def test_invalid_baseline_fails_alone_and_an_invalid_spec_raises(tmp_path):
    guessing = 'networks = [{ network = "random", options = {} }, {}]'
    spec = parse_spec(TEXT.replace("networks = 3", guessing).replace("epochs = 5", "epochs = 1"))
    members, majority = compare(spec, tmp_path, methods=["batch-ensemble", "majority"]).methods
    assert majority.measurements
    assert re.search("random|RandomPredictor", members.failures[0])
    with pytest.raises(ChoiceError, match="Did you mean 'small-cnn'"):
        compare(parse_spec(TEXT.replace("small-cnn", "small-cmn")), tmp_path)


@pytest.mark.parametrize(
    ("training", "disk", "cells"),
    [
        (20 / 3, 24_300, "6.7  24.3 KB"),
        (2.0, 44_700_000, "2  44.7 MB"),
        (0.0, 1_000_000, "1.0 MB"),
    ],
)
def test_table_rounds_costs(training, disk, cells):
    outcome = Measurement(0.5, passes=2, disk=disk, training=training)
    result = MethodResult(METHODS["npc"], (outcome,))
    text = comparison_text(Comparison(SPEC, 1, Path("out"), (result,)))
    (row,) = [line for line in text.splitlines() if line.startswith("npc")]
    assert row.endswith(cells)

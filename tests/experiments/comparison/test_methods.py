"""Each method of a comparison, against its definition on the shared networks."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from compared import SPEC, TEXT, run_of
from overfitting import memorised

import accord
from accord.errors import PredictionError
from accord.experiments.comparison import METHODS, compare
from accord.experiments.comparison._methods import best_epoch, vote_from_features
from accord.experiments.comparison._runs import FinishedRun
from accord.rules._overfitting import epochs_before_overfitting
from accord.store import ArrayReader
from accord.training import load_spec, parse_spec

CONVOLVED = """
from torch import nn


def build(*, classes, channels):
    return nn.Sequential(nn.Conv2d(channels, classes, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
"""


def test_every_listed_method_is_measured(compared):
    assert compared.keys() == METHODS.keys()
    assert all(0 <= one.accuracy <= 1 for one in compared.values())


def test_rules_are_scored_on_the_shared_networks(compared, out):
    record = accord.open(run_of(out, "shared") / "test")
    for score in record.score():
        assert compared[score.rule].accuracy == score.accuracy
    assert compared["majority"].passes == 3
    assert compared["max-agreement"].passes == 15
    assert compared["single"].passes == 1
    assert compared["oracle-best-epoch"].passes == 3
    assert compared["max-agreement"].disk == 15 * compared["single"].disk > 0


def test_early_stopping_uses_noisy_labels_only(compared, out):
    shared = run_of(out, "shared")
    held_out, test = accord.open(shared / "validation"), accord.open(shared / "test")
    agreed = [
        (held_out.select(epochs=[epoch]).predict("majority").labels == held_out.given).mean()
        for epoch in range(5)
    ]
    epoch = int(np.argmax(agreed))
    assert compared["early-stopping"].epoch == best_epoch(held_out) == epoch
    labels = test.select(epochs=[epoch]).predict("majority").labels
    assert compared["early-stopping"].accuracy == (labels == test.truth).mean()


def test_snapshot_averages_probabilities_at_the_ends_of_cycles(tmp_path):
    spec = parse_spec(TEXT.replace("epochs = 5", "epochs = 10"))
    found = compare(spec, tmp_path, methods=["snapshot"]).methods[0].measurements[0]
    record = accord.open(run_of(tmp_path, "snapshot") / "test")
    assert (record.networks, record.epochs) == (1, 10)
    mean = np.mean([record.probabilities[0, end] for end in (1, 3, 5, 7, 9)], axis=0, dtype=float)
    assert found.accuracy == (mean.argmax(axis=1) == record.truth).mean()
    assert (found.passes, found.training) == (5, 1.0)
    rates = [values["lr"] for values in record.networks_info[0].metrics]
    assert rates == pytest.approx([0.05, 0.025] * 5)


@pytest.mark.parametrize(
    ("epochs", "every", "ends"),
    [(4, 0.5, [1, 3, 5, 7]), (9, 1.0, [1, 3, 5, 7]), (6, 2.0, [0, 1, 2]), (3, 10, [0])],
)
def test_snapshot_finds_ends_of_cycles_at_any_recording_interval(tmp_path, epochs, every, ends):
    text = TEXT.replace("epochs = 5", f"epochs = {epochs}") + f"[record]\nevery = {every}\n"
    found = compare(parse_spec(text), tmp_path, methods=["snapshot"]).methods[0].measurements[0]
    record = accord.open(run_of(tmp_path, "snapshot") / "test")
    mean = np.mean([record.probabilities[0, end] for end in ends], axis=0, dtype=float)
    assert found.accuracy == (mean.argmax(axis=1) == record.truth).mean()
    assert found.passes == len(ends)


def test_untrainable_network_fails_only_methods_on_features(tmp_path):
    guessing = 'networks = [{}, { network = "random", options = {} }]'
    spec = parse_spec(TEXT.replace("networks = 3", guessing).replace("epochs = 5", "epochs = 1"))
    npc, majority = compare(spec, tmp_path, methods=["npc", "majority"]).methods
    assert npc.failures == ("network 1 of kind 'random' is not trained and has no features",)
    assert majority.measurements


def test_methods_on_features_vote_and_store_their_labels(compared, out):
    for name in ("rog", "npc"):
        labels = np.load(run_of(out, "shared") / f"predictions/{name}.npy")
        truth = accord.open(run_of(out, "shared") / "test").truth
        assert compared[name].accuracy == (labels == truth).mean()
    assert (compared["rog"].passes, compared["rog"].training) == (3, 0)
    assert (compared["npc"].passes, compared["npc"].training) == (6, 3 * 10 / 5)


def test_averaged_networks_vote(compared, out):
    for kind in ("ema", "swa"):
        record = accord.open(run_of(out, "shared") / f"test-{kind}")
        score = record.score(["majority"])[0]
        assert compared[kind].accuracy == score.accuracy
    assert compared["ema"].with_max_agreement is not None
    assert compared["swa"].with_max_agreement is None


def test_separate_runs_follow_their_specs(compared, out):
    elr, hyper, members = (
        load_spec(run_of(out, name) / "spec.toml").train
        for name in ("elr", "hyper-ensemble", "batch-ensemble")
    )
    assert elr.loss.kind == "elr"
    assert [one.lr for one in hyper.networks] == pytest.approx([0.01, 0.04, 0.07, 0.10])
    assert (members.networks, members.batch_ensemble) == (1, 4)
    # A BatchEnsemble passes each sample through its four members at every step.
    for name, networks in (("elr", 3), ("hyper-ensemble", 4), ("batch-ensemble", 4)):
        assert compared[name].training == networks
    assert compared["batch-ensemble"].passes == 4
    assert compared["batch-ensemble"].disk < 4 * compared["single"].disk


def test_separate_runs_report_max_agreement_too(compared, out):
    record = accord.open(run_of(out, "elr") / "test")
    single, majority, agreed = record.score(["single", "majority", "max-agreement"])
    found = compared["elr"]
    assert found.single == single.accuracy
    assert found.accuracy == majority.accuracy
    assert found.with_max_agreement == agreed.accuracy


def test_before_overfit_costs_only_the_epochs_it_uses():
    rows = memorised()
    run = SimpleNamespace(record=accord.Record(rows), network_bytes=100, spec=SPEC)
    before, all_epochs = (METHODS[name].measure(run) for name in ("before-overfit", "dawid-skene"))
    kept = epochs_before_overfitting(rows)
    assert kept < 40
    assert (before.passes, before.disk) == (4 * kept, 400 * kept)
    assert (all_epochs.passes, all_epochs.disk) == (160, 16_000)


def test_accuracies_are_estimated_from_labels_that_are_only_given():
    example = accord.open("example://cifar10-sym40").select(epochs=slice(None, None, 5))
    info = replace(example.reader.sample_info, truth=None, given=example.truth)
    record = accord.Record(ArrayReader(example.labels[:], info))
    run = SimpleNamespace(record=record, network_bytes=100, spec=SPEC)
    scores = {one.rule: one for one in record.score()}
    for name in ("single", "consensus", "max-agreement"):
        found, corrected = METHODS[name].measure(run), scores[name].corrected
        assert found.reference == "given"
        estimate = (corrected.value, corrected.low, corrected.high)
        assert (found.corrected, found.low, found.high) == estimate
    few = SimpleNamespace(record=record.select(networks=[0]), network_bytes=100, spec=SPEC)
    assert METHODS["majority"].measure(few).corrected is None


def test_network_without_linear_layer_fails_only_methods_on_features(tmp_path, monkeypatch):
    (tmp_path / "convolved.py").write_text(CONVOLVED)
    monkeypatch.chdir(tmp_path)
    text = TEXT.replace('"small-cnn"', '"convolved:build"').replace("options = { width = 4 }", "")
    spec = parse_spec(text.replace("epochs = 5", "epochs = 1"))
    majority, npc = compare(spec, tmp_path / "out", methods=["majority", "npc"]).methods
    assert majority.measurements
    assert re.search("Sequential has no linear layer", npc.failures[0])
    with pytest.raises(PredictionError, match="no linear layer"):
        compare(spec, tmp_path / "out", methods=["npc"])


def test_features_use_the_batches_of_the_run(compared, out, monkeypatch):
    folder = run_of(out, "shared")
    run = FinishedRun(folder, load_spec(folder / "spec.toml"))
    shown = []
    monkeypatch.setattr(
        "accord.training._prepared_data.make_batches", lambda *_, **options: shown.append(options)
    )
    monkeypatch.setattr(
        "accord.baselines.npc.predict_npc", lambda _, batches, **__: batches("test") or np.eye(10)
    )
    vote_from_features("npc", run)
    assert [(one["network"], one["length"]) for one in shown] == [("small-cnn", 128)]

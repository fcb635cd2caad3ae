"""All methods see the same networks, are measured as they are defined, and are not done twice."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from overfitting import memorised

import accord
from accord.cli.app import run as run_command
from accord.errors import ChoiceError, PredictionError, TrainingError
from accord.experiments.comparison import (
    METHODS,
    Comparison,
    Outcome,
    Summary,
    compare,
    comparison_json,
    comparison_text,
)
from accord.experiments.comparison import _methods as methods
from accord.experiments.comparison import _runs as runs_module
from accord.experiments.comparison._methods import best_epoch
from accord.rules._overfitting import epochs_before_overfit
from accord.training.spec import load_spec, network_specs, parse_spec

TEXT = """
name = "small"
[data]
kind = "digits"
per_class = 40
[noise]
kind = "symmetric"
rate = 0.4
[train]
networks = 3
network = "small-cnn"
options = { width = 4 }
epochs = 5
batch = 16
optimizer = { lr = 0.05 }
"""
SPEC = parse_spec(TEXT)
STUBBORN = """
from torch import nn


def build(*, classes, says):
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, classes))
    network[1].bias.data[says] = 1e4
    return network
"""
CONVOLVED = """
from torch import nn


def build(*, classes, channels):
    return nn.Sequential(nn.Conv2d(channels, classes, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("compared")


@pytest.fixture(scope="module")
def compared(out):
    return {one.method.name: one.outcomes[0] for one in compare(SPEC, out).methods}


def run_of(out, name):
    (folder,) = out.glob(f"{name}-*")
    return folder


def test_every_method_that_is_listed_is_measured(compared):
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


def test_samples_are_held_out_for_all_if_one_method_needs_them(compared, out, tmp_path):
    shared = run_of(out, "shared")
    assert accord.open(shared / "validation").samples == 40
    compare(SPEC, tmp_path, methods=["majority"])
    assert not (run_of(tmp_path, "shared") / "validation").exists()


def test_early_stopping_looks_at_noisy_labels_alone(compared, out):
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


def test_a_snapshot_ensemble_is_the_mean_at_the_ends_of_the_cycles(tmp_path):
    spec = parse_spec(TEXT.replace("epochs = 5", "epochs = 10"))
    found = compare(spec, tmp_path, methods=["snapshot"]).methods[0].outcomes[0]
    record = accord.open(run_of(tmp_path, "snapshot") / "test")
    assert (record.networks, record.epochs) == (1, 10)
    mean = np.mean([record.probabilities[0, end] for end in (1, 3, 5, 7, 9)], axis=0, dtype=float)
    assert found.accuracy == (mean.argmax(axis=1) == record.truth).mean()
    assert (found.passes, found.training) == (5, 1.0)
    rates = [told["lr"] for told in record.networks_info[0].metrics]
    assert rates == pytest.approx([0.05, 0.025] * 5)


@pytest.mark.parametrize(
    ("epochs", "every", "ends"),
    [(4, 0.5, [1, 3, 5, 7]), (9, 1.0, [1, 3, 5, 7]), (6, 2.0, [0, 1, 2]), (3, 10, [0])],
)
def test_the_ends_of_cycles_are_found_wherever_moments_lie(tmp_path, epochs, every, ends):
    text = TEXT.replace("epochs = 5", f"epochs = {epochs}") + f"[record]\nevery = {every}\n"
    found = compare(parse_spec(text), tmp_path, methods=["snapshot"]).methods[0].outcomes[0]
    record = accord.open(run_of(tmp_path, "snapshot") / "test")
    mean = np.mean([record.probabilities[0, end] for end in ends], axis=0, dtype=float)
    assert found.accuracy == (mean.argmax(axis=1) == record.truth).mean()
    assert found.passes == len(ends)


def test_a_method_that_is_named_twice_is_measured_once(tmp_path):
    found = compare(SPEC, tmp_path, methods=["majority", "single", "majority"]).methods
    assert [(one.method.name, len(one.outcomes)) for one in found] == [
        ("majority", 1),
        ("single", 1),
    ]


def test_a_network_that_guesses_fails_what_needs_features_alone(tmp_path):
    guessing = 'networks = [{}, { network = "random", options = {} }]'
    spec = parse_spec(TEXT.replace("networks = 3", guessing).replace("epochs = 5", "epochs = 1"))
    npc, majority = compare(spec, tmp_path, methods=["npc", "majority"]).methods
    assert npc.failures == (
        "network 1 is of kind 'random', which learns nothing: it has no features to look at.",
    )
    assert majority.outcomes


def test_weights_of_unlike_networks_count_each_as_it_is(tmp_path):
    unlike = "networks = [{}, { options = { width = 8 } }]"
    spec = parse_spec(TEXT.replace("networks = 3", unlike).replace("epochs = 5", "epochs = 1"))
    found = compare(spec, tmp_path, methods=["majority"]).methods[0].outcomes[0]
    alone = [
        compare(
            parse_spec(
                TEXT.replace("networks = 3", "networks = 1")
                .replace("epochs = 5", "epochs = 1")
                .replace("width = 4", f"width = {width}")
            ),
            tmp_path / str(width),
            methods=["majority"],
        )
        .methods[0]
        .outcomes[0]
        .disk
        for width in (4, 8)
    ]
    assert alone[0] < alone[1]
    assert found.disk == pytest.approx(sum(alone), abs=1)


def test_runs_are_trained_by_whom_the_caller_says(tmp_path):
    asked = []

    def train(spec, out, progress):
        asked.append((spec.name, out.parent))
        return runs_module.train_here(spec, out, progress)

    compare(SPEC, tmp_path, methods=["majority"], train=train)
    assert asked == [("small", tmp_path)]


def test_notes_from_training_are_told_once(tmp_path, monkeypatch, capsys):
    def note(spec, out, **more):
        return replace(real(spec, out, **more), notes=("nothing teaches class 3",))

    real = runs_module.train
    monkeypatch.setattr(runs_module, "train", note)
    (tmp_path / "spec.toml").write_text(TEXT)
    asked = ["--method", "majority", "--method", "elr", "--repetitions", "2", "--json"]
    assert run_command(["compare", f"{tmp_path}/spec.toml", "--out", f"{tmp_path}/a", *asked]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("accord: nothing teaches class 3\n") == 1
    assert json.loads(shown.out)["notes"] == ["nothing teaches class 3"]


def test_methods_on_features_vote_and_are_kept(compared, out):
    for name in ("rog", "npc"):
        labels = np.load(run_of(out, "shared") / f"predictions/{name}.npy")
        truth = accord.open(run_of(out, "shared") / "test").truth
        assert compared[name].accuracy == (labels == truth).mean()
    assert (compared["rog"].passes, compared["rog"].training) == (3, 0)
    assert (compared["npc"].passes, compared["npc"].training) == (6, 3 * 10 / 5)


def test_what_cannot_be_measured_is_a_line_and_the_rest_goes_on(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PredictionError("the network predicts class 3 for all samples")

    monkeypatch.setattr("accord.baselines.npc.predict_npc", refuse)
    found = compare(SPEC, tmp_path, methods=["npc", "majority"], repetitions=2)
    npc, majority = found.methods
    assert npc.outcomes == ()
    assert len(majority.outcomes) == 2
    as_json = comparison_json(found)["methods"]
    assert as_json["npc"] == {"failures": ["the network predicts class 3 for all samples"] * 2}
    assert "failures" not in as_json["majority"]
    assert "failed in 2 of 2: the network predicts class 3" in comparison_text(found)
    with pytest.raises(PredictionError, match="class 3 for all"):
        compare(SPEC, tmp_path, methods=["npc"])


def test_where_all_fail_the_first_reason_is_told(tmp_path, monkeypatch):
    def refuse(spec, out, **_):
        raise TrainingError(f"{out.name.rpartition('-')[0]} failed")

    monkeypatch.setattr(runs_module, "train", refuse)
    with pytest.raises(TrainingError, match="shared failed"):
        compare(SPEC, tmp_path, methods=["majority", "elr"])


def test_a_run_that_fails_is_tried_once_and_fails_its_methods_alone(tmp_path, monkeypatch):
    asked = []

    def train(spec, out, **more):
        asked.append(out.name.rpartition("-")[0])
        if asked[-1] == "shared":
            raise TrainingError("out of memory")
        return real(spec, out, **more)

    real = runs_module.train
    monkeypatch.setattr(runs_module, "train", train)
    majority, single, elr = compare(SPEC, tmp_path, methods=["majority", "single", "elr"]).methods
    assert asked == ["shared", "elr"]
    assert majority.failures == single.failures == ("out of memory",)
    assert elr.outcomes
    assert math.isnan(majority.accuracy)
    assert majority.mean("passes") is None


def test_averaged_networks_vote(compared, out):
    for kind in ("ema", "swa"):
        record = accord.open(run_of(out, "shared") / f"test-{kind}")
        score = record.score(["majority"])[0]
        assert compared[kind].accuracy == score.accuracy
    assert compared["ema"].with_max_agreement is not None
    assert compared["swa"].with_max_agreement is None


def test_what_is_trained_anew_is_trained_as_it_should_be(compared, out):
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


def test_they_are_reported_alone_and_with_max_agreement(compared, out):
    record = accord.open(run_of(out, "elr") / "test")
    single, majority, agreed = record.score(["single", "majority", "max-agreement"])
    found = compared["elr"]
    assert found.single == single.accuracy
    assert found.accuracy == majority.accuracy
    assert found.with_max_agreement == agreed.accuracy


def test_nothing_is_trained_twice(compared, out, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr("accord.training.run.train", refuse)
    again = compare(SPEC, out)
    assert {one.method.name: one.outcomes[0] for one in again.methods} == compared


def test_repetitions_have_other_seeds_and_a_standard_error(tmp_path):
    names = ["majority", "max-agreement"]
    found = compare(SPEC, tmp_path, methods=names, repetitions=3)
    assert len(list(tmp_path.glob("shared-*"))) == 3
    for summary in found.methods:
        values = [one.accuracy for one in summary.outcomes]
        assert summary.accuracy == pytest.approx(np.mean(values))
        assert summary.standard_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
    table = comparison_json(found)
    assert table["repetitions"] == 3
    assert list(table["methods"]) == names
    assert "±" in comparison_text(found)


def test_what_max_agreement_adds_has_a_standard_error_too():
    summary = Summary(
        METHODS["elr"], tuple(Outcome(0.5, with_max_agreement=one) for one in (0.6, 0.7, 0.9))
    )
    comparison = Comparison(SPEC, 3, Path("out"), (summary,))
    error = np.std([0.6, 0.7, 0.9], ddof=1) / np.sqrt(3)
    found = comparison_json(comparison)["methods"]["elr"]
    assert found["with_max_agreement_standard_error"] == pytest.approx(error)
    assert f"50.00 ± 0.00  73.33 ± {100 * error:.2f}" in comparison_text(comparison)


def test_each_repetition_tells_the_epoch_that_it_chose():
    chosen = tuple(Outcome(0.5, epoch=epoch) for epoch in (4, 2))
    summary = Summary(METHODS["early-stopping"], chosen)
    found = comparison_json(Comparison(SPEC, 2, Path("out"), (summary,)))
    assert found["methods"]["early-stopping"]["epochs"] == [4, 2]


@pytest.mark.parametrize(("every", "said"), [(0.5, "epoch 4 (progress 2.5)"), (1.0, "epoch 4")])
def test_a_chosen_epoch_that_is_no_whole_one_is_told_with_its_progress(tmp_path, every, said):
    facts = {"samples": 3, "classes": 2, "truth": np.ones(3, int)}
    with accord.Recorder(tmp_path, network=0, **facts) as recorder:
        for epoch in range(6):
            predicted = np.full(3, int(epoch == 4))  # right then alone
            recorder.record(predicted, progress=every * (epoch + 1))
    record = accord.open(tmp_path)
    run = SimpleNamespace(record=record, record_of=lambda _: record, network_bytes=1, spec=SPEC)
    method = METHODS["early-stopping"]
    summary = Summary(method, (method.measure({"shared": run}),))
    comparison = Comparison(SPEC, 1, Path("out"), (summary,))
    assert f"  {said}\n" in comparison_text(comparison)
    found = comparison_json(comparison)["methods"]["early-stopping"]
    assert (found["epochs"], found["progress"]) == ([4], [5 * every])


def test_epochs_that_have_no_say_need_be_neither_asked_nor_kept():
    rows = memorised()
    run = SimpleNamespace(record=accord.Record(rows), network_bytes=100, spec=SPEC)
    before, all_epochs = (
        METHODS[name].measure({"shared": run}) for name in ("before-overfit", "dawid-skene")
    )
    kept = epochs_before_overfit(rows)
    assert kept < 40
    assert (before.passes, before.disk) == (4 * kept, 400 * kept)
    assert (all_epochs.passes, all_epochs.disk) == (160, 16_000)


def test_networks_whose_seeds_are_given_have_others_in_each_repetition(tmp_path):
    text = TEXT.replace("networks = 3", "networks = [{ seed = 7 }, { lr = 0.02 }]")
    spec = parse_spec(text.replace("epochs = 5", "epochs = 1"))
    compare(spec, tmp_path, methods=["majority"], repetitions=2)
    specs = [load_spec(path) for path in tmp_path.glob("shared-*/spec.toml")]
    seeds = [tuple(member.seed for member in network_specs(one)) for one in specs]
    assert sorted(seeds) == [(7, 1), (1007, 1001)]


def test_a_method_that_is_not_there_is_told_with_the_nearest(tmp_path):
    with pytest.raises(ChoiceError, match=r"no method is called 'snapshots'\. Did you mean 'snap"):
        compare(SPEC, tmp_path, methods=["snapshots"])
    with pytest.raises(ChoiceError, match="at least one repetition; got 0"):
        compare(SPEC, tmp_path, repetitions=0)


def test_a_network_that_diverges_is_named(tmp_path):
    wild = parse_spec(TEXT.replace("lr = 0.05", "lr = 1e30"))
    with pytest.raises(TrainingError, match=r"shared-.*: networks 0, 1, 2 were stopped: the loss"):
        compare(wild, tmp_path, methods=["majority"])


def test_the_command_names_what_was_stopped_and_fails_after_printing_the_rest(tmp_path, capsys):
    wild = "networks = [{}, { lr = 1e30 }]"
    (tmp_path / "spec.toml").write_text(TEXT.replace("networks = 3", wild))
    asked = ["compare", f"{tmp_path}/spec.toml", "--out", f"{tmp_path}/out", "--method", "majority"]
    asked += ["--method", "snapshot"]
    assert run_command(asked) == 1
    shown = capsys.readouterr()
    said = "network 1 was stopped: the loss became"
    assert f": {said}" in shown.err
    table = {line.split()[0]: line for line in shown.out.splitlines() if line}
    assert said in table["majority"]
    assert "failed" not in table["snapshot"]
    assert run_command([*asked, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (stopped,) = found["stopped"]
    assert said in stopped
    assert found["methods"]["majority"]["failures"] == [stopped]
    assert found["methods"]["snapshot"]["accuracy"] > 0


def test_averages_are_not_asked_of_a_batch_ensemble(tmp_path):
    spec = parse_spec(TEXT.replace("networks = 3", "networks = 1\nbatch_ensemble = 2"))
    names = [one.method.name for one in compare(spec, tmp_path).methods]
    assert "swa" not in names
    assert "max-agreement" in names
    with pytest.raises(ChoiceError, match="rog cannot be had of a BatchEnsemble"):
        compare(spec, tmp_path, methods=["majority", "rog"])


def test_weights_that_members_share_count_once(tmp_path):
    spec = parse_spec(TEXT.replace("networks = 3", "networks = 2\nbatch_ensemble = 3"))
    names = ["single", "majority", "max-agreement"]
    found = compare(spec, tmp_path, methods=names).methods
    single, majority, agreed = (one.outcomes[0] for one in found)
    assert (majority.passes, majority.disk) == (6, 2 * single.disk)
    assert (agreed.passes, agreed.disk) == (30, 10 * single.disk)


def test_answers_are_summed_up_over_the_repetitions_that_had_abstentions():
    some = Outcome(accuracy=0.4, coverage=0.5, selective_accuracy=0.8)
    every = Outcome(accuracy=0.9)
    consensus = METHODS["consensus"]
    summary = Summary(consensus, (some, every))
    (row,) = [
        line
        for line in comparison_text(Comparison(SPEC, 2, Path("out"), (summary,))).splitlines()
        if line.startswith("consensus")
    ]
    assert row.endswith("answers 75.0%, 86.7% of them right")
    found = comparison_json(Comparison(SPEC, 2, Path("out"), (summary,)))
    assert found["methods"]["consensus"]["selective_accuracy"] == pytest.approx(1.3 / 1.5)
    assert Summary(consensus, (every, every)).selective_accuracy is None
    abstained = Summary(consensus, (Outcome(accuracy=0.0, coverage=0.0, selective_accuracy=None),))
    assert abstained.selective_accuracy is None


def test_a_method_that_answers_nothing_has_no_accuracy_on_answers(tmp_path, monkeypatch):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    monkeypatch.chdir(tmp_path)
    unlike = "networks = [{ options = { says = 0 } }, { options = { says = 1 } }]"
    text = TEXT.replace('"small-cnn"', '"stubborn:build"').replace("networks = 3", unlike)
    spec = parse_spec(text.replace("epochs = 5", "epochs = 1"))
    found = compare(spec, tmp_path / "out", methods=["consensus"])
    assert found.methods[0].outcomes[0].coverage == 0
    json.dumps(comparison_json(found), allow_nan=False)
    assert "answers 0.0%\n" in comparison_text(found)


def test_a_network_without_a_linear_layer_fails_what_needs_one_alone(tmp_path, monkeypatch):
    (tmp_path / "convolved.py").write_text(CONVOLVED)
    monkeypatch.chdir(tmp_path)
    text = TEXT.replace('"small-cnn"', '"convolved:build"').replace("options = { width = 4 }", "")
    spec = parse_spec(text.replace("epochs = 5", "epochs = 1"))
    majority, npc = compare(spec, tmp_path / "out", methods=["majority", "npc"]).methods
    assert majority.outcomes
    assert re.search("Sequential has no linear layer", npc.failures[0])
    with pytest.raises(PredictionError, match="no linear layer"):
        compare(spec, tmp_path / "out", methods=["npc"])


def test_a_rival_that_cannot_be_built_fails_alone_and_a_spec_that_cannot_at_once(tmp_path):
    guessing = 'networks = [{ network = "random", options = {} }, {}]'
    spec = parse_spec(TEXT.replace("networks = 3", guessing).replace("epochs = 5", "epochs = 1"))
    members, majority = compare(spec, tmp_path, methods=["batch-ensemble", "majority"]).methods
    assert majority.outcomes
    assert re.search("random|RandomPredictor", members.failures[0])
    with pytest.raises(ChoiceError, match="Did you mean 'small-cnn'"):
        compare(parse_spec(TEXT.replace("small-cnn", "small-cmn")), tmp_path)


def test_what_is_trained_anew_follows_the_first_of_unlike_networks():
    first = '{ network = "mlp", options = {}, lr = 0.1, loss = { kind = "elr", beta = 0.5 } }'
    spec = parse_spec(
        TEXT.replace("networks = 3", f'networks = [{first}, {{ network = "random" }}]')
    )
    for name in ("snapshot", "batch-ensemble", "hyper-ensemble"):
        for member in network_specs(runs_module.SPECS[name](spec)):
            assert (member.network, member.options) == ("mlp", {})
            assert member.loss.options == {"beta": 0.5}
    (snapshot,) = network_specs(runs_module.snapshot_spec(spec))
    assert (snapshot.optimizer.lr, snapshot.schedule.cycle) == (0.1, 1)
    rates = [member.optimizer.lr for member in network_specs(runs_module.hyper_ensemble_spec(spec))]
    assert rates == pytest.approx([0.02, 0.08, 0.14, 0.2])


def test_elr_is_the_loss_of_all_networks_whatever_each_had():
    text = TEXT.replace("networks = 3", 'networks = [{ lr = 0.1, loss = "cross-entropy" }, {}]')
    first, second = network_specs(runs_module.elr_spec(parse_spec(text)))
    assert first.loss.kind == second.loss.kind == "elr"
    assert (first.optimizer.lr, second.optimizer.lr) == (0.1, 0.05)


def test_elr_keeps_the_options_that_the_spec_gives_it():
    text = TEXT + 'loss = { kind = "elr", beta = 0.9, strength = 7 }\n'
    for member in network_specs(runs_module.elr_spec(parse_spec(text))):
        assert member.loss.options == {"beta": 0.9, "strength": 7}


def test_networks_whose_last_weights_are_gone_fail_what_needs_them_alone(tmp_path):
    spec = parse_spec(TEXT.replace("epochs = 5", "epochs = 1"))
    compare(spec, tmp_path, methods=["majority"])
    for path in tmp_path.glob("shared-*/checkpoints/network-001/epoch-*"):
        path.unlink()
    majority, npc = compare(spec, tmp_path, methods=["majority", "npc"]).methods
    assert majority.outcomes
    assert re.search(r"network-001: holds no checkpoint of epoch 0\. Remove", npc.failures[0])


def test_features_are_taken_of_samples_as_each_network_reads_them(compared, out, monkeypatch):
    """A text's tokens are its network's own, and as many as the spec says."""
    folder = run_of(out, "shared")
    run = runs_module.TrainedRun(load_spec(folder / "spec.toml"), folder)
    shown = []
    monkeypatch.setattr(
        "accord.training._prepared_data.make_batches", lambda *_, **facts: shown.append(facts)
    )
    monkeypatch.setattr(
        "accord.baselines.npc.predict_npc", lambda _, sees, **__: sees("test") or np.eye(10)
    )
    methods._vote_from_features("npc", run)
    assert [(one["network"], one["length"]) for one in shown] == [("small-cnn", 128)] * 3


def test_kept_predictions_are_not_made_again(compared, out):
    run = runs_module.TrainedRun(SPEC, run_of(out, "shared"))
    some = np.arange(run.record.samples)
    assert np.array_equal(run.kept("some", lambda: some), some)
    assert np.array_equal(run.kept("some", lambda: some + 1), some)


@pytest.mark.parametrize("content", [b"", b"no array"])
def test_damaged_predictions_are_made_again(compared, out, content):
    run = runs_module.TrainedRun(SPEC, run_of(out, "shared"))
    path = run.out / "predictions/damaged.npy"
    path.write_bytes(content)
    some = np.arange(run.record.samples)
    assert np.array_equal(run.kept("damaged", lambda: some), some)
    assert np.array_equal(np.load(path), some)


def test_the_last_weights_say_what_was_recorded_last(compared, out):
    from accord.training._loop import predict_probabilities

    folder = run_of(out, "shared")
    run = runs_module.TrainedRun(load_spec(folder / "spec.toml"), folder)
    samples = run.material.batches("test", device=run.device)
    for number, network in enumerate(run.networks()):
        said = predict_probabilities(network, samples).argmax(axis=1)
        assert np.array_equal(said, run.record.labels[number, -1])


@pytest.mark.parametrize(
    ("training", "disk", "cells"),
    [
        (20 / 3, 24_300, "6.7  24.3 KB"),
        (2.0, 44_700_000, "2  44.7 MB"),
        (0.0, 1_000_000, "1.0 MB"),
    ],
)
def test_what_a_method_costs_is_rounded_and_small_weights_are_not_nothing(training, disk, cells):
    outcome = Outcome(0.5, passes=2, disk=disk, training=training)
    summary = Summary(METHODS["npc"], (outcome,))
    text = comparison_text(Comparison(SPEC, 1, Path("out"), (summary,)))
    (row,) = [line for line in text.splitlines() if line.startswith("npc")]
    assert row.endswith(cells)


def test_the_command_prints_a_table_or_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(TEXT)
    asked = ["compare", "spec.toml", "--method", "majority", "--out", "runs"]
    assert run_command(asked) == 0
    shown = capsys.readouterr()
    assert "majority" in shown.out
    assert "shared run, seed 0: network" in shown.err
    assert run_command([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["methods"]["majority"]) >= {"accuracy", "passes", "training", "disk"}
    assert run_command(["compare", "--list", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [one["name"] for one in items] == list(METHODS)
    assert run_command(["compare", "spec.toml", "--method", "nothing"]) == 2

"""The runs of a comparison: their specs, networks and cached labels."""

import re

import numpy as np
import pytest
from compared import SPEC, TEXT, run_of

from accord.experiments.comparison import _runs as runs_module
from accord.experiments.comparison import compare
from accord.experiments.comparison._runs import FinishedRun
from accord.training import load_spec, network_specs, parse_spec


def test_network_bytes_is_the_mean_of_different_networks(tmp_path):
    unlike = "networks = [{}, { options = { width = 8 } }]"
    spec = parse_spec(TEXT.replace("networks = 3", unlike).replace("epochs = 5", "epochs = 1"))
    found = compare(spec, tmp_path, methods=["majority"]).methods[0].measurements[0]
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
        .measurements[0]
        .disk
        for width in (4, 8)
    ]
    assert alone[0] < alone[1]
    assert found.disk == pytest.approx(sum(alone), abs=1)


def test_repetitions_shift_explicit_seeds(tmp_path):
    text = TEXT.replace("networks = 3", "networks = [{ seed = 7 }, { lr = 0.02 }]")
    spec = parse_spec(text.replace("epochs = 5", "epochs = 1"))
    compare(spec, tmp_path, methods=["majority"], repetitions=2)
    specs = [load_spec(path) for path in tmp_path.glob("shared-*/spec.toml")]
    seeds = [tuple(network.seed for network in network_specs(one)) for one in specs]
    assert sorted(seeds) == [(7, 1), (1007, 1001)]


def test_shared_weights_of_members_count_once(tmp_path):
    spec = parse_spec(TEXT.replace("networks = 3", "networks = 2\nbatch_ensemble = 3"))
    names = ["single", "majority", "max-agreement"]
    found = compare(spec, tmp_path, methods=names).methods
    single, majority, agreed = (one.measurements[0] for one in found)
    assert (majority.passes, majority.disk) == (6, 2 * single.disk)
    assert (agreed.passes, agreed.disk) == (30, 10 * single.disk)


def test_separate_runs_follow_the_first_of_different_networks():
    first = '{ network = "mlp", options = {}, lr = 0.1, loss = { kind = "elr", beta = 0.5 } }'
    spec = parse_spec(
        TEXT.replace("networks = 3", f'networks = [{first}, {{ network = "random" }}]')
    )
    for name in ("snapshot", "batch-ensemble", "hyper-ensemble"):
        for network in network_specs(runs_module.SPECS[name](spec)):
            assert (network.network, network.options) == ("mlp", {})
            assert network.loss.options == {"beta": 0.5}
    (snapshot,) = network_specs(runs_module.snapshot_spec(spec))
    assert (snapshot.optimizer.lr, snapshot.schedule.cycle) == (0.1, 1)
    rates = [
        network.optimizer.lr for network in network_specs(runs_module.hyper_ensemble_spec(spec))
    ]
    assert rates == pytest.approx([0.02, 0.08, 0.14, 0.2])


def test_elr_spec_replaces_the_loss_of_every_network():
    text = TEXT.replace("networks = 3", 'networks = [{ lr = 0.1, loss = "cross-entropy" }, {}]')
    first, second = network_specs(runs_module.elr_spec(parse_spec(text)))
    assert first.loss.kind == second.loss.kind == "elr"
    assert (first.optimizer.lr, second.optimizer.lr) == (0.1, 0.05)


def test_elr_spec_keeps_the_options_of_the_spec():
    text = TEXT + 'loss = { kind = "elr", beta = 0.9, strength = 7 }\n'
    for network in network_specs(runs_module.elr_spec(parse_spec(text))):
        assert network.loss.options == {"beta": 0.9, "strength": 7}


def test_missing_checkpoint_fails_only_methods_on_features(tmp_path):
    spec = parse_spec(TEXT.replace("epochs = 5", "epochs = 1"))
    compare(spec, tmp_path, methods=["majority"])
    for path in tmp_path.glob("shared-*/checkpoints/network-001/epoch-*"):
        path.unlink()
    majority, npc = compare(spec, tmp_path, methods=["majority", "npc"]).methods
    assert majority.measurements
    assert re.search(r"network-001: checkpoint of epoch 0 is missing\. Remove", npc.failures[0])


def test_stored_labels_are_read_back(compared, out):
    run = FinishedRun(run_of(out, "shared"), SPEC)
    some = np.arange(run.record.samples)
    assert np.array_equal(run.stored_labels("some", lambda: some), some)
    assert np.array_equal(run.stored_labels("some", unexpected), some)


def unexpected():
    raise AssertionError("the labels are stored")


@pytest.mark.parametrize("content", [b"", b"no array"])
def test_damaged_labels_are_computed_again(compared, out, content):
    run = FinishedRun(run_of(out, "shared"), SPEC)
    some = np.arange(run.record.samples)
    (run.path / "predictions/damaged.npy").write_bytes(content)
    assert np.array_equal(run.stored_labels("damaged", lambda: some), some)


def test_loaded_networks_predict_the_last_recorded_labels(compared, out):
    from accord.training._loop import predict_probabilities

    folder = run_of(out, "shared")
    run = FinishedRun(folder, load_spec(folder / "spec.toml"))
    samples = run.data.batches("test", device=run.device)
    for number, network in enumerate(run.load_networks()):
        predicted = predict_probabilities(network, samples).argmax(axis=1)
        assert np.array_equal(predicted, run.record.labels[number, -1])

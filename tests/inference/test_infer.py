"""Checkpoints predict new samples as their networks predicted them during training."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import accord
from accord.data import read_dataset
from accord.errors import ChoiceError, PredictionError, RecordMismatch, SourceError
from accord.inference import _evaluator, infer
from accord.rules import find_rule
from accord.rules.consensus import Consensus
from accord.training._checkpoints import save_checkpoint
from accord.training.networks import build

EPOCHS = [0, 2, 3, 5]
TEST = read_dataset("digits").test
RULES = ["max-agreement", "majority", "single", "soft-agreement", "probability-average",
         "weighted-agreement", "dawid-skene", "consensus"]  # fmt: skip
SMALL_CNN = {"classes": 10, "channels": 1, "size": 8, "seed": 5, "width": 8}


@pytest.fixture
def evaluations(monkeypatch):
    """The (network, epoch, number of samples) of each evaluation."""
    seen, predict = [], _evaluator.Evaluator.predict

    def watch(self, checkpoint, samples):
        seen.append((checkpoint.network.number, checkpoint.epoch, len(samples)))
        return predict(self, checkpoint, samples)

    monkeypatch.setattr(_evaluator.Evaluator, "predict", watch)
    return seen


@pytest.mark.parametrize("rule", RULES)
def test_the_test_split_gets_the_labels_of_its_record(whole, recorded, rule):
    found = infer(whole, TEST.inputs, rule=rule)
    wanted = recorded.predict(rule)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(found.support, wanted.scores, atol=1e-3)
    assert found.rule == rule
    assert found.networks == (0, 1, 2)


@pytest.mark.parametrize("rule", RULES)
def test_votes_beyond_the_memory_budget_give_the_same_labels(whole, rule, monkeypatch):
    wanted = infer(whole, TEST.inputs, rule=rule)
    monkeypatch.setenv("ACCORD_MEMORY", "1K")
    monkeypatch.setattr(_evaluator, "CELLS_AT_ONCE", 700)  # blocks of 70 samples
    found = infer(whole, TEST.inputs, rule=rule)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_array_equal(found.support, wanted.support)


def test_the_training_data_are_not_read(whole, monkeypatch):
    refuse = "accord.training._prepared_data.prepare_data"
    monkeypatch.setattr(refuse, lambda _: pytest.fail("read data"))
    assert len(infer(whole, TEST.inputs[:3])) == 3


def test_a_sample_is_scaled_like_the_training_samples(whole, recorded):
    """A single sample has another mean and spread."""
    alone = [infer(whole, TEST.inputs[at : at + 1]).labels[0] for at in range(8)]
    assert alone == recorded.predict().labels[:8].tolist()


@pytest.mark.parametrize("cells", [2**24, 700])
def test_an_exact_exit_gives_the_same_labels_for_fewer_votes(whole, recorded, monkeypatch, cells):
    monkeypatch.setattr(_evaluator, "CELLS_AT_ONCE", cells)  # one block, or blocks of 70 samples
    seen = []
    found = infer(whole, TEST.inputs, exit="exact", progress=lambda *some: seen.append(some))
    np.testing.assert_array_equal(found.labels, recorded.predict().labels)
    assert 0 < found.saved < 0.5
    assert found.evaluated.min() == 6  # half of 12, where class 0 wins ties
    assert seen[-1] == (719 * 12, 719 * 12)
    assert seen == sorted(seen)
    assert len(seen) == 12 * (1 if cells > 700 else 11)


def test_the_exact_exit_saves_what_a_replay_of_the_record_saves(whole, recorded):
    found = infer(whole, TEST.inputs, exit="exact")
    wanted = accord.inference.replay(recorded.reader, exit="exact")
    np.testing.assert_array_equal(found.evaluated, wanted.evaluated)


def test_a_checkpoint_is_evaluated_on_open_samples_alone(whole, evaluations):
    found = infer(whole, TEST.inputs, exit="exact")
    sizes = [size for *_, size in evaluations]
    assert sum(sizes) == found.evaluated.sum()
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


def test_once_all_samples_are_settled_no_checkpoint_is_loaded(whole, evaluations):
    certain = infer(whole, TEST.inputs).support.argmax()
    evaluations.clear()
    found = infer(whole, TEST.inputs[certain : certain + 1], exit="exact")
    assert len(evaluations) == found.evaluated[0] < 12


def test_the_seed_sets_the_order_for_a_risk(whole, recorded):
    first, again, other = (infer(whole, TEST.inputs, exit=0.4, seed=seed) for seed in (1, 1, 2))
    assert (first.evaluated == again.evaluated).all()
    assert (first.evaluated != other.evaluated).any()
    assert (first.labels != recorded.predict().labels).mean() <= 0.4


def test_a_rule_that_reads_the_last_epoch_evaluates_no_other(whole, evaluations):
    found = infer(whole, TEST.inputs[:5], rule="majority")
    assert (found.epochs, found.evaluated.tolist()) == ((5,), [3] * 5)
    assert {epoch for _, epoch, _ in evaluations} == {5}


def test_labels_of_the_samples_are_scored(whole, tmp_path):
    np.savez(tmp_path / "new.npz", images=TEST.inputs[:, 0], truth=TEST.labels)
    np.savez(tmp_path / "given.npz", images=TEST.inputs[:, 0], labels=TEST.labels)
    found, given = (infer(whole, tmp_path / name) for name in ("new.npz", "given.npz"))
    assert (found.reference, given.reference) == ("truth", "given")
    assert given.accuracy == found.accuracy == pytest.approx((found.labels == TEST.labels).mean())
    assert infer(whole, TEST.inputs).accuracy is None
    best = infer(whole, tmp_path / "new.npz", rule="oracle-best-epoch")
    assert best.accuracy >= infer(whole, tmp_path / "new.npz", rule="majority").accuracy


def test_the_recommended_rule_is_the_one_of_the_record(whole, recorded):
    found = infer(whole, TEST.inputs, rule="recommended")
    wanted = recorded.recommend()
    assert found.rule == wanted.rule
    assert found.prediction.note.startswith(f"recommended: {wanted.rule}, as {wanted.reason}")
    np.testing.assert_array_equal(found.labels, recorded.predict(wanted.rule).labels)


def test_the_recommended_rule_keeps_its_own_note(whole, recorded, monkeypatch):
    wanted = recorded.recommend()
    noted = replace(recorded.predict(wanted.rule), note="a note of the rule")
    monkeypatch.setattr(type(find_rule(wanted.rule)), "__call__", lambda *_: noted)
    found = infer(whole, TEST.inputs, rule="recommended")
    assert found.prediction.note.endswith(f"{wanted.reason}; a note of the rule")


def test_a_rule_with_a_threshold_gets_probabilities(whole, recorded):
    rule = Consensus(threshold=0.6)
    found = infer(whole, TEST.inputs, rule=rule)
    np.testing.assert_array_equal(found.labels, recorded.predict(rule).labels)
    assert (found.labels != infer(whole, TEST.inputs, rule="consensus").labels).any()


# Fitted rules


@pytest.mark.parametrize("rule", ["weighted-agreement", "dawid-skene"])
def test_a_rule_fitted_on_the_same_epochs_predicts(whole, recorded, rule):
    fitted = recorded.fit(rule)
    found = infer(whole, TEST.inputs, rule=fitted)
    np.testing.assert_array_equal(found.labels, recorded.predict(fitted).labels)


@pytest.mark.parametrize("rule", ["weighted-agreement", "dawid-skene"])
@pytest.mark.parametrize("epochs", [[0, 1, 2, 3, 4, 5], [0, 2, 3, 4, 5]])
def test_a_rule_fitted_on_more_epochs_is_cut_to_those_with_checkpoints(
    whole, recorded, rule, epochs
):
    fitted = accord.open(whole / "test").select(epochs=epochs).fit(rule)
    arrays = dict(fitted.parameters())
    for name in {"weights", "groups"} & arrays.keys():
        arrays[name] = arrays[name][[epochs.index(epoch) for epoch in EPOCHS]]
    wanted = recorded.predict(type(fitted).from_arrays(arrays))
    found = infer(whole, TEST.inputs, rule=fitted)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(found.support, wanted.scores)


def test_a_rule_that_gives_the_epochs_no_weight_is_refused(whole, recorded):
    fitted = recorded.fit("before-overfit")
    silent = dict(fitted.parameters()) | {"weights": np.zeros_like(fitted.parameters()["weights"])}
    silent = fitted.from_arrays(silent).fitted_on(recorded.reader)
    with pytest.raises(RecordMismatch, match="before-overfit gives no weight to the 4 epochs"):
        infer(whole, TEST.inputs, rule=silent)


def test_a_rule_fitted_on_other_epochs_is_refused(whole):
    fitted = accord.open(whole / "test").select(epochs=range(5)).fit("weighted-agreement")
    words = r"checkpoints of epoch 5, and weighted-agreement was fitted without it\..*accord fit"
    with pytest.raises(RecordMismatch, match=words):
        infer(whole, TEST.inputs, rule=fitted)
    fitted.voters = None  # as in an old file
    words = r"recorded 6 epochs and has checkpoints of 4; .* was fitted on 5\..*accord fit .*test"
    with pytest.raises(RecordMismatch, match=words):
        infer(whole, TEST.inputs, rule=fitted)


@pytest.mark.parametrize("epochs", [range(6), EPOCHS])
def test_a_rule_without_its_epochs_is_matched_by_their_number(whole, epochs):
    fitted = accord.open(whole / "test").select(epochs=epochs).fit("weighted-agreement")
    wanted = infer(whole, TEST.inputs, rule=fitted)
    fitted.voters, fitted.caution = None, "they were only counted"
    found = infer(whole, TEST.inputs, rule=fitted, exit="exact")
    np.testing.assert_array_equal(found.labels, wanted.labels)
    assert (found.prediction.note, wanted.prediction.note) == ("they were only counted", "")


def test_a_rule_fitted_on_other_networks_is_refused(whole):
    fitted = accord.open(whole / "test").select(networks=[0, 2, 1]).fit("dawid-skene")
    with pytest.raises(RecordMismatch, match=r"fitted on networks 0, 2, 1; .* has 0, 1, 2"):
        infer(whole, TEST.inputs, rule=fitted)


def test_fitted_weights_exit_early_with_the_same_labels(whole, recorded):
    fitted = recorded.fit("weighted-agreement")
    assert len(set(fitted.weights.tolist())) > 1
    found = infer(whole, TEST.inputs, rule=fitted, exit="exact")
    np.testing.assert_array_equal(found.labels, recorded.predict(fitted).labels)
    assert found.saved > 0
    uneven = type(fitted)(np.array([0.1, 0.2, 0.3, 0.4]))
    with pytest.raises(ChoiceError, match=r"whole multiples of 2\*\*-20"):
        infer(whole, TEST.inputs, rule=uneven, exit="exact")


# Options that do not go together


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "majorty"}, "Did you mean 'majority'"),
        ({"exit": "soon"}, "exit must be none, exact or a risk"),
        ({"rule": "majority", "exit": "exact"}, "only counts votes: max-agreement.*got majority"),
        ({"rule": "recommended", "exit": 0.1}, "got recommended. .* every vote: --exit none"),
        ({"rule": "weighted-agreement", "exit": "exact"}, "accord fit .*got weighted-agreement"),
        ({"exit": "exact", "record": "votes"}, "a record holds every vote"),
        ({"rule": "oracle-best-epoch"}, "needs true labels, and the samples has none"),
        ({"format": "nzp"}, "no format is called 'nzp'. Did you mean 'npz'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(whole, options, words):
    source = "new.npz" if "format" in options else TEST.inputs[:3]
    with pytest.raises(ChoiceError, match=words):
        infer(whole, source, **options)


def test_a_risk_requires_votes_of_equal_weight(whole, recorded):
    fitted = recorded.fit("weighted-agreement")
    with pytest.raises(ChoiceError, match=r"requires votes of equal weight.*--exit exact"):
        infer(whole, TEST.inputs, rule=fitted, exit=0.1)


# Other runs


def test_members_of_a_batch_ensemble_are_networks(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("networks = 3", "networks = 1\nbatch_ensemble = 3"),
        ("epochs = 6", "epochs = 3"),
        ("checkpoints = 4", 'checkpoints = "all"'),
    )
    record = accord.open(run / "test")
    assert infer(run, TEST.inputs).networks == (0, 1, 2)
    for limit in ("none", "exact"):
        found = infer(run, TEST.inputs, exit=limit)
        np.testing.assert_array_equal(found.labels, record.predict().labels)
        assert set(found.evaluated.tolist()) <= {6, 9}
    found = infer(run, TEST.inputs, rule="dawid-skene")
    np.testing.assert_array_equal(found.labels, record.predict("dawid-skene").labels)
    infer(run, TEST.inputs, record=tmp_path / "votes")
    np.testing.assert_array_equal(accord.open(tmp_path / "votes").labels[:], record.labels[:])
    with pytest.raises(ChoiceError, match=r"members of a BatchEnsemble vote.*--exit exact"):
        infer(run, TEST.inputs, exit=0.1)


def test_networks_may_differ_and_a_random_predictor_is_left_out(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("networks = 3", 'networks = [{}, { network = "random", options = {} }, '
                         '{ network = "mlp", options = { widths = [8] } }]'),
        ("epochs = 6", "epochs = 3"),
        ("checkpoints = 4", "checkpoints = 2"),
    )  # fmt: skip
    found = infer(run, TEST.inputs)
    assert found.networks == (0, 2)
    assert found.notes == (
        "network 1 is left out: it has no checkpoint, as it predicts at random",
        "checkpoints were kept at 2 of 3 recorded epochs: after 1, 3",
    )
    record = accord.open(run / "test", networks=[0, 2]).select(epochs=[0, 2])
    np.testing.assert_array_equal(found.labels, record.predict().labels)
    np.testing.assert_array_equal(infer(run, TEST.inputs, exit="exact").labels, found.labels)


def test_the_network_of_a_user_may_draw_more_than_its_weights(train_small, tmp_path, monkeypatch):
    (tmp_path / "own_network.py").write_text(
        "import torch\n"
        "class Own(torch.nn.Module):\n"
        "    def __init__(self, classes):\n"
        "        super().__init__()\n"
        "        self.order = torch.randperm(64)\n"
        "        self.last = torch.nn.Linear(64, classes)\n"
        "    def forward(self, samples):\n"
        "        return self.last(samples.flatten(1)[:, self.order.to(samples.device)])\n"
    )
    monkeypatch.chdir(tmp_path)
    run = train_small(
        tmp_path / "run",
        ('"small-cnn"', '"own_network:Own"'),
        ("options = { width = 8 }\n", ""),
        ("epochs = 6", "epochs = 2"),
        ("checkpoints = 4", 'checkpoints = "all"'),
    )
    wanted = accord.open(run / "test").predict().labels
    np.testing.assert_array_equal(infer(run, TEST.inputs).labels, wanted)


def test_checkpoints_are_matched_with_records_of_several_rows_an_epoch(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("probabilities = true", "every = 0.5"),
        ("checkpoints = 4", "checkpoints = 3"),
    )
    found = infer(run, TEST.inputs, exit="exact")
    assert found.epochs == (0, 2, 5)
    record = accord.open(run / "test").select(epochs=[1, 5, 11])
    np.testing.assert_array_equal(found.labels, record.predict().labels)


def test_the_file_of_pretrained_weights_is_not_needed(train_small, tmp_path):
    save_checkpoint(tmp_path, 0, build("small-cnn", **SMALL_CNN))
    start = tmp_path / "epoch-0000.safetensors"
    run = train_small(
        tmp_path / "run",
        ("epochs = 6", f'epochs = 2\npretrained = "{start}"'),
        ("networks = 3", "networks = 1"),
        ("checkpoints = 4", 'checkpoints = "all"'),
    )
    start.unlink()
    wanted = accord.open(run / "test").predict().labels
    np.testing.assert_array_equal(infer(run, TEST.inputs).labels, wanted)


# Damaged checkpoints


@pytest.fixture
def checkpoint(copied):
    return copied / "checkpoints/network-001/epoch-0002.safetensors"


def test_a_damaged_checkpoint_is_named(copied, checkpoint):
    checkpoint.write_bytes(b"torn")
    with pytest.raises(SourceError, match=r"network-001/epoch-0002\.safetensors: cannot be read"):
        infer(copied, TEST.inputs)


def test_a_checkpoint_of_another_network_is_named(copied, checkpoint):
    save_checkpoint(checkpoint.parent, 2, build("small-cnn", **{**SMALL_CNN, "width": 16}))
    with pytest.raises(SourceError, match=r"epoch-0002.*weights of another network than small-cnn"):
        infer(copied, TEST.inputs)


def test_a_diverged_network_is_named(copied, checkpoint):
    network = build("small-cnn", **SMALL_CNN)
    with torch.no_grad():
        next(network.parameters()).fill_(torch.nan)
    save_checkpoint(checkpoint.parent, 2, network)
    with pytest.raises(PredictionError, match=r"epoch-0002.*probabilities are not finite"):
        infer(copied, TEST.inputs)

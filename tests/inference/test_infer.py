"""Checkpoints say of new samples what their networks said while they were trained."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import accord
from accord.data import Samples, read_dataset
from accord.errors import ChoiceError, PredictionError, RecordMismatch, SourceError
from accord.inference import _checkpoints_of_run as saved_run
from accord.inference import _evaluate as counting
from accord.inference import _evaluate as recording_module
from accord.inference import infer
from accord.inference._early_exit import Certain
from accord.rules import find_rule
from accord.rules.consensus import Consensus
from accord.store import pack_record
from accord.training import _checkpoints as checkpoints
from accord.training._checkpoints import load_checkpoint
from accord.training.networks import _registry as registry

EPOCHS = [0, 2, 3, 5]
TEST = read_dataset("digits").test


@pytest.fixture(scope="module")
def spoken(whole):
    """What the run's own record says at the epochs of its checkpoints."""
    return accord.open(whole / "test").select(epochs=EPOCHS)


@pytest.mark.parametrize("rule", ["max-agreement", "majority", "single", "soft-agreement",
                                  "probability-average", "weighted-agreement", "dawid-skene",
                                  "consensus"])  # fmt: skip
def test_the_test_split_gets_the_labels_that_its_record_gives(whole, spoken, rule):
    found = infer(whole, TEST.inputs, rule=rule)
    wanted = spoken.predict(rule)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(found.support, wanted.scores, atol=1e-3)
    assert found.rule == rule
    assert found.networks == (0, 1, 2)


def test_all_votes_are_those_of_the_record(whole, spoken, tmp_path):
    found = infer(whole, TEST.inputs, record=tmp_path / "votes")
    kept = accord.open(tmp_path / "votes")
    np.testing.assert_array_equal(kept.labels[:], spoken.labels[:])
    assert (kept.split, kept.truth, kept.class_names) == ("new", None, spoken.class_names)
    assert kept.progress == (1, 3, 4, 6)
    assert found.epochs == tuple(EPOCHS)
    np.testing.assert_array_equal(found.labels, spoken.predict().labels)


def test_what_was_trained_on_is_not_needed(whole, monkeypatch):
    monkeypatch.setattr(saved_run, "prepare_data", lambda _: pytest.fail("read the data"))
    assert len(infer(whole, TEST.inputs[:3])) == 3


def test_a_sample_is_scaled_as_the_training_samples_were(whole, spoken):
    """Alone, it has another mean and spread."""
    alone = [infer(whole, TEST.inputs[at : at + 1]).labels[0] for at in range(8)]
    assert alone == spoken.predict().labels[:8].tolist()


@pytest.mark.parametrize("cells", [2**24, 700])
def test_an_exact_exit_gives_the_same_labels_for_fewer_votes(whole, spoken, monkeypatch, cells):
    monkeypatch.setattr(counting, "CELLS_AT_ONCE", cells)  # in blocks of 70 samples, or in one
    seen = []
    found = infer(whole, TEST.inputs, exit="exact", progress=lambda *some: seen.append(some))
    np.testing.assert_array_equal(found.labels, spoken.predict().labels)
    assert 0 < found.saved < 0.5
    assert found.asked.min() == 6  # half of 12, where class 0 wins ties
    assert seen[-1] == (719 * 12, 719 * 12)
    assert seen == sorted(seen)
    assert len(seen) == 12 * (1 if cells > 700 else 11)


def test_a_checkpoint_is_asked_about_open_samples_alone(whole, monkeypatch):
    asked, ask = [], counting.Asker.ask

    def count(self, member, epoch, shown, chosen=None):
        asked.append(len(chosen))
        return ask(self, member, epoch, shown, chosen)

    monkeypatch.setattr(counting.Asker, "ask", count)
    found = infer(whole, TEST.inputs, exit="exact")
    assert sum(asked) == found.asked.sum()
    assert asked == sorted(asked, reverse=True)
    assert asked[-1] < asked[0]


def test_once_all_are_settled_no_checkpoint_is_loaded(whole, monkeypatch):
    loaded = []

    def load(path):
        loaded.append(path)
        return load_checkpoint(path)

    monkeypatch.setattr("accord.inference._evaluate.load_checkpoint", load)
    sure = infer(whole, TEST.inputs).support.argmax()
    loaded.clear()
    found = infer(whole, TEST.inputs[sure : sure + 1], exit="exact")
    assert len(loaded) == found.asked[0] < 12


def test_a_risk_asks_in_the_order_of_the_seed(whole, spoken):
    first, again, other = (infer(whole, TEST.inputs, exit=0.4, seed=seed) for seed in (1, 1, 2))
    assert (first.asked == again.asked).all()
    assert (first.asked != other.asked).any()
    assert (first.labels != spoken.predict().labels).mean() <= 0.4


def test_only_the_last_epoch_is_asked_where_a_rule_reads_no_other(whole, tmp_path):
    found = infer(whole, TEST.inputs[:5], rule="majority")
    assert (found.epochs, found.asked.tolist()) == ((5,), [3] * 5)
    kept = infer(whole, TEST.inputs[:5], rule="majority", record=tmp_path / "votes")
    assert accord.open(tmp_path / "votes").epochs == len(kept.epochs) == 4


def test_labels_that_come_along_are_scored(whole, tmp_path):
    np.savez(tmp_path / "new.npz", images=TEST.inputs[:, 0], labels=TEST.labels)
    found = infer(whole, tmp_path / "new.npz")
    assert found.accuracy == pytest.approx((found.labels == TEST.labels).mean())
    assert infer(whole, TEST.inputs).accuracy is None
    best = infer(whole, tmp_path / "new.npz", rule="oracle-best-epoch")
    assert best.accuracy is not None


def test_what_was_left_out_in_reading_is_noted(whole, monkeypatch):
    some = Samples(TEST.inputs[:2], notes=("left out 1 image",))
    monkeypatch.setattr(
        sys.modules["accord.inference._infer"], "read_samples", lambda *_, **__: some
    )
    assert infer(whole, "photos").notes == (
        "left out 1 image",
        "checkpoints were kept at 4 of 6 recorded epochs: 0, 2, 3, 5",
    )


def test_the_recommended_rule_is_the_one_of_the_record(whole, spoken):
    found = infer(whole, TEST.inputs, rule="recommended")
    wanted = spoken.recommend()
    assert found.rule == wanted.rule
    assert found.prediction.note.startswith(f"recommended: {wanted.rule}, as {wanted.reason}")
    np.testing.assert_array_equal(found.labels, spoken.predict(wanted.rule).labels)


def test_the_recommended_rule_keeps_its_own_note(whole, spoken, monkeypatch):
    wanted = spoken.recommend()
    said = replace(spoken.predict(wanted.rule), note="of its own")
    monkeypatch.setattr(type(find_rule(wanted.rule)), "__call__", lambda self, rows: said)
    found = infer(whole, TEST.inputs, rule="recommended")
    assert found.prediction.note == spoken.predict("recommended").note
    assert found.prediction.note.endswith(f"{wanted.reason}; of its own")


def test_a_rule_with_a_threshold_gets_probabilities(whole, spoken):
    rule = Consensus(threshold=0.6)
    found = infer(whole, TEST.inputs, rule=rule)
    np.testing.assert_array_equal(found.labels, spoken.predict(rule).labels)
    assert (found.labels != infer(whole, TEST.inputs, rule="consensus").labels).any()


# Records


def test_a_record_goes_on_where_it_was(whole, spoken, tmp_path, monkeypatch):
    class Stop(Exception):
        pass

    def stop(done, total):
        assert total == 12
        if done == 6:
            raise Stop

    with pytest.raises(Stop):
        infer(whole, TEST.inputs, record=tmp_path / "votes", progress=stop)
    asked, ask = [], recording_module.Asker.ask

    def count(self, member, epoch, shown):
        asked.append((member.number, epoch))
        return ask(self, member, epoch, shown)

    monkeypatch.setattr(recording_module.Asker, "ask", count)
    infer(whole, TEST.inputs, record=tmp_path / "votes")
    assert asked == [(1, 3), (1, 5), (2, 0), (2, 2), (2, 3), (2, 5)]
    np.testing.assert_array_equal(accord.open(tmp_path / "votes").labels[:], spoken.labels[:])


def test_a_record_of_other_samples_is_refused(whole, tmp_path):
    infer(whole, TEST.inputs[:9], record=tmp_path / "votes")
    for others in (TEST.inputs[1:10], TEST.inputs[:5]):
        with pytest.raises(RecordMismatch, match=r"holds the votes on other samples\..*--record"):
            infer(whole, others, record=tmp_path / "votes")


def test_a_record_of_something_else_is_refused_in_the_words_of_an_inference(
    whole, tmp_path, train_small
):
    votes = tmp_path / "votes"
    infer(whole, TEST.inputs[:9], record=votes)
    with pytest.raises(RecordMismatch, match="labels alone, where the rule needs probabilities"):
        infer(whole, TEST.inputs[:9], record=votes, rule="soft-agreement")
    np.savez(tmp_path / "new.npz", images=TEST.inputs[:9], labels=TEST.labels[:9])
    infer(whole, tmp_path / "new.npz", record=votes)
    np.savez(tmp_path / "new.npz", images=TEST.inputs[:9], labels=1 - TEST.labels[:9] % 2)
    with pytest.raises(RecordMismatch, match="with other labels, ids or classes"):
        infer(whole, tmp_path / "new.npz", record=votes)
    with pytest.raises(RecordMismatch, match="predictions of the split test, which no inference"):
        infer(whole, TEST.inputs[:9], record=whole / "test")
    few = train_small(tmp_path / "few", ("lr = 0.1", "lr = 0.2"))
    with pytest.raises(RecordMismatch, match="holds the votes of another run"):
        infer(few, TEST.inputs[:9], record=votes)
    infer(few, TEST.inputs[:9], record=tmp_path / "few-votes")
    for file in few.glob("checkpoints/*/epoch-0002*"):
        file.unlink()
    with pytest.raises(RecordMismatch, match=r"epochs \[0, 2, 3, 5\], where .* of \[0, 3, 5\]"):
        infer(few, TEST.inputs[:9], record=tmp_path / "few-votes")


def test_a_packed_record_says_so_itself(whole, tmp_path):
    infer(whole, TEST.inputs[:9], record=tmp_path / "votes")
    pack_record(tmp_path / "votes", tmp_path / "packed")
    with pytest.raises(RecordMismatch, match="the record is packed and takes no more rows"):
        infer(whole, TEST.inputs[:9], record=tmp_path / "packed")


# Fitted rules


@pytest.mark.parametrize("rule", ["weighted-agreement", "dawid-skene"])
def test_a_rule_fitted_at_the_same_epochs_predicts(whole, spoken, rule):
    fitted = spoken.fit(rule)
    found = infer(whole, TEST.inputs, rule=fitted)
    np.testing.assert_array_equal(found.labels, spoken.predict(fitted).labels)


@pytest.mark.parametrize("rule", ["weighted-agreement", "dawid-skene"])
def test_of_a_rule_fitted_on_the_whole_training_the_epochs_with_checkpoints_count(
    whole, spoken, rule
):
    fitted = accord.open(whole / "test").fit(rule)
    arrays = dict(fitted.learnt())
    for name in {"weights", "groups"} & arrays.keys():
        arrays[name] = arrays[name][EPOCHS]
    wanted = spoken.predict(type(fitted).from_arrays(arrays))
    found = infer(whole, TEST.inputs, rule=fitted)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(found.support, wanted.scores)


def test_a_rule_that_gives_no_epoch_with_a_checkpoint_a_say_is_refused(whole, spoken):
    fitted = spoken.fit("before-overfit")
    silent = dict(fitted.learnt()) | {"weights": np.zeros_like(fitted.learnt()["weights"])}
    silent = fitted.from_arrays(silent).learnt_from(spoken.reader)
    with pytest.raises(RecordMismatch, match="before-overfit gives none of the 4 epochs"):
        infer(whole, TEST.inputs, rule=silent)


def test_a_rule_fitted_on_other_epochs_is_refused(whole):
    fitted = accord.open(whole / "test").select(epochs=range(5)).fit("weighted-agreement")
    words = (
        r"epoch 5, and weighted-agreement was fitted on 5 epochs without it\..*accord fit .*test"
    )
    with pytest.raises(RecordMismatch, match=words):
        infer(whole, TEST.inputs, rule=fitted)
    fitted.voters = None  # as in an older file
    words = "fitted on 5 epochs; the run recorded 6 and has checkpoints of 4.*accord fit .*test"
    with pytest.raises(RecordMismatch, match=words):
        infer(whole, TEST.inputs, rule=fitted)


@pytest.mark.parametrize("epochs", [range(6), EPOCHS])
def test_a_rule_that_does_not_know_its_epochs_is_taken_by_their_number(whole, spoken, epochs):
    fitted = accord.open(whole / "test").select(epochs=epochs).fit("weighted-agreement")
    wanted = infer(whole, TEST.inputs, rule=fitted)
    fitted.voters, fitted.caution = None, "they were only counted"
    found = infer(whole, TEST.inputs, rule=fitted, exit="exact")
    np.testing.assert_array_equal(found.labels, wanted.labels)
    assert (found.prediction.note, wanted.prediction.note) == ("they were only counted", "")


def test_a_rule_fitted_on_some_epochs_is_cut_to_those_with_checkpoints(whole, spoken):
    fitted = accord.open(whole / "test").select(epochs=[0, 2, 3, 4, 5]).fit("dawid-skene")
    arrays = dict(fitted.learnt())
    for name in ("weights", "groups"):
        arrays[name] = arrays[name][[0, 1, 2, 4]]
    wanted = spoken.predict(type(fitted).from_arrays(arrays)).labels
    np.testing.assert_array_equal(infer(whole, TEST.inputs, rule=fitted).labels, wanted)


def test_a_rule_fitted_on_other_networks_is_refused(whole):
    fitted = accord.open(whole / "test").select(networks=[0, 2, 1]).fit("dawid-skene")
    with pytest.raises(RecordMismatch, match="fitted on networks 0, 2, 1; these are 0, 1, 2"):
        infer(whole, TEST.inputs, rule=fitted)


def test_known_weights_exit_early_to_the_same_labels(whole, spoken):
    fitted = spoken.fit("weighted-agreement")
    assert len(set(fitted.weights.tolist())) > 1
    found = infer(whole, TEST.inputs, rule=fitted, exit="exact")
    np.testing.assert_array_equal(found.labels, spoken.predict(fitted).labels)
    assert found.saved > 0
    uneven = type(fitted)(np.array([0.1, 0.2, 0.3, 0.4]))
    with pytest.raises(ChoiceError, match=r"whole multiples of 2\*\*-20"):
        infer(whole, TEST.inputs, rule=uneven, exit="exact")


# What does not go together


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "majorty"}, "Did you mean 'majority'"),
        ({"exit": "soon"}, "exit is none, exact or a risk"),
        ({"rule": "majority", "exit": "exact"}, "only counts votes: max-agreement.*got majority"),
        ({"rule": "recommended", "exit": 0.1}, "got recommended. Ask for every vote: --exit none"),
        ({"rule": "weighted-agreement", "exit": "exact"}, "accord fit RUN/test --rule weighted-"),
        ({"exit": "exact", "record": "votes"}, "a record holds every vote"),
        ({"rule": "oracle-best-epoch"}, "looks at true labels, and the samples has none"),
        ({"format": "nzp"}, "no format is called 'nzp'. Did you mean 'npz'"),
    ],
)
def test_choices_that_cannot_be_are_named(whole, options, words):
    source = "new.npz" if "format" in options else TEST.inputs[:3]
    with pytest.raises(ChoiceError, match=words):
        infer(whole, source, **options)


def test_a_risk_needs_votes_that_count_the_same(whole, spoken):
    fitted = spoken.fit("weighted-agreement")
    with pytest.raises(ChoiceError, match=r"founded on votes that count the same.*--exit exact"):
        infer(whole, TEST.inputs, rule=fitted, exit=0.1)


# Other runs


def test_members_of_a_batch_ensemble_are_networks(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("networks = 3", "networks = 1\nbatch_ensemble = 3"),
        ("epochs = 6", "epochs = 3"),
        ("checkpoints = 4", 'checkpoints = "all"'),
    )
    wanted = accord.open(run / "test").predict().labels
    assert infer(run, TEST.inputs).networks == (0, 1, 2)
    for leaving in ("none", "exact"):
        found = infer(run, TEST.inputs, exit=leaving)
        np.testing.assert_array_equal(found.labels, wanted)
        assert set(found.asked.tolist()) <= {6, 9}
    infer(run, TEST.inputs, record=tmp_path / "votes")
    kept = accord.open(tmp_path / "votes").labels[:]
    np.testing.assert_array_equal(kept, accord.open(run / "test").labels[:])
    with pytest.raises(ChoiceError, match=r"members vote together.*--exit exact"):
        infer(run, TEST.inputs, exit=0.1)


def test_networks_may_differ_and_one_that_guesses_is_left_out(train_small, tmp_path):
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
        "network 1 has no checkpoint and is left out: it only guesses",
        "checkpoints were kept at 2 of 3 recorded epochs: 0, 2",
    )
    spoken = accord.open(run / "test", networks=[0, 2]).select(epochs=[0, 2])
    np.testing.assert_array_equal(found.labels, spoken.predict().labels)
    np.testing.assert_array_equal(infer(run, TEST.inputs, exit="exact").labels, found.labels)


def test_a_network_of_ones_own_may_keep_what_it_drew_outside_its_weights(
    train_small, tmp_path, monkeypatch
):
    (tmp_path / "own_network.py").write_text(
        "import torch\n"
        "class Own(torch.nn.Module):\n"
        "    def __init__(self, classes):\n"
        "        super().__init__()\n"
        "        self.turned = torch.randperm(64)\n"
        "        self.last = torch.nn.Linear(64, classes)\n"
        "    def forward(self, samples):\n"
        "        return self.last(samples.flatten(1)[:, self.turned.to(samples.device)])\n"
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


def test_several_moments_an_epoch_are_told_apart(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("probabilities = true", "every = 0.5"),
        ("checkpoints = 4", "checkpoints = 3"),
    )
    found = infer(run, TEST.inputs, exit="exact")
    assert found.epochs == (0, 2, 5)
    spoken = accord.open(run / "test").select(epochs=[1, 5, 11])
    np.testing.assert_array_equal(found.labels, spoken.predict().labels)


def test_weights_to_start_from_need_not_be_there_any_more(train_small, tmp_path):
    spec = {"classes": 10, "channels": 1, "size": 8, "seed": 5, "width": 8}
    checkpoints.save_checkpoint(tmp_path, 0, registry.build("small-cnn", **spec))
    start = tmp_path / "epoch-0000.safetensors"
    run = train_small(
        tmp_path / "run",
        ("epochs = 6", f'epochs = 2\npretrained = "{start}"'),
        ("networks = 3", "networks = 1"),
        ("checkpoints = 4", 'checkpoints = "all"'),
    )
    start.unlink()
    np.testing.assert_array_equal(
        infer(run, TEST.inputs).labels, accord.open(run / "test").predict().labels
    )


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


def a_checkpoint(run):
    return run / "checkpoints/network-001/epoch-0002.safetensors"


def test_a_damaged_checkpoint_is_named(copied):
    a_checkpoint(copied).write_bytes(b"torn")
    with pytest.raises(SourceError, match=r"network-001/epoch-0002.safetensors: not a checkpoint"):
        infer(copied, TEST.inputs)


def test_a_checkpoint_of_another_network_is_named(copied):
    spec = {"classes": 10, "channels": 1, "size": 8, "seed": 5, "width": 16}
    folder = a_checkpoint(copied).parent
    checkpoints.save_checkpoint(folder, 2, registry.build("small-cnn", **spec))
    with pytest.raises(SourceError, match=r"epoch-0002.*weights of another network than small-cnn"):
        infer(copied, TEST.inputs)


def test_a_network_that_diverged_is_named(copied):
    spec = {"classes": 10, "channels": 1, "size": 8, "seed": 5, "width": 8}
    network = registry.build("small-cnn", **spec)
    with torch.no_grad():
        next(network.parameters()).fill_(torch.nan)
    checkpoints.save_checkpoint(a_checkpoint(copied).parent, 2, network)
    with pytest.raises(PredictionError, match=r"epoch-0002.*probabilities are not finite"):
        infer(copied, TEST.inputs)


def test_without_its_record_a_run_is_asked_from_its_last_epoch_back(copied, spoken):
    shutil.rmtree(copied / "test")
    saved = saved_run.open_run(copied)
    assert saved.rows() is None
    order = counting.list_voters(saved, Certain(), rule=find_rule("max-agreement"), seed=0)
    assert [(voter.member.number, voter.epoch) for voter in order[:4]] == [
        (0, 5), (1, 5), (2, 5), (0, 3)]  # fmt: skip
    found = infer(copied, TEST.inputs, exit="exact")
    np.testing.assert_array_equal(found.labels, spoken.predict().labels)

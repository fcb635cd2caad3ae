import dataclasses
from pathlib import Path

import numpy as np
import pytest
from memorised import memorised_rows
from overfitting import draw_run, right_chances

import accord
from accord.analysis._record_notes import NO_FALL, memorised_late, record_notes
from accord.rules import Context
from accord.rules import _recommend as recommend_module
from accord.store import ArrayReader, SampleInfo

EPOCHS = 24
RUNS = Path(__file__).parents[2] / "results/runs"


def labels_of(networks=4, **options):
    rows = draw_run(right_chances(EPOCHS, end=0.6), networks=networks, **options)
    return rows.read_labels(range(networks), range(EPOCHS), slice(None)).copy(), rows.sample_info


@pytest.fixture(scope="module")
def drawn():
    return labels_of()


def notes_of(labels, sample_info, **options):
    return record_notes(ArrayReader(labels, sample_info, **options))


def test_networks_that_overfit_have_no_notes(drawn):
    assert notes_of(*drawn) == ()
    assert record_notes(memorised_rows(epochs=24)) == ()
    assert accord.open("example://cifar10-sym40").notes() == ()


def test_of_the_kept_runs_two_that_do_not_overfit_have_a_note():
    found = {path: accord.open(path).notes() for path in RUNS.glob("*/t*.zip")}
    noted = {path.parent.name.rsplit("-", 1)[0] for path, notes in found.items() if notes}
    assert noted == {"cifar10-clean0", "fashion-mnist-sym40"}
    assert set(found.values()) == {(), (NO_FALL,)}


def test_identical_networks_are_named(drawn):
    labels, sample_info = drawn
    (every, *_) = notes_of(labels[[1, 1, 1]], sample_info)
    assert every.startswith("all 3 networks predict the same classes at every epoch")
    copies = labels[[0, 1, 0, 2, 1, 1, 3]]
    assert notes_of(copies, sample_info, numbers=range(10, 17)) == (
        "networks 10 and 12 predict the same classes at every epoch: one network votes 2 times. "
        "Use --networks 10,11,13,14,15,16 to leave it out",
        "networks 11, 14 and 15 predict the same classes at every epoch: one network votes 3 "
        "times. Use --networks 10,11,12,13,16 to leave them out",
    )


@pytest.mark.parametrize("seed", range(20))
def test_copies_are_the_networks_whose_votes_are_equal(drawn, seed):
    labels, sample_info = drawn
    source = np.random.default_rng(seed).integers(0, 4, 5)
    notes = [note for note in notes_of(labels[source], sample_info) if "the same classes" in note]
    groups = {tuple(np.flatnonzero(source == one)) for one in source}
    assert len(notes) == sum(len(group) > 1 for group in groups)


def test_one_vote_makes_two_networks_differ(drawn):
    labels, sample_info = drawn
    copies = labels[[0, 1, 2, 2]]
    copies[3, 5, 7] = (copies[3, 5, 7] + 1) % sample_info.classes
    assert notes_of(copies, sample_info) == ()


def test_one_network_has_a_note(drawn):
    labels, sample_info = drawn
    (note,) = notes_of(labels[:1], sample_info)
    assert note.startswith("there is only one network")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda votes, draw: 0 * votes, "network 4 is constant"),
        (lambda votes, draw: draw.integers(0, 5, votes.shape), "network 4 is at chance"),
        (
            lambda votes, draw: np.where(
                np.arange(EPOCHS)[:, None] < 12, votes, draw.integers(0, 5, votes.shape)
            ),
            "network 4 is at chance",
        ),
        (lambda votes, draw: draw.permuted(votes, axis=1), "network 4 is at chance"),
    ],
)
def test_a_bad_network_is_named(spoil, words):
    labels, sample_info = labels_of(5)
    labels[4] = spoil(labels[4], np.random.default_rng(0))
    (note,) = notes_of(labels, sample_info)
    assert note.startswith(words)
    assert note.endswith("Use --networks 0,1,2,3 to leave it out")


def test_a_network_that_diverged_is_named_without_labels():
    labels, sample_info = labels_of(5)
    labels[4, 12:] = np.random.default_rng(0).integers(0, 5, labels[4, 12:].shape)
    (note,) = notes_of(labels, dataclasses.replace(sample_info, truth=None))
    assert note.startswith("network 4 is diverged")


def test_constant_networks_alone_are_named(drawn):
    labels, sample_info = drawn
    notes = notes_of(0 * labels, sample_info)
    assert any("networks 0, 1, 2 and 3 are constant: nearly all" in note for note in notes)
    assert not any("at chance" in note or "beyond chance" in note for note in notes)
    assert NO_FALL not in notes


def test_networks_that_know_a_rare_class_are_not_constant(drawn):
    truth = np.arange(3000) % 100 == 0
    wrong = np.random.default_rng(0).random((3, EPOCHS, 3000)) < 0.002
    labels = (truth ^ wrong).astype(np.uint8)
    notes = notes_of(labels, SampleInfo(3000, 2, truth=truth.astype(int)))
    assert not any("constant" in note or "one class" in note for note in notes)


@pytest.mark.parametrize("known", [True, False])
def test_guesses_are_named(drawn, known):
    labels, sample_info = drawn
    guesses = np.random.default_rng(1).integers(0, 5, labels.shape).astype(np.uint8)
    truth = sample_info.truth if known else None
    notes = notes_of(guesses, dataclasses.replace(sample_info, truth=truth))
    expected = "networks 0, 1, 2 and 3 are at chance" if known else "no two networks agree beyond"
    assert notes[0].startswith(expected)


def test_samples_in_another_order_are_at_chance(drawn):
    labels, sample_info = drawn
    shuffled = np.random.default_rng(0).permutation(sample_info.truth)
    (note, *_) = notes_of(labels, dataclasses.replace(sample_info, truth=shuffled))
    assert note.startswith("networks 0, 1, 2 and 3 are at chance")
    assert note.endswith("that predictions and labels are in the same order")


def test_few_samples_do_not_show_that_networks_are_at_chance():
    labels = np.array([[[0, 1, 2, 1]], [[0, 1, 1, 1]]], np.uint8)
    notes = notes_of(labels, SampleInfo(4, 3, truth=np.array([0, 2, 1, 0])))
    assert not any("at chance" in note for note in notes)


@pytest.mark.parametrize(("right", "noted"), [(104, True), (116, False)])
def test_networks_that_are_poor_on_few_samples_are_not_at_chance(right, noted):
    truth, order = np.arange(200) % 2, np.random.default_rng(0).permutation(200)
    labels = np.where(order < right, truth, 1 - truth) + np.zeros((3, 8, 1), int)
    labels[np.arange(3), 0, np.arange(3)] ^= 1
    notes = notes_of(labels.astype(np.uint8), SampleInfo(200, 2, truth=truth))
    assert any("at chance" in note for note in notes) is noted


@pytest.mark.parametrize("begun", [1, 3])
def test_epochs_of_one_class_are_named(drawn, begun):
    labels, sample_info = drawn[0].copy(), drawn[1]
    labels[[0, 2], :begun] = 3
    labels[2, 0] = 4
    (note,) = notes_of(labels, sample_info)
    when = "epoch" if begun == 1 else "3 epochs"
    assert note == (
        f"networks 0 and 2 predicted one class for nearly all samples in the first {when}, where "
        f"agreement means nothing. Use --epochs {begun}: to leave the beginning out"
    )


@pytest.mark.parametrize(
    ("epochs", "words"), [(1, "there is only 1 epoch: max"), (3, "are only 3")]
)
def test_few_epochs_have_a_note(drawn, epochs, words):
    labels, sample_info = drawn
    (note,) = notes_of(labels[:, 4 : 4 + epochs], sample_info)
    assert words in note
    assert "every = 0.1" in note
    assert not any("only" in one for one in notes_of(labels[:, :4], sample_info))


def test_a_majority_that_never_falls_has_a_note(drawn):
    labels, sample_info = drawn
    rising = np.sort((labels == sample_info.truth).mean(axis=(0, 2)).argsort()[:8])
    (note,) = notes_of(labels[:, np.repeat(rising[-1], 8)], sample_info)
    assert note.startswith("the majority vote never falls")
    held = dataclasses.replace(sample_info, truth=None, given=sample_info.truth, split="train")
    assert note not in notes_of(labels, held)


def test_a_majority_that_falls_or_is_worse_has_no_note():
    truth, generator = np.arange(2000) % 4, np.random.default_rng(0)

    def notes(*chances):
        right = generator.random((3, 8, 2000)) < np.array(chances)[:, np.newaxis]
        votes = np.where(right, truth, (truth + generator.integers(1, 4, right.shape)) % 4)
        return notes_of(votes.astype(np.uint8), SampleInfo(2000, 4, truth=truth))

    (note,) = notes(*np.linspace(0.3, 0.99, 8))
    assert note.startswith("the majority vote never falls")
    assert notes(*[0.5] * 8) == ()  # max agreement is better
    assert notes(*[0.3] * 4, 0.9, 0.9, 0.8, 0.8) == ()


def fitted_rows(*, samples=1000, epochs=20, late=0.0, begin=0, seed=0):
    """Networks that fit labels made by a rule at once; `late` labels are memorised at the end.

    Before `begin` epochs, they predict one class.
    """
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 4, samples)
    given = np.where(generator.random(samples) < 0.4, 0, truth)
    doubtful = generator.random((4, 1, samples)) < 0.08 * 0.3 ** np.arange(epochs)[:, np.newaxis]
    votes = np.where(doubtful, (given + 1) % 4, given)
    memorised = np.arange(samples) < late * samples
    until = (np.arange(epochs) < 12)[:, np.newaxis]
    votes = np.where(memorised & until, (given + 1) % 4, votes)
    votes[:, :begin] = 0
    sample_info = SampleInfo(samples, 4, "train", truth, given)
    return ArrayReader(votes.astype(np.uint8), sample_info, name="fitted")


@pytest.mark.parametrize("begin", [0, 6])
@pytest.mark.parametrize(("late", "noted"), [(0, True), (0.01, True), (0.03, False)])
def test_labels_that_are_fitted_at_once_have_a_note(late, noted, begin):
    rows = fitted_rows(late=late, begin=begin)
    assert memorised_late(Context(rows)) == pytest.approx(late, abs=0.005)
    assert any("hardly any label is memorised late" in note for note in record_notes(rows)) is noted


def test_long_training_does_not_hide_memorised_labels():
    rows = fitted_rows(late=0.1)
    labels = rows.read_labels(range(4), [*range(20), *[19] * 180], slice(None))
    assert memorised_late(Context(ArrayReader(labels, rows.sample_info))) > 0.09


def test_of_many_samples_some_are_looked_at(monkeypatch, drawn):
    labels, sample_info = drawn
    copies = labels[[0, 1, 2, 2]]
    expected = notes_of(copies, sample_info, numbers=[5, 6, 7, 8])
    monkeypatch.setattr(recommend_module, "MAX_SAMPLES", 300)
    assert notes_of(copies, sample_info, numbers=[5, 6, 7, 8]) == expected
    assert "networks 7 and 8" in expected[0]

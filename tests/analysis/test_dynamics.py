import tracemalloc
from collections import Counter
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overfitting import draw_run, right_chances

from accord.analysis import persistence
from accord.analysis._dynamics import Rescued, forgetting, rescued, story
from accord.errors import ChoiceError, RecordError, TruthMissing
from accord.rules import find_rule
from accord.rules.majority import Majority
from accord.store import ArrayReader, SampleInfo, make_sample_info
from accord.store import _record_reader as rows_module
from accord.testing import small_records
from accord.testing._contracts import reader_of

quickly = settings(max_examples=40)


@contextmanager
def small_blocks():
    """Read two samples at a time, so that a record makes several blocks."""
    before = rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK
    rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = 1, 2
    try:
        yield
    finally:
        rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = before


def known_by_definition(rows, labels):
    """Whether the majority knows each sample, epoch by epoch."""
    return np.array(
        [Majority()(rows.select(epochs=[epoch])).labels == labels for epoch in range(rows.epochs)]
    )


@quickly
@given(small_records())
def test_what_is_forgotten_follows_its_definition(record):
    rows = reader_of(record)
    with small_blocks():
        found = forgetting(rows)
    known = known_by_definition(rows, record.truth)
    expected = [s for s in range(rows.samples) if known[:, s].any() and not known[-1, s]]
    assert found.forgotten.tolist() == expected
    last = [max(e for e in range(rows.epochs) if known[e, s]) for s in expected]
    assert found.last_known.tolist() == last
    assert found.knew.tolist() == [int(known[e, expected].sum()) for e in range(rows.epochs)]
    for epoch in range(rows.epochs):
        was = known[epoch - 1] if epoch else np.zeros(rows.samples, bool)
        assert found.lost[epoch] == (was & ~known[epoch]).sum()
        assert found.gained[epoch] == (~was & known[epoch]).sum()
    assert found.share == len(expected) / rows.samples
    assert found.judged_by == "truth"


def test_networks_that_overfit_forget_and_good_epochs_knew():
    rows = draw_run(right_chances(40, end=0.4))
    found = forgetting(rows)
    assert found.share > 0.1
    assert found.best_epoch == int(np.argmax(found.knew))
    assert 5 < found.best_epoch < 30
    assert forgetting(draw_run(right_chances(40))).share < 0.03


def test_a_rule_can_stand_for_the_truth():
    rows = draw_run(right_chances(20, end=0.4))
    labels = rows.read_labels(range(5), range(20), slice(None))
    blind = ArrayReader(labels, SampleInfo(rows.samples, rows.classes))
    with pytest.raises(TruthMissing, match="no true labels"):
        forgetting(blind)
    found = forgetting(blind, judge="max-agreement")
    known = known_by_definition(blind, find_rule("max-agreement")(blind).labels)
    assert found.forgotten.tolist() == np.flatnonzero(known.any(axis=0) & ~known[-1]).tolist()
    assert found.judged_by == "max-agreement"


def random_rows(samples, epochs):
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 10, (2, epochs, samples), np.uint8)
    return ArrayReader(labels, SampleInfo(samples, 10, truth=draw.integers(0, 10, samples)))


@pytest.mark.parametrize("at_once", [1, 7, 50])
def test_however_many_are_counted_at_once_the_counts_are_the_same(at_once, monkeypatch):
    rows = random_rows(samples=11, epochs=5)
    whole = persistence(rows)
    module = import_module("accord.analysis._dynamics")  # a function has its name
    monkeypatch.setattr(module, "LABELS_AT_ONCE", at_once)
    parts = persistence(rows)
    for name, expected in vars(whole).items():
        np.testing.assert_array_equal(getattr(parts, name), expected)


def test_a_block_takes_little_more_memory_than_its_labels():
    rows = random_rows(samples=60_000, epochs=100)
    tracemalloc.start()
    persistence(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6 + 80e6  # the labels, and 2**20 of them at work


CLASSES = 3


def labelled_reader(labels, truth):
    sample_info = make_sample_info(samples=labels.shape[2], classes=CLASSES, truth=truth)
    return ArrayReader(labels, sample_info, name="runs/mine")


@st.composite
def recorded(draw):
    networks, epochs = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = random.integers(0, CLASSES, (networks, epochs, 12))
    return labels, random.integers(0, CLASSES, 12)


def most(votes):
    counts = Counter(int(vote) for vote in votes)
    return min(counts, key=lambda label: (-counts[label], label)), counts


def is_rescued(votes, true):
    """As the docstring states it, for one sample's votes (network, epoch)."""
    last, counts = most(votes[:, -1])
    clear = len(votes) / 2 < counts[last] < len(votes)
    return last != true and clear and most(votes.ravel())[0] == true


@given(recorded())
def test_rescued_samples_are_those_of_the_definition(record):
    labels, truth = record
    found = rescued(labelled_reader(labels, truth))
    expected = [s for s in range(len(truth)) if is_rescued(labels[:, :, s], truth[s])]
    assert found.samples.tolist() == expected
    shares = [(labels[:, :, s] == truth[s]).mean() for s in expected]
    np.testing.assert_allclose(found.agreement, shares)
    assert found.last_wrong == sum(most(labels[:, -1, s])[0] != t for s, t in enumerate(truth))


@given(recorded(), st.integers(0, 11))
def test_a_story_holds_every_vote_up_to_each_epoch(record, sample):
    labels, truth = record
    found = story(labelled_reader(labels, truth), sample)
    here = labels[:, :, sample]
    np.testing.assert_array_equal(found.labels, here)
    epochs = range(labels.shape[1])
    assert found.majority.tolist() == [most(here[:, e])[0] for e in epochs]
    assert found.max_agreement.tolist() == [most(here[:, : e + 1].ravel())[0] for e in epochs]


@pytest.mark.parametrize(
    ("agreement", "middle"),
    [([0.9], 10), ([0.9, 0.5], 11), ([0.9, 0.5, 0.7], 12), ([0.6, 0.6, 0.6, 0.6], 11)],
)
def test_the_typical_sample_is_the_middle_one_by_agreement(agreement, middle):
    samples = np.arange(10, 10 + len(agreement))
    assert Rescued("runs/mine", samples, np.array(agreement), 9).typical() == middle


def test_a_record_that_rescues_none_is_refused_by_name():
    found = rescued(labelled_reader(np.zeros((3, 2, 4), int), np.zeros(4, int)))
    with pytest.raises(RecordError, match=r"runs/mine: no sample has.*long enough to overfit"):
        found.typical()


def test_a_record_without_truth_is_refused():
    with pytest.raises(TruthMissing, match=r"runs/mine: the record has no true labels"):
        rescued(labelled_reader(np.zeros((3, 2, 4), int), None))


@pytest.mark.parametrize("sample", [-1, 4])
def test_a_sample_that_is_not_there_is_refused(sample):
    with pytest.raises(ChoiceError, match=rf"lie in 0\.\.3; got {sample}"):
        story(labelled_reader(np.zeros((3, 2, 4), int), None), sample)

"""Samples that max agreement rescues, held to their definition."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.analysis._dynamics import Rescued, rescued, story
from accord.errors import ChoiceError, RecordError, TruthMissing
from accord.store import make_sample_info
from accord.store._record_reader import ArrayReader

CLASSES = 3


def rows_of(labels, truth):
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
    found = rescued(rows_of(labels, truth))
    expected = [s for s in range(len(truth)) if is_rescued(labels[:, :, s], truth[s])]
    assert found.samples.tolist() == expected
    shares = [(labels[:, :, s] == truth[s]).mean() for s in expected]
    np.testing.assert_allclose(found.agreement, shares)
    assert found.last_wrong == sum(most(labels[:, -1, s])[0] != t for s, t in enumerate(truth))


@given(recorded(), st.integers(0, 11))
def test_a_story_tells_every_vote_up_to_each_epoch(record, sample):
    labels, truth = record
    told = story(rows_of(labels, truth), sample)
    here = labels[:, :, sample]
    np.testing.assert_array_equal(told.labels, here)
    epochs = range(labels.shape[1])
    assert told.majority.tolist() == [most(here[:, e])[0] for e in epochs]
    assert told.max_agreement.tolist() == [most(here[:, : e + 1].ravel())[0] for e in epochs]


@pytest.mark.parametrize(
    ("agreement", "middle"),
    [([0.9], 10), ([0.9, 0.5], 11), ([0.9, 0.5, 0.7], 12), ([0.6, 0.6, 0.6, 0.6], 11)],
)
def test_the_typical_sample_is_the_middle_one_by_agreement(agreement, middle):
    samples = np.arange(10, 10 + len(agreement))
    assert Rescued("runs/mine", samples, np.array(agreement), 9).typical() == middle


def test_a_record_that_rescues_none_is_refused_by_name():
    found = rescued(rows_of(np.zeros((3, 2, 4), int), np.zeros(4, int)))
    with pytest.raises(RecordError, match=r"runs/mine: no sample has.*long enough to overfit"):
        found.typical()


def test_a_record_without_truth_is_refused():
    with pytest.raises(TruthMissing, match=r"runs/mine: no true labels"):
        rescued(rows_of(np.zeros((3, 2, 4), int), None))


@pytest.mark.parametrize("sample", [-1, 4])
def test_a_sample_that_is_not_there_is_refused(sample):
    with pytest.raises(ChoiceError, match=rf"lie in 0\.\.3; got {sample}"):
        story(rows_of(np.zeros((3, 2, 4), int), None), sample)

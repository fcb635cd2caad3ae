"""Label noise moves as many labels as asked, to where it should, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.data.noise import asymmetric_noise, symmetric_noise
from accord.errors import ChoiceError, PredictionError

KINDS = [symmetric_noise, asymmetric_noise]
RATES = st.floats(0, 1)
SEEDS = st.integers(0, 2**63)
either_kind = pytest.mark.parametrize("noise", KINDS)


@st.composite
def labelled(draw):
    """Labels and the number of classes: (sample,), any integer type that can hold them."""
    classes = draw(st.integers(2, 300))
    kinds = [kind for kind in "bBhHiIqQ" if np.iinfo(kind).max >= classes - 1]
    labels = draw(st.lists(st.integers(0, classes - 1), max_size=60))
    return np.array(labels, dtype=draw(st.sampled_from(kinds))), classes


@st.composite
def derangements(draw):
    """A mapping that leads every class to another one."""
    classes = draw(st.integers(2, 12))
    jumps = draw(st.lists(st.integers(1, classes - 1), min_size=classes, max_size=classes))
    return [(label + jump) % classes for label, jump in enumerate(jumps)]


@either_kind
@given(labelled(), RATES, SEEDS)
def test_exactly_the_asked_share_moves_and_stays_among_the_classes(noise, case, rate, seed):
    labels, classes = case
    noisy = noise(labels, rate=rate, classes=classes, seed=seed)
    assert (noisy != labels).sum() == int(rate * len(labels))
    assert noisy.dtype == labels.dtype
    assert ((noisy >= 0) & (noisy < classes)).all()


@either_kind
@given(labelled(), RATES, SEEDS)
def test_noise_is_reproducible_and_leaves_its_input_alone(noise, case, rate, seed):
    labels, classes = case
    before = labels.copy()
    labels.flags.writeable = False
    first = noise(labels, rate=rate, classes=classes, seed=seed)
    np.testing.assert_array_equal(first, noise(labels, rate=rate, classes=classes, seed=seed))
    np.testing.assert_array_equal(labels, before)
    assert not np.shares_memory(first, labels)


@either_kind
@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint64])
def test_type_of_the_labels_makes_no_difference(noise, kind):
    labels = np.arange(200).repeat(5)
    narrow = noise(labels.astype(kind), rate=0.5, classes=200, seed=0)
    np.testing.assert_array_equal(narrow, noise(labels, rate=0.5, classes=200, seed=0))


@given(derangements(), RATES, SEEDS)
def test_moved_labels_follow_the_mapping(mapping, rate, seed):
    labels = np.arange(len(mapping)).repeat(3)
    noisy = asymmetric_noise(labels, rate=rate, classes=len(mapping), seed=seed, mapping=mapping)
    moved = noisy != labels
    np.testing.assert_array_equal(noisy[moved], np.array(mapping)[labels[moved]])
    assert moved.sum() == int(rate * len(labels))


def test_each_class_turns_into_the_next_by_default():
    noisy = asymmetric_noise(np.arange(4), rate=1, classes=4, seed=0)
    assert noisy.tolist() == [1, 2, 3, 0]


def test_symmetric_noise_reaches_every_other_class_equally_often():
    labels = np.full(40_000, 2)
    counts = np.bincount(symmetric_noise(labels, rate=1, classes=5, seed=0), minlength=5)
    assert counts[2] == 0
    # 10,000 each, give or take; one standard deviation is 87.
    assert abs(counts[[0, 1, 3, 4]] - 10_000).max() < 400


@either_kind
def test_every_sample_is_as_likely_to_move(noise):
    labels = np.zeros(20, dtype=int)
    moves = sum(noise(labels, rate=0.4, classes=3, seed=seed) != labels for seed in range(2000))
    # 800 each, give or take; one standard deviation is 22.
    assert abs(moves - 800).max() < 110


@either_kind
def test_another_seed_moves_other_labels(noise):
    labels = np.zeros(100, dtype=int)
    first, second = (noise(labels, rate=0.5, classes=10, seed=seed) for seed in (0, 1))
    assert not np.array_equal(first != 0, second != 0)


@either_kind
@pytest.mark.parametrize("rate", [-0.1, 1.01, 40, float("nan")])
def test_rate_that_is_no_share_is_refused(noise, rate):
    with pytest.raises(ChoiceError, match=r"rate must lie in 0\.\.1; got .*percentage"):
        noise(np.array([0, 1]), rate=rate, classes=2, seed=0)


@either_kind
def test_one_class_is_refused(noise):
    with pytest.raises(ChoiceError, match=r"at least 2 classes; got 1.*no wrong labels"):
        noise(np.array([0, 0]), rate=0.5, classes=1, seed=0)


@either_kind
@pytest.mark.parametrize(
    ("labels", "cause"), [([1, 4], "counted from 1"), ([-1, 3], "without a class")]
)
def test_label_out_of_range_is_refused_with_the_likely_cause(noise, labels, cause):
    with pytest.raises(PredictionError, match=rf"0\.\.3 for 4 classes; got .*{cause}"):
        noise(np.array(labels), rate=0.5, classes=4, seed=0)


@either_kind
@pytest.mark.parametrize("labels", [np.eye(3, dtype=int), np.array([0.0, 1.0])])
def test_labels_that_are_no_row_of_integers_are_refused(noise, labels):
    with pytest.raises(PredictionError, match=r"integers, one per sample; got .*one-hot"):
        noise(labels, rate=0.5, classes=3, seed=0)


@either_kind
def test_type_too_small_for_the_classes_is_refused(noise):
    with pytest.raises(PredictionError, match=r"int8 cannot hold class 199.*astype"):
        noise(np.zeros(4, dtype=np.int8), rate=0.5, classes=200, seed=0)


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ([1, 0], r"each of the 3 classes; got int64 of shape \(2,\)"),
        ([1.0, 2.0, 0.0], "each of the 3 classes; got float64"),
        ([1, 2, 3], r"classes must lie in 0\.\.2 .*got 1\.\.3.*counted from 1"),
        ([1, 1, 2], r"keeps \[1, 2\]"),
    ],
)
def test_mapping_that_does_not_move_every_class_is_refused(mapping, words):
    with pytest.raises(ChoiceError, match=words):
        asymmetric_noise(np.array([0, 1, 2]), rate=0.5, classes=3, seed=0, mapping=mapping)

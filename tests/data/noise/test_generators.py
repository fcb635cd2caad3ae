"""Label noise moves the requested share of labels to the right classes, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.data._image_files import ImageFiles
from accord.data.noise import _generators as module
from accord.data.noise import (
    asymmetric_noise,
    instance_noise,
    mapped_noise,
    patrini_noise,
    superclass_noise,
    symmetric_noise,
)
from accord.data.noise._generators import patrini_mapping, superclass_mapping
from accord.data.readers.cifar import (
    CIFAR10_NAMES,
    CIFAR100_NAMES,
    CIFAR100_SUPERCLASS,
    CIFAR100_SUPERCLASSES,
)
from accord.errors import ChoiceError, PredictionError

KINDS = [symmetric_noise, asymmetric_noise]
RATES = st.floats(0, 1)
SEEDS = st.integers(0, 2**63)
either_kind = pytest.mark.parametrize("noise", KINDS)


@st.composite
def labelled(draw):
    """Draw labels of any integer type that can hold them, and the number of classes."""
    classes = draw(st.integers(2, 300))
    kinds = [kind for kind in "bBhHiIqQ" if np.iinfo(kind).max >= classes - 1]
    labels = draw(st.lists(st.integers(0, classes - 1), max_size=60))
    return np.array(labels, dtype=draw(st.sampled_from(kinds))), classes


@st.composite
def derangements(draw):
    """Draw a mapping of every class to another one."""
    classes = draw(st.integers(2, 12))
    steps = draw(st.lists(st.integers(1, classes - 1), min_size=classes, max_size=classes))
    return [(label + step) % classes for label, step in enumerate(steps)]


@either_kind
@given(labelled(), RATES, SEEDS)
def test_exactly_the_requested_share_moves_to_other_classes(noise, case, rate, seed):
    labels, classes = case
    noisy = noise(labels, rate=rate, classes=classes, seed=seed)
    assert (noisy != labels).sum() == int(rate * len(labels))
    assert noisy.dtype == labels.dtype
    assert ((noisy >= 0) & (noisy < classes)).all()


@either_kind
@given(labelled(), RATES, SEEDS)
def test_noise_is_reproducible_and_keeps_its_input(noise, case, rate, seed):
    labels, classes = case
    before = labels.copy()
    labels.flags.writeable = False
    first = noise(labels, rate=rate, classes=classes, seed=seed)
    np.testing.assert_array_equal(first, noise(labels, rate=rate, classes=classes, seed=seed))
    np.testing.assert_array_equal(labels, before)
    assert not np.shares_memory(first, labels)


@either_kind
@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint64])
def test_the_type_of_the_labels_does_not_matter(noise, kind):
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
def test_a_rate_outside_0_to_1_is_refused(noise, rate):
    with pytest.raises(ChoiceError, match=r"rate must lie in 0\.\.1; got .*percentage"):
        noise(np.array([0, 1]), rate=rate, classes=2, seed=0)


@either_kind
def test_a_single_class_is_refused(noise):
    with pytest.raises(ChoiceError, match=r"at least 2 classes; got 1.*no wrong labels"):
        noise(np.array([0, 0]), rate=0.5, classes=1, seed=0)


@either_kind
@pytest.mark.parametrize(
    ("labels", "cause"), [([1, 4], "counted from 1"), ([-1, 3], "without a class")]
)
def test_labels_out_of_range_are_refused_with_the_likely_cause(noise, labels, cause):
    with pytest.raises(PredictionError, match=rf"0\.\.3 for 4 classes; got .*{cause}"):
        noise(np.array(labels), rate=0.5, classes=4, seed=0)


@either_kind
@pytest.mark.parametrize("labels", [np.eye(3, dtype=int), np.array([0.0, 1.0])])
def test_labels_that_are_not_a_vector_of_integers_are_refused(noise, labels):
    with pytest.raises(PredictionError, match=r"integers, one per sample; got .*one-hot"):
        noise(labels, rate=0.5, classes=3, seed=0)


@either_kind
def test_a_type_too_small_for_the_classes_is_refused(noise):
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
def test_a_mapping_that_does_not_move_every_class_is_refused(mapping, words):
    with pytest.raises(ChoiceError, match=words):
        asymmetric_noise(np.array([0, 1, 2]), rate=0.5, classes=3, seed=0, mapping=mapping)


@st.composite
def cases(draw):
    """Draw labels, and a mapping that may keep classes."""
    classes = draw(st.integers(2, 8))
    number = st.integers(0, classes - 1)
    labels = draw(st.lists(number, max_size=60))
    return np.array(labels, int), draw(st.lists(number, min_size=classes, max_size=classes))


@given(cases(), st.floats(0, 1), SEEDS)
def test_each_class_that_moves_loses_its_share_and_others_keep_their_labels(case, rate, seed):
    labels, mapping = case
    labels.flags.writeable = False
    noisy = mapped_noise(labels, rate=rate, classes=len(mapping), seed=seed, mapping=mapping)
    for label, turned in enumerate(mapping):
        came = noisy[labels == label]
        wanted = 0 if label == turned else int(rate * len(came))
        assert (came != label).sum() == wanted
        assert set(came) <= {label, turned}


def test_patrini_moves_cifar10_as_published():
    labels = np.arange(10).repeat(100)
    noisy = patrini_noise(labels, rate=0.4, classes=10, seed=0)
    went = {
        (CIFAR10_NAMES[old], CIFAR10_NAMES[new])
        for old, new in zip(labels, noisy, strict=True)
        if old != new
    }
    assert went == {
        ("truck", "automobile"),
        ("bird", "airplane"),
        ("deer", "horse"),
        ("cat", "dog"),
        ("dog", "cat"),
    }
    assert (noisy != labels).sum() == 5 * 40


def test_patrini_moves_cifar100_within_blocks_of_five():
    mapping = patrini_mapping(100)
    assert mapping[:6].tolist() == [1, 2, 3, 4, 0, 6]
    assert (mapping // 5 == np.arange(100) // 5).all()
    labels = np.arange(100).repeat(10)
    noisy = patrini_noise(labels, rate=0.45, classes=100, seed=3)
    assert (np.bincount(labels[noisy != labels]) == 4).all()  # int(0.45 * 10) of each


def test_superclasses_are_cycles_of_five():
    mapping = superclass_mapping(100)
    assert sorted(mapping) == list(range(100))
    np.testing.assert_array_equal(CIFAR100_SUPERCLASS[mapping], CIFAR100_SUPERCLASS)
    five_on = np.arange(100)
    for steps in range(1, 6):
        five_on = mapping[five_on]
        assert (five_on == np.arange(100)).all() == (steps == 5)


def test_superclass_noise_moves_an_exact_share_of_all():
    labels = np.arange(100).repeat(7)
    noisy = superclass_noise(labels, rate=0.3, classes=100, seed=0)
    assert (noisy != labels).sum() == int(0.3 * 700)
    np.testing.assert_array_equal(CIFAR100_SUPERCLASS[noisy], CIFAR100_SUPERCLASS[labels])


def test_superclasses_are_those_of_the_published_files():
    # The first byte of each row of cifar-100-binary, for fine labels 0 to 99.
    published = (
        "4 1 14 8 0 6 7 7 18 3 3 14 9 18 7 11 3 9 7 11 6 11 5 10 7 6 13 15 3 15 "
        "0 11 1 10 12 14 16 9 11 5 5 19 8 8 15 13 14 17 18 10 16 4 17 4 2 0 17 4 18 17 "
        "10 3 2 12 12 16 12 1 9 19 2 10 0 1 16 12 9 13 15 13 16 19 2 4 6 19 5 5 8 19 "
        "18 1 2 15 6 0 17 8 14 13"
    )
    assert CIFAR100_SUPERCLASS.tolist() == [int(number) for number in published.split()]
    assert (len(CIFAR100_NAMES), len(CIFAR100_SUPERCLASSES)) == (100, 20)
    assert list(CIFAR100_SUPERCLASSES) == sorted(CIFAR100_SUPERCLASSES)
    assert (CIFAR100_NAMES[0], CIFAR100_NAMES[47], CIFAR100_NAMES[99]) == (
        "apple",
        "maple_tree",
        "worm",
    )


@pytest.mark.parametrize("noise", [patrini_noise, superclass_noise])
def test_other_numbers_of_classes_are_refused(noise):
    with pytest.raises(ChoiceError, match=r"is defined for CIFAR.*; got 7 classes.*kind='"):
        noise(np.array([0, 1]), rate=0.5, classes=7, seed=0)


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ([1, 0], r"each of the 3 classes; got int64 of shape \(2,\)"),
        ([1, 2, 3], r"classes must lie in 0\.\.2 .*got 1\.\.3.*counted from 1"),
    ],
)
def test_a_mapping_to_unknown_classes_is_refused(mapping, words):
    with pytest.raises(ChoiceError, match=words):
        mapped_noise(np.array([0, 1, 2]), rate=0.5, classes=3, seed=0, mapping=mapping)


def test_labels_of_published_noise_are_checked():
    with pytest.raises(PredictionError, match=r"0\.\.9 for 10 classes; got 1\.\.10"):
        patrini_noise(np.array([1, 10]), rate=0.5, classes=10, seed=0)


RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, 5, 4000)
SAMPLES = RANDOM.standard_normal((4000, 12))


def noisy(rate=0.4, seed=0, labels=LABELS, samples=SAMPLES, classes=5):
    return instance_noise(labels, rate=rate, classes=classes, seed=seed, samples=samples)


def instance_noise_by_definition(labels, samples, rate, classes, seed):
    """Algorithm 2 of Xia et al. (2020), sample by sample, with our draws."""
    random = np.random.default_rng(seed)
    moves = random.random(len(labels))
    rates = random.normal(rate, 0.1, len(labels))
    while ((rates < 0) | (rates > 1)).any():
        outside = (rates < 0) | (rates > 1)
        rates[outside] = random.normal(rate, 0.1, outside.sum())
    draws = random.random(len(labels))
    weights = [
        np.random.default_rng([seed, label]).standard_normal((samples.shape[1], classes))
        for label in range(classes)
    ]
    result = []
    for x, y, move, q, draw in zip(samples, labels, moves, rates, draws, strict=True):
        p = np.exp(x @ weights[y])
        p[y] = 0
        p /= p.sum()
        result.append(int(np.searchsorted(p.cumsum(), draw, side="right")) if move < q else y)
    return result


def test_labels_follow_the_formula():
    assert noisy()[:500].tolist() == instance_noise_by_definition(LABELS, SAMPLES, 0.4, 5, 0)[:500]


def test_small_blocks_change_nothing(monkeypatch):
    whole = noisy()
    monkeypatch.setattr(module, "_BLOCK", 7)
    np.testing.assert_array_equal(noisy(), whole)


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6])
def test_about_the_requested_share_moves(rate):
    moved = (noisy(rate) != LABELS).mean()
    assert abs(moved - rate) < 0.04  # five standard deviations


def test_rates_are_truncated_to_0_to_1():
    # A normal distribution of mean 0, truncated to 0..1, has mean 0.08.
    assert 0.05 < (noisy(0) != LABELS).mean() < 0.11


def test_similar_samples_get_similar_wrong_labels():
    labels = np.zeros(3000, int)
    features = np.repeat(RANDOM.standard_normal((3, 40)) * 5, 1000, axis=0)
    moved = noisy(0.5, labels=labels, samples=features).reshape(3, 1000)
    for row in moved:
        most = np.bincount(row[row > 0]).max()
        assert most > 0.9 * (row > 0).sum()


def test_a_label_never_moves_to_its_own_class():
    result = noisy(1)
    assert ((result >= 0) & (result < 5)).all()
    assert (result != LABELS).mean() > 0.85  # a normal of mean 1, truncated to 0..1


def test_instance_noise_is_reproducible():
    np.testing.assert_array_equal(noisy(seed=3), noisy(seed=3))
    assert not np.array_equal(noisy(seed=3), noisy(seed=4))


def test_images_are_scaled_to_0_to_1():
    images = RANDOM.integers(0, 256, (400, 3, 4, 4), dtype=np.uint8)
    labels = LABELS[:400].astype(np.uint8)
    as_numbers = noisy(labels=labels, samples=images.reshape(400, -1) / 255)
    as_images = noisy(labels=labels, samples=images)
    np.testing.assert_array_equal(as_images, as_numbers)
    assert as_images.dtype == np.uint8


def test_image_files_give_the_same_labels_as_their_pixels(tmp_path, picture):
    images = RANDOM.integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    for number, pixels in enumerate(images):
        picture(tmp_path / f"{number}.png", pixels=pixels)
    files = ImageFiles(tmp_path, tuple(f"{number}.png" for number in range(20)), size=8, resize=8)
    labels = LABELS[:20]
    np.testing.assert_array_equal(
        noisy(0.9, labels=labels, samples=files),
        noisy(0.9, labels=labels, samples=images.transpose(0, 3, 1, 2)),
    )


def test_texts_and_other_numbers_of_samples_are_refused():
    with pytest.raises(ChoiceError, match="needs numeric samples, images or a table; got texts"):
        noisy(labels=np.array([0]), samples=("a",))
    with pytest.raises(ChoiceError, match="needs 4000 samples, one per label; got 3"):
        noisy(samples=SAMPLES[:3])

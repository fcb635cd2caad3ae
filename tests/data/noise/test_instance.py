"""Instance noise follows the published formula, and the samples."""

import numpy as np
import pytest

from accord.data._images import ImageFiles
from accord.data.noise import _generators as module
from accord.data.noise import instance_noise
from accord.errors import ChoiceError

RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, 5, 4000)
SAMPLES = RANDOM.standard_normal((4000, 12))


def noisy(rate=0.4, seed=0, labels=LABELS, samples=SAMPLES, classes=5):
    return instance_noise(labels, rate=rate, classes=classes, seed=seed, samples=samples)


def by_definition(labels, samples, rate, classes, seed):
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
    assert noisy()[:500].tolist() == by_definition(LABELS, SAMPLES, 0.4, 5, 0)[:500]


def test_small_blocks_change_nothing(monkeypatch):
    whole = noisy()
    monkeypatch.setattr(module, "_BLOCK", 7)
    np.testing.assert_array_equal(noisy(), whole)


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6])
def test_about_the_asked_share_moves(rate):
    moved = (noisy(rate) != LABELS).mean()
    assert abs(moved - rate) < 0.04  # five standard deviations


def test_rates_near_an_end_are_cut_to_shares():
    # A normal of mean 0, cut to 0..1, has mean 0.08.
    assert 0.05 < (noisy(0) != LABELS).mean() < 0.11


def test_samples_that_look_alike_are_mistaken_alike():
    labels = np.zeros(3000, int)
    looks = np.repeat(RANDOM.standard_normal((3, 40)) * 5, 1000, axis=0)
    moved = noisy(0.5, labels=labels, samples=looks).reshape(3, 1000)
    for row in moved:
        most = np.bincount(row[row > 0]).max()
        assert most > 0.9 * (row > 0).sum()


def test_the_given_class_is_never_a_target_and_all_stay_in_range():
    result = noisy(1)
    assert ((result >= 0) & (result < 5)).all()
    assert (result != LABELS).mean() > 0.85  # mean rate of a normal of mean 1, cut to 0..1


def test_noise_is_reproducible_and_leaves_its_input_alone():
    before = LABELS.copy()
    np.testing.assert_array_equal(noisy(seed=3), noisy(seed=3))
    np.testing.assert_array_equal(before, LABELS)
    assert not np.array_equal(noisy(seed=3), noisy(seed=4))


def test_images_count_as_numbers_from_0_to_1():
    images = RANDOM.integers(0, 256, (400, 3, 4, 4), dtype=np.uint8)
    labels = LABELS[:400].astype(np.uint8)
    as_numbers = noisy(labels=labels, samples=images.reshape(400, -1) / 255)
    as_images = noisy(labels=labels, samples=images)
    np.testing.assert_array_equal(as_images, as_numbers)
    assert as_images.dtype == np.uint8


def test_image_files_are_read_as_needed(tmp_path, picture):
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

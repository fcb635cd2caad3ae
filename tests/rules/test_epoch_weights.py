import numpy as np
import pytest
from voting import FADING, RISING, draw_rows

from accord.rules import _epoch_weights as weighted_votes
from accord.rules._analysis_context import Context
from accord.rules._epoch_weights import (
    Likeness,
    best_agreement,
    disputed_samples,
    equal_weights,
    explained,
    independent_epochs,
    likeness_among,
    measure_likeness,
    power_weights,
    regression_weights,
    reliability,
    repetition,
)
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import ArrayReader, SampleInfo
from accord.store import _record_reader as rows_module


def test_products_of_reliabilities_are_explained_and_noise_is_not():
    found = np.linspace(0.2, 0.9, 12)
    products = np.outer(found, found)
    assert explained(products, found) == pytest.approx(1)
    near = products + np.eye(12)  # epochs close to each other do not matter
    assert explained(near, found) == pytest.approx(1)
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(12, 12))
    assert explained(noise + noise.T, found) < 0.2
    far = np.abs(np.subtract.outer(np.arange(12), np.arange(12))) >= 3
    half = products * (1 + np.where(far, 0.5, 0))
    assert explained(half, found) == pytest.approx(1 - (0.5 / 1.5) ** 2)
    assert explained(np.zeros((12, 12)), found) == 0
    assert explained(noise[:2, :2], found[:2]) == 1
    assert explained(np.zeros((3, 3)), found[:3]) == 0


def test_epochs_without_reliability_weigh_the_same():
    np.testing.assert_array_equal(power_weights(np.zeros(3)), equal_weights(3))
    np.testing.assert_array_equal(power_weights(np.full(3, 1e-60)), equal_weights(3))


def test_samples_are_in_dispute_below_the_median_margin():
    unanimous, close, split = [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]
    votes = np.array([unanimous, close, split, unanimous, unanimous]).T.reshape(2, 2, 5)
    rows = Context(ArrayReader(votes, SampleInfo(5, 2)))
    assert disputed_samples(rows).tolist() == [False, True, True, False, False]
    assert disputed_samples(rows.select(samples=slice(0, 3))).tolist() == [False, False, True]
    assert disputed_samples(rows.select(samples=slice(3, 5))).tolist() == [True, True]


def test_likeness_can_be_measured_among_some_samples(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows_module, "LEAST_BLOCK", 7)
    rows = draw_rows(accuracies=RISING, samples=100)
    among = np.arange(100) % 3 == 0
    labels = rows.read_labels(range(4), range(9), slice(None))[:, :, among]
    expected = measure_likeness(ArrayReader(labels, SampleInfo(labels.shape[2], 4)))
    found = likeness_among(Context(rows), among)
    for name in ("within", "across", "shares"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_repetition_is_one_for_the_same_votes_and_none_for_votes_drawn_apart():
    def repeated(labels, sample_info):
        return repetition(measure_likeness(ArrayReader(labels, sample_info)).within)

    guessed = draw_rows(accuracies=(0.25,) * 4, samples=20_000)
    for epochs, expected in (([0, 1, 2, 3], 0), ([0, 0, 0], 1), ([0, 0, 1, 1], 1 / 3), ([0], 1)):
        labels = guessed.read_labels(range(4), epochs, slice(None))
        assert repeated(labels, guessed.sample_info) == pytest.approx(expected, abs=0.01)
    rare = np.random.default_rng(0).random((2, 3, 20_000)) < 0.1
    assert repeated(rare.astype(np.uint8), SampleInfo(20_000, 2)) < 0.02
    assert repeated(np.zeros((2, 3, 4), np.uint8), SampleInfo(4, 2)) == 1


def test_best_agreement_is_that_of_two_networks_at_the_epoch_where_they_agree_most():
    rows = draw_rows(accuracies=(0.25, 0.8, 0.5), samples=20_000)
    # Right votes beyond chance, (0.8 - 0.25) / 0.75, of two networks at once.
    found = best_agreement(measure_likeness(rows))
    assert found == pytest.approx((0.55 / 0.75) ** 2, abs=0.02)
    one_class = ArrayReader(np.zeros((2, 3, 4), np.uint8), SampleInfo(4, 2))
    assert best_agreement(measure_likeness(one_class)) == 0


def test_likeness_of_labels_drawn_apart_is_none():
    likeness = measure_likeness(draw_rows(accuracies=(0.25,) * 3, samples=20_000))
    assert np.abs(likeness.across).max() < 0.01
    np.testing.assert_allclose(np.diag(likeness.within), 0.75, atol=0.01)
    np.testing.assert_allclose(likeness.shares, 0.25, atol=0.02)


def test_likeness_across_is_zero_for_one_network():
    assert not measure_likeness(draw_rows(networks=1)).across.any()


def test_reliability_is_the_factor_of_far_epochs_and_ignores_near_ones():
    factor = np.array([0.2, 0.5, 0.9, 0.9, 0.7, 0.6, 0.4, 0.3])
    across = np.outer(factor, factor) + 0.5 * np.eye(8)
    across += 0.2 * (np.abs(np.subtract.outer(range(8), range(8))) == 1)
    np.testing.assert_allclose(reliability(across), factor, atol=1e-3)


def test_reliability_of_networks_that_contradict_each_other_is_none():
    assert not reliability(-np.ones((5, 5))).any()


@pytest.mark.parametrize("epochs", [1, 2])
def test_reliability_of_one_or_two_epochs_is_their_own_likeness(epochs):
    across = np.diag([0.01, 0.64][:epochs])
    np.testing.assert_allclose(reliability(across), [0.1, 0.8][:epochs])


def test_weights_are_the_regression_with_a_ridge():
    within = np.array([[1.0, 0.5], [0.5, 1.0]])
    expected = np.linalg.solve(within + 0.3 * np.eye(2), [0.9, 0.6])
    found = regression_weights(within, np.array([0.9, 0.6]))
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-6)


def test_negative_weights_become_zero():
    weights = regression_weights(np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([1.0, 0.1]))
    np.testing.assert_array_equal(weights, [1, 0])


@pytest.mark.parametrize("nothing", [np.zeros((2, 2)), np.eye(2)])
def test_epochs_of_which_nothing_is_known_weigh_the_same(nothing):
    np.testing.assert_array_equal(regression_weights(nothing, np.zeros(2)), equal_weights(2))
    np.testing.assert_array_equal(regression_weights(0 * nothing, np.ones(2)), equal_weights(2))


def test_independent_epochs_are_counted():
    alone, alike = np.eye(4), np.ones((4, 4))
    weights = np.full(4, 0.25)
    assert independent_epochs(Likeness(alone, 0 * alone, alone), weights) == 4
    assert independent_epochs(Likeness(alike, 0 * alike, alone), weights) == 1
    assert independent_epochs(Likeness(alike + alone, alike, alone), weights) == 4
    assert independent_epochs(Likeness(alone, alone, alone), weights) == 1  # no errors at all
    opposed = alone - 0.2 * (alike - alone)
    assert independent_epochs(Likeness(opposed, 0 * alone, alone), weights) == 4  # not more


def test_many_samples_are_counted_in_narrow_parts(monkeypatch):
    rows = draw_rows(accuracies=FADING, samples=100)
    whole = WeightedAgreement()(rows)
    monkeypatch.setattr(weighted_votes, "CELLS_AT_ONCE", 30 * rows.classes)
    parts = WeightedAgreement()(rows)
    np.testing.assert_array_equal(parts.labels, whole.labels)

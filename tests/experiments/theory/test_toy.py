"""The toy of figure 9."""

import json

import numpy as np
import pytest

from accord.errors import ChoiceError, TrainingError
from accord.experiments.theory import toy as toys
from accord.experiments.theory.toy import run_toy, true_boundary

SEEDS = range(8)


@pytest.fixture(scope="module", params=SEEDS)
def toy(request):
    return run_toy(seed=request.param, points=31)


def test_one_label_is_wrong(toy):
    assert np.flatnonzero(toy.given != toy.truth).tolist() == [toy.mislabelled]
    nearest = np.linalg.norm(toy.samples - [0, 0.5], axis=1).argmin()
    assert toy.mislabelled == nearest
    assert (toy.truth[toy.mislabelled], toy.given[toy.mislabelled]) == (1, 0)


def test_training_ends_when_every_network_fits_every_label(toy):
    assert toy.fitted[:, -1].all()
    assert not toy.fitted[:, :-1].all(axis=(0, 2)).any()
    assert toy.fitted.shape[:2] == toy.labels.shape[:2] == (3, toy.epochs)


def test_majority_is_wrong_on_less_of_the_plane_than_the_mean_network(toy):
    assert toy.wrong(toy.majority) < toy.wrong(toy.networks_last).mean()


def test_majority_is_wrong_where_two_networks_are(toy):
    wrong = (toy.networks_last != toy.grid_truth).sum(axis=0)
    np.testing.assert_array_equal(toy.majority != toy.grid_truth, wrong >= 2)


def test_max_agreement_counts_every_epoch_and_breaks_ties_to_the_lowest_class(toy):
    votes = toy.labels.sum(axis=(0, 1))
    np.testing.assert_array_equal(toy.max_agreement, 2 * votes > 3 * toy.epochs)


def test_grid_rows_run_from_bottom_to_top(toy):
    row, column = 25, 4
    height, x = toy.side[row], toy.side[column]
    assert toy.grid_truth[row, column] == (height > true_boundary(x))
    assert (toy.side[0], toy.side[-1], len(toy.side)) == (-1, 1, 31)
    assert toy.labels.shape[2:] == toy.grid_truth.shape == (31, 31)


def test_grid_labels_match_those_of_nearby_samples(toy):
    rows, columns = (
        np.abs(toy.side[:, None] - place).argmin(axis=0) for place in toy.samples.T[::-1]
    )
    beside = toy.networks_last[:, rows, columns]
    clear = np.arange(len(toy.samples)) != toy.mislabelled
    assert (beside == toy.given)[:, clear].mean() > 0.9


def test_samples_keep_a_distance_from_the_boundary_and_each_other(toy):
    assert toy.samples.shape == (40, 2)
    assert np.abs(toy.samples).max() <= 1
    assert np.abs(toy.samples[:, 1] - true_boundary(toy.samples[:, 0])).min() > 0.12
    apart = np.linalg.norm(toy.samples[:, None] - toy.samples, axis=-1)
    assert apart[np.triu_indices(40, 1)].min() > 0.1


def test_networks_differ(toy):
    first, second, third = toy.networks_last
    assert (first != second).any()
    assert (second != third).any()


def test_default_toy_matches_the_paper():
    toy = run_toy(points=61)
    assert toy.wrong(toy.majority) < toy.wrong(toy.networks_last).min()
    assert toy.wrong(toy.max_agreement) < toy.wrong(toy.majority)
    assert toy.sample_agreement < 0.5
    column, row = (np.abs(toy.side - place).argmin() for place in toy.samples[toy.mislabelled])
    assert (toy.majority[row, column], toy.max_agreement[row, column]) == (0, 1)


def test_toy_as_json():
    toy = run_toy(seed=1, points=21)
    data = json.loads(json.dumps(toy.as_json()))
    assert data["wrong"]["networks"] == toy.wrong(toy.networks_last).tolist()
    assert data["wrong"]["majority"] == toy.wrong(toy.majority)
    assert data["wrong"]["max-agreement"] == toy.wrong(toy.max_agreement)
    assert data["false"]["at"] == toy.samples[toy.mislabelled].tolist()
    assert data["false"]["agreement"] == toy.fitted[:, :, toy.mislabelled].mean()
    assert (data["samples"], data["epochs"]) == (40, toy.epochs)


def test_toy_follows_the_seed():
    one, same, other = (run_toy(seed=seed, points=11) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.labels, same.labels)
    assert (one.samples != other.samples).any()


def test_ascent_is_the_negative_gradient_of_the_logistic_loss():
    random = np.random.default_rng(0)
    features, weights = random.normal(size=(2, 5, 3)), random.normal(size=(2, 3, 1))
    signs = np.array([1.0, -1, 1, -1, 1])

    def loss(weights):
        return np.log1p(np.exp(-signs * (features @ weights)[..., 0])).mean(axis=1)

    found = toys._ascent(features, weights, signs)
    for bump in range(3):
        shift = np.zeros((2, 3, 1))
        shift[:, bump] = 1e-6
        slope = (loss(weights + shift) - loss(weights - shift)) / 2e-6
        np.testing.assert_allclose(-slope, found[:, bump, 0], atol=1e-7)


def test_a_grid_of_one_point_raises():
    with pytest.raises(ChoiceError, match=r"points must be at least 2 along each axis.*got 1"):
        run_toy(points=1)


def test_labels_not_fitted_in_time_raise(monkeypatch):
    monkeypatch.setattr(toys, "MOST_EPOCHS", 1)
    with pytest.raises(TrainingError, match="not fitted within 1 epochs"):
        run_toy(points=2)

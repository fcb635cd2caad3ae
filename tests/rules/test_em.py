import numpy as np
from voting import draw_rows

from accord.rules._analysis_context import Context
from accord.rules._em import (
    fit_annotators,
    group_epochs,
    lost_classes,
    vote_shares,
)
from accord.rules._epoch_weights import (
    Likeness,
    equal_weights,
    measure_likeness,
)
from accord.rules.max_agreement import MaxAgreement


def test_no_vote_is_made_to_count_as_more_than_one():
    apart = Likeness(np.eye(4), np.zeros((4, 4)), np.full((4, 4), 0.25))
    weights = np.array([0.7, 0.1, 0.1, 0.1])
    plain = vote_shares(weights, apart, 1)
    assert plain[0] > 1 > 4 * plain[1]  # an epoch that weighs so much counts as several
    np.testing.assert_array_equal(vote_shares(weights, apart, 1, boost=1), plain)
    np.testing.assert_allclose(vote_shares(weights, apart, 1, boost=2), [plain[0], *2 * plain[1:]])
    np.testing.assert_allclose(vote_shares(weights, apart, 1, boost=16), [plain[0], 1, 1, 1])


def test_lost_classes_are_those_whose_samples_went_elsewhere():
    before = np.array([0, 0, 1, 1, 2, 2, 2])
    assert lost_classes(before, before, classes=4) == ()
    assert lost_classes(before, np.array([0, 1, 0, 1, 2, 2, 0]), classes=4) == ()  # half stayed
    assert lost_classes(before, np.array([1, 1, 0, 0, 2, 0, 0]), classes=4) == (0, 1, 2)


def test_the_search_reports_its_rounds():
    rows = draw_rows(accuracies=(0.95,) * 6)
    likeness = measure_likeness(rows)
    start = MaxAgreement()(rows).labels
    fit = fit_annotators(Context(rows), start, likeness, equal_weights(6))
    assert (fit.rounds, fit.converged, fit.collapsed) == (1, True, False)


def test_votes_count_as_many_as_are_independent_but_a_network_at_least_once():
    alone, weights = np.eye(8), np.full(8, 1 / 8)
    apart = Likeness(alone, 0 * alone, alone)
    np.testing.assert_allclose(vote_shares(weights, apart, 2), 0.5)  # 8 votes by 2 × 8 voters
    alike = Likeness(np.ones((8, 8)), 0 * alone, alone)
    np.testing.assert_allclose(vote_shares(weights, alike, 2), 1 / 8)  # one for each network


def test_epochs_are_grouped_only_as_far_as_samples_are_missing():
    assert group_epochs(100, samples=10_000, classes=10).max() == 99
    assert group_epochs(100, samples=10_000, classes=100).max() == 9
    assert group_epochs(100, samples=10_000, classes=1000).max() == 3
    assert group_epochs(3, samples=1, classes=1000).tolist() == [0, 1, 2]

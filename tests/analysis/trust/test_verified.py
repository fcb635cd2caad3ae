import numpy as np
import pytest

from accord.analysis._trust._intervals import share_interval
from accord.analysis._trust._verification import Sampling, choose_to_verify, verified_accuracy
from accord.errors import ChoiceError, PredictionError


def draw(samples=3000, seed=0):
    generator = np.random.default_rng(seed)
    scores = generator.beta(4, 1, samples)
    return scores, generator.random(samples) < scores


def test_the_estimate_is_unbiased_and_covers_as_often_as_it_says():
    scores, right = draw()
    covered, values = 0, []
    for seed in range(400):
        sampling = choose_to_verify(scores, 200, seed=seed)
        found = verified_accuracy(right[sampling.samples], sampling)
        covered += found.low <= right.mean() <= found.high
        values.append(found.value)
    assert np.mean(values) == pytest.approx(right.mean(), abs=0.004)
    assert 0.90 <= covered / 400 <= 0.99


def test_strata_tell_more_than_a_plain_draw():
    scores, right = draw()
    stratified = [
        verified_accuracy(right[one.samples], one).value
        for one in (choose_to_verify(scores, 100, seed=seed) for seed in range(300))
    ]
    generator = np.random.default_rng(0)
    plain = [right[generator.choice(3000, 100, replace=False)].mean() for _ in range(300)]
    assert np.std(stratified) < 0.95 * np.std(plain)


def test_useless_scores_do_no_harm():
    _, right = draw()
    scores = np.random.default_rng(1).random(3000)
    values = [
        verified_accuracy(right[one.samples], one).value
        for one in (choose_to_verify(scores, 200, seed=seed) for seed in range(300))
    ]
    assert np.mean(values) == pytest.approx(right.mean(), abs=0.006)


def test_samples_are_drawn_once_from_strata_of_equal_size():
    scores, _ = draw(1000)
    found = choose_to_verify(scores, 100, strata=4)
    assert len(set(found.samples.tolist())) == 100
    assert found.samples.tolist() == sorted(found.samples.tolist())
    assert found.sizes.tolist() == [250] * 4
    order = np.argsort(np.argsort(scores))
    np.testing.assert_array_equal(order[found.samples] // 250, found.strata)
    counts = np.bincount(found.strata)
    assert counts.min() >= 2
    assert counts[0] > counts[-1]  # the least sure stratum mixes right and wrong most


def test_verifying_everything_leaves_no_doubt():
    scores, right = draw(50)
    found = choose_to_verify(scores, 50)
    estimate = verified_accuracy(right[found.samples], found)
    assert estimate.value == pytest.approx(right.mean())
    assert estimate.error == pytest.approx(0, abs=1e-12)


def test_a_difference_between_two_rules_can_be_estimated():
    scores, right = draw()
    other = np.random.default_rng(2).random(3000) < 0.5
    found = choose_to_verify(scores, 400)
    gap = right.astype(int) - other
    estimate = verified_accuracy(gap[found.samples], found)
    assert estimate.low < gap.mean() < estimate.high


@pytest.mark.parametrize("samples", [100, 2000])
@pytest.mark.parametrize("budget", [10, 20, 60])
@pytest.mark.parametrize("share", [0.7, 0.95, 0.99])
def test_the_interval_holds_for_few_samples_too(samples, budget, share):
    generator = np.random.default_rng(3)
    scores = generator.random(samples)
    right = generator.random(samples) < share
    covered = 0
    for seed in range(200):
        sampling = choose_to_verify(scores, budget, seed=seed)
        found = verified_accuracy(right[sampling.samples], sampling)
        covered += found.low <= right.mean() <= found.high
        assert found.low <= found.value <= found.high
    assert covered >= 0.93 * 200


def test_all_right_is_no_proof_that_all_are():
    sampling = choose_to_verify(np.linspace(0, 1, 100), 20)
    found = verified_accuracy(np.ones(20), sampling)
    assert (found.value, found.high) == (1, 1)
    assert 0.6 < found.low < 0.9  # a plain draw of 20 would say 0.832
    assert found.error > 0


def test_strata_that_are_drawn_alike_are_one_draw():
    sampling = Sampling(np.arange(20), np.repeat(np.arange(5), 4), np.full(5, 10**9))
    found = verified_accuracy(np.ones(20), sampling)
    assert (found.low, found.high) == pytest.approx(share_interval(20, 20))


@pytest.mark.parametrize("budget", [20, 60])
def test_the_interval_of_a_difference_holds_for_few_samples(budget):
    generator = np.random.default_rng(4)
    scores = generator.random(2000)
    gap = generator.choice([-1, 0, 1], 2000, p=[0.02, 0.88, 0.1])
    covered = 0
    for seed in range(200):
        sampling = choose_to_verify(scores, budget, seed=seed)
        found = verified_accuracy(gap[sampling.samples], sampling, difference=True)
        covered += found.low <= gap.mean() <= found.high
        assert found.low < found.high
    assert covered >= 0.93 * 200


def test_a_difference_that_was_never_negative_may_still_be():
    sampling = choose_to_verify(np.linspace(0, 1, 100), 20)
    gap = np.zeros(20)
    gap[0] = 1
    assert verified_accuracy(gap, sampling, difference=True).low < 0
    assert verified_accuracy(gap, sampling).low >= 0
    gap[1] = -1
    asked = verified_accuracy(gap, sampling, difference=True)
    assert verified_accuracy(gap, sampling) == asked  # one below 0 tells by itself


@pytest.mark.parametrize(
    ("value", "options"), [(np.nan, {}), (2, {}), (-1, {"difference": False}), (-2, {})]
)
def test_what_is_neither_right_nor_wrong_is_refused(value, options):
    sampling = choose_to_verify(np.linspace(0, 1, 50), 10)
    with pytest.raises(PredictionError, match="right or wrong must be 1 or 0"):
        verified_accuracy(np.array([value] + [1] * 9), sampling, **options)


@pytest.mark.parametrize("scores", [np.full(50, np.nan), np.linspace(0, 2, 50), np.ones((5, 10))])
def test_what_is_no_score_is_refused(scores):
    with pytest.raises(PredictionError, match=r"one score in 0\.\.1 per sample"):
        choose_to_verify(scores, 10)


@pytest.mark.parametrize(("budget", "strata"), [(9, 5), (51, 5), (10, 0)])
def test_an_impossible_budget_is_refused(budget, strata):
    with pytest.raises(ChoiceError, match="the budget must lie in"):
        choose_to_verify(np.linspace(0, 1, 50), budget, strata=strata)


def test_another_number_of_answers_is_refused():
    found = choose_to_verify(np.linspace(0, 1, 50), 10)
    with pytest.raises(PredictionError, match=r"10 samples were to be verified; got shape \(3,\)"):
        verified_accuracy(np.ones(3), found)


def test_too_few_samples_for_the_strata_are_told():
    with pytest.raises(ChoiceError, match=r"3 samples are too few for 5 strata.*verify all"):
        choose_to_verify(np.linspace(0, 1, 3), 3)

"""Descent, lemmas and theorem against slow twins and against what must be."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.analysis import network_agreement
from accord.errors import ChoiceError, TruthMissing
from accord.experiments.theory import (
    SETTINGS,
    FallsTogether,
    Outcome,
    Regression,
    balance,
    check_contraction,
    check_limit,
    check_signs,
    count_overfit,
    descend,
    descend_setting,
    disagreement_of,
    draw_regression,
    draw_setting,
    everyone_overfits,
    falls_together,
    first_order,
    rises,
    run_theory,
    tell_story,
)
from accord.store import ArrayReader, SampleInfo

quickly = settings(deadline=None, max_examples=15)
seeds = st.integers(0, 10_000)
SHARED = SETTINGS["shared"]


def by_definition(errors):
    """DisAg as the paper states it, over all pairs of networks; errors (network, sample)."""
    networks = len(errors)
    pairs = [np.sum((one - other) ** 2) for one in errors for other in errors]
    return sum(pairs) / (2 * networks**2)


def descend_slowly(regression, step, steps):
    """One network at a time, one sample at a time."""
    ends = []
    for inputs, values, weights in zip(
        regression.inputs, regression.values, regression.starts, strict=True
    ):
        for _ in range(steps):
            gradient = sum((x @ weights - y) * x for x, y in zip(inputs, values, strict=True))
            weights = weights - step * gradient
        ends.append(weights)
    return np.array(ends)


@quickly
@given(seeds)
def test_disagreement_is_half_the_mean_squared_distance_of_all_pairs(seed):
    errors = np.random.default_rng(seed).normal(size=(4, 3, 5))  # (network, moment, sample)
    expected = [by_definition(errors[:, moment]) for moment in range(3)]
    np.testing.assert_allclose(disagreement_of(errors), expected)


@quickly
@given(seeds, st.booleans(), st.booleans())
def test_descent_is_gradient_descent_of_each_network_by_itself(seed, own_inputs, own_noise):
    regression = draw_regression(seed=seed, networks=3, own_inputs=own_inputs, own_noise=own_noise)
    step = regression.step_of(0.5)
    descent = descend(regression, step=step, steps=4)
    assert descent.weights.shape[:2] == (3, 5)
    assert descent.gradients.shape[:2] == (3, 4)
    np.testing.assert_array_equal(descent.weights[:, 0], regression.starts)
    np.testing.assert_allclose(descent.weights[:, -1], descend_slowly(regression, step, 4))


def test_what_a_descent_measures_is_what_its_names_say():
    regression = draw_regression(seed=3, networks=3, own_inputs=True)
    descent = descend(regression, step=regression.step_of(0.5), steps=3)
    network, moment = 1, 2
    weights = descent.weights[network, moment]
    errors = regression.test_inputs @ weights - regression.test_values
    training = regression.inputs[network] @ weights - regression.values[network]
    gradient, test_gradient = training @ regression.inputs[network], errors @ regression.test_inputs
    np.testing.assert_allclose(descent.test_errors[network, moment], errors)
    assert descent.test_loss[network, moment] == pytest.approx(errors @ errors)
    assert descent.train_loss[network, moment] == pytest.approx(training @ training)
    np.testing.assert_allclose(descent.gradients[network, moment], gradient)
    np.testing.assert_allclose(descent.test_gradients[network, moment], test_gradient)
    assert descent.products[network, moment] == pytest.approx(gradient @ test_gradient)
    moved = regression.test_inputs @ gradient
    assert descent.moves[network, moment] == pytest.approx(moved @ moved)
    mean = regression.test_inputs @ descent.weights[:, moment].mean(axis=0) - regression.test_values
    assert descent.mean_network_loss[moment] == pytest.approx(mean @ mean)


@quickly
@given(seeds)
def test_disagreement_is_the_mean_loss_less_the_loss_of_the_mean_network(seed):
    descent = descend_setting(SETTINGS["own-sets"], seed=seed, steps=20)
    gap = descent.test_loss.mean(axis=0) - descent.mean_network_loss
    np.testing.assert_allclose(descent.disagreement, gap, rtol=1e-9)


def test_test_values_bear_no_noise_and_training_values_do():
    regression = draw_regression(seed=5)
    lines = [
        np.linalg.lstsq(inputs, values, rcond=None)[1]
        for inputs, values in (
            (regression.test_inputs, regression.test_values),
            (regression.inputs[0], regression.values[0]),
        )
    ]
    assert lines[0] < 1e-20
    assert lines[1] > 1e-3


@pytest.mark.parametrize(
    ("own", "inputs_differ", "values_differ"),
    [({}, False, False), ({"own_noise": True}, False, True), ({"own_inputs": True}, True, True)],
)
def test_networks_share_what_is_not_their_own(own, inputs_differ, values_differ):
    regression = draw_regression(seed=0, **own)
    assert (regression.inputs[0] != regression.inputs[1]).any() == inputs_differ
    assert (regression.values[0] != regression.values[1]).any() == values_differ
    assert (regression.starts[0] != regression.starts[1]).any()


def test_networks_with_inputs_of_their_own_have_noise_of_their_own():
    regression = draw_regression(seed=0, own_inputs=True)
    weights = np.linalg.lstsq(regression.test_inputs, regression.test_values, rcond=None)[0]
    noise = regression.values - regression.inputs @ weights
    assert np.abs(noise[0] - noise[1]).max() > 0.01


@quickly
@given(seeds)
def test_a_regression_has_the_promised_shape_and_full_rank(seed):
    regression = draw_regression(seed=seed, networks=2)
    _, samples, features = regression.inputs.shape
    assert 5 <= features <= 20
    assert int(1.2 * features) <= samples <= 3 * features
    assert regression.starts.shape == (2, features)
    assert np.linalg.matrix_rank(regression.covariances[0]) == features
    gradient = (regression.inputs[0] @ regression.closed_forms[0] - regression.values[0]) @ (
        regression.inputs[0]
    )
    np.testing.assert_allclose(gradient, 0, atol=1e-9)


def test_the_same_seed_draws_the_same_and_another_does_not():
    one, same, other = (draw_regression(seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.values, same.values)
    assert one.values.shape != other.values.shape or (one.values != other.values).any()


def test_the_step_is_measured_by_the_largest_eigenvalue_of_any_network():
    inputs = np.array([[[1.0, 0], [0, 1]], [[2.0, 0], [0, 1]]])
    regression = Regression(inputs, np.zeros((2, 2)), np.eye(2), np.zeros(2), np.zeros((2, 2)))
    assert regression.step_of(0.5) == pytest.approx(0.5 / 4)


def test_batches_differ_from_network_to_network_and_are_fair():
    regression = draw_regression(seed=0)
    regression = replace(regression, starts=np.repeat(regression.starts[:1], 10, axis=0))
    step = regression.step_of(1e-9)  # the weights stay: every step sees the same gradient
    whole = descend(regression, step=step, steps=1).gradients[0, 0]
    halves = descend(regression, step=step, steps=2000, batch=0.5, seed=1).gradients
    assert (halves[0, 0] != halves[1, 0]).any()
    np.testing.assert_allclose(halves.mean(axis=(0, 1)), whole, atol=0.05 * np.abs(whole).max())
    again = descend(regression, step=step, steps=1, batch=0.5, seed=1).gradients
    np.testing.assert_array_equal(again[:, 0], halves[:, 0])


@pytest.mark.parametrize(
    "wrong", [{"step": 0.0}, {"step": math.nan}, {"steps": 0}, {"batch": 0.0}, {"batch": 1.5}]
)
def test_a_descent_that_cannot_be_is_refused(wrong):
    with pytest.raises(ChoiceError, match="positive step, at least one of them, and a batch in"):
        descend(draw_regression(seed=0), **({"step": 0.1, "steps": 2} | wrong))


def test_one_network_cannot_disagree():
    with pytest.raises(ChoiceError, match=r"networks must be at least 2.*got 1"):
        draw_regression(seed=0, networks=1)


def test_a_rise_must_exceed_its_share():
    values = np.array([[100.0, 101.0, 103.0, 102.0]])
    assert rises(values, least=0.015).tolist() == [[False, True, False]]
    assert not rises(np.zeros(2), least=0.015).any()


# The lemmas.


@quickly
@given(seeds, st.sampled_from([0.01, 0.5, 1.9]))
def test_the_exact_sign_tells_overfit_at_every_step(seed, rate):
    found = check_signs([draw_regression(seed=seed)], rate=rate, steps=50)
    assert found.missed_exactly == 0
    assert found.steps <= 500


def test_signs_do_not_depend_on_the_unit_of_the_test_set():
    regression = draw_regression(seed=1)
    small = replace(
        regression,
        test_inputs=regression.test_inputs / 1024,
        test_values=regression.test_values / 1024,
    )
    found, same = (check_signs([some], rate=0.1) for some in (regression, small))
    assert found == same
    assert 0 < found.overfit < found.steps


def test_the_sign_alone_errs_the_less_the_smaller_the_step():
    regressions = [draw_regression(seed=seed) for seed in range(10)]
    large, small = (check_signs(regressions, rate=rate) for rate in (1.0, 0.01))
    assert large.missed / large.steps > 4 * small.missed / small.steps
    assert small.missed > 0
    assert 0 < small.overfit < small.steps == 10 * 10 * 300


def test_training_contracts_below_twice_the_inverse_eigenvalue_and_not_above():
    regressions = [draw_regression(seed=seed) for seed in range(5)]
    small, below, above = (check_contraction(regressions, rate=rate) for rate in (1, 1.99, 2.01))
    assert (small.contracting, below.contracting, above.contracting) == (5, 5, 0)
    assert small.as_in_proof == small.draws == 5
    assert below.as_in_proof < 5
    assert above.largest == pytest.approx(1.01)


def test_every_network_tends_to_the_closed_form_as_fast_as_their_mean():
    regressions = [draw_regression(seed=seed) for seed in range(6)]
    early, late = (check_limit(regressions, steps=steps) for steps in (10, 1000))
    assert early.within_bound == late.within_bound == early.draws == 6
    assert late.mean_network < 1e-3 * early.mean_network
    assert late.mean_network <= late.each_network < 3 * late.mean_network
    assert late.mean_network <= late.bound
    expected = [
        np.linalg.norm(end.mean(axis=0) - one.closed_forms[0])
        / np.linalg.norm(one.starts.mean(axis=0) - one.closed_forms[0])
        for one in regressions
        for end in [descend(one, step=one.step_of(1), steps=10).weights[:, -1]]
    ]
    assert early.mean_network == pytest.approx(np.median(expected))


# The theorem.


@quickly
@given(seeds)
def test_with_one_training_set_disagreement_does_not_depend_on_the_values(seed):
    regression = draw_regression(seed=seed)
    other = replace(regression, values=regression.values + 5, test_values=-regression.test_values)
    one, another = (descend(some, step=0.001, steps=30) for some in (regression, other))
    np.testing.assert_allclose(one.disagreement, another.disagreement, rtol=1e-6)


@quickly
@given(seeds)
def test_with_one_training_set_the_gaps_shrink_as_the_page_says(seed):
    regression = draw_regression(seed=seed, networks=2)
    step, steps = regression.step_of(0.3), 25
    descent = descend(regression, step=step, steps=steps)
    shrink = np.eye(len(regression.starts[0])) - step * regression.covariances[0]
    gap = (regression.starts[0] - regression.starts[1]) @ np.linalg.matrix_power(shrink, steps)
    expected = np.sum((regression.test_inputs @ gap) ** 2) / 4
    assert descent.disagreement[-1] == pytest.approx(expected)


@quickly
@given(seeds, st.sampled_from([0.1, 1.0, 1.9]))
def test_for_starts_alike_in_all_directions_disagreement_shrinks_at_every_step(seed, rate):
    regression = draw_regression(seed=seed, networks=2)
    features = regression.starts.shape[1]
    both = np.concatenate([np.eye(features), -np.eye(features)])  # one start for each direction
    alike = replace(
        regression,
        inputs=np.repeat(regression.inputs[:1], len(both), axis=0),
        values=np.repeat(regression.values[:1], len(both), axis=0),
        starts=both,
    )
    descent = descend(alike, step=alike.step_of(rate), steps=40)
    assert (np.diff(descent.disagreement) < 0).all()


@quickly
@given(seeds, st.sampled_from(sorted(SETTINGS)))
def test_for_small_steps_disagreement_changes_by_the_two_terms(seed, name):
    regression = draw_setting(SETTINGS[name], seed=seed)
    descent = descend(regression, step=regression.step_of(1e-6), steps=1)
    together, alone = first_order(descent)
    change = np.diff(descent.disagreement)[0] / descent.step
    assert change == pytest.approx(together[0] - alone[0], rel=1e-3, abs=1e-3 * abs(alone[0]))


def test_everyone_overfits_only_where_every_loss_rises():
    descent = descend_setting(SHARED, seed=1, steps=40)
    rising = np.diff(descent.test_loss) > 0
    found = everyone_overfits(descent)
    assert found.any()
    assert not found.all()
    np.testing.assert_array_equal(found, rising.all(axis=0))
    assert (rising.any(axis=0) & ~found).any()


def test_networks_that_agree_up_to_rounding_are_not_counted():
    descent = descend_setting(SHARED, seed=1, steps=40)
    same = replace(descent.regression, starts=np.repeat(descent.regression.starts[:1], 10, axis=0))
    together = descend(same, step=descent.step, steps=40)
    assert (np.diff(together.test_loss) > 0).any()
    assert not everyone_overfits(together).any()


@pytest.mark.parametrize(
    ("name", "share"), [("shared", 0.0), ("own-noise", 1.0), ("own-sets", 1.0), ("balanced", 1.0)]
)
def test_disagreement_rises_where_all_overfit_unless_the_training_set_is_shared(name, share):
    found = count_overfit(name, draws=6, steps=300)
    assert found.overfit > 10
    assert found.share == share
    assert found.training_fell == found.overfit
    assert (found.draws, found.steps, found.setting) == (6, 1800, name)
    assert 0 < found.draws_with_overfit <= 6


def test_what_the_proof_neglects_is_as_large_as_what_it_keeps_unless_the_starts_balance():
    assert count_overfit("shared", draws=6).neglected == pytest.approx(1, abs=0.1)
    assert count_overfit("own-noise", draws=6).neglected < 0.2
    assert count_overfit("balanced", draws=6).neglected < 1e-9


def test_the_rise_of_the_loss_is_the_mean_networks_or_the_disagreements():
    assert count_overfit("shared", draws=6).disagreement_share < 0
    assert count_overfit("own-noise", draws=6).disagreement_share > 0.8
    assert count_overfit("balanced", draws=6).disagreement_share == pytest.approx(1)


def test_a_step_too_large_is_no_overfit_for_training_fails_too():
    found = count_overfit("diverging", draws=3)
    assert found.training_fell < 0.1 * found.overfit
    assert found.rose > 0.9 * found.overfit


def test_counts_are_sums_over_the_draws():
    whole = count_overfit("own-batches", draws=4, seed=7, steps=200)
    parts = [count_overfit("own-batches", draws=1, seed=7 + draw, steps=200) for draw in range(4)]
    for name in ("steps", "overfit", "draws_with_overfit", "training_fell", "rose"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts)
    assert 0 < whole.overfit < 800


def test_training_falls_where_the_loss_of_no_network_rises():
    found = [count_overfit("own-batches", draws=1, seed=seed) for seed in range(4)]
    for seed, outcome in enumerate(found):
        descent = descend_setting(SETTINGS["own-batches"], seed=seed)
        risen = (np.diff(descent.train_loss) > 0).any(axis=0)
        assert outcome.training_fell == (everyone_overfits(descent) & ~risen).sum()
    assert sum(outcome.training_fell for outcome in found) > 0


def test_balanced_starts_lie_on_both_sides_of_the_closed_form():
    regression = balance(draw_regression(seed=0, networks=4))
    apart = regression.starts - regression.closed_forms
    np.testing.assert_allclose(apart.sum(axis=0), 0, atol=1e-9)
    assert np.linalg.matrix_rank(apart) == 1
    assert len(np.unique(regression.starts, axis=0)) == 4


def test_without_overfit_there_is_no_share():
    assert Outcome("shared", 1, 1, 0, 0, 0, 0, None, None).share is None
    nothing = count_overfit("shared", draws=1, seed=3, steps=1)
    assert (nothing.overfit, nothing.neglected, nothing.disagreement_share) == (0, None, None)


def test_an_unknown_setting_is_refused_with_the_nearest():
    with pytest.raises(ChoiceError, match=r"no setting is called 'share'\. Did you mean 'shared'"):
        count_overfit("share", draws=1)


@pytest.mark.parametrize("run", [run_theory, lambda draws: count_overfit("shared", draws=draws)])
def test_no_draws_are_refused(run):
    with pytest.raises(ChoiceError, match="draws must be at least 1; got 0"):
        run(draws=0)


# All of it.


@pytest.fixture(scope="module")
def result():
    return run_theory(draws=3)


def test_a_result_holds_every_setting_rate_and_story(result):
    assert list(result.outcomes) == list(SETTINGS)
    assert result.outcomes["shared"] == count_overfit("shared", draws=3)
    assert [found.rate for found in result.signs] == [1.0, 0.1, 0.01]
    assert [found.rate for found in result.contraction] == [0.1, 1.0, 1.99, 2.01]
    assert [found.steps for found in result.limits] == [10, 100, 1000]
    assert {found.draws for found in [*result.contraction, *result.limits]} == {3}
    assert list(result.stories) == ["shared", "own-noise"]


def test_a_result_is_json_with_the_shares(result):
    told = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert told["outcomes"]["own-noise"]["share"] == 1.0
    assert (told["draws"], told["seed"]) == (3, 0)
    assert told["stories"]["shared"]["steps"][-1] == 1000


def test_a_story_is_told_of_the_first_draw_that_overfits_in_both_settings(result):
    chosen = result.stories["shared"].seed
    assert result.stories["own-noise"].seed == chosen
    assert all(any(story.overfit) for story in result.stories.values())
    for seed in range(chosen):
        told = [tell_story(name, seed=seed) for name in result.stories]
        assert not all(any(story.overfit) for story in told)


def test_a_story_tells_what_the_descent_measured(result):
    story = result.stories["own-noise"]
    descent = descend_setting(SETTINGS["own-noise"], seed=story.seed)
    assert (story.steps[0], story.steps[-1]) == (1, 1000)
    assert list(story.steps) == sorted(set(story.steps))
    assert story.mean_loss[0] == pytest.approx(descent.test_loss[:, 0].mean())
    assert story.mean_network_loss[-1] == pytest.approx(descent.mean_network_loss[999])
    assert story.overfit[-1] == everyone_overfits(descent)[999]


def test_there_is_no_story_unless_both_settings_overfit():
    def overfit(seed):
        return [any(tell_story(name, seed=seed).overfit) for name in ("shared", "own-noise")]

    seed = next(seed for seed in range(50) if overfit(seed) == [True, False])
    assert run_theory(draws=1, seed=seed).stories == {}


# Deep networks.


def rows_of(labels, truth):
    labels = np.array(labels, np.uint8)
    sample_info = SampleInfo(labels.shape[2], 3, truth=None if truth is None else np.array(truth))
    return ArrayReader(labels, sample_info)


def test_epochs_are_counted_by_what_falls():
    truth = [0, 0, 0]
    first = [[0, 0, 1], [0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 1], [1, 1, 1]]
    second = [[0, 1, 0], [0, 0, 0], [0, 2, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    rows = rows_of([first, second], truth)
    right = [4, 6, 4, 3, 3, 0]  # of 6 predictions
    np.testing.assert_allclose(network_agreement(rows) * 3, [1, 3, 1, 2, 2, 3])
    found = falls_together(rows)
    assert np.count_nonzero(np.diff(right) < 0) == found.accuracy_falls == 3
    assert found == FallsTogether(epochs=5, accuracy_falls=3, both_fall=1, agreement_falls=1)
    assert (found.share, found.share_elsewhere) == (1 / 3, 0.0)


def test_shares_of_nothing_are_none():
    assert FallsTogether(4, 0, 0, 1).share is None
    assert FallsTogether(4, 0, 0, 1).share_elsewhere == 0.25
    assert FallsTogether(4, 4, 1, 1).share_elsewhere is None


def test_falls_need_two_epochs_two_networks_and_truth():
    with pytest.raises(ChoiceError, match="a fall needs two epochs; there is one"):
        falls_together(rows_of([[[0]], [[0]]], [0]))
    with pytest.raises(ChoiceError, match="agreement between networks needs two"):
        falls_together(rows_of([[[0], [0]]], [0]))
    with pytest.raises(TruthMissing, match="no true labels"):
        falls_together(rows_of([[[0], [0]], [[0], [0]]], None))

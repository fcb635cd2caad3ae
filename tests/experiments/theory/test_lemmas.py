"""The lemmas and the theorem of the paper."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.experiments.theory._lemmas import (
    SETTINGS,
    SettingOutcome,
    all_overfit,
    balance,
    check_contraction,
    check_limit,
    check_signs,
    count_overfitting,
    descend_setting,
    draw_setting,
    first_order,
)
from accord.experiments.theory._linear_regression import descend, draw_regression

quickly = settings(max_examples=15)
seeds = st.integers(0, 10_000)
SHARED = SETTINGS["shared"]


@quickly
@given(seeds, st.sampled_from([0.01, 0.5, 1.9]))
def test_second_order_sign_predicts_overfitting_exactly(seed, rate):
    found = check_signs([draw_regression(seed=seed)], rate=rate, steps=50)
    assert found.missed_exactly == 0
    assert found.steps <= 500


def test_signs_are_invariant_to_the_scale_of_the_test_set():
    regression = draw_regression(seed=1)
    small = replace(
        regression,
        test_inputs=regression.test_inputs / 1024,
        test_values=regression.test_values / 1024,
    )
    found, same = (check_signs([some], rate=0.1) for some in (regression, small))
    assert found == same
    assert 0 < found.overfit < found.steps


def test_first_order_sign_errs_less_at_smaller_steps():
    regressions = [draw_regression(seed=seed) for seed in range(10)]
    large, small = (check_signs(regressions, rate=rate) for rate in (1.0, 0.01))
    assert large.missed / large.steps > 4 * small.missed / small.steps
    assert small.missed > 0
    assert 0 < small.overfit < small.steps == 10 * 10 * 300


def test_training_contracts_below_rate_2_only():
    regressions = [draw_regression(seed=seed) for seed in range(5)]
    small, below, above = (check_contraction(regressions, rate=rate) for rate in (1, 1.99, 2.01))
    assert (small.contracting, below.contracting, above.contracting) == (5, 5, 0)
    assert small.as_in_proof == small.draws == 5
    assert below.as_in_proof < 5
    assert above.largest == pytest.approx(1.01)


def test_networks_converge_to_the_closed_form_as_fast_as_their_mean():
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
        for end in [descend(one, step=one.step_size(1), steps=10).weights[:, -1]]
    ]
    assert early.mean_network == pytest.approx(np.median(expected))


@quickly
@given(seeds)
def test_disagreement_with_a_shared_set_does_not_depend_on_the_values(seed):
    regression = draw_regression(seed=seed)
    other = replace(regression, values=regression.values + 5, test_values=-regression.test_values)
    one, another = (descend(some, step=0.001, steps=30) for some in (regression, other))
    np.testing.assert_allclose(one.disagreement, another.disagreement, rtol=1e-6)


@quickly
@given(seeds)
def test_disagreement_with_a_shared_set_follows_the_closed_form(seed):
    regression = draw_regression(seed=seed, networks=2)
    step, steps = regression.step_size(0.3), 25
    descent = descend(regression, step=step, steps=steps)
    shrink = np.eye(len(regression.starts[0])) - step * regression.covariances[0]
    gap = (regression.starts[0] - regression.starts[1]) @ np.linalg.matrix_power(shrink, steps)
    expected = np.sum((regression.test_inputs @ gap) ** 2) / 4
    assert descent.disagreement[-1] == pytest.approx(expected)


@quickly
@given(seeds, st.sampled_from([0.1, 1.0, 1.9]))
def test_disagreement_of_isotropic_initial_weights_always_falls(seed, rate):
    regression = draw_regression(seed=seed, networks=2)
    features = regression.starts.shape[1]
    both = np.concatenate([np.eye(features), -np.eye(features)])
    alike = replace(
        regression,
        inputs=np.repeat(regression.inputs[:1], len(both), axis=0),
        values=np.repeat(regression.values[:1], len(both), axis=0),
        starts=both,
    )
    descent = descend(alike, step=alike.step_size(rate), steps=40)
    assert (np.diff(descent.disagreement) < 0).all()


@quickly
@given(seeds, st.sampled_from(sorted(SETTINGS)))
def test_first_order_terms_predict_the_change_of_disagreement(seed, name):
    regression = draw_setting(SETTINGS[name], seed=seed)
    descent = descend(regression, step=regression.step_size(1e-6), steps=1)
    joint, separate = first_order(descent)
    change = np.diff(descent.disagreement)[0] / descent.step
    assert change == pytest.approx(joint[0] - separate[0], rel=1e-3, abs=1e-3 * abs(separate[0]))


def test_all_overfit_requires_every_loss_to_rise():
    descent = descend_setting(SHARED, seed=1, steps=40)
    rising = np.diff(descent.test_loss) > 0
    found = all_overfit(descent)
    assert found.any()
    assert not found.all()
    np.testing.assert_array_equal(found, rising.all(axis=0))
    assert (rising.any(axis=0) & ~found).any()


def test_networks_that_agree_up_to_rounding_do_not_count():
    descent = descend_setting(SHARED, seed=1, steps=40)
    same = replace(descent.regression, starts=np.repeat(descent.regression.starts[:1], 10, axis=0))
    together = descend(same, step=descent.step, steps=40)
    assert (np.diff(together.test_loss) > 0).any()
    assert not all_overfit(together).any()


@pytest.mark.parametrize(
    ("name", "share"), [("shared", 0.0), ("own-noise", 1.0), ("own-sets", 1.0), ("balanced", 1.0)]
)
def test_disagreement_rises_with_overfitting_unless_the_set_is_shared(name, share):
    found = count_overfitting(name, draws=6, steps=300)
    assert found.overfit > 10
    assert found.share == share
    assert found.training_fell == found.overfit
    assert (found.draws, found.steps, found.setting) == (6, 1800, name)
    assert 0 < found.draws_with_overfit <= 6


def test_neglected_term_vanishes_only_for_balanced_initial_weights():
    assert count_overfitting("shared", draws=6).neglected == pytest.approx(1, abs=0.1)
    assert count_overfitting("own-noise", draws=6).neglected < 0.2
    assert count_overfitting("balanced", draws=6).neglected < 1e-9


def test_disagreement_share_of_the_rise_depends_on_the_setting():
    assert count_overfitting("shared", draws=6).disagreement_share < 0
    assert count_overfitting("own-noise", draws=6).disagreement_share > 0.8
    assert count_overfitting("balanced", draws=6).disagreement_share == pytest.approx(1)


def test_diverging_steps_raise_training_loss_too():
    found = count_overfitting("diverging", draws=3)
    assert found.training_fell < 0.1 * found.overfit
    assert found.rose > 0.9 * found.overfit


def test_counts_add_up_over_draws():
    whole = count_overfitting("own-batches", draws=4, seed=7, steps=200)
    parts = [
        count_overfitting("own-batches", draws=1, seed=7 + draw, steps=200) for draw in range(4)
    ]
    for name in ("steps", "overfit", "draws_with_overfit", "training_fell", "rose"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts)
    assert 0 < whole.overfit < 800


def test_training_fell_counts_steps_where_no_training_loss_rises():
    found = [count_overfitting("own-batches", draws=1, seed=seed) for seed in range(4)]
    for seed, outcome in enumerate(found):
        descent = descend_setting(SETTINGS["own-batches"], seed=seed)
        risen = (np.diff(descent.train_loss) > 0).any(axis=0)
        assert outcome.training_fell == (all_overfit(descent) & ~risen).sum()
    assert sum(outcome.training_fell for outcome in found) > 0


def test_balanced_initial_weights_surround_the_closed_form():
    regression = balance(draw_regression(seed=0, networks=4))
    apart = regression.starts - regression.closed_forms
    np.testing.assert_allclose(apart.sum(axis=0), 0, atol=1e-9)
    assert np.linalg.matrix_rank(apart) == 1
    assert len(np.unique(regression.starts, axis=0)) == 4


def test_share_is_none_without_overfitting():
    assert SettingOutcome("shared", 1, 1, 0, 0, 0, 0, None, None).share is None
    nothing = count_overfitting("shared", draws=1, seed=3, steps=1)
    assert (nothing.overfit, nothing.neglected, nothing.disagreement_share) == (0, None, None)

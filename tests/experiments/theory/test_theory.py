"""The theory as `run_theory` measures it."""

import json

import pytest

from accord.errors import ChoiceError
from accord.experiments.theory import run_theory, trajectory_of
from accord.experiments.theory._lemmas import (
    SETTINGS,
    all_overfit,
    count_overfitting,
    descend_setting,
)


@pytest.fixture(scope="module")
def result():
    return run_theory(draws=3)


def test_result_covers_every_setting_and_rate(result):
    assert list(result.outcomes) == list(SETTINGS)
    assert result.outcomes["shared"] == count_overfitting("shared", draws=3)
    assert [found.rate for found in result.signs] == [1.0, 0.1, 0.01]
    assert [found.rate for found in result.contraction] == [0.1, 1.0, 1.99, 2.01]
    assert [found.steps for found in result.limits] == [10, 100, 1000]
    assert {found.draws for found in [*result.contraction, *result.limits]} == {3}
    assert list(result.trajectories) == ["shared", "own-noise"]


def test_result_as_json(result):
    data = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert data["outcomes"]["own-noise"]["share"] == 1.0
    assert (data["draws"], data["seed"]) == (3, 0)
    assert data["stories"]["shared"]["steps"][-1] == 1000


def test_trajectories_come_from_the_first_draw_that_overfits_in_both_settings(result):
    chosen = result.trajectories["shared"].seed
    assert result.trajectories["own-noise"].seed == chosen
    assert all(any(one.overfit) for one in result.trajectories.values())
    for seed in range(chosen):
        earlier = [trajectory_of(name, seed=seed) for name in result.trajectories]
        assert not all(any(one.overfit) for one in earlier)


def test_trajectory_matches_the_descent(result):
    trajectory = result.trajectories["own-noise"]
    descent = descend_setting(SETTINGS["own-noise"], seed=trajectory.seed)
    assert (trajectory.steps[0], trajectory.steps[-1]) == (1, 1000)
    assert list(trajectory.steps) == sorted(set(trajectory.steps))
    assert trajectory.mean_loss[0] == pytest.approx(descent.test_loss[:, 0].mean())
    assert trajectory.mean_network_loss[-1] == pytest.approx(descent.mean_network_loss[999])
    assert trajectory.overfit[-1] == all_overfit(descent)[999]


def test_no_trajectories_unless_both_settings_overfit():
    def overfit(seed):
        return [any(trajectory_of(name, seed=seed).overfit) for name in ("shared", "own-noise")]

    seed = next(seed for seed in range(50) if overfit(seed) == [True, False])
    assert run_theory(draws=1, seed=seed).trajectories == {}


def test_zero_draws_raise():
    with pytest.raises(ChoiceError, match="draws must be at least 1; got 0"):
        run_theory(draws=0)

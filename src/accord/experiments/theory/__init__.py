"""Measure the theory of the paper on linear regressions.

`_linear_regression` draws problems and runs gradient descent, `_lemmas` measures the lemmas and the
theorem on them, and `run_theory` runs everything. `toy` trains the networks of figure 9.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from accord.errors import ChoiceError
from accord.experiments.theory._lemmas import (
    SETTINGS,
    STEPS,
    ContractionEvidence,
    LimitEvidence,
    SettingOutcome,
    SignEvidence,
    all_overfit,
    check_contraction,
    check_limit,
    check_signs,
    count_overfitting,
    descend_setting,
)
from accord.experiments.theory._linear_regression import draw_regression
from accord.experiments.theory.toy import Toy, run_toy

__all__ = ["SettingOutcome", "TheoryResult", "Toy", "Trajectory", "run_theory", "run_toy"]


@dataclass(frozen=True)
class Trajectory:
    """Losses of one draw of a setting at logarithmically spaced steps."""

    setting: str
    seed: int
    steps: tuple[int, ...]  # from 1
    mean_loss: tuple[float, ...]  # test loss, mean over networks
    mean_network_loss: tuple[float, ...]  # test loss of the network with the mean weights
    overfit: tuple[bool, ...]  # whether every network overfits in the step that follows


@dataclass(frozen=True)
class TheoryResult:
    """Measurements of the lemmas and the theorem."""

    draws: int
    seed: int
    signs: tuple[SignEvidence, ...]  # lemma 1, by rate
    contraction: tuple[ContractionEvidence, ...]  # lemma 2, by rate
    limits: tuple[LimitEvidence, ...]  # lemma 3, by steps
    outcomes: dict[str, SettingOutcome]  # the theorem, by setting
    trajectories: dict[str, Trajectory]  # empty if no draw overfits in every one of the settings

    def as_json(self) -> dict[str, Any]:
        """Convert the result to dictionaries, lists and numbers."""
        result = asdict(self)
        for name, outcome in self.outcomes.items():
            result["outcomes"][name]["share"] = outcome.share
        result["stories"] = result.pop("trajectories")  # the key of stored results
        return result


def run_theory(*, draws: int = 50, seed: int = 0) -> TheoryResult:
    """Measure the lemmas and the theorem on random linear regressions.

    Takes about ten seconds for 50 draws. Draw k uses the seed `seed + k`.

    Raises:
        ChoiceError: `draws` is below 1.
    """
    if draws < 1:
        raise ChoiceError(f"draws must be at least 1; got {draws}")
    regressions = [draw_regression(seed=seed + draw) for draw in range(min(draws, 20))]
    return TheoryResult(
        draws=draws,
        seed=seed,
        signs=tuple(check_signs(regressions, rate=rate) for rate in (1.0, 0.1, 0.01)),
        contraction=tuple(
            check_contraction(regressions, rate=rate) for rate in (0.1, 1.0, 1.99, 2.01)
        ),
        limits=tuple(check_limit(regressions, steps=steps) for steps in (10, 100, 1000)),
        outcomes={name: count_overfitting(name, draws=draws, seed=seed) for name in SETTINGS},
        trajectories=_first_trajectories(draws, seed),
    )


def _first_trajectories(draws: int, seed: int) -> dict[str, Trajectory]:
    """Find the trajectories of the first draw that overfits in all settings shown."""
    for draw in range(seed, seed + draws):
        found = {name: trajectory_of(name, seed=draw) for name in ("shared", "own-noise")}
        if all(any(one.overfit) for one in found.values()):
            return found
    return {}


def trajectory_of(name: str, *, seed: int) -> Trajectory:
    """Compute the trajectory of one draw of a setting."""
    descent = descend_setting(SETTINGS[name], seed=seed)
    times = np.unique(np.geomspace(1, STEPS, 80).round().astype(int)) - 1
    return Trajectory(
        setting=name,
        seed=seed,
        steps=tuple((times + 1).tolist()),
        mean_loss=tuple(descent.test_loss.mean(axis=0)[times].tolist()),
        mean_network_loss=tuple(descent.mean_network_loss[times].tolist()),
        overfit=tuple(all_overfit(descent)[times].tolist()),
    )

"""The paper's theory, measured in one go."""

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from accord.analysis.theory.lemmas import (
    ContractionEvidence,
    LimitEvidence,
    SignEvidence,
    check_contraction,
    check_limit,
    check_signs,
)
from accord.analysis.theory.regression import draw_regression
from accord.analysis.theory.theorem import (
    SETTINGS,
    STEPS,
    Outcome,
    count_overfit,
    descend_setting,
    everyone_overfits,
)
from accord.errors import ChoiceError

SIGN_RATES: Final = (1.0, 0.1, 0.01)
CONTRACTION_RATES: Final = (0.1, 1.0, 1.99, 2.01)
LIMIT_STEPS: Final = (10, 100, 1000)
LEMMA_DRAWS: Final = 20  # or all, where there are fewer
TOLD: Final = ("shared", "own-noise")  # settings of which one draw is told step by step
POINTS: Final = 80  # of a story


@dataclass(frozen=True)
class Story:
    """One draw of a setting, at steps spaced by their logarithm."""

    setting: str
    seed: int
    steps: tuple[int, ...]  # moments, counted from 1
    mean_loss: tuple[float, ...]  # of the networks, on the test set
    mean_network_loss: tuple[float, ...]  # of the network with their mean weights
    overfit: tuple[bool, ...]  # in the step that leads on from there, every network overfits


@dataclass(frozen=True)
class TheoryResult:
    """Everything that was measured of the paper's theory."""

    draws: int
    seed: int
    signs: tuple[SignEvidence, ...]  # lemma 1, by rate
    contraction: tuple[ContractionEvidence, ...]  # lemma 2, by rate
    limits: tuple[LimitEvidence, ...]  # lemma 3, by steps
    outcomes: dict[str, Outcome]  # the theorem, by setting
    stories: dict[str, Story]  # empty where no draw overfits in each of these settings

    def as_json(self) -> dict[str, Any]:
        """Return all of it as dicts, lists and numbers."""
        everything = asdict(self)
        for name, outcome in self.outcomes.items():
            everything["outcomes"][name]["share"] = outcome.share
        return everything


def run_theory(*, draws: int = 50, seed: int = 0) -> TheoryResult:
    """Measure the three lemmas and the theorem over seeded draws of linear regressions.

    Takes about ten seconds for 50 draws. Draw k has the seed `seed + k`.

    Raises:
        ChoiceError: there is no draw.
    """
    if draws < 1:
        raise ChoiceError(f"draws must be at least 1; got {draws}")
    regressions = [draw_regression(seed=seed + draw) for draw in range(min(draws, LEMMA_DRAWS))]
    return TheoryResult(
        draws=draws,
        seed=seed,
        signs=tuple(check_signs(regressions, rate=rate) for rate in SIGN_RATES),
        contraction=tuple(check_contraction(regressions, rate=rate) for rate in CONTRACTION_RATES),
        limits=tuple(check_limit(regressions, steps=steps) for steps in LIMIT_STEPS),
        outcomes={name: count_overfit(name, draws=draws, seed=seed) for name in SETTINGS},
        stories=_stories(draws, seed),
    )


def _stories(draws: int, seed: int) -> dict[str, Story]:
    for draw in range(seed, seed + draws):
        stories = {name: tell_story(name, seed=draw) for name in TOLD}
        if all(any(story.overfit) for story in stories.values()):
            return stories
    return {}


def tell_story(name: str, *, seed: int) -> Story:
    """Follow one draw of a setting through its steps."""
    descent = descend_setting(SETTINGS[name], seed=seed)
    moments = np.unique(np.geomspace(1, STEPS, POINTS).round().astype(int)) - 1
    return Story(
        setting=name,
        seed=seed,
        steps=tuple((moments + 1).tolist()),
        mean_loss=tuple(descent.test_loss.mean(axis=0)[moments].tolist()),
        mean_network_loss=tuple(descent.mean_network_loss[moments].tolist()),
        overfit=tuple(everyone_overfits(descent)[moments].tolist()),
    )

"""The paper's theory, measured in one go."""

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from accord.analysis._curves import curve
from accord.errors import ChoiceError
from accord.experiments.theory._lemmas import (
    SETTINGS,
    STEPS,
    ContractionEvidence,
    LimitEvidence,
    Outcome,
    Setting,
    SignEvidence,
    balance,
    check_contraction,
    check_limit,
    check_signs,
    count_overfit,
    descend_setting,
    draw_setting,
    everyone_overfits,
    first_order,
)
from accord.experiments.theory._regression import (
    Descent,
    Regression,
    descend,
    disagreement_of,
    draw_regression,
    rises,
)
from accord.rules._overfitting import network_agreement
from accord.store import RecordReader

__all__ = [
    "SETTINGS",
    "ContractionEvidence",
    "Descent",
    "FallsTogether",
    "LimitEvidence",
    "Outcome",
    "Regression",
    "Setting",
    "SignEvidence",
    "Story",
    "TheoryResult",
    "balance",
    "check_contraction",
    "check_limit",
    "check_signs",
    "count_overfit",
    "descend",
    "descend_setting",
    "disagreement_of",
    "draw_regression",
    "draw_setting",
    "everyone_overfits",
    "falls_together",
    "first_order",
    "rises",
    "run_theory",
    "tell_story",
]


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


@dataclass(frozen=True)
class FallsTogether:
    """How many epochs lower accuracy, agreement, or both, each against the epoch before."""

    epochs: int  # that have one before them
    accuracy_falls: int
    both_fall: int
    agreement_falls: int

    @property
    def share(self) -> float | None:
        """The share of the epochs of falling accuracy in which agreement falls too."""
        return self.both_fall / self.accuracy_falls if self.accuracy_falls else None

    @property
    def share_elsewhere(self) -> float | None:
        """The share of all other epochs in which agreement falls."""
        others = self.epochs - self.accuracy_falls
        return (self.agreement_falls - self.both_fall) / others if others else None


def falls_together(rows: RecordReader) -> FallsTogether:
    """Count the epochs where the networks' mean accuracy falls, and where agreement does.

    Agreement is how often two networks predict the same class, as `network_agreement` has it.

    Raises:
        ChoiceError: there is only one network, or one epoch.
        TruthMissing: the record has no true labels.
    """
    if rows.epochs < 2:
        raise ChoiceError(f"{rows.name}: a fall needs two epochs; there is one")
    accuracy = np.diff(curve(rows, "single").accuracy) < 0
    agreement = np.diff(network_agreement(rows)) < 0
    return FallsTogether(
        epochs=rows.epochs - 1,
        accuracy_falls=int(accuracy.sum()),
        both_fall=int((accuracy & agreement).sum()),
        agreement_falls=int(agreement.sum()),
    )

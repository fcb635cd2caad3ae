"""Temperature: sharpen or flatten shares of votes until they say how often a class is right."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.trust.classes import checked_classes
from accord.errors import PredictionError

COLDEST, HOTTEST = 0.01, 100.0
ROUNDS: Final = 60  # of golden section; the temperature is then right to twelve digits
GOLDEN: Final = (5**0.5 - 1) / 2

Shares = NDArray[np.float64]  # (sample, class), each row adding up to 1


@dataclass(frozen=True)
class Temperature:
    """Turns shares of votes into probabilities: their powers of 1 / value, made to add up to 1."""

    value: float  # below 1 sharpens, above 1 flattens
    voters: int  # a class without a vote counts as if it had half of one

    def __call__(self, agreement: NDArray[Any]) -> Shares:
        """Return calibrated probabilities (sample, class)."""
        powers = _log_shares(agreement, self.voters) / self.value
        powers = np.exp(powers - powers.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fit_temperature(agreement: NDArray[Any], labels: NDArray[Any], *, voters: int) -> Temperature:
    """Fit the temperature that makes labelled samples' classes most likely.

    One number is fitted, so that some hundred labelled samples are enough.

    Args:
        agreement: (sample, class), as `Record.agreement` returns.
        labels: (sample,), the true class of these samples.
        voters: how many votes each sample has: networks × epochs.

    Raises:
        PredictionError: shapes differ, a share is not finite, or a label is no class.

    Unanimous votes that are right three times out of four:

    >>> votes = np.repeat([[1.0, 0.0]], 4, axis=0)
    >>> fitted = fit_temperature(votes, np.array([0, 0, 0, 1]), voters=10)
    >>> fitted(votes)[0].round(2)
    array([0.75, 0.25])
    """
    agreement, labels = np.asarray(agreement, np.float64), np.asarray(labels)
    _check(agreement, labels, voters)
    labels = checked_classes(labels, classes=agreement.shape[1])
    logs = _log_shares(agreement, voters)
    own = logs[np.arange(len(labels)), labels]
    low, high = np.log(COLDEST), np.log(HOTTEST)
    # The loss is convex in 1 / temperature, and so has one valley in its logarithm too.
    for _ in range(ROUNDS):
        step = GOLDEN * (high - low)
        if _loss(logs, own, np.exp(high - step)) <= _loss(logs, own, np.exp(low + step)):
            high = low + step
        else:
            low = high - step
    return Temperature(float(np.exp((low + high) / 2)), voters)


def _check(agreement: NDArray[Any], labels: NDArray[Any], voters: int) -> None:
    if agreement.ndim != 2 or labels.shape != agreement.shape[:1] or not len(labels):
        raise PredictionError(
            "agreement (sample, class) and one label for each of its samples are wanted, for at "
            f"least one; got shapes {agreement.shape} and {labels.shape}"
        )
    if not np.isfinite(agreement).all():
        raise PredictionError("agreement must be shares of votes, in 0..1; some are not finite")
    if voters < 1:
        raise PredictionError(f"voters, networks × epochs, must be at least 1; got {voters}")


def _log_shares(agreement: NDArray[Any], voters: int) -> Shares:
    return np.asarray(np.log(np.maximum(agreement, 0.5 / voters)))


def _loss(logs: Shares, own: NDArray[np.float64], temperature: float) -> float:
    powers = logs / temperature
    top = powers.max(axis=1)
    total = np.log(np.exp(powers - top[:, None]).sum(axis=1)) + top
    return float((total - own / temperature).mean())

"""How far a curve falls from its peak and stays below, and whether wobble alone would do that."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Curve = NDArray[np.float64]  # (epoch,)
Curves = NDArray[np.float64]  # (..., epoch)

WINDOW: Final = 3  # epochs that a peak is the mean of
STRETCH: Final = 5  # epochs that a low is the mean of
# How far below the highest point of the smoothed curve an earlier epoch counts as just as high:
# networks whose rate goes to nothing settle, and so agree a little more, whatever they learnt.
AS_HIGH: Final = 0.01
LEAST_FALL: Final = 0.01  # of agreement; less is not worth stopping for, however sure
DRAWS: Final = 2000  # of curves that wobble and never fall


@dataclass(frozen=True)
class Fall:
    """From the first peak to the lowest stretch of epochs after it."""

    peak: int  # the middle of the peak's window
    low: int  # the first epoch of the lowest stretch

    def size(self, curves: Curves) -> Curves:
        """Return how far curves fall between these epochs (...,)."""
        before = smooth(curves)[..., self.peak]
        return np.asarray(before - curves[..., self.low : self.low + STRETCH].mean(axis=-1))


def smooth(curves: Curves, *, window: int = WINDOW) -> Curves:
    """Average each epoch with its neighbours, as many on each side; fewer near the ends.

    >>> smooth(np.array([0.0, 3.0, 0.0, 3.0]))
    array([1.5, 1. , 2. , 1.5])
    """
    epochs = np.arange(curves.shape[-1])
    sums = np.cumsum(np.insert(curves, 0, 0, axis=-1), axis=-1)
    first = np.maximum(epochs - window // 2, 0)
    end = np.minimum(epochs + window // 2 + 1, len(epochs))
    return np.asarray((sums[..., end] - sums[..., first]) / (end - first))


def find_fall(curve: Curve) -> Fall | None:
    """Find the first peak and the lowest stretch after it; None if the peak is too recent.

    >>> find_fall(np.array([0.1, 0.5, 0.9, 0.9, 0.9, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5]))
    Fall(peak=3, low=6)
    """
    smoothed = smooth(curve)
    peak = int(np.flatnonzero(smoothed >= smoothed.max() - AS_HIGH)[0])
    first = peak + WINDOW // 2 + 1
    if first + STRETCH > len(curve):
        return None
    return Fall(peak, first + int(_stretches(curve)[first:].argmin()))


def sure_beyond_wobble(curve: Curve, fall: Fall, *, seed: int) -> float:
    """Return how rarely a curve that only wobbles falls as far anywhere, 0..1.

    The wobble is what smoothing over a stretch takes away, from the peak on: before it the curve
    rises too fast to tell. Each epoch draws its own, turned upside down half of the time.
    """
    wobble = (curve - smooth(curve, window=STRETCH))[max(0, fall.peak - WINDOW // 2) :]
    wobble *= math.sqrt(STRETCH / (STRETCH - 1))  # the mean takes part of it away
    generator = np.random.default_rng(seed)
    shape = DRAWS, len(curve)
    drawn = generator.choice(wobble, shape) * generator.choice([-1.0, 1.0], shape)
    as_far = np.count_nonzero(deepest_fall(drawn) >= fall.size(curve))
    return float(1 - (1 + as_far) / (1 + DRAWS))


def deepest_fall(curves: Curves) -> Curves:
    """Return the largest fall from any smoothed epoch to any stretch after it (...,)."""
    lows = np.minimum.accumulate(_stretches(curves)[..., ::-1], axis=-1)[..., ::-1]
    after = lows[..., WINDOW // 2 + 1 :]  # the lowest stretch after each epoch's window
    return np.asarray((smooth(curves)[..., : after.shape[-1]] - after).max(axis=-1))


def _stretches(curves: Curves) -> Curves:  # (..., start) -> mean of the stretch
    sums = np.cumsum(np.insert(curves, 0, 0, axis=-1), axis=-1)
    return np.asarray((sums[..., STRETCH:] - sums[..., :-STRETCH]) / STRETCH)

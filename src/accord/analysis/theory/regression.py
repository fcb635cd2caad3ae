"""Seeded linear-regression problems, with one training set for each network."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError

Array = NDArray[np.float64]

NETWORKS: Final = 10  # the paper's Q
TEST_SAMPLES: Final = 100
LEAST_SPREAD: Final = 0.3  # of the last feature; the first has 1: the steps differ in speed


@dataclass(frozen=True)
class Regression:
    """What each network trains on, where it starts, and what all are tested on."""

    inputs: Array  # (network, sample, feature)
    values: Array  # (network, sample)
    test_inputs: Array  # (sample, feature)
    test_values: Array  # (sample,)
    starts: Array  # (network, feature)

    @property
    def covariances(self) -> Array:
        """The paper's sigma of each network's training inputs (network, feature, feature)."""
        return np.asarray(self.inputs.swapaxes(1, 2) @ self.inputs)

    @property
    def closed_forms(self) -> Array:
        """The weights with the least training loss (network, feature)."""
        products = np.einsum("nsf,ns->nf", self.inputs, self.values)
        return np.asarray(np.linalg.solve(self.covariances, products[..., None])[..., 0])

    def step_of(self, rate: float) -> float:
        """Return the step size that is `rate` over the largest eigenvalue of any covariance."""
        return float(rate / np.linalg.eigvalsh(self.covariances).max())


def draw_regression(
    *, seed: int, networks: int = NETWORKS, own_inputs: bool = False, own_noise: bool = False
) -> Regression:
    """Draw a problem whose training values bear noise and whose test values do not.

    The seed also decides on 5 to 20 features, 1.2 to 3 training samples per feature, the size of
    the noise and that of the random starts. All networks share one training set, unless they have
    their own inputs (then their own noise too) or their own noise on shared inputs.

    >>> shared = draw_regression(seed=0, networks=3)
    >>> bool((shared.values == shared.values[0]).all())
    True

    Raises:
        ChoiceError: there are fewer than two networks, which cannot disagree.
    """
    if networks < 2:
        raise ChoiceError(f"networks must be at least 2, for them to disagree; got {networks}")
    random = np.random.default_rng(seed)
    features = int(random.integers(5, 21))
    samples = int(features * random.uniform(1.2, 3))
    start, noise = np.exp(random.uniform([-1, -1.5], [1, 1]))
    spreads = np.linspace(1, LEAST_SPREAD, features)
    weights = random.normal(size=features) / np.sqrt(features)
    sets = networks if own_inputs else 1
    noises = networks if own_inputs or own_noise else 1
    inputs = spreads * random.normal(size=(sets, samples, features))
    values = inputs @ weights + noise * random.normal(size=(noises, samples))
    test_inputs = spreads * random.normal(size=(TEST_SAMPLES, features))
    return Regression(
        inputs=np.broadcast_to(inputs, (networks, samples, features)),
        values=np.broadcast_to(values, (networks, samples)),
        test_inputs=test_inputs,
        test_values=test_inputs @ weights,
        starts=start * random.normal(size=(networks, features)) / np.sqrt(features),
    )

"""Numbers on a grid, whose sums are exact and so the same in any order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

POSTERIOR_BITS = 28  # sums stay exact for 2**25 samples
LOGARITHM_BITS = 16  # times a weight of 20 bits: exact up to 2**17
WEIGHT_BITS = 20


def on_grid(values: NDArray[Any], bits: int) -> NDArray[np.float64]:
    """Round to multiples of 2**-bits.

    Double precision adds such numbers without rounding while the sum stays below
    2**(53 - bits): neither the order of the voters nor a cut into blocks can change it.

    >>> on_grid(np.array([0.1, 0.5]), 3)
    array([0.125, 0.5  ])
    """
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, bits)), -bits), np.float64)

"""The kinds of arrays that kernels take or give."""

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.integer]  # predicted classes, of any integer type
CompactLabels = NDArray[np.unsignedinteger]  # in the smallest unsigned type that holds the classes
Votes = NDArray[np.intp]  # how many voters predicted a class
Positions = NDArray[np.intp]  # of classes, samples or epochs
Shares = NDArray[np.float64]  # votes as a share of all

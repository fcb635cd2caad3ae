"""Max agreement of arrays in memory, without a record."""

import numpy as np

import accord

# Predictions of 3 networks at 4 epochs for 2 samples: (network, epoch, sample).
labels = np.array(
    [
        [[1, 0], [1, 0], [1, 2], [0, 2]],
        [[1, 0], [1, 0], [2, 0], [2, 1]],
        [[1, 0], [0, 0], [0, 0], [0, 0]],
    ]
)

majority = accord.max_agreement(labels[:, -1:], classes=3)  # the last epoch only
agreed = accord.max_agreement(labels, classes=3)
print("at the last epoch:", majority)
print("over all epochs:  ", agreed)
print("share of votes:   ", accord.agreement(labels, classes=3).max(axis=1).round(2))

"""How many networks make the same mistake."""

import numpy as np

from accord.errors import PredictionError
from accord.kernels.arrays import Labels, Votes
from accord.kernels.dense import count_matching


def error_consensus(labels: Labels, truth: Labels) -> Votes:
    """Count the wrong (sample, network) pairs by how many networks gave that wrong class.

    Args:
        labels: (network, sample), of the last epoch.
        truth: (sample,), the true classes.

    Returns:
        (network,): entry k-1 counts the wrong pairs whose class exactly k networks gave.

    Raises:
        PredictionError: the labels are not (network, sample) integers, or `truth` does not fit.

    For one sample of class 0, two networks say 1 and one says 2:

    >>> error_consensus(np.array([[1], [1], [2]]), np.array([0]))
    array([1, 2, 0])
    """
    _check(labels, truth)
    networks = len(labels)
    pairs = np.zeros(networks + 1, np.intp)
    for given in labels:
        companions = count_matching(labels, given)
        pairs += np.bincount(companions[given != truth], minlength=networks + 1)
    return pairs[1:]


def _check(labels: Labels, truth: Labels) -> None:
    if labels.ndim != 2 or not len(labels) or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            "labels must come as (network, sample) integers of one epoch, from at least one "
            f"network; got {labels.dtype} of shape {labels.shape}. For the last epoch of "
            "(network, epoch, sample), give labels[:, -1]."
        )
    if truth.shape != labels.shape[1:] or not np.issubdtype(truth.dtype, np.integer):
        raise PredictionError(
            f"truth must hold {labels.shape[1]} integers, one per sample; "
            f"got {truth.dtype} of shape {truth.shape}. Is it of another split?"
        )

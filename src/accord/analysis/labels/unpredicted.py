"""Labels of classes that no network predicts while votes count: what all epochs say of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.store import Rows


def suspect_unpredicted(
    rows: Rows, given: NDArray[np.intp], classes: NDArray[np.intp], *, rate: float
) -> NDArray[np.float64]:  # (sample,)
    """Return the suspicion of labels that are given one of these classes; nan for all others.

    Networks learn some classes late, when most labels are known by heart. Such labels are as
    often wrong as all others, as far as one knows; among them, those that networks contradict
    most at the epochs at which any network predicts the class are the most suspicious. None
    exceeds one half. Where no epoch predicts the class, that is nan as well.

    Args:
        rows: all epochs are read, unless there are no such classes.
        given: the label of each sample.
        classes: that no network predicts at the epochs that count.
        rate: the share of wrong labels among all others.
    """
    suspicion = np.full(len(given), np.nan)
    if len(classes):
        chosen = np.flatnonzero(np.isin(given, classes))
        against = _share_against(rows, given, chosen)
        known = ~np.isnan(against)
        usual = float(against[known].mean()) if known.any() else 0.0
        suspicion[chosen] = np.minimum(0.5, against * (rate / usual if usual else 0.0))
    return suspicion


def never_predicted(
    given: NDArray[np.intp], suspicion: NDArray[np.float64], classes: NDArray[np.intp]
) -> tuple[int, ...]:
    """Return those of these classes whose labels have no suspicion.

    >>> never_predicted(np.array([0, 3, 4]), np.array([np.nan, 0.1, np.nan]), np.array([3, 4]))
    (4,)
    """
    known = given[~np.isnan(suspicion)]
    return tuple(classes[~np.isin(classes, known)].tolist())


def _share_against(
    rows: Rows, given: NDArray[np.intp], chosen: NDArray[np.intp]
) -> NDArray[np.float64]:  # (chosen,)
    agreeing = np.zeros((rows.epochs, len(chosen)), np.intp)
    predicted = np.zeros((rows.epochs, rows.classes), bool)
    for block in rows.blocks():
        here = np.flatnonzero((chosen >= block.start) & (chosen < block.stop))
        samples = chosen[here]
        votes: NDArray[Any] = block.values[:, :, samples - block.start]
        agreeing[:, here] = (votes == given[samples]).sum(axis=0)
        for epoch in range(rows.epochs):
            predicted[epoch, block.values[:, epoch]] = True
    told = predicted[:, given[chosen]]  # (epoch, chosen)
    votes_told = rows.networks * told.sum(axis=0)
    agreed = (agreeing * told).sum(axis=0)
    unknown = np.full(len(chosen), np.nan)
    return np.asarray(np.divide(votes_told - agreed, votes_told, out=unknown, where=votes_told > 0))

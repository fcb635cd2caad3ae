"""What Dawid and Skene's two steps add up: evidence for classes, and confusion with them."""

import math

import numpy as np
from numpy.typing import NDArray

from accord.kernels.arrays import Labels, Positions
from accord.kernels.blocks import TABLE_CELLS, spans

JOINED_ROWS = 2**10
DENSE_FROM = 2  # one cell in so many holds a share

Evidence = NDArray[np.float64]  # (sample, class)
Posterior = NDArray[np.float64]  # (sample, class), rows add up to 1


def voters_at_once(classes: int) -> int:
    """Return of how many voters' labels one table is made; its rows should fit the L2 cache.

    >>> voters_at_once(10), voters_at_once(200)
    (3, 1)
    """
    return max(1, int(math.log(JOINED_ROWS, max(2, classes))))


def add_evidence(
    evidence: Evidence,  # changed
    said: Labels,  # (voter, sample), of a few voters: see `voters_at_once`
    tables: NDArray[np.float64],  # (voter, label, class)
) -> None:
    """Add to each sample the rows of the voters' tables that belong to the labels they gave it.

    One table for all that the voters can say together is looked up once for each sample:
    three voters cost a little more than one.

    >>> evidence = np.zeros((2, 2))
    >>> table = np.array([[0.5, 0.0], [0.0, 2.0]])
    >>> add_evidence(evidence, np.array([[1, 0], [0, 0]]), np.stack([table, table]))
    >>> evidence
    array([[0.5, 2. ],
           [1. , 0. ]])
    """
    classes, joined = tables.shape[-1], tables[0]
    for table in tables[1:]:
        joined = (joined[:, np.newaxis] + table).reshape(-1, classes)
    rows = _join(said, classes)
    # All at once, the rows taken would leave the cache: 3.9 ns a cell instead of 0.9 (100 classes).
    for span in spans(len(rows), max(1, TABLE_CELLS // classes)):
        # Labels were checked when they were recorded; without `clip`, take checks each again.
        evidence[span] += joined.take(rows[span], axis=0, mode="clip")


class Expected:
    """The classes that samples are expected to have, the impossible ones left out.

    Most samples have one class or two: what counts them need not walk through all classes.
    """

    def __init__(self, posterior: Posterior) -> None:
        self._classes = posterior.shape[1]
        self._sample, self._class = np.nonzero(posterior)
        self._share = posterior[self._sample, self._class]
        dense = self._share.size * DENSE_FROM > posterior.size
        self._columns = np.ascontiguousarray(posterior.T) if dense else None

    def count_confusion(
        self,
        said: Labels,  # (voter, sample), of a few voters: see `voters_at_once`
    ) -> NDArray[np.float64]:  # (voter, label, class)
        """Count how often each voter said each label for each class.

        >>> expected = Expected(np.array([[1.0, 0.0], [0.25, 0.75]]))
        >>> expected.count_confusion(np.array([[0, 0], [0, 1]])).tolist()
        [[[1.25, 0.75], [0.0, 0.0]], [[1.0, 0.0], [0.25, 0.75]]]
        """
        voters, classes = len(said), self._classes
        together = self._count(_join(said, classes), classes**voters)
        found = np.empty((voters, classes, classes))
        for voter in reversed(range(voters)):
            together = together.reshape(-1, classes, classes)  # all before, its label, class
            found[voter] = together.sum(axis=0)
            together = together.sum(axis=1)
        return found

    def _count(self, rows: Positions, size: int) -> NDArray[np.float64]:  # (row, class)
        if self._columns is not None:
            counted = [np.bincount(rows, weights=one, minlength=size) for one in self._columns]
            return np.stack(counted, axis=1)
        cells = rows.take(self._sample)
        cells *= self._classes
        cells += self._class
        size *= self._classes
        return np.asarray(np.bincount(cells, weights=self._share, minlength=size), np.float64)


def _join(said: Labels, classes: int) -> Positions:  # (voter, sample) -> (sample,)
    rows: Positions = said[0].astype(np.intp)
    for labels in said[1:]:
        rows *= classes
        rows += labels
    return rows

"""Weighted agreement: max agreement with epochs that weigh what they are worth."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from accord.errors import SourceError
from accord.kernels.blocks import spans, voters_of, width_for
from accord.rules.epoch_weights import (
    Likeness,
    Weights,
    equal_weights,
    from_counts,
    measure_likeness,
    reliability,
    weigh,
)
from accord.rules.fitted import (
    Arrays,
    FittedRule,
    check_networks,
    check_numbers,
    check_voters,
)
from accord.rules.rule import Definition, Prediction, Support, most_supported, predict_blocks
from accord.store import Rows

ONE_NETWORK = "one network alone cannot tell its good epochs: all weigh the same"


class WeightedAgreement(FittedRule):
    """Predict the class with the largest sum of weights of the epochs that voted for it.

    An epoch weighs the more, the more its votes agree with what other networks say far from
    it in training, and the less, the more they only repeat what the same network says at
    other epochs. No label is used. One network alone has equal weights: max agreement.

    Args:
        weights: of the epochs, if they were found before; see `fit` and `load`.
    """

    name = "weighted-agreement"
    reads = "all"
    ordered = True
    arrays = ("weights",)

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights

    def __call__(self, rows: Rows) -> Prediction:
        """Predict; the score is the share of the weights that the class has."""
        if self.weights is None:
            fitted = self._weigh(rows)
            note = ONE_NETWORK if rows.networks == 1 else ""
            return _predict(rows, fitted, note=note)
        check_voters(rows, self.name, epochs=len(self.weights))
        if self.voters is not None:
            self.voters.check(rows, self.name, networks=False)  # of each it learnt the same
        return self._cautioned(_predict(rows, self.weights))

    def fit(self, rows: Rows) -> Self:
        """Return this rule with the epochs' weights found on these samples.

        Raises:
            ChoiceError: there is only one network.
        """
        check_networks(rows, self.name)
        return type(self)(self._weigh(rows)).learnt_from(rows)

    def learnt(self) -> Arrays | None:
        """Return the weights."""
        return None if self.weights is None else {"weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the rule with these weights.

        Raises:
            SourceError: they are no weights.
        """
        weights = arrays["weights"]
        check_numbers("weights", weights, (None,))
        if not weights.any():
            raise SourceError("weights must not all be 0: no epoch would have a say")
        return cls(weights)

    def _weigh(self, rows: Rows) -> Weights:
        if rows.networks == 1:
            return equal_weights(rows.epochs)
        likeness = measure_likeness(rows)
        return weigh(likeness.within, reliability(likeness.across))

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        weights = weights_by_definition(record)
        return [
            max(
                range(record.classes),
                key=lambda c: float(((record.labels[:, :, sample] == c) * weights).sum()),
            )
            for sample in range(record.labels.shape[2])
        ]


def _predict(rows: Rows, weights: Weights, *, note: str = "") -> Prediction:
    def predict(labels: NDArray[Any]) -> Support:
        supports = [
            most_supported(
                weighted_votes(labels[:, :, span], weights, classes=rows.classes),
                float(weights.sum()) * rows.networks,
            )
            for span in spans(labels.shape[2], width_for(voters_of(labels), rows.classes))
        ]
        found, scores = zip(*supports, strict=True)
        return np.concatenate(found), np.concatenate(scores)

    predicted = predict_blocks(rows.blocks(), predict, samples=rows.samples)
    return Prediction(predicted.labels, predicted.scores, note)


def weighted_votes(
    labels: NDArray[Any],  # (network, epoch, sample)
    weights: Weights,
    *,
    classes: int,
) -> NDArray[np.float64]:  # (sample, class)
    """Add up the weights of the epochs that voted for each class.

    >>> weighted_votes(np.array([[[0], [1]], [[0], [0]]]), np.array([0.25, 0.75]), classes=2)
    array([[1.25, 0.75]])
    """
    samples = labels.shape[2]
    cells = labels.astype(np.intp) + np.arange(samples) * classes
    each = np.broadcast_to(weights[:, np.newaxis], labels.shape)
    votes = np.bincount(cells.ravel(), weights=each.ravel(), minlength=samples * classes)
    return np.asarray(votes, np.float64).reshape(samples, classes)


def weights_by_definition(record: Definition) -> Weights:
    """Weigh the epochs of a small record, comparing its labels one by one."""
    if len(record.labels) == 1:
        return equal_weights(record.labels.shape[1])
    likeness = likeness_by_definition(record)
    return weigh(likeness.within, reliability(likeness.across))


def likeness_by_definition(record: Definition) -> Likeness:
    """Compare the epochs of a small record label by label."""
    networks, epochs, samples = record.labels.shape
    voters = [(network, epoch) for network in range(networks) for epoch in range(epochs)]
    pairs = np.zeros((networks, epochs, networks, epochs), np.intp)
    said = np.zeros((networks, epochs, record.classes), np.intp)
    for one in voters:
        for other in voters:
            pairs[one + other] = sum(record.labels[one] == record.labels[other])
        for label in record.labels[one]:
            said[(*one, label)] += 1
    return from_counts(pairs, said, samples=samples)

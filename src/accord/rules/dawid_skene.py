"""Dawid–Skene: every network at every epoch is an annotator with habits of its own."""

from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError, SourceError
from accord.kernels._votes import LOGARITHM_BITS, WEIGHT_BITS, on_grid
from accord.rules._annotators import Annotators, Tally, to_posterior
from accord.rules._base import Definition, Prediction
from accord.rules._context import Context
from accord.rules._em import (
    LOUDER,
    MOST_ROUNDS,
    Fit,
    estimate,
    fit_annotators,
    fit_in_memory,
    full_votes,
    group_epochs,
    has_settled,
    lost_classes,
)
from accord.rules._epoch_weights import (
    Likeness,
    Weights,
    likeness_by_definition,
    measure_likeness,
    predict_weighted,
    reliability,
    vote_by_definition,
    weigh,
)
from accord.rules._fitted import Arrays, FittedRule, check_networks, check_numbers, check_voters
from accord.rules.max_agreement import MaxAgreement
from accord.store import RecordReader


class DawidSkene(FittedRule):
    """Predict the class that explains the votes best, knowing who tends to say what.

    Each network at each epoch has a confusion matrix: how often it says each label for
    each true class. Matrices, weights of the epochs and true classes are found together by
    expectation-maximisation from the votes alone, beginning with a weighted vote. Where
    a confusion is systematic, as when mislabelled cats are called dogs, votes for the
    wrong class become evidence for the right one.

    If the classes change places on the way (the search collapses), votes count for more; if that
    does not help, the prediction is the weighted vote that it began with, and its note says so.
    With one network it is max agreement's.

    Args:
        annotators: what is known of them, if it was found before; see `fit` and `load`.
    """

    name = "dawid-skene"
    reads = "all"
    ordered = True
    arrays = tuple(field.name for field in fields(Annotators))

    def __init__(self, annotators: Annotators | None = None) -> None:
        self.annotators = annotators

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict; the score is the class's posterior probability."""
        if self.annotators is not None:
            return self._predict_fitted(reader, self.annotators)
        if reader.networks == 1:
            agreed = MaxAgreement()(reader)
            note = "one network alone cannot tell its errors from the truth: max agreement"
            return Prediction(agreed.labels, agreed.scores, note)
        start, fit = _fit(reader)
        if fit.collapsed:
            return start.noting(f"{_collapse(fit)} These are the labels that it began with.")
        predicted = _predict(reader, fit.annotators)
        return Prediction(predicted.labels, predicted.scores, _unsettled(fit))

    def fit(self, reader: RecordReader) -> Self:
        """Return this rule with what these samples tell of the annotators.

        Raises:
            ChoiceError: there is only one network.
            PredictionError: expectation-maximisation collapsed or did not settle.
        """
        check_networks(reader, self.name)
        _, fit = _fit(reader)
        if fit.collapsed or not fit.settled:
            said = _collapse(fit) if fit.collapsed else _unsettled(fit)
            raise PredictionError(f"{reader.name}: {said} Use weighted-agreement.")
        return type(self)(fit.annotators).learnt_from(reader)

    def learnt(self) -> Arrays | None:
        """Return what is known of the annotators."""
        return None if self.annotators is None else vars(self.annotators)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the rule with these annotators.

        Raises:
            SourceError: they are no annotators.
        """
        annotators = Annotators(**{name: arrays[name] for name in cls.arrays})
        _check_annotators(annotators)
        return cls(annotators)

    def left_out(self, reader: RecordReader) -> str:
        """Say why the rule cannot predict these rows: its matrices would be too large."""
        if reader.networks == 1 or fit_in_memory(reader):
            return ""
        return f"its {reader.classes} × {reader.classes} confusion matrices would be too large"

    def _predict_fitted(self, reader: RecordReader, annotators: Annotators) -> Prediction:
        networks, _, _, classes = annotators.confusion.shape
        epochs = len(annotators.weights)
        check_voters(reader, self.name, networks=networks, epochs=epochs, classes=classes)
        if self.voters is not None:
            self.voters.check(reader, self.name, networks=True)
        return self._cautioned(_predict(reader, annotators))

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        if len(record.labels) == 1:
            return MaxAgreement.by_definition(record)
        return _by_definition(record)


def _fit(reader: RecordReader) -> tuple[Prediction, Fit]:
    return Context.of(reader).once(_search)


def _search(reader: RecordReader) -> tuple[Prediction, Fit]:
    likeness = measure_likeness(reader)
    weights = weigh(likeness.within, reliability(likeness.across))
    start = predict_weighted(reader, weights)
    return start, fit_annotators(reader, start.labels, likeness=likeness, weights=weights)


def _predict(reader: RecordReader, annotators: Annotators) -> Prediction:
    labels, scores = np.empty(reader.samples, np.intp), np.empty(reader.samples)
    for part, posterior in annotators.posteriors(reader.blocks()):
        labels[part.where], scores[part.where] = posterior.argmax(axis=1), posterior.max(axis=1)
    return Prediction(labels, scores)


def _check_annotators(found: Annotators) -> None:
    check_numbers("prior", found.prior, (None,))
    classes = len(found.prior)
    check_numbers("confusion", found.confusion, (None, None, classes, classes))
    check_numbers("weights", found.weights, (None,))
    check_numbers("groups", found.groups, found.weights.shape)
    _, groups, _, _ = found.confusion.shape
    if found.groups.dtype.kind == "f" or found.groups.max() >= groups:
        raise SourceError(f"groups must be whole numbers in 0..{groups - 1}")
    if not (found.prior.all() and found.confusion.all()):
        raise SourceError("prior and confusion must be above 0: nothing is impossible")


def _collapse(fit: Fit) -> str:
    lost = ", ".join(map(str, fit.lost))
    return (
        f"expectation-maximisation collapsed within {fit.rounds} rounds: "
        f"most samples of class {lost} went to another."
    )


def _unsettled(fit: Fit) -> str:
    said = f"expectation-maximisation did not settle within {fit.rounds} rounds."
    return "" if fit.settled else said


def _by_definition(record: Definition) -> list[int]:
    likeness = likeness_by_definition(record)
    weights = weigh(likeness.within, reliability(likeness.across))
    start = np.array(vote_by_definition(record, weights))
    for louder in LOUDER:
        found = _find_by_definition(record, start, likeness, weights, louder)
        if not lost_classes(start, found, classes=record.classes):
            return [int(label) for label in found]
    return [int(label) for label in start]


def _find_by_definition(
    record: Definition, start: NDArray[Any], likeness: Likeness, weights: Weights, louder: int
) -> NDArray[Any]:
    labels, classes = record.labels, record.classes
    networks, epochs, samples = labels.shape
    groups = group_epochs(epochs, samples=samples, classes=classes)
    posterior, found = np.eye(classes)[start], start
    for rounds in range(MOST_ROUNDS):
        tally = Tally.empty(networks=networks, classes=classes, groups=groups)
        tally.sizes += posterior.sum(axis=0)
        for network, epoch, sample in np.ndindex(labels.shape):
            said = labels[network, epoch, sample]
            tally.votes[network, groups[epoch], said] += posterior[sample]
            tally.right[epoch] += posterior[sample, said]
        if rounds:
            weights = weigh(likeness.within, tally.reliability(likeness.said))
        votes = full_votes(weights, likeness, networks, louder=louder)
        annotators = estimate(tally, groups, votes)
        evidence = np.tile(on_grid(np.log(annotators.prior), LOGARITHM_BITS), (samples, 1))
        for network, epoch, sample in np.ndindex(labels.shape):
            weight = on_grid(annotators.weights, WEIGHT_BITS)[epoch]
            table = annotators.tables()[network, groups[epoch]]
            evidence[sample] += weight * table[labels[network, epoch, sample]]
        posterior, before = to_posterior(evidence), found
        found = posterior.argmax(axis=1)
        if has_settled(before, found):
            break
    return found

"""Dawid-Skene rule."""

from dataclasses import dataclass, fields, replace
from typing import Final, Self

from accord.errors import PredictionError, SourceError
from accord.rules._analysis_context import Context
from accord.rules._annotators import Annotators, small_parts
from accord.rules._base import Prediction
from accord.rules._em import Fit, fit_annotators, fits_in_memory
from accord.rules._epoch_weights import (
    measure_likeness,
    predict_weighted,
    regression_weights,
    reliability,
)
from accord.rules._fitted_rule import Arrays, FittedRule, check_networks, check_numbers, check_sizes
from accord.rules.max_agreement import MaxAgreement
from accord.store import RecordReader

BOOSTS: Final = (1, 2, 4, 8, 16)  # factors on the weight of votes, until classes keep their places
KEPT_BYTES: Final = 64 << 20  # of confusion matrices that a context keeps
ONE_NETWORK: Final = (
    "the errors of a single network cannot be separated from the truth: this is max agreement"
)


class DawidSkene(FittedRule):
    """Predict the class that best explains the votes, given each voter's confusion matrix.

    Each network at each epoch has a confusion matrix: how often it predicts each label for each
    true class. Matrices, weights of the epochs and true classes are estimated together by
    expectation maximisation from the votes alone, starting from a weighted vote. Where a
    confusion is systematic, as when mislabelled cats are predicted as dogs, votes for the wrong
    class become evidence for the right one.

    If classes change places on the way (the search collapses), votes count for more; if that
    does not help, the prediction is the weighted vote at the start, with a note. With one network
    it is max agreement.

    Args:
        annotators: fitted before, by `fit` or `load`.
    """

    name = "dawid-skene"
    reads = "all"
    ordered = True
    arrays = tuple(field.name for field in fields(Annotators))

    def __init__(self, annotators: Annotators | None = None) -> None:
        self.annotators = annotators

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by posterior probability."""
        if self.annotators is not None:
            return self._predict_fitted(reader, self.annotators)
        if reader.networks == 1:
            return replace(MaxAgreement()(reader), note=ONE_NETWORK)
        return Context.of(reader).once(fit_dawid_skene).prediction

    def fit(self, reader: RecordReader) -> Self:
        """Fit the annotators to a record.

        Raises:
            ChoiceError: there is only one network.
            PredictionError: expectation maximisation collapsed or did not converge.
        """
        check_networks(reader, self.name)
        context = Context.of(reader)
        fitted = context.once(fit_dawid_skene)
        if fitted.failure:
            raise PredictionError(f"{reader.name}: {fitted.failure} Use weighted-agreement.")
        annotators = fitted.annotators or fit_dawid_skene(context, keep=True).annotators
        return type(self)(annotators).fitted_on(reader)

    def parameters(self) -> Arrays | None:
        """Get the parameters of the annotators."""
        return None if self.annotators is None else vars(self.annotators)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Create the rule from its parameters.

        Raises:
            SourceError: the arrays do not fit together, or hold other values.
        """
        annotators = Annotators(**{name: arrays[name] for name in cls.arrays})
        _check_annotators(annotators)
        return cls(annotators)

    def left_out(self, reader: RecordReader) -> str:
        """Get the reason for leaving out the rule."""
        if reader.networks == 1 or fits_in_memory(reader):
            return ""
        return f"its {reader.classes} × {reader.classes} confusion matrices would be too large"

    def _predict_fitted(self, reader: RecordReader, annotators: Annotators) -> Prediction:
        networks, _, _, classes = annotators.confusion.shape
        epochs = len(annotators.weights)
        check_sizes(reader, self.name, networks=networks, epochs=epochs, classes=classes)
        if self.voters is not None:
            self.voters.check(reader, self.name, networks=True)
        predicted = Prediction.empty(reader.samples)
        parts = small_parts(reader.blocks(), classes=classes)
        for part, posterior in annotators.posteriors(parts):
            predicted.labels[part.where] = posterior.argmax(axis=1)
            predicted.scores[part.where] = posterior.max(axis=1)
        return self._with_caution(predicted)


@dataclass(frozen=True)
class DawidSkeneFit:
    """Cached result of a Dawid-Skene fit."""

    prediction: Prediction
    failure: str  # reason not to use the annotators for other samples
    annotators: Annotators | None  # None if too large to keep


def fit_dawid_skene(context: Context, keep: bool = False) -> DawidSkeneFit:
    """Fit annotators to a record with at least two networks.

    Votes that count for too little let the classes of poor networks swallow each other. Where
    classes change places, the search starts again with twice the weight of votes, at most
    sixteen times. Reads the labels twice, and in each search once more than it has rounds.

    Args:
        context: the votes.
        keep: whether to return annotators of any size.

    Raises:
        PredictionError: the confusion matrices would take more than 4 GiB.
    """
    likeness = context.once(measure_likeness)
    weights = regression_weights(likeness.within, reliability(likeness.across))
    start = predict_weighted(context, weights)
    for boost in BOOSTS:
        fit = fit_annotators(context, start.labels, likeness, weights, boost=boost)
        if not fit.collapsed:
            break
    failure = _failure(fit)
    if fit.collapsed:
        prediction = start.with_note(f"{failure} These are the labels that it began with.")
    else:
        prediction = Prediction(fit.labels, fit.scores, failure)
    kept = keep or fit.annotators.confusion.nbytes <= KEPT_BYTES
    return DawidSkeneFit(prediction, failure, fit.annotators if kept else None)


def _failure(fit: Fit) -> str:
    if fit.collapsed:
        return (
            f"expectation maximisation collapsed within {fit.rounds} rounds: most samples of "
            f"class {', '.join(map(str, fit.lost))} went to another."
        )
    if not fit.converged:
        return f"expectation maximisation did not converge within {fit.rounds} rounds."
    return ""


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
        raise SourceError("prior and confusion must be above 0: no label is impossible")

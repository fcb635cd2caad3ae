"""Record the predictions of scikit-learn estimators."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._recorder import Recorder
from accord._recorders.record_order import place_columns, place_labels, positions_of
from accord._recorders.round_recorder import RoundRecorder, packages_of
from accord.errors import ChoiceError, PredictionError
from accord.sklearn._fit_by_epoch import Estimator, grow_by_partial_fit, grow_by_warm_start


def open_recorder(
    path: str | os.PathLike[str],
    *,
    network: int,
    classes: Any,
    truth: Any = None,
    given: Any = None,
    samples: int | None = None,
    **options: Any,
) -> Recorder:
    """Open a recorder for arbitrary class labels.

    Args:
        path: as for `accord.Recorder`.
        network: the network's number, from 0.
        classes: all labels, each once, such as `np.unique(y)`; they become the record's class
            names.
        truth: the true label of each sample, if known.
        given: the label that the data assign to each sample.
        samples: the number of samples, by default the length of `truth` or `given`.
        **options: further arguments of `accord.Recorder`.

    >>> import tempfile
    >>> truth = ["spam", "ham", "spam"]
    >>> with open_recorder(
    ...     tempfile.mkdtemp(), network=0, classes=["ham", "spam"], truth=truth
    ... ) as recorder:
    ...     recorder.record([1, 0, 0])
    """
    known = np.asarray(classes)
    positions = np.arange(len(known))
    labels: dict[str, Any] = {
        what: None if values is None else place_labels(values, known, positions)
        for what, values in (("truth", truth), ("given", given))
    }
    lengths = [len(values) for values in labels.values() if values is not None]
    if samples is None and not lengths:
        raise ChoiceError("the number of samples is unknown: give samples=…, truth=… or given=…")
    return Recorder(
        path,
        network=network,
        samples=lengths[0] if samples is None else samples,
        classes=len(known),
        class_names=[str(name) for name in known.tolist()],
        **labels,
        **options,
    )


def record_epoch(
    recorder: Recorder,
    estimator: Estimator,
    X: Any,
    *,
    epoch: int | None = None,
    progress: float | None = None,
    **metrics: Any,
) -> None:
    """Record the predictions of a fitted estimator as one epoch.

    Records labels, or probabilities if the recorder stores them.

    Args:
        recorder: where to write.
        estimator: any fitted classifier; its classes are found by the record's class names.
        X: the samples to predict, always the same in the same order.
        epoch: the expected index of this epoch. Recording it twice then raises an error.
        progress: the true epoch, such as 0.1.
        **metrics: stored with the epoch.
    """
    predicted = _predict(estimator, recorder, X)
    recorder.record(predicted, epoch=epoch, progress=progress, **metrics)


def record_partial_fit(
    recorder: Recorder,
    estimator: Estimator,
    X: Any,
    y: Any,
    test: Any,
    *,
    epochs: int,
    classes: Any = None,
    seed: int | None = None,
    sample_weight: Any = None,
) -> Estimator:
    """Train an estimator with `partial_fit` and record each epoch.

    One epoch is one call with all of `X`. Called again with the same arguments, it trains from
    scratch and records only the missing epochs.

    Args:
        recorder: used for this network only.
        estimator: the unfitted estimator, which is fitted in place.
        X: the training samples.
        y: their labels.
        test: the samples to predict after each epoch.
        epochs: the number of epochs.
        classes: all labels, by default those in `y`.
        seed: shuffle the samples of each epoch by this seed and the epoch. By default they keep
            the order of `X`.
        sample_weight: one weight per sample of `X`.

    Returns:
        The estimator, fitted.
    """
    rounds = RoundRecorder(recorder)
    for epoch in grow_by_partial_fit(
        estimator, X, y, epochs=epochs, classes=classes, seed=seed, sample_weight=sample_weight
    ):
        rounds.record(epoch, partial(_predict, estimator, recorder, test))
    return estimator


def record_warm_start(
    recorder: Recorder,
    estimator: Estimator,
    X: Any,
    y: Any,
    test: Any,
    *,
    epochs: int,
    step: int = 1,
    sample_weight: Any = None,
) -> Estimator:
    """Train an estimator with `warm_start` and record each epoch.

    Each epoch adds `step` trees (`n_estimators`), boosting rounds or passes over the data
    (`max_iter`). Called again with the same arguments, it trains from scratch and records only
    the missing epochs.

    Args:
        recorder: used for this network only.
        estimator: the unfitted estimator, which is fitted in place.
        X: the training samples.
        y: their labels.
        test: the samples to predict after each epoch.
        epochs: the number of epochs.
        step: how much each epoch adds.
        sample_weight: one weight per sample of `X`.

    Returns:
        The estimator, fitted.
    """
    rounds = RoundRecorder(recorder)
    for epoch in grow_by_warm_start(
        estimator, X, y, epochs=epochs, step=step, sample_weight=sample_weight
    ):
        rounds.record(epoch, partial(_predict, estimator, recorder, test))
    return estimator


def record_stages(recorder: Recorder, estimator: Estimator, X: Any, *, every: int = 1) -> None:
    """Record the staged predictions of a fitted boosting estimator.

    For estimators with `staged_predict`, after an ordinary `fit`. Called again on the same
    record, with a new recorder, it writes only the missing rounds.

    Args:
        recorder: used for this network only.
        estimator: a fitted estimator.
        X: the samples to predict.
        every: rounds per row.
    """
    rounds = RoundRecorder(recorder, every=every)
    stages: Iterator[Any] = _method(estimator, "staged_predict", recorder)(X)
    stage = 0
    for stage, predicted in enumerate(stages, start=1):
        rounds.record(stage, partial(_in_record_classes, predicted, estimator, recorder))
    rounds.check_due(stage)


def _predict(estimator: Estimator, recorder: Recorder, X: Any) -> NDArray[Any]:
    return _in_record_classes(_method(estimator, "predict", recorder)(X), estimator, recorder)


def _method(estimator: Estimator, name: str, recorder: Recorder) -> Any:
    """Select the prediction method of an estimator."""
    with_probabilities = f"{name}_proba" if recorder.keeps_probabilities else name
    if not hasattr(estimator, name):
        boosting = packages_of(estimator) & {"xgboost", "lightgbm"}
        use = "accord.boosting.record_rounds" if boosting else "record_partial_fit"
        raise ChoiceError(f"{type(estimator).__name__} has no {name}. Use {use}")
    if not hasattr(estimator, with_probabilities):
        raise PredictionError(
            f"this recorder stores probabilities, and {type(estimator).__name__} with its "
            f"settings has no {with_probabilities}. Open the recorder with probabilities=False, "
            "or choose a loss that gives probabilities."
        )
    return getattr(estimator, with_probabilities)


def _in_record_classes(predicted: Any, estimator: Estimator, recorder: Recorder) -> NDArray[Any]:
    info = recorder.sample_info
    positions = positions_of(estimator.classes_, info)
    if recorder.keeps_probabilities:
        return place_columns(np.asarray(predicted), positions, classes=info.classes)
    return place_labels(predicted, estimator.classes_, positions)

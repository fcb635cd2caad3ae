"""Record scikit-learn estimators while or after they are fitted."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._recorder import Recorder
from accord._recorders.boosting_rounds import RoundFollower
from accord._recorders.record_order import place_columns, place_labels, positions_of
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
    """Open a recorder for labels of any kind: strings, numbers with gaps.

    Args:
        path: as for `accord.Recorder`, like everything not named here.
        network: this network's number, from 0.
        classes: every label there is, each once, such as `np.unique(y)`; they become the
            record's class names.
        truth: the true label of each sample, if known.
        given: the label that the data assign to each sample.
        samples: how many samples; by default the length of `truth` or `given`.
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
        raise ChoiceError("say how many samples there are: samples=…, or give their truth")
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
    X: Any,  # noqa: N803
    *,
    epoch: int | None = None,
    progress: float | None = None,
    **told: Any,
) -> None:
    """Record what a fitted estimator says of `X` now: the one line in a loop of your own.

    Its labels, or its probabilities if the recorder keeps them.

    Args:
        recorder: where to write.
        estimator: any fitted classifier; its classes are found by the record's class names.
        X: the samples to predict, always the same in the same order.
        epoch: the position you believe this row has; a row written twice is then refused.
        progress: the true epoch, such as 0.1.
        **told: facts to keep with the row.
    """
    said = _say(estimator, "predict", recorder)(X)
    recorder.record(_placed(said, estimator, recorder), epoch=epoch, progress=progress, **told)


def record_partial_fit(
    recorder: Recorder,
    estimator: Estimator,
    X: Any,  # noqa: N803
    y: Any,
    test: Any,
    *,
    epochs: int,
    classes: Any = None,
    seed: int | None = None,
    sample_weight: Any = None,
) -> Estimator:
    """Train an estimator by `partial_fit` and record what it says of `test` at every epoch.

    One epoch is one call with all of `X`. Started again with the same arguments, it trains
    again from the beginning and records only the epochs that are missing.

    Args:
        recorder: where to write; for this network alone.
        estimator: not fitted yet; fitted in place.
        X: the samples to learn from.
        y: their labels.
        test: the samples to predict after each epoch.
        epochs: how many.
        classes: every label there is; by default those in `y`.
        seed: shuffle the samples for each epoch by this and the epoch's number; by default
            they come in the order of `X`.
        sample_weight: one weight per sample of `X`.

    Returns:
        The estimator, fitted.
    """
    follower = RoundFollower(recorder)
    for epoch in grow_by_partial_fit(
        estimator, X, y, epochs=epochs, classes=classes, seed=seed, sample_weight=sample_weight
    ):
        _follow(follower, estimator, test, epoch)
    return estimator


def record_warm_start(
    recorder: Recorder,
    estimator: Estimator,
    X: Any,  # noqa: N803
    y: Any,
    test: Any,
    *,
    epochs: int,
    step: int = 1,
    sample_weight: Any = None,
) -> Estimator:
    """Train an estimator by fitting it again with `warm_start` and record every epoch.

    Each epoch adds `step` trees (`n_estimators`), boosting rounds or passes over the data
    (`max_iter`). Started again with the same arguments, it trains again from the beginning and
    records only the epochs that are missing.

    Args:
        recorder: where to write; for this network alone.
        estimator: not fitted yet; fitted in place.
        X: the samples to learn from.
        y: their labels.
        test: the samples to predict after each epoch.
        epochs: how many.
        step: how much each epoch adds.
        sample_weight: one weight per sample of `X`.

    Returns:
        The estimator, fitted.
    """
    follower = RoundFollower(recorder)
    for epoch in grow_by_warm_start(
        estimator, X, y, epochs=epochs, step=step, sample_weight=sample_weight
    ):
        _follow(follower, estimator, test, epoch)
    return estimator


def record_stages(recorder: Recorder, estimator: Estimator, X: Any, *, every: int = 1) -> None:  # noqa: N803
    """Record what a fitted boosting estimator said of `X` after each of its rounds.

    For estimators with `staged_predict`, after an ordinary `fit`. Called again on the same
    record, with a new recorder, it writes only what is missing.

    Args:
        recorder: where to write; for this network alone.
        estimator: fitted.
        X: the samples to predict.
        every: how many rounds make one row.
    """
    follower = RoundFollower(recorder, every=every)
    stages: Iterator[Any] = _say(estimator, "staged_predict", recorder)(X)
    for stage, said in enumerate(stages, start=1):
        if follower.wants(stage):
            follower.record(stage, _placed(said, estimator, recorder))


def _follow(follower: RoundFollower, estimator: Estimator, test: Any, epoch: int) -> None:
    if follower.wants(epoch):
        said = _say(estimator, "predict", follower.recorder)(test)
        follower.record(epoch, _placed(said, estimator, follower.recorder))


def _say(estimator: Estimator, way: str, recorder: Recorder) -> Any:
    """Return the estimator's method that says what the recorder keeps."""
    name = f"{way}_proba" if recorder.keeps_probabilities else way
    if not hasattr(estimator, way):
        raise ChoiceError(f"{type(estimator).__name__} has no {way}")
    if not hasattr(estimator, name):
        raise PredictionError(
            f"this recorder keeps probabilities, and {type(estimator).__name__} as it is set has "
            f"no {name}. Open the recorder with probabilities=False, or choose a loss that has."
        )
    return getattr(estimator, name)


def _placed(said: Any, estimator: Estimator, recorder: Recorder) -> NDArray[Any]:
    """Bring labels or probabilities into the record's classes."""
    sample_info = recorder.sample_info
    positions = positions_of(estimator.classes_, sample_info)
    if recorder.keeps_probabilities:
        return place_columns(np.asarray(said), positions, classes=sample_info.classes)
    return place_labels(said, estimator.classes_, positions)

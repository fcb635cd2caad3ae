"""Train a scikit-learn estimator epoch by epoch, so that someone may look in between."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from accord.errors import ChoiceError

Estimator = Any  # scikit-learn has no types


def grow_by_partial_fit(
    estimator: Estimator,
    X: Any,  # noqa: N803
    y: Any,
    *,
    epochs: int,
    classes: Any = None,
    seed: int | None = None,
    sample_weight: Any = None,
) -> Iterator[int]:
    """Call `partial_fit` with all data once per epoch; yield after each, counting from 1.

    With a seed, the samples are shuffled anew for each epoch, by the seed and the epoch alone.
    """
    _check_growable(estimator, epochs, "partial_fit")
    known = np.unique(np.asarray(y)) if classes is None else np.asarray(classes)
    weighted = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
    for epoch in range(1, epochs + 1):
        order = (X, y, *weighted.values())
        if seed is not None:
            order = _shuffled(order, seed, epoch)
        weights = dict(zip(weighted, order[2:], strict=True))
        estimator.partial_fit(order[0], order[1], classes=known, **weights)
        yield epoch


def grow_by_warm_start(
    estimator: Estimator,
    X: Any,  # noqa: N803
    y: Any,
    *,
    epochs: int,
    step: int = 1,
    sample_weight: Any = None,
) -> Iterator[int]:
    """Fit again and again with `warm_start`; yield after each fit, counting from 1.

    Each epoch adds `step` trees, boosting rounds or passes over the data. Afterwards the
    estimator's `warm_start`, and `max_iter` where it means passes, are as they were.
    """
    _check_growable(estimator, epochs, "warm_start")
    parameter, total = growing_parameter(estimator)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    before = estimator.get_params(deep=False)
    kept = ["warm_start"] if total else ["warm_start", parameter]
    try:
        estimator.set_params(warm_start=True)
        for epoch in range(1, epochs + 1):
            estimator.set_params(**{parameter: epoch * step if total else step})
            with _unconverged():
                estimator.fit(X, y, **weights)
            yield epoch
    finally:
        estimator.set_params(**{name: before[name] for name in kept})


def growing_parameter(estimator: Estimator) -> tuple[str, bool]:
    """Return what to raise for more training, and whether it counts from the very beginning.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.neural_network import MLPClassifier
    >>> growing_parameter(RandomForestClassifier()), growing_parameter(MLPClassifier())
    (('n_estimators', True), ('max_iter', False))
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    have = estimator.get_params(deep=False)
    if "n_estimators" in have:
        return "n_estimators", True
    if "max_iter" in have:
        return "max_iter", isinstance(estimator, HistGradientBoostingClassifier)
    raise ChoiceError(
        f"{type(estimator).__name__} has neither n_estimators nor max_iter to grow by"
    )


def _shuffled(arrays: tuple[Any, ...], seed: int, epoch: int) -> tuple[Any, ...]:
    from sklearn.utils import shuffle

    draw = int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])
    return tuple(shuffle(*arrays, random_state=draw))


@contextlib.contextmanager
def _unconverged() -> Iterator[None]:
    """Silence the complaint that one epoch of training has not converged."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _check_growable(estimator: Estimator, epochs: int, way: str) -> None:
    name = type(estimator).__name__
    has = hasattr(estimator, way) or (
        hasattr(estimator, "get_params") and way in estimator.get_params(deep=False)
    )
    if not has:
        raise ChoiceError(
            f"{name} has no {way}. Estimators grow by partial_fit, by warm_start, or have "
            "staged_predict after an ordinary fit."
        )
    if hasattr(estimator, "classes_"):
        raise ChoiceError(
            f"this {name} is fitted already, so its first epochs are lost. Give a new one: "
            "sklearn.base.clone(estimator); to record it as it is: record_epoch"
        )
    if epochs < 1:
        raise ChoiceError(f"epochs must be a number from 1; got {epochs}")

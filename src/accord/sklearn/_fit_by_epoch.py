"""Train scikit-learn estimators epoch by epoch."""

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import shuffle

from accord.errors import ChoiceError
from accord.kernels import equally_spaced

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
    """Train an estimator by calling `partial_fit` once per epoch.

    Yields 1, 2, … after each epoch. With a seed, samples are shuffled for each epoch, depending
    only on the seed and the epoch.
    """
    _check_growable(estimator, epochs, "partial_fit")
    known = np.unique(np.asarray(y)) if classes is None else np.asarray(classes)
    weighted = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
    for epoch in range(1, epochs + 1):
        order = [X, y, *weighted.values()]
        if seed is not None:
            draw = int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])
            order = shuffle(*order, random_state=draw)
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
    """Train an estimator by repeated calls to `fit` with `warm_start`.

    Yields 1, 2, … after each epoch, which adds `step` trees, boosting rounds or passes over the
    data. The estimator's `warm_start`, and `max_iter` if it counts passes, are restored on exit.
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
            with warnings.catch_warnings():  # one epoch of training has not converged
                warnings.simplefilter("ignore", ConvergenceWarning)
                estimator.fit(X, y, **weights)
            yield epoch
    finally:
        estimator.set_params(**{name: before[name] for name in kept})


def growing_parameter(estimator: Estimator) -> tuple[str, bool]:
    """Find the parameter that sets the amount of training."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    have = estimator.get_params(deep=False)
    if "n_estimators" in have:
        return "n_estimators", True
    if "max_iter" in have:
        return "max_iter", isinstance(estimator, HistGradientBoostingClassifier)
    raise ChoiceError(
        f"{type(estimator).__name__} has neither n_estimators nor max_iter to increase"
    )


def _check_growable(estimator: Estimator, epochs: int, method: str) -> None:
    name = type(estimator).__name__
    has = hasattr(estimator, method) or (
        hasattr(estimator, "get_params") and method in estimator.get_params(deep=False)
    )
    if not has:
        raise ChoiceError(
            f"{name} has no {method}. Estimators train by epoch with partial_fit or warm_start, or "
            "have staged_predict after an ordinary fit."
        )
    if hasattr(estimator, "classes_"):
        raise ChoiceError(
            f"this {name} is already fitted, so its first epochs are lost. Pass a new one: "
            "sklearn.base.clone(estimator); to record its current state: record_epoch"
        )
    if epochs < 1:
        raise ChoiceError(f"epochs must be a whole number, at least 1; got {epochs}")


PASSES: Final = 30  # passes over the data, by default


@dataclass(frozen=True)
class KeptEpochs:
    """States of a network at its kept epochs."""

    states: list[Estimator]

    def predict(self, X: Any) -> Iterator[NDArray[Any]]:  # noqa: N803
        """Iterate over the predicted labels of kept epochs."""
        return (state.predict(X) for state in self.states)


@dataclass(frozen=True)
class KeptStages:
    """Fitted network with staged predictions."""

    estimator: Estimator
    rounds: frozenset[int]

    def predict(self, X: Any) -> Iterator[NDArray[Any]]:  # noqa: N803
        """Iterate over the predicted labels of kept rounds."""
        stages = enumerate(self.estimator.staged_predict(X))
        return (labels for stage, labels in stages if stage in self.rounds)


@dataclass(frozen=True)
class OneClass:
    """Constant predictor for training data of one class."""

    label: Any

    def predict(self, X: Any) -> Iterator[NDArray[Any]]:  # noqa: N803
        """Iterate over constant predictions."""
        return iter([np.full(X.shape[0], self.label)])


Network = KeptEpochs | KeptStages | OneClass


def train_network(
    template: Estimator,
    X: Any,  # noqa: N803
    y: NDArray[Any],
    *,
    seed: int,
    epochs: int | None,
    keep: int | None,
    sample_weight: Any = None,
) -> Network:
    """Train a copy of an estimator with its own seed.

    Estimators with `staged_predict` are fitted once, those with `partial_fit` get all samples
    in a new order at every epoch, and those with only `warm_start` are fitted repeatedly.
    """
    estimator = with_seed(clone(template), seed)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    if hasattr(estimator, "staged_predict"):
        if epochs is not None:
            estimator.set_params(**{growing_parameter(estimator)[0]: epochs})
        estimator.fit(X, y, **weights)
        rounds = sum(1 for _ in estimator.staged_predict(X[:1]))  # boosting may stop early
        return KeptStages(estimator, kept_epochs(rounds, keep))
    if hasattr(estimator, "partial_fit"):
        epochs = epochs or PASSES
        trained = grow_by_partial_fit(estimator, X, y, epochs=epochs, seed=seed, **weights)
    else:
        if epochs is None:
            parameter, total = growing_parameter(estimator)
            epochs = int(estimator.get_params(deep=False)[parameter]) if total else PASSES
        trained = grow_by_warm_start(estimator, X, y, epochs=epochs, **weights)
    kept = kept_epochs(epochs, keep)
    return KeptEpochs([_copied(estimator) for epoch in trained if epoch - 1 in kept])


def kept_epochs(epochs: int, keep: int | None) -> frozenset[int]:
    """Select at most `keep` equally spaced epochs."""
    count = epochs if keep is None else min(keep, epochs)
    return frozenset(equally_spaced(epochs, count).tolist())


def with_seed(estimator: Estimator, seed: int) -> Estimator:
    """Set the random state of an estimator and its nested estimators."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    return estimator.set_params(**dict.fromkeys(names, seed))


def check_trainable(template: Estimator) -> None:
    """Check that an estimator can be trained by epoch."""
    by_epoch = hasattr(template, "partial_fit") or hasattr(template, "staged_predict")
    if not by_epoch and "warm_start" not in template.get_params(deep=False):
        raise ChoiceError(
            f"{type(template).__name__} cannot be trained by epoch: it has no partial_fit, "
            "staged_predict or warm_start"
        )


def _copied(estimator: Estimator) -> Estimator:
    # Trees do not change once grown, so copies share them. The state of an optimizer is twice as
    # large as the weights and not needed to predict, so copies omit it.
    shared = {id(tree): tree for tree in np.ravel(getattr(estimator, "estimators_", []))}
    unused = {id(getattr(estimator, name, None)): None for name in ("_optimizer", "optimizer_")}
    return copy.deepcopy(estimator, {**shared, **unused})

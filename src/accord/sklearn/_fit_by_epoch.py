"""Train scikit-learn estimators epoch by epoch."""

import copy
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_outlier_detector, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, resample, shuffle
from sklearn.utils.class_weight import compute_class_weight

from accord._recorders.round_recorder import packages_of
from accord.errors import ChoiceError
from accord.kernels import equally_spaced

Estimator = Any  # scikit-learn has no types


def grow_by_partial_fit(
    estimator: Estimator,
    X: Any,
    y: Any,
    *,
    epochs: int,
    classes: Any = None,
    seed: int | None = None,
    sample_weight: Any = None,
) -> Iterator[int]:
    """Train an estimator by calling `partial_fit` once per epoch.

    Yields 1, 2, … after each epoch. With a seed, samples are shuffled for each epoch, depending
    only on the seed and the epoch. A `class_weight` "balanced", which `partial_fit` refuses as it
    may get a part of the samples, is replaced by numbers until the last epoch.
    """
    _check_growable(estimator, epochs, "partial_fit")
    if getattr(estimator, "early_stopping", False) is True:
        raise ChoiceError(
            f"{type(estimator).__name__}(early_stopping=True) cannot be trained epoch by epoch. "
            "Max agreement needs the epochs before and after: set early_stopping=False"
        )
    balanced = getattr(estimator, "class_weight", None)
    if isinstance(balanced, str):
        present = np.unique(np.asarray(y))
        shares = compute_class_weight(balanced, classes=present, y=np.asarray(y)).tolist()
        estimator.set_params(class_weight=dict(zip(present.tolist(), shares, strict=True)))
    try:
        yield from _partial_fits(
            estimator, X, y, epochs=epochs, classes=classes, seed=seed, sample_weight=sample_weight
        )
    finally:
        if isinstance(balanced, str):
            estimator.set_params(class_weight=balanced)


def _partial_fits(
    estimator: Estimator,
    X: Any,
    y: Any,
    *,
    epochs: int,
    classes: Any,
    seed: int | None,
    sample_weight: Any,
) -> Iterator[int]:
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
    estimator: Estimator, X: Any, y: Any, *, epochs: int, step: int = 1, sample_weight: Any = None
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
                warnings.filterwarnings("ignore", "class_weight presets")  # the data stay the same
                estimator.fit(X, y, **weights)
            yield epoch
    finally:
        estimator.set_params(**{name: before[name] for name in kept})


def growing_parameter(estimator: Estimator) -> tuple[str, bool]:
    """Find the parameter that sets the amount of training."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    have = [*estimator.get_params(deep=False), *_UNSET.get(_library(estimator), ())]
    for name in ("n_estimators", "iterations", "num_boost_round", "num_trees"):
        if name in have:
            return name, True
    if "max_iter" in have:
        return "max_iter", isinstance(estimator, HistGradientBoostingClassifier)
    raise ChoiceError(
        f"{type(estimator).__name__} has neither n_estimators nor max_iter to increase"
    )


def _library(estimator: Estimator) -> str:
    found = packages_of(estimator) & {"xgboost", "lightgbm", "catboost"}
    return found.pop() if found else ""


# Parameters that CatBoost has, and lists only once they are set.
_UNSET: Final = {"catboost": ("iterations", "random_seed")}


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

    def predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Iterate over the predicted labels of kept epochs."""
        return (state.predict(X) for state in self.states)


@dataclass(frozen=True)
class KeptStages:
    """Fitted boosting estimator with predictions after each round."""

    estimator: Estimator
    classes: NDArray[Any]
    rounds: frozenset[int]  # from 0

    def predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Iterate over the predicted labels of kept rounds."""
        if hasattr(self.estimator, "staged_predict"):
            stages = enumerate(self.estimator.staged_predict(X))
            return (labels for stage, labels in stages if stage in self.rounds)
        done = sorted(number + 1 for number in self.rounds)
        if _library(self.estimator) == "lightgbm":
            return (self.classes[labels] for labels in self._add_scores(X, done))
        rounds = ((0, one) for one in done)  # XGBoost was fitted to class indices
        return (self.classes[self.estimator.predict(X, iteration_range=one)] for one in rounds)

    def _add_scores(self, X: Any, done: list[int]) -> Iterator[NDArray[np.intp]]:
        scores: Any = 0.0
        for start, stop in itertools.pairwise([0, *done]):
            scores = scores + self.estimator.booster_.predict(
                X, raw_score=True, start_iteration=start, num_iteration=stop - start
            )
            yield scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)


Network = KeptEpochs | KeptStages


def count_distinct(networks: list[Network], X: Any) -> int:
    """Count the networks whose outputs at their last epoch differ.

    Outputs without a fraction are no evidence: trees that memorise all samples predict them alike.
    """
    distinct: list[NDArray[Any]] = []
    for network in networks:
        last = network.states[-1] if isinstance(network, KeptEpochs) else network.estimator
        name = next(filter(partial(hasattr, last), ("decision_function", "predict_proba")), None)
        with warnings.catch_warnings():  # LightGBM names the columns of arrays too
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            outputs = np.zeros(0) if name is None else np.asarray(getattr(last, name)(X))
        if np.array_equal(outputs, np.round(outputs)):
            return len(networks)
        # Samples in another order change the last bits.
        close = partial(np.allclose, outputs, rtol=1e-6, atol=0, equal_nan=True)
        if not any(one.shape == outputs.shape and close(one) for one in distinct):
            distinct.append(outputs)
    return len(distinct)


def train_network(
    template: Estimator,
    X: Any,
    y: NDArray[Any],
    *,
    seed: int,
    epochs: int | None,
    keep: int | None,
    sample_weight: Any = None,
    bootstrap: bool = False,
) -> Network:
    """Train a copy of an estimator with its own seed.

    Estimators with staged predictions are fitted once, those with `partial_fit` get all samples
    in a new order at every epoch, and those with only `warm_start` are fitted repeatedly. Samples
    of weight 0 are left out, and with them a class that has no others.
    """
    # Parameters that CatBoost copies, such as cat_features, are no parameters that clone() accepts.
    known = _library(template) == "catboost"
    estimator = type(template)(**template.get_params()) if known else clone(template)
    estimator, weights = with_seed(estimator, seed), {}
    if sample_weight is not None:
        used = np.flatnonzero(sample_weight)
        X, y = _safe_indexing(X, used), y[used]
        weights["sample_weight"] = sample_weight[used]
    if bootstrap:
        X, y, *drawn = resample(X, y, *weights.values(), stratify=y, random_state=seed)
        weights = dict(zip(weights, drawn, strict=True))
    if _is_staged(estimator):
        if epochs is not None:
            estimator.set_params(**{growing_parameter(estimator)[0]: epochs})
        classes, positions = np.unique(y, return_inverse=True)
        estimator.fit(X, positions if _library(estimator) == "xgboost" else y, **weights)
        return KeptStages(estimator, classes, kept_epochs(_count_rounds(estimator, X), keep))
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
    seeds = "random_state", "random_seed"
    names = [name for name in estimator.get_params() if name.split("__")[-1] in seeds]
    names = names or [name for name in _UNSET.get(_library(estimator), ()) if name in seeds]
    return estimator.set_params(**dict.fromkeys(names, seed))


def check_trainable(template: Estimator) -> None:
    """Check that an estimator can be trained by epoch."""
    by_epoch = hasattr(template, "partial_fit") or _is_staged(template)
    reason = "cannot be trained by epoch: it has no partial_fit, staged_predict or warm_start"
    if wrong := is_regressor(template) or is_outlier_detector(template):
        reason = "is no classifier"
    if wrong or not (by_epoch or "warm_start" in template.get_params(deep=False)):
        raise ChoiceError(
            f"{type(template).__name__} {reason}. Choose another, such as MLPClassifier, "
            "SGDClassifier or HistGradientBoostingClassifier"
        )
    stopped = template.get_params().get("early_stopping_rounds")
    if stopped is not None and _library(template) in ("xgboost", "lightgbm"):
        raise ChoiceError(
            f"{type(template).__name__}(early_stopping_rounds={stopped}) needs validation samples, "
            "and gets none. Max agreement needs the rounds before and after: set "
            "early_stopping_rounds=None"
        )


def _is_staged(estimator: Estimator) -> bool:
    return hasattr(estimator, "staged_predict") or _library(estimator) in ("xgboost", "lightgbm")


def _count_rounds(estimator: Estimator, X: Any) -> int:
    if hasattr(estimator, "staged_predict"):
        return sum(1 for _ in estimator.staged_predict(X[:1]))  # boosting may stop early
    if hasattr(estimator, "booster_"):
        return int(estimator.booster_.current_iteration())
    return int(estimator.get_booster().num_boosted_rounds())


def _copied(estimator: Estimator) -> Estimator:
    # Trees do not change once grown, so copies share them. The state of an optimizer is twice as
    # large as the weights and not needed to predict, so copies omit it.
    shared = {id(tree): tree for tree in np.ravel(getattr(estimator, "estimators_", []))}
    unused = {id(getattr(estimator, name, None)): None for name in ("_optimizer", "optimizer_")}
    return copy.deepcopy(estimator, {**shared, **unused})

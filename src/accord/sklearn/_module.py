"""Classifier based on a torch module."""

import inspect
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from accord.errors import ChoiceError, missing_extra


class ModuleClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier that trains a `torch.nn.Module` with Adam on the cross-entropy.

    Args:
        module: a function of the numbers of features and classes that returns a module, which
            maps (sample, feature) to logits (sample, class). A new one is needed for each
            network, so a module itself is refused.
        lr: the learning rate.
        batch: samples per step.
        epochs: the number of passes that `fit` makes.
        random_state: a number makes initialisation, order and dropout reproducible.

    Attributes:
        classes_: the labels.
        module_: the trained module.

    >>> import torch
    >>> X, y = np.array([[0.0], [1.0]] * 20), ["no", "yes"] * 20
    >>> fitted = ModuleClassifier(torch.nn.Linear, lr=0.1, random_state=0).fit(X, y)
    >>> fitted.predict([[0.0], [1.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        module: Callable[[int, int], Any],
        *,
        lr: float = 1e-3,
        batch: int = 32,
        epochs: int = 30,
        random_state: Any = None,
    ) -> None:
        self.module = module
        self.lr = lr
        self.batch = batch
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the module to training data."""
        if hasattr(self, "module_"):
            del self.module_
        classes = np.unique(np.asarray(y))
        for _ in range(self.epochs):
            self.partial_fit(X, y, classes=classes, sample_weight=sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the module with one pass over the samples.

        Weights are divided by their mean, so that the learning rate keeps its meaning.
        """
        try:
            import torch
            from torch.nn.functional import cross_entropy
        except ImportError as error:
            raise missing_extra("ModuleClassifier", "torch", extra="train", cause=error) from error

        check_module(self.module)
        first = not hasattr(self, "module_")
        values, given = validate_data(self, X, y, dtype=np.float32, reset=first)
        check_classification_targets(given)
        weights = torch.from_numpy(_mean_one(sample_weight, len(given)))
        if first:
            self._start(given if classes is None else classes)
        samples, labels = torch.from_numpy(values), torch.from_numpy(self._positions(given))
        with torch.random.fork_rng(devices=[]):  # leaves the caller's random state unchanged
            torch.manual_seed(int(self._generator.randint(2**31 - 1)))
            self.module_.train()
            order = torch.randperm(len(samples))
            for chosen in order.tensor_split(-(-len(samples) // self.batch)):
                losses = cross_entropy(
                    self.module_(samples[chosen]), labels[chosen], reduction="none"
                )
                loss = (losses * weights[chosen]).mean()
                self.optimizer_.zero_grad()
                loss.backward()
                self.optimizer_.step()
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels for samples in X."""
        found = self._logits(X).argmax(dim=1).numpy()
        labels: NDArray[Any] = self.classes_[found]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Compute class probabilities (sample, class) for samples in X."""
        probabilities: NDArray[np.float32] = self._logits(X).softmax(dim=1).numpy()
        return probabilities

    def _start(self, classes: Any) -> None:
        import torch

        self.classes_ = np.unique(np.asarray(classes))
        self._generator = check_random_state(self.random_state)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self._generator.randint(2**31 - 1)))
            self.module_ = self.module(self.n_features_in_, len(self.classes_))
        self.optimizer_ = torch.optim.Adam(self.module_.parameters(), lr=self.lr)

    def _positions(self, y: NDArray[Any]) -> NDArray[np.int64]:
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ChoiceError(f"label {unknown[0]!r} is not one of the classes of the first call")
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _logits(self, X: Any) -> Any:
        import torch

        check_is_fitted(self, "module_")
        samples = torch.from_numpy(validate_data(self, X, dtype=np.float32, reset=False))
        with torch.inference_mode():
            return self.module_.eval()(samples)


def check_module(module: Any) -> None:
    """Check that an argument returns modules and is none itself."""
    problem = f"a {type(module).__name__}"
    if callable(module) and not hasattr(type(module), "forward"):
        try:
            inspect.signature(module).bind(1, 2)
        except TypeError as error:
            problem = f"{getattr(module, '__name__', module)}: {error}"
        except ValueError:  # a signature that Python cannot read
            return
        else:
            return
    raise ChoiceError(
        "module must be a function of the numbers of features and classes that returns a new "
        f"torch.nn.Module; got {problem}. Write module=lambda features, classes: …"
    )


def _mean_one(weights: Any, samples: int) -> NDArray[np.float32]:
    given = np.ones(samples) if weights is None else np.asarray(weights, np.float64)
    if (
        given.shape != (samples,)
        or not (np.isfinite(given) & (given >= 0)).all()
        or not given.any()
    ):
        raise ChoiceError(
            f"sample_weight must be {samples} finite numbers, none negative and not all zero; got "
            f"shape {given.shape}, {given.min(initial=0):g}..{given.max(initial=0):g}"
        )
    return np.asarray(given / given.mean(), np.float32)

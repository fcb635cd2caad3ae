"""Max agreement classifier."""

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_consistent_length, check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from accord.errors import ChoiceError, UnequalNetworks
from accord.sklearn._fit_by_epoch import Network, OneClass, check_trainable, train_network
from accord.sklearn._module import ModuleClassifier


class MaxAgreementClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ensemble classifier that predicts by max agreement over networks and epochs.

    Args:
        estimator: any classifier with `partial_fit`, `staged_predict` or `warm_start`, or a
            `Pipeline` that ends in one; its first steps are fitted once. By default a
            perceptron with one hidden layer, after a `StandardScaler`.
        module: instead of `estimator`, a function of the numbers of features and classes that
            returns a `torch.nn.Module` (see `ModuleClassifier`).
        networks: the number of networks. They differ in their seeds and in the order of samples.
        epochs: passes over the data, or rounds of a boosting or forest estimator, by default
            30 passes, or the estimator's number of rounds.
        keep: the maximum number of epochs to keep per network, equally spaced, to save memory
            and time in `predict`, by default all.
        random_state: a number makes training reproducible.
        n_jobs: the number of networks to train in parallel.

    Attributes:
        classes_: the labels, in the order of the columns of `predict_proba`.
        networks_: the trained networks.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = MaxAgreementClassifier(networks=2, random_state=0).fit(X, y)
    >>> classifier.predict_proba(X[:1]).round(2)  # shares of 60 votes
    array([[0.95, 0.02, 0.03]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        module: Callable[[int, int], Any] | None = None,
        networks: int = 5,
        epochs: int | None = None,
        keep: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.module = module
        self.networks = networks
        self.epochs = epochs
        self.keep = keep
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Fit the networks to training data.

        Args:
            X: samples, as an array, a sparse matrix or a frame: whatever the estimator takes.
            y: one label per sample, of any kind.
            sample_weight: one number per sample, if the estimator takes it.
        """
        self._check_numbers()
        samples, labels = self._check_data(X, y)
        template = self._template(len(labels), sparse=hasattr(samples, "tocsr"))
        steps, last = None, template  # the steps before the classifier, if any
        if isinstance(template, Pipeline):
            steps, last = clone(template[:-1]) if len(template) > 1 else None, template[-1]
        check_trainable(last)
        weights = _checked_weights(sample_weight, len(labels), last)
        self.classes_ = np.unique(labels)
        self.preprocessing_ = None if steps is None else steps.fit(samples, labels)
        self.networks_ = self._train(last, self._prepared(samples), labels, weights)
        return self

    def _train(
        self, template: Any, samples: Any, labels: NDArray[Any], weights: NDArray[Any] | None
    ) -> list[Network]:
        present = np.unique(labels if weights is None else labels[weights != 0])
        if len(present) == 1:
            return [OneClass(present[0])]
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.networks)
        options = {"epochs": self.epochs, "keep": self.keep, "sample_weight": weights}
        networks: list[Network] = Parallel(n_jobs=self.n_jobs)(
            delayed(train_network)(template, samples, labels, seed=int(seed), **options)
            for seed in seeds
        )
        return networks

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Predict class labels for samples in X.

        Ties are resolved in favor of the first label.
        """
        votes = self._votes(X)
        labels: NDArray[Any] = self.classes_[votes.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Compute the share of votes for each class.

        Agreement is not a calibrated probability.
        """
        votes = self._votes(X)
        shares: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
        return shares

    def predict_epochs(self, X: Any) -> NDArray[np.intp]:  # noqa: N803
        """Predict class indices with each network at each kept epoch.

        Axes are (network, epoch, sample), as for `accord.max_agreement`.
        """
        rows = [list(epochs) for epochs in self._predictions(X)]
        if len({len(network) for network in rows}) > 1:
            counts = ", ".join(str(len(network)) for network in rows)
            raise UnequalNetworks(f"the networks kept {counts} epochs; boosting stopped early")
        return np.array(rows, np.intp)

    def _votes(self, X: Any) -> NDArray[np.intp]:  # noqa: N803
        votes: NDArray[np.intp] | None = None
        for epochs in self._predictions(X):
            for labels in epochs:
                if votes is None:
                    votes = np.zeros((len(labels), len(self.classes_)), np.intp)
                votes[np.arange(len(labels)), labels] += 1
        assert votes is not None
        return votes

    def _predictions(self, X: Any) -> Iterator[Iterator[NDArray[np.intp]]]:  # noqa: N803
        check_is_fitted(self, "networks_")
        prepared = self._prepared(self._check_samples(X, reset=False))
        return (
            (np.searchsorted(self.classes_, labels) for labels in network.predict(prepared))
            for network in self.networks_
        )

    def _prepared(self, X: Any) -> Any:  # noqa: N803
        return X if self.preprocessing_ is None else self.preprocessing_.transform(X)

    def _template(self, samples: int = 1000, *, sparse: bool = False) -> Any:
        if self.module is not None:
            return ModuleClassifier(self.module)
        if self.estimator is not None:
            return self.estimator
        # The paper uses batches of 32; fewer samples require a smaller batch.
        perceptron = MLPClassifier(batch_size=min(32, samples))
        return make_pipeline(StandardScaler(with_mean=not sparse), perceptron)

    def _check_numbers(self) -> None:
        if self.module is not None and self.estimator is not None:
            raise ChoiceError("give either an estimator or a module, not both")
        for name, least in (("networks", 1), ("epochs", 1), ("keep", 2)):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | np.integer) and value >= least):
                raise ChoiceError(f"{name} must be a whole number, at least {least}; got {value!r}")

    def _check_data(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:  # noqa: N803
        if y is None:
            raise ChoiceError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        samples = self._check_samples(X, reset=True)
        labels = column_or_1d(check_array(y, ensure_2d=False, dtype=None), warn=True)
        check_consistent_length(samples, labels)
        check_classification_targets(labels)
        return samples, labels

    def _check_samples(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        if hasattr(X, "columns"):  # keep the names and types of a frame for the estimator
            return validate_data(self, X, reset=reset, skip_check_array=True)
        # The estimator decides whether it accepts missing values.
        lenient = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
        return validate_data(self, X, reset=reset, **lenient)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._template(sparse=True))
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _checked_weights(weights: Any, samples: int, last: Any) -> NDArray[Any] | None:
    if weights is None:
        return None
    if not has_fit_parameter(last, "sample_weight"):
        raise ChoiceError(f"{type(last).__name__} takes no sample_weight")
    checked = np.asarray(weights)
    if checked.shape != (samples,):
        raise ChoiceError(
            f"sample_weight must have shape ({samples},), one for each sample; got {checked.shape}"
        )
    return checked

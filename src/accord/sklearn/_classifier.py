"""Max agreement classifier."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self

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
    _num_samples,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from accord._record import Record
from accord._recorders.record_order import place_labels
from accord.analysis import Audit
from accord.errors import AccordWarning, ChoiceError, PredictionError, UnequalNetworks
from accord.rules import ABSTAINED, RECOMMENDED, Rule, find_rule
from accord.sklearn._fit_by_epoch import Network, check_trainable, count_distinct, train_network
from accord.sklearn._module import ModuleClassifier, check_module
from accord.store import ArrayReader, SampleInfo
from accord.store._validation import as_labels

PROBES: Final = 256  # training samples on which networks are compared


class MaxAgreementClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ensemble classifier that predicts by max agreement over networks and epochs.

    Args:
        estimator: any classifier with `partial_fit`, `staged_predict` or `warm_start`, one of
            XGBoost, LightGBM or CatBoost, or a `Pipeline` that ends in one; its first steps are
            fitted once. By default a perceptron with one hidden layer, after a `StandardScaler`.
        module: instead of `estimator`, a function of the numbers of features and classes that
            returns a `torch.nn.Module` (see `ModuleClassifier`).
        networks: the number of networks. They differ in their seeds and in the order of samples.
        epochs: passes over the data, or rounds of a boosting or forest estimator, by default
            30 passes, or the estimator's number of rounds.
        keep: the maximum number of epochs to keep per network, equally spaced, to save memory
            and time in `predict`, by default all.
        bootstrap: train each network on samples drawn with replacement within each class, so that
            networks differ even if the estimator uses no randomness.
        rule: predicts from the votes, by name, or your own rule; "recommended" chooses by the
            votes. Rules that learn from votes do so from the samples passed to `predict`.
        random_state: a number makes training reproducible.
        n_jobs: the number of networks to train in parallel.

    Attributes:
        classes_: the labels, in the order of the columns of `predict_proba`.
        networks_: the trained networks.
        record_: the predictions of the training samples, as an `accord.Record`; computed at first
            use, and not available in a pickled copy.

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
        bootstrap: bool = False,
        rule: str | Rule = "max-agreement",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.module = module
        self.networks = networks
        self.epochs = epochs
        self.keep = keep
        self.bootstrap = bootstrap
        self.rule = rule
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the networks to training data.

        Args:
            X: samples, as an array, a sparse matrix or a frame: whatever the estimator takes; or
                texts, for a `Pipeline` whose first step reads them.
            y: one label per sample, of any kind.
            sample_weight: one number per sample, if the estimator takes it.
        """
        self._check_settings()
        samples, labels = self._check_data(X, y)
        used = len(labels) if sample_weight is None else np.count_nonzero(np.asarray(sample_weight))
        template = self._template(max(1, int(used)), sparse=hasattr(samples, "tocsr"))
        steps, last = None, template  # the steps before the classifier, if any
        if isinstance(template, Pipeline):
            steps, last = clone(template[:-1]) if len(template) > 1 else None, template[-1]
        check_trainable(last)
        weights = _checked_weights(sample_weight, len(labels), last)
        self.classes_ = np.unique(labels)
        # A sample of weight 2 counts twice in the means of the default's scaler too.
        scaled = self.estimator is None and self.module is None and weights is not None
        options = {"standardscaler__sample_weight": weights} if scaled else {}
        self.preprocessing_ = None if steps is None else steps.fit(samples, labels, **options)
        prepared = self._prepared(samples)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.networks)
        settings = {"epochs": self.epochs, "keep": self.keep, "bootstrap": self.bootstrap}
        self.networks_: list[Network] = Parallel(n_jobs=self.n_jobs)(
            delayed(train_network)(
                last, prepared, labels, seed=int(seed), sample_weight=weights, **settings
            )
            for seed in seeds
        )
        self._training: Any = prepared, labels
        self._record: Record | None = None
        if len(self.classes_) > 1:
            _warn_if_equal(self.networks_, prepared[:PROBES], last)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels for samples in X.

        Ties are resolved in favor of the first label.
        """
        if self.rule == "max-agreement":
            found = self._votes(X).argmax(axis=1)
        else:
            check_is_fitted(self, "networks_")
            found = self._record_of(self._prepared_samples(X)).predict(self.rule).labels
            if (found == ABSTAINED).any():
                raise PredictionError(
                    f"{self.rule} abstains for {(found == ABSTAINED).sum()} of {len(found)} "
                    "samples, and a classifier predicts a class for each: choose another rule"
                )
        labels: NDArray[Any] = self.classes_[found]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute the share of votes for each class, whatever the rule.

        Agreement is not a calibrated probability.
        """
        votes = self._votes(X)
        shares: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
        return shares

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute the logarithm of `predict_proba`, -inf for a class without a vote."""
        with np.errstate(divide="ignore"):
            logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms

    def predict_epochs(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices with each network at each kept epoch.

        Axes are (network, epoch, sample), as for `accord.max_agreement`.
        """
        check_is_fitted(self, "networks_")
        rows = [list(epochs) for epochs in self._predictions(self._prepared_samples(X))]
        if len({len(network) for network in rows}) > 1:
            counts = ", ".join(str(len(network)) for network in rows)
            raise UnequalNetworks(f"the networks kept {counts} epochs; boosting stopped early")
        return np.array(rows, np.intp)

    @property
    def record_(self) -> Record:
        """Predictions of the training samples, with the labels that were given."""
        check_is_fitted(self, "networks_")
        if self._record is None:
            if self._training is None:
                raise AttributeError(
                    "a pickled classifier does not hold its training samples: use record_ and "
                    "audit() before, or fit again"
                )
            samples, labels = self._training
            given = np.searchsorted(self.classes_, labels)
            self._record, self._training = self._record_of(samples, "train", given), None
        return self._record

    def audit(self) -> Audit:
        """Find training labels that are probably wrong and propose corrections."""
        return self.record_.audit()

    def __getstate__(self) -> dict[str, Any]:
        # As large as the training samples.
        return {**super().__getstate__(), "_training": None, "_record": None}

    def _record_of(
        self, prepared: Any, split: str = "new", given: NDArray[Any] | None = None
    ) -> Record:
        rows = [list(epochs) for epochs in self._predictions(prepared)]
        shortest = min(map(len, rows))  # boosting may stop early
        labels = np.array([network[:shortest] for network in rows])
        names = tuple(str(name) for name in self.classes_.tolist())
        info = SampleInfo(labels.shape[2], len(names), split, given=given, class_names=names)
        return Record(ArrayReader(labels, info, name=type(self).__name__))

    def _votes(self, X: Any) -> NDArray[np.intp]:
        check_is_fitted(self, "networks_")
        prepared = self._prepared_samples(X)
        votes: NDArray[np.intp] | None = None
        for epochs in self._predictions(prepared):
            for labels in epochs:
                if votes is None:
                    votes = np.zeros((len(labels), len(self.classes_)), np.intp)
                votes[np.arange(len(labels)), labels] += 1
        assert votes is not None
        return votes

    def _predictions(self, prepared: Any) -> Iterator[Iterator[NDArray[Any]]]:
        size = {"samples": _num_samples(prepared), "classes": len(self.classes_)}
        positions = np.arange(len(self.classes_))
        return (
            (
                as_labels(place_labels(labels, self.classes_, positions), **size)
                for labels in network.predict(prepared)
            )
            for network in self.networks_
        )

    def _prepared_samples(self, X: Any) -> Any:
        return self._prepared(self._check_samples(X, reset=False))

    def _prepared(self, X: Any) -> Any:
        return X if self.preprocessing_ is None else self.preprocessing_.transform(X)

    def _template(self, samples: int = 1000, *, sparse: bool = False) -> Any:
        if self.module is not None:
            check_module(self.module)
            return ModuleClassifier(self.module)
        if self.estimator is not None:
            if isinstance(self.estimator, type) or not hasattr(self.estimator, "get_params"):
                raise ChoiceError(
                    "estimator must be a classifier of scikit-learn, such as SGDClassifier(); got "
                    f"{self.estimator!r}. For a class, add (); for a network of torch: "
                    "module=lambda features, classes: …"
                )
            return self.estimator
        # The paper uses batches of 32; fewer samples require a smaller batch.
        perceptron = MLPClassifier(batch_size=min(32, samples))
        return make_pipeline(StandardScaler(with_mean=not sparse), perceptron)

    def _check_settings(self) -> None:
        if self.module is not None and self.estimator is not None:
            raise ChoiceError("give either an estimator or a module, not both")
        for name, least in (("networks", 1), ("epochs", 1), ("keep", 2)):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | np.integer) and value >= least):
                raise ChoiceError(f"{name} must be a whole number, at least {least}; got {value!r}")
        needs = set() if self.rule == RECOMMENDED else find_rule(self.rule).needs
        if needs:
            raise ChoiceError(
                f"rule {self.rule} needs {' and '.join(needs)}, and a classifier has labels alone. "
                "Choose max-agreement, or record the networks: accord.sklearn.record_epoch"
            )

    def _check_data(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        if y is None:
            raise ChoiceError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        samples = self._check_samples(X, reset=True)
        labels = column_or_1d(check_array(y, ensure_2d=False, dtype=None), warn=True)
        check_consistent_length(samples, labels)
        check_classification_targets(labels)
        return samples, labels

    def _check_samples(self, X: Any, *, reset: bool) -> Any:
        if _holds_texts(X):
            if not (isinstance(self.estimator, Pipeline) and len(self.estimator) > 1):
                raise ChoiceError(
                    f"X holds texts, and {type(self._template()).__name__} needs numbers. Give a "
                    "pipeline: make_pipeline(TfidfVectorizer(), SGDClassifier())"
                )
            return np.asarray(X, dtype=object)
        if hasattr(X, "columns"):  # keep the names and types of a frame for the estimator
            return validate_data(self, X, reset=reset, skip_check_array=True)
        # The estimator decides whether it accepts missing values.
        lenient = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
        return validate_data(self, X, reset=reset, **lenient)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._template(sparse=True))
        tags.input_tags = inner.input_tags
        return tags


def _holds_texts(X: Any) -> bool:
    if not isinstance(X, list | tuple) and getattr(X, "ndim", 2) != 1:
        return False
    first = next(iter(X), None)
    return isinstance(first, str | Mapping)


def _warn_if_equal(networks: list[Network], samples: Any, template: Any) -> None:
    distinct = count_distinct(networks, samples)
    if distinct < len(networks):
        number = len(networks)
        some = f"only {distinct} of {number} networks are distinct"
        warnings.warn(
            f"{f'all {number} networks are equal' if distinct == 1 else some}, so that their "
            f"agreement means nothing: {type(template).__name__} learns the same with every "
            "random_state. Set bootstrap=True, or choose a base that uses its random_state "
            "(MLPClassifier, SGDClassifier, boosting with subsample or max_features below 1)",
            AccordWarning,
            stacklevel=3,
        )


def _checked_weights(weights: Any, samples: int, last: Any) -> NDArray[Any] | None:
    if weights is None:
        return None
    if not has_fit_parameter(last, "sample_weight"):
        raise ChoiceError(
            f"{type(last).__name__} takes no sample_weight. Leave it out, or choose another base"
        )
    checked = np.asarray(weights)
    if checked.shape != (samples,):
        raise ChoiceError(
            f"sample_weight must have shape ({samples},), one for each sample; got {checked.shape}"
        )
    if not checked.any():
        raise ChoiceError("sample_weight is zero for every sample: none is left to train on")
    return checked

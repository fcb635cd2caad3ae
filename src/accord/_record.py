"""Interface for reading records.

A `Record` holds one `Context`, which keeps rows and results in memory; each method calls one
function of `accord.rules` or `accord.analysis` with it.
"""

import logging
import operator
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from accord import analysis, kernels
from accord._predictions import save_prediction
from accord.errors import ChoiceError, VotesMissing, counted
from accord.kernels._checks import check_table
from accord.rules import (
    RECOMMENDED,
    Context,
    FittedRule,
    Prediction,
    Recommendation,
    Rule,
    all_rules,
    predict_recommended,
    recommend,
    resolve_rule,
)
from accord.store import NetworkInfo, RecordReader, label_dtype, open_reader
from accord.store._record_format import LABELS

_logger = logging.getLogger(__name__)

Read = Callable[[Sequence[int], Sequence[int], slice], NDArray[Any]]


class StoredArray(NDArrayOperatorsMixin):
    """Array on disk that is read when it is used.

    Its axes are (network, epoch, sample) or (network, epoch, sample, class).
    It behaves like a numpy array: `record.labels[:, -1]` reads the last epoch alone,
    `record.labels == record.truth` and `record.labels.max()` all of it.
    """

    def __init__(
        self, read: Read, shape: tuple[int, ...], dtype: DTypeLike, *, gap: int | None = None
    ) -> None:
        self._read = read
        self._gap = gap  # the label of a missing vote
        self.shape = shape
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        networks, epochs, *rest = self._split(key)
        positions = _positions(networks, self.shape[0]), _positions(epochs, self.shape[1])
        # Only a plain range of samples is read as such; anything else indexes all samples.
        plain = isinstance(rest[0], slice) and rest[0].step in (None, 1)
        values = self._read(*positions, rest[0] if plain else slice(None))
        samples = slice(None) if plain else rest[0]
        # A copy: the context shares the rows that it keeps.
        found = np.array(values[(_reindex(networks), _reindex(epochs), samples, *rest[1:])])
        if self._gap is None:
            return found
        missing = found == self._gap
        return np.ma.masked_array(np.where(missing, 0, found).astype(self.dtype), missing)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a stored array can only be read into a copy")
        if self._gap is not None:
            raise VotesMissing(
                "some votes are missing, which a plain array cannot hold. record.labels[:] is a "
                "masked array"
            )
        return self[:].astype(dtype or self.dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [one[:] if isinstance(one, StoredArray) else one for one in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a stored array has no attribute {name!r}")
        return getattr(self[:], name)

    def __repr__(self) -> str:
        return f"<stored array, shape {self.shape}, {self.dtype}>"

    def _split(self, key: Any) -> list[Any]:
        keys = list(key) if isinstance(key, tuple) else [key]
        at = next((i for i, one in enumerate(keys) if one is Ellipsis), None)
        if at is not None:
            keys[at : at + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
        if len(keys) > self.ndim:
            raise IndexError(f"{self.ndim} axes, {len(keys)} indices")
        keys += [slice(None)] * (self.ndim - len(keys))
        return [_as_key(one) for one in keys]


def _as_key(key: Any) -> Any:
    if isinstance(key, slice):
        return key
    if isinstance(key, list | tuple | range | np.ndarray):
        values = np.asarray(key)
        return np.flatnonzero(values).tolist() if values.dtype == bool else values.tolist()
    return operator.index(key)


def _positions(key: Any, size: int) -> list[int]:
    positions = range(size)
    if isinstance(key, slice):
        return list(positions[key])
    return [positions[one] for one in (key if isinstance(key, list) else [key])]


def _reindex(key: Any) -> Any:
    """Convert a key for an axis that has already been read."""
    if isinstance(key, list):
        return list(range(len(key)))
    return slice(None) if isinstance(key, slice) else 0


class Record:
    """Predictions of all networks at all epochs.

    Rows are read when they are needed, and kept in memory up to `ACCORD_MEMORY` (512 MiB by
    default), as are results that several methods need.
    """

    def __init__(self, reader: RecordReader) -> None:
        self.reader = Context.of(reader)

    @property
    def path(self) -> str:
        """Location of the record."""
        return self.reader.name

    @property
    def networks(self) -> int:
        """Number of networks."""
        return self.reader.networks

    @property
    def epochs(self) -> int:
        """Number of epochs of each network."""
        return self.reader.epochs

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.reader.samples

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.reader.classes

    @property
    def truth(self) -> NDArray[Any] | None:
        """True class of each sample or None."""
        return self.reader.sample_info.truth

    @property
    def given(self) -> NDArray[Any] | None:
        """Given label of each sample or None."""
        return self.reader.sample_info.given

    @property
    def reference(self) -> Literal["truth", "given"] | None:
        """Labels that predictions are compared with.

        "truth" where true labels are known; otherwise "given", or None if there are no labels.
        Agreement with given labels, some of which may be wrong, is not accuracy.
        """
        return self.reader.sample_info.reference

    @property
    def ids(self) -> NDArray[Any] | None:
        """Identifiers of the samples or None."""
        return self.reader.sample_info.ids

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of the classes or None."""
        return self.reader.sample_info.class_names

    @property
    def split(self) -> str:
        """Name of the data split."""
        return self.reader.sample_info.split

    @property
    def progress(self) -> tuple[float, ...]:
        """True epoch number of each recorded epoch."""
        return self.reader.networks_info()[0].progress

    @property
    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Metadata and metrics of each network."""
        return self.reader.networks_info()

    @property
    def labels(self) -> StoredArray:
        """Predicted labels of shape (networks, epochs, samples).

        Where votes are missing, reading them returns masked arrays.
        """
        shape = self.networks, self.epochs, self.samples
        gap = self.classes if self.reader.has_missing else None
        read = partial(self.reader.read, LABELS)
        return StoredArray(read, shape, label_dtype(self.classes), gap=gap)

    @property
    def probabilities(self) -> StoredArray:
        """Class probabilities of shape (networks, epochs, samples, classes)."""
        self.reader.check_probabilities()
        shape = self.networks, self.epochs, self.samples, self.classes
        return StoredArray(self.reader.read_probabilities, shape, np.float16)

    def select(
        self, *, networks: Sequence[int] | None = None, epochs: slice | Sequence[int] | None = None
    ) -> "Record":
        """Select networks by number and epochs by position from either end, in ascending order."""
        if epochs is not None and not isinstance(epochs, int):
            chosen = range(self.epochs)[epochs] if isinstance(epochs, slice) else epochs
            order = [one + self.epochs * (one < 0) for one in chosen]
            if order != sorted(order):
                raise ChoiceError(
                    f"{self.path}: epochs must ascend, as rules read the last one; got "
                    f"{list(chosen)}. Select sorted(epochs)"
                )
        return Record(self.reader.select(networks, epochs))

    def predict(self, rule: str | Rule = "max-agreement") -> Prediction:
        """Predict one label per sample.

        Args:
            rule: a rule's name, a fitted rule, or your own rule. "recommended" uses the rule that
                `recommend` returns; the prediction's note names it and the reason.

        Raises:
            ChoiceError: no rule has that name.
            ProbabilitiesMissing, TruthMissing: the record lacks what the rule needs.
            VotesMissing: votes are missing, and the rule does not leave them out.
            RecordMismatch: the rule was fitted on other networks, epochs or classes.
        """
        if rule == RECOMMENDED:
            return predict_recommended(self.reader)
        return self.reader.once(resolve_rule(rule, self.reader)[0])

    def fit(self, rule: str | Rule = "dawid-skene") -> FittedRule:
        """Fit a rule for predicting other records.

        The other record must hold the same networks and epochs. True labels are not used.
        `fitted.save` writes a file, `accord.rules.load_rule` reads it. "recommended" fits the rule
        that `recommend` returns.

        Raises:
            ChoiceError: no rule has that name, the rule has no parameters, or there is one network.
            PredictionError: the parameters cannot be estimated from these votes.
        """
        found, _ = resolve_rule(rule, self.reader)
        if not isinstance(found, FittedRule):
            names = sorted(name for name, one in all_rules().items() if isinstance(one, FittedRule))
            raise ChoiceError(
                f"{found.name} has no parameters to fit: it predicts any record directly. "
                f"Rules that can be fitted: {', '.join(names)}"
            )
        return found.fit(self.reader)

    def save(self, prediction: Prediction, path: str | os.PathLike[str]) -> None:
        """Save a prediction to a .npy, .csv or .parquet file."""
        save_prediction(prediction, path, sample_info=self.reader.sample_info)

    def agreement(self) -> NDArray[np.float64]:
        """Compute the share of votes for each class.

        The table takes 8 bytes × samples × classes; `predict` and `margin` need none.
        """
        self.reader.check_complete("the agreement by class")
        check_table(self.samples, self.classes)
        table = np.empty((self.samples, self.classes))
        for block in self.reader.blocks():
            table[block.where] = kernels.agreement(block.values, classes=self.classes)
        return table

    def margin(self) -> NDArray[np.float64]:
        """Compute the margin between the two classes with the most votes."""
        return analysis.margin_of(self.reader)

    def final_margin(self) -> NDArray[np.float64]:
        """Compute the signed margin of the majority class at the last epoch."""
        return analysis.final_margin_of(self.reader)

    def score(self, rules: str | Rule | Sequence[str | Rule] | None = None) -> list[analysis.Score]:
        """Compute the accuracy of one or several rules, or of all that the record allows.

        With all rules, what limits these numbers is logged as warnings, as `accord score` does.
        """
        if rules is not None:
            return analysis.score(self.reader, [rules] if isinstance(rules, str | Rule) else rules)
        found = analysis.compare_rules(self.reader)
        for note in found.notes:
            _logger.warning("%s: %s", self.path, note)
        return list(found.scores)

    def recommend(self) -> Recommendation:
        """Recommend a rule for this record from its votes alone."""
        return self.reader.once(recommend)

    def audit(self) -> analysis.Audit:
        """Find training labels that are probably wrong and propose corrections."""
        return analysis.audit(self.reader)

    def notes(self) -> tuple[str, ...]:
        """List what makes the votes uninformative, such as identical networks."""
        return analysis.record_notes(self.reader)

    def curve(self, rule: str | Rule = "max-agreement") -> analysis.Curve:
        """Compute the accuracy of a rule after each epoch."""
        return analysis.curve(self.reader, rule)

    def by_networks(self, rule: str | Rule = "max-agreement") -> analysis.Sweep:
        """Compute the accuracy of a rule for each ensemble size."""
        return analysis.by_networks(self.reader, rule)

    def by_epochs(
        self, rule: str | Rule = "max-agreement", counts: Sequence[int] | None = None
    ) -> analysis.Sweep:
        """Compute the accuracy of a rule on 1, 2, 4 … or `counts` equally spaced epochs."""
        return analysis.by_epochs(self.reader, rule, counts)

    def changes(
        self, first: str | Rule, second: str | Rule, *, confidence: float = 0.95
    ) -> analysis.Changes:
        """Compare the predictions of two rules."""
        return analysis.changes(self.reader, first, second, confidence=confidence)

    def persistence(self) -> analysis.Persistence:
        """Count the onsets and lengths of runs of equal predictions."""
        return analysis.persistence(self.reader)

    def watch(self, *, sure: float = 0.99, least_fall: float = 0.01) -> analysis.Watch:
        """Detect overfitting without labels."""
        return analysis.watch(self.reader, sure=sure, least_fall=least_fall)

    def calibration(
        self, rule: str | Rule = "max-agreement", *, bins: int = 15
    ) -> analysis.Calibration:
        """Compute the reliability curve of a rule."""
        return analysis.calibration_of(self.predict(rule), self.reader.truth(), bins=bins)

    def risk_coverage(self) -> analysis.RiskCoverage:
        """Compute the risk-coverage curve of max agreement."""
        right = self.predict().labels == self.reader.truth()
        return analysis.risk_coverage(self.margin(), right)

    def network_health(self) -> tuple[analysis.NetworkHealth, ...]:
        """Measure the agreement of each network with the others."""
        return analysis.network_health(self.reader)

    def good_networks(self) -> list[int]:
        """Find the networks that agree with the others."""
        return analysis.good_networks(self.reader)

    def forgetting(self, judge: str | Rule | None = None) -> analysis.Forgetting:
        """Find samples that are predicted correctly at some epoch but not at the last.

        Without true labels, pass a rule such as "max-agreement" as `judge`.
        """
        return analysis.forgetting(self.reader, judge=judge)

    def __repr__(self) -> str:
        return (
            f"<Record {self.path}: {counted(self.networks, 'network')}, "
            f"{counted(self.epochs, 'epoch')}, {counted(self.samples, 'sample')}, "
            f"{counted(self.classes, 'class')}>"
        )


def open_record(
    path: str | os.PathLike[str],
    *,
    common: bool = False,
    networks: Sequence[int] | None = None,
    split: str | None = None,
) -> Record:
    """Open a record from a path or URL.

    A path leads to a folder, a packed record, a zip file or a run folder, a URL to an object store.
    Rows recorded later are not visible; open the record again to read them.

    Args:
        path: of a record that a recorder, `accord import` or `accord pack` wrote.
        common: if networks hold different numbers of epochs, use the epochs that all have.
        networks: their numbers; other networks may be unfinished or damaged.
        split: which record of a run folder, by default "test", else the only one.

    Raises:
        RecordMissing, NotARecord, VersionError: there is no readable record.
        UnequalNetworks: networks hold different numbers of epochs, without `common`.
    """
    return Record(open_reader(path, common=common, networks=networks, split=split))

"""A record opened for reading: `Record`, `open_record`, and arrays that are read when indexed.

A `Record` holds one `Context`, which keeps rows and results in memory; each method calls one
function of `accord.rules` or `accord.analysis` with it.
"""

import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from accord import analysis, kernels
from accord._predictions import save_prediction
from accord.errors import ChoiceError, counted
from accord.kernels._checks import check_table
from accord.rules import (
    RECOMMENDED,
    Context,
    FittedRule,
    Prediction,
    Recommendation,
    Rule,
    all_rules,
    find_rule,
    predict_recommended,
    recommend,
    resolve_rule,
)
from accord.store import NetworkInfo, RecordReader, label_dtype, open_reader

Read = Callable[[Sequence[int], Sequence[int], slice], NDArray[Any]]


class StoredArray:
    """An array over (network, epoch, sample) or (network, epoch, sample, class) on disk.

    Index it like a numpy array: `record.labels[:, -1]` reads the last epoch alone.
    """

    def __init__(self, read: Read, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._read = read
        self.shape = shape
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
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
        return np.array(values[(_reindex(networks), _reindex(epochs), samples, *rest[1:])])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a stored array can only be read into a copy")
        return self[:].astype(dtype or self.dtype, copy=False)

    def __repr__(self) -> str:
        return f"<stored array, shape {self.shape}, {self.dtype}>"

    def _split(self, key: Any) -> list[Any]:
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in [one for one in keys if one is Ellipsis]:
            at = next(i for i, one in enumerate(keys) if one is Ellipsis)
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
    """Return the key that gives an axis its numpy shape, once its positions have been read."""
    if isinstance(key, list):
        return list(range(len(key)))
    return slice(None) if isinstance(key, slice) else 0


class Record:
    """The predictions of every network at every epoch, as `accord.open` returns them.

    Rows are read when they are needed, and kept in memory up to `ACCORD_MEMORY` (512 MiB by
    default), as are results that several methods need.
    """

    def __init__(self, reader: RecordReader) -> None:
        self.reader = Context.of(reader)

    @property
    def path(self) -> str:
        """The location of the record."""
        return self.reader.name

    @property
    def networks(self) -> int:
        """The number of networks."""
        return self.reader.networks

    @property
    def epochs(self) -> int:
        """The number of epochs of each network."""
        return self.reader.epochs

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.reader.samples

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.reader.classes

    @property
    def truth(self) -> NDArray[Any] | None:
        """The true class of each sample, if it was recorded."""
        return self.reader.sample_info.truth

    @property
    def given(self) -> NDArray[Any] | None:
        """The given label of each sample, if it was recorded."""
        return self.reader.sample_info.given

    @property
    def ids(self) -> NDArray[Any] | None:
        """The identifiers of the samples, if they were recorded."""
        return self.reader.sample_info.ids

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, if they were recorded."""
        return self.reader.sample_info.class_names

    @property
    def split(self) -> str:
        """The split of the data that the samples belong to."""
        return self.reader.sample_info.split

    @property
    def progress(self) -> tuple[float, ...]:
        """The true epoch of each recorded one, from the first network."""
        return self.reader.networks_info()[0].progress

    @property
    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """The metadata of each network, and its metrics at every epoch."""
        return self.reader.networks_info()

    @property
    def labels(self) -> StoredArray:
        """Predicted labels (network, epoch, sample), read when indexed by position."""
        shape = self.networks, self.epochs, self.samples
        return StoredArray(self.reader.read_labels, shape, label_dtype(self.classes))

    @property
    def probabilities(self) -> StoredArray:
        """Probabilities (network, epoch, sample, class), read when indexed."""
        self.reader.check_probabilities()
        shape = self.networks, self.epochs, self.samples, self.classes
        return StoredArray(self.reader.read_probabilities, shape, np.float16)

    def select(
        self, *, networks: Sequence[int] | None = None, epochs: slice | Sequence[int] | None = None
    ) -> "Record":
        """Return a view of some networks, by number, and epochs, by position from either end."""
        return Record(self.reader.select(networks, epochs))

    def predict(self, rule: str | Rule = "max-agreement") -> Prediction:
        """Combine all networks and epochs into one label per sample.

        Args:
            rule: a rule's name, a fitted rule, or your own rule. "recommended" uses the rule that
                `recommend` returns; the prediction's note names it and the reason.

        Raises:
            ChoiceError: no rule has that name.
            ProbabilitiesMissing, TruthMissing: the record lacks what the rule needs.
            RecordMismatch: the rule was fitted on other networks, epochs or classes.
        """
        if rule == RECOMMENDED:
            return predict_recommended(self.reader)
        return self.reader.once(find_rule(rule))

    def fit(self, rule: str | Rule = "dawid-skene") -> FittedRule:
        """Fit a rule to this record's samples, to predict others with it: `other.predict(fitted)`.

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
        """Write a prediction to a .npy, .csv or .parquet file, with ids and class names."""
        save_prediction(prediction, path, sample_info=self.reader.sample_info)

    def agreement(self) -> NDArray[np.float64]:
        """Return each class's share of the votes (sample, class).

        The table takes 8 bytes × samples × classes; `predict` and `margin` need none.
        """
        check_table(self.samples, self.classes)
        table = np.empty((self.samples, self.classes))
        for block in self.reader.blocks():
            table[block.where] = kernels.agreement(block.values, classes=self.classes)
        return table

    def margin(self) -> NDArray[np.float64]:
        """Return best minus second-best agreement (sample,): the confidence in max agreement."""
        return analysis.margin_of(self.reader)

    def final_margin(self) -> NDArray[np.float64]:
        """Return the lead of the last majority's class over all epochs; negative if it trails."""
        return analysis.final_margin_of(self.reader)

    def score(self, rules: Sequence[str | Rule] | None = None) -> list[analysis.Score]:
        """Score the named rules, or all that the record allows, against the truth."""
        return analysis.score(self.reader, rules)

    def recommend(self) -> Recommendation:
        """Return the rule to use on this record, chosen from its votes alone, and why."""
        return self.reader.once(recommend)

    def audit(self) -> analysis.Audit:
        """Rank the given labels of a training record by suspicion, and propose corrections."""
        return analysis.audit(self.reader)

    def curve(self, rule: str | Rule = "max-agreement") -> analysis.Curve:
        """Score a rule after each epoch, counting all epochs up to it."""
        return analysis.curve(self.reader, rule)

    def by_networks(self, rule: str | Rule = "max-agreement") -> analysis.Sweep:
        """Score a rule for each ensemble size, over all subsets of the networks."""
        return analysis.by_networks(self.reader, rule)

    def by_epochs(
        self, rule: str | Rule = "max-agreement", counts: Sequence[int] | None = None
    ) -> analysis.Sweep:
        """Score a rule on 1, 2, 4 … equally spaced epochs, or on those numbers of epochs."""
        return analysis.by_epochs(self.reader, rule, counts)

    def changes(
        self, first: str | Rule, second: str | Rule, *, confidence: float = 0.95
    ) -> analysis.Changes:
        """Count the samples that the second rule turns right and wrong, with a test."""
        return analysis.changes(self.reader, first, second, confidence=confidence)

    def persistence(self) -> analysis.Persistence:
        """Return when correct and wrong predictions begin and how long they last."""
        return analysis.persistence(self.reader)

    def watch(self, *, sure: float = 0.99, least_fall: float = 0.01) -> analysis.Watch:
        """Detect overfitting without labels, and the last good epoch."""
        return analysis.watch(self.reader, sure=sure, least_fall=least_fall)

    def calibration(
        self, rule: str | Rule = "max-agreement", *, bins: int = 15
    ) -> analysis.Calibration:
        """Compare a rule's scores with how often its labels are correct."""
        return analysis.calibration_of(self.predict(rule), self.reader.truth(), bins=bins)

    def risk_coverage(self) -> analysis.RiskCoverage:
        """Return the share of wrong labels of max agreement among samples above each margin."""
        right = self.predict().labels == self.reader.truth()
        return analysis.risk_coverage(self.margin(), right)

    def network_health(self) -> tuple[analysis.NetworkHealth, ...]:
        """Return whether each network votes with the others, or what is wrong with it."""
        return analysis.network_health(self.reader)

    def good_networks(self) -> list[int]:
        """Return the numbers of the networks worth keeping, for `select`."""
        return analysis.good_networks(self.reader)

    def forgetting(self, judge: str | Rule | None = None) -> analysis.Forgetting:
        """Find samples that are correct at some epoch and wrong at the last one.

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
    path: str | os.PathLike[str], *, common: bool = False, networks: Sequence[int] | None = None
) -> Record:
    """Open a record: a folder, a packed record, a zip file, or the URL of an object store.

    Rows recorded later are not visible; open the record again to read them.

    Args:
        path: of a record that a recorder, `accord import` or `accord pack` wrote.
        common: if networks hold different numbers of epochs, use the epochs that all have.
        networks: their numbers; other networks may be unfinished or damaged.

    Raises:
        RecordMissing, NotARecord, VersionError: there is no readable record.
        UnequalNetworks: networks hold different numbers of epochs, without `common`.
    """
    return Record(open_reader(path, common=common, networks=networks))

"""The public verbs: record, open, predict."""

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
from accord.rules import FittedRule, Prediction, Rule, all_rules, find_rule
from accord.rules._context import Context
from accord.rules._recommend import (
    RECOMMENDED,
    Recommendation,
    predict_recommended,
    recommend,
    resolve_rule,
)
from accord.store import NetworkInfo, RecordReader, open_reader
from accord.store._layout import label_dtype

Read = Callable[[Sequence[int], Sequence[int], slice], NDArray[Any]]


class StoredArray:
    """An array over (network, epoch, sample) or (network, epoch, sample, class) on disk.

    Index it as you would a numpy array; only the rows asked for are read, so
    `record.labels[:, -1]` reads the last epoch alone.
    """

    def __init__(self, read: Read, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._read = read
        self.shape = shape
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        networks, epochs, *rest = self._split(key)
        positions = _positions(networks, self.shape[0]), _positions(epochs, self.shape[1])
        values = self._read(*positions, *_span(rest[0]))
        # A copy: the record may keep the values it read for others.
        return np.array(values[(_again(networks), _again(epochs), *_inside(rest))])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("reading a record always makes a copy")
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


def _again(key: Any) -> Any:
    """Return how to take, as numpy would, what was read of an axis in the order of its key."""
    if isinstance(key, list):
        return list(range(len(key)))
    return slice(None) if isinstance(key, slice) else 0


def _span(key: Any) -> tuple[slice]:
    """Return the samples to read: exactly a plain slice, everything for anything else."""
    plain = isinstance(key, slice) and key.step in (None, 1)
    return (key if plain else slice(None),)


def _inside(keys: list[Any]) -> list[Any]:
    """Return what is left to index once the samples were read."""
    plain = isinstance(keys[0], slice) and keys[0].step in (None, 1)
    return [slice(None) if plain else keys[0], *keys[1:]]


class Record:
    """Everything every network said at every epoch.

    What `accord.open` returns. Nothing is read until it is asked for.
    """

    def __init__(self, reader: RecordReader) -> None:
        self.reader = Context.of(reader)

    @property
    def path(self) -> str:
        """Where the record lies."""
        return self.reader.name

    @property
    def networks(self) -> int:
        """How many networks there are."""
        return self.reader.networks

    @property
    def epochs(self) -> int:
        """How many epochs each network holds."""
        return self.reader.epochs

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return self.reader.samples

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.reader.classes

    @property
    def truth(self) -> NDArray[Any] | None:
        """The true class of each sample, if it was recorded."""
        return self.reader.sample_info.truth

    @property
    def given(self) -> NDArray[Any] | None:
        """The class that the data assign to each sample, if it was recorded."""
        return self.reader.sample_info.given

    @property
    def ids(self) -> NDArray[Any] | None:
        """The samples' own numbers or names, if they were recorded."""
        return self.reader.sample_info.ids

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The classes' names, if they were recorded."""
        return self.reader.sample_info.class_names

    @property
    def split(self) -> str:
        """Which part of the data the samples are."""
        return self.reader.sample_info.split

    @property
    def progress(self) -> tuple[float, ...]:
        """The true epoch of each recorded one, as the first network was told."""
        return self.reader.networks_info()[0].progress

    @property
    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """What the recorder of each network was told: of the network, and at every epoch."""
        return self.reader.networks_info()

    @property
    def labels(self) -> StoredArray:
        """Predicted labels (network, epoch, sample), read when indexed."""
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
        """Return a view of some networks, by number, and epochs, by position or from the end."""
        return Record(self.reader.select(networks, epochs))

    def predict(self, rule: str | Rule = "max-agreement") -> Prediction:
        """Combine all networks and epochs into one label per sample.

        Args:
            rule: a rule's name, a fitted rule, or a rule of your own. "recommended" takes the
                one that `recommend` names; the prediction's note says which that is, and why.

        Raises:
            ChoiceError: no rule has that name.
            ProbabilitiesMissing, TruthMissing: the rule needs what was not recorded.
            RecordMismatch: the rule was fitted on other networks, epochs or classes.
        """
        if rule == RECOMMENDED:
            return predict_recommended(self.reader)
        return find_rule(rule)(self.reader)

    def fit(self, rule: str | Rule = "dawid-skene") -> FittedRule:
        """Return a rule that has learnt from this record's samples, to predict others with.

        The others are of the same networks at the same epochs: `other.predict(fitted)`. No true
        label is used. `fitted.save` keeps it in a file, `accord.rules.load_rule` reads it.
        "recommended" fits the rule that `recommend` names.

        Raises:
            ChoiceError: no rule has that name, the rule learns nothing, or there is one network.
            PredictionError: the votes do not tell enough.
        """
        found, _ = resolve_rule(rule, self.reader)
        if not isinstance(found, FittedRule):
            learn = sorted(name for name, one in all_rules().items() if isinstance(one, FittedRule))
            raise ChoiceError(
                f"{found.name} learns nothing, so there is nothing to fit: it predicts any record "
                f"as it is. Rules that learn: {', '.join(learn)}"
            )
        return found.fit(self.reader)

    def save(self, prediction: Prediction, path: str | os.PathLike[str]) -> None:
        """Write a prediction to a .npy, .csv or .parquet file, with ids and class names."""
        save_prediction(prediction, path, sample_info=self.reader.sample_info)

    def agreement(self) -> NDArray[np.float64]:
        """Return the share of all votes that each class has (sample, class).

        The table takes 8 bytes × samples × classes; `predict` and `margin` need none.
        """
        check_table(self.samples, self.classes)
        table = np.empty((self.samples, self.classes))
        for block in self.reader.blocks():
            table[block.where] = kernels.agreement(block.values, classes=self.classes)
        return table

    def margin(self) -> NDArray[np.float64]:
        """Return best minus second-best agreement (sample,): how sure max agreement is."""
        return analysis.margin_of(self.reader)

    def final_margin(self) -> NDArray[np.float64]:
        """Return how far the last majority's class leads over all epochs; negative if it trails."""
        return analysis.final_margin_of(self.reader)

    def score(self, rules: Sequence[str | Rule] | None = None) -> list[analysis.Score]:
        """Score the named rules, or all that the record allows, against the truth."""
        return analysis.score(self.reader, rules)

    def recommend(self) -> Recommendation:
        """Return the rule that suits this record, judged by its votes alone, and why."""
        return recommend(self.reader)

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
        """Score a rule on 1, 2, 4 … equally spaced epochs, or as many as `counts` says."""
        return analysis.by_epochs(self.reader, rule, counts)

    def changes(
        self, first: str | Rule, second: str | Rule, *, confidence: float = 0.95
    ) -> analysis.Changes:
        """Count what the second rule turns right and wrong against the first, with a test."""
        return analysis.changes(self.reader, first, second, confidence=confidence)

    def persistence(self) -> analysis.Persistence:
        """Find when right and wrong predictions set in and how long they last."""
        return analysis.persistence(self.reader)

    def watch(self, *, sure: float = 0.99, least_fall: float = 0.01) -> analysis.Watch:
        """Tell from the networks' agreement whether overfit has set in, and the epoch before it."""
        return analysis.watch(self.reader, sure=sure, least_fall=least_fall)

    def calibration(
        self, rule: str | Rule = "max-agreement", *, bins: int = 15
    ) -> analysis.Calibration:
        """Compare a rule's scores with how often its labels are right."""
        return analysis.calibration_of(self.predict(rule), self.reader.truth(), bins=bins)

    def risk_coverage(self) -> analysis.RiskCoverage:
        """Measure max agreement's share of wrong labels among samples of at least some margin."""
        right = self.predict().labels == self.reader.truth()
        return analysis.risk_coverage(self.margin(), right)

    def members(self) -> tuple[analysis.Member, ...]:
        """Say of each network whether it votes with the others, or how it is bad."""
        return analysis.members(self.reader)

    def good_networks(self) -> list[int]:
        """Return the numbers of the networks worth keeping, for `select`."""
        return analysis.good_networks(self.reader)

    def forgetting(self, judge: str | Rule | None = None) -> analysis.Forgetting:
        """Find samples that were right at some epoch and are wrong at the last one.

        Without true labels, a rule such as "max-agreement" may judge.
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

    It shows the record as it stands now; open it again to see rows recorded since.

    Args:
        path: what a recorder, `accord import` or `accord pack` wrote.
        common: if networks hold different numbers of epochs, take those that all have.
        networks: open these alone, by their numbers; the others may be unfinished or damaged.

    Raises:
        RecordMissing, NotARecord, VersionError: there is nothing to open.
        UnequalNetworks: without `common`.
    """
    return Record(open_reader(path, common=common, networks=networks))

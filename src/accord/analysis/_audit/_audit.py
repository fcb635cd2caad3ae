"""Wrong training labels, found from what the networks said before they knew them by heart."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._audit._evidence import (
    Contradiction,
    count_moves,
    gather_evidence,
    measure_contradiction,
    weigh_votes,
)
from accord.analysis._audit._posterior import tell_classes
from accord.errors import NetworksMissing, RecordError
from accord.kernels._checks import check_table
from accord.store import ArrayReader, RecordReader


@dataclass(frozen=True)
class RankingScore:
    """A ranking, and a cut through it, against what is true."""

    auroc: float  # how often a wrong label is above a right one; half if equal
    average_precision: float  # the mean precision over the wrong labels, from the top down
    precision: float  # the share of wrong labels above the cut; nan if nothing is there
    recall: float  # the share of wrong labels that are above the cut


def score_ranking(
    scores: NDArray[np.float64],  # (sample,)
    wanted: NDArray[np.bool_],  # (sample,): neither all nor none
    chosen: NDArray[np.bool_],  # (sample,)
) -> RankingScore:
    """Score a ranking by its scores, the highest first, and the samples that it chooses.

    >>> scores, wanted = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, False, True, False])
    >>> score_ranking(scores, wanted, scores > 0.5)
    RankingScore(auroc=0.75, average_precision=0.8333333333333333, precision=0.5, recall=0.5)
    """
    levels, level = np.unique(-scores, return_inverse=True)  # the highest first
    sizes = np.bincount(level, minlength=len(levels))
    hits = np.bincount(level[wanted], minlength=len(levels))
    misses, found = sizes - hits, hits.cumsum()
    total, others = int(found[-1]), int(misses.sum())
    below = others - misses.cumsum() + misses / 2
    right = int((wanted & chosen).sum())
    return RankingScore(
        auroc=float((hits * below).sum() / (total * others)),
        average_precision=float((hits * found / sizes.cumsum()).sum() / total),
        precision=right / int(chosen.sum()) if chosen.any() else float("nan"),
        recall=right / total,
    )


def suspect_unpredicted(
    reader: RecordReader, given: NDArray[np.intp], classes: NDArray[np.intp], *, rate: float
) -> NDArray[np.float64]:  # (sample,)
    """Return the suspicion of labels that are given one of these classes; nan for all others.

    Networks learn some classes late, when most labels are known by heart. Such labels are as
    often wrong as all others, as far as one knows; among them, those that networks contradict
    most at the epochs at which any network predicts the class are the most suspicious. None
    exceeds one half. Where no epoch predicts the class, that is nan as well.

    Args:
        reader: all epochs are read, unless there are no such classes.
        given: the label of each sample.
        classes: that no network predicts at the epochs that count.
        rate: the share of wrong labels among all others.
    """
    suspicion = np.full(len(given), np.nan)
    if len(classes):
        chosen = np.flatnonzero(np.isin(given, classes))
        against = _share_against(reader, given, chosen)
        known = ~np.isnan(against)
        usual = float(against[known].mean()) if known.any() else 0.0
        suspicion[chosen] = np.minimum(0.5, against * (rate / usual if usual else 0.0))
    return suspicion


def never_predicted(
    given: NDArray[np.intp], suspicion: NDArray[np.float64], classes: NDArray[np.intp]
) -> tuple[int, ...]:
    """Return those of these classes whose labels have no suspicion.

    >>> never_predicted(np.array([0, 3, 4]), np.array([np.nan, 0.1, np.nan]), np.array([3, 4]))
    (4,)
    """
    known = given[~np.isnan(suspicion)]
    return tuple(classes[~np.isin(classes, known)].tolist())


def _share_against(
    reader: RecordReader, given: NDArray[np.intp], chosen: NDArray[np.intp]
) -> NDArray[np.float64]:  # (chosen,)
    agreeing = np.zeros((reader.epochs, len(chosen)), np.intp)
    predicted = np.zeros((reader.epochs, reader.classes), bool)
    for block in reader.blocks():
        here = np.flatnonzero((chosen >= block.start) & (chosen < block.stop))
        samples = chosen[here]
        votes: NDArray[Any] = block.values[:, :, samples - block.start]
        agreeing[:, here] = (votes == given[samples]).sum(axis=0)
        for epoch in range(reader.epochs):
            predicted[epoch, block.values[:, epoch]] = True
    told = predicted[:, given[chosen]]  # (epoch, chosen)
    votes_told = reader.networks * told.sum(axis=0)
    agreed = (agreeing * told).sum(axis=0)
    unknown = np.full(len(chosen), np.nan)
    return np.asarray(np.divide(votes_told - agreed, votes_told, out=unknown, where=votes_told > 0))


BY_HEART: Final = 0.01  # of the votes contradict the given labels, at the most, at every epoch
UNDECIDED: Final = 0.1  # of labels that are judged wrongly, by their own suspicions: too many
NEARLY: Final = 0.9  # of the highest contradiction, at the first epoch
ALIKE: Final = 0.7  # of what one network contradicts, another does too, beyond chance
FIRST_EPOCHS: Final = 4  # within which beginners learn much:
SLOW: Final = 0.93  # of the contradiction at the first epoch, or more, is left if they do not


@dataclass(frozen=True)
class Audit:
    """Which training labels are probably wrong, and what they should be."""

    given: NDArray[np.intp]  # (sample,): the labels that were looked at
    proposed: NDArray[np.intp]  # (sample,): what to use instead; the given label if not flagged
    suspicion: NDArray[np.float64]  # (sample,): the estimated chance that the label is wrong
    flagged: NDArray[np.bool_]  # (sample,): whether that is above one half
    agreement_given: NDArray[np.float64]  # (sample,): the given label's share of weighted votes
    agreement_proposed: NDArray[np.float64]  # (sample,): the proposed label's
    classes: int  # of the record
    weights: NDArray[np.float64]  # (epoch,): what its votes were worth, adding up to 1
    learnt: float  # of the votes at the last epoch that say the given label
    beyond_chance: float  # of pairs of networks that say the same against a label, where most do
    excess: float  # of those pairs over what independent votes give, in standard errors
    first_epoch: float  # the true epoch at which the networks' votes begin, as recorded
    begins_late: bool  # whether labels may have been known by heart before
    unpredicted: tuple[int, ...]  # given classes that no network predicts at epochs that count
    never_predicted: tuple[int, ...]  # of those, the classes that none predicts at any epoch
    score: RankingScore | None  # against the truth, where it is known and some label is wrong

    def __len__(self) -> int:
        return len(self.given)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """All samples, the most suspicious first (sample,)."""
        return np.argsort(-self.suspicion, kind="stable")

    @property
    def noise_rate(self) -> float:
        """The estimated share of wrong labels.

        That is the share of labels flagged. Where the votes leave more than one in ten labels
        undecided, the flagged ones are too few, and it is the mean suspicion.
        """
        return float(self._wrong.mean())

    @property
    def noise_rates(self) -> NDArray[np.float64]:
        """The estimated share of wrong labels among those given (class,); nan if there are none."""
        sizes = np.bincount(self.given, minlength=self.classes)
        wrong = np.bincount(self.given, self._wrong, minlength=self.classes)
        rates = np.divide(wrong, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
        return np.asarray(rates)

    @property
    def _wrong(self) -> NDArray[Any]:  # (sample,)
        return self.suspicion if self.undecided > UNDECIDED else self.flagged

    @property
    def undecided(self) -> float:
        """The share of labels that are judged wrongly, by the suspicions themselves."""
        return float(np.minimum(self.suspicion, 1 - self.suspicion).mean())

    @property
    def confusion(self) -> NDArray[np.intp]:
        """Samples by given label and true class, as far as the audit can tell: (given, true).

        Raises:
            PredictionError: the table would exceed 4 GiB.
        """
        check_table(self.classes, self.classes)
        return count_moves(self.given, self.proposed, classes=self.classes)

    @property
    def label_confusion(self) -> NDArray[np.float64]:
        """How labels turn: each class's share of given labels, (class, given label).

        This is what `corrected_accuracy` wants; rows add up to 1. It is `confusion` turned
        around and divided by the size of the classes. The labels of a class that no sample is
        taken for count as right. Labels count as wrong if they are flagged: where many are
        `undecided`, too few.
        """
        counts = self.confusion.T
        sizes = counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(counts, sizes, out=np.eye(self.classes), where=sizes > 0))


def audit(reader: RecordReader) -> Audit:
    """Rank the given labels of a training record by suspicion, and propose corrections.

    Votes count where two networks contradict the given label in the same way more often
    than by chance: before the labels are known by heart, and after the beginning. From them
    and from the given labels follow the habits of both, say that cats are given as dogs and
    called dogs, but dogs not cats; and from the habits each class's chance to be the true one.
    A label is flagged if all others together are likelier. Nothing sees the truth.

    Reads the rows twice, or once if they fit in memory, and keeps a few numbers for each sample.

    Args:
        reader: a record of the samples that the networks were trained on.

    Raises:
        RecordError: there are no given labels, they are all of one class, or the networks
            agree with them from the first epoch on.
        NetworksMissing: there is only one network.
        PredictionError: so many classes occur that their tables would exceed 4 GiB.
    """
    given, kept, first_epoch = _checked_given(reader), _in_memory(reader), _first_epoch(reader)
    contradiction = measure_contradiction(kept, given)
    _check_contradiction(reader, float(contradiction.share.max()))
    evidence = gather_evidence(kept, given, contradiction)
    near = evidence.renumbered()
    chances = tell_classes(near, classes=len(near.predicted))
    suspicion = np.where(evidence.predicted[given], chances[:, 1:].sum(axis=1), 0.0)
    flagged = suspicion > 0.5
    best = np.where(flagged, 1 + chances[:, 1:].argmax(axis=1), 0)[:, np.newaxis]
    occurs = np.bincount(given, minlength=reader.classes) > 0
    unpredicted = np.flatnonzero(occurs & ~evidence.predicted)
    others = flagged[evidence.predicted[given]]
    rate = float(others.mean()) if len(others) else 0.0
    against = suspect_unpredicted(kept, given, unpredicted, rate=rate)
    suspicion = np.where(evidence.predicted[given], suspicion, np.nan_to_num(against))
    return Audit(
        given=given,
        proposed=np.take_along_axis(evidence.candidates, best, axis=1)[:, 0],
        suspicion=suspicion,
        flagged=flagged,
        agreement_given=evidence.shares[:, 0],
        agreement_proposed=np.take_along_axis(evidence.shares, best, axis=1)[:, 0],
        classes=reader.classes,
        weights=_adding_up(contradiction.weights),
        learnt=1 - float(contradiction.share[-1]),
        beyond_chance=float(contradiction.beyond[contradiction.weights.argmax()]),
        excess=float(contradiction.excess[contradiction.weights.argmax()]),
        first_epoch=first_epoch,
        begins_late=_begins_late(contradiction, first_epoch),
        unpredicted=tuple(unpredicted.tolist()),
        never_predicted=never_predicted(given, against, unpredicted),
        score=_score(reader, given, suspicion, flagged),
    )


def audit_probabilities(reader: RecordReader) -> NDArray[np.float64]:  # (sample, class)
    """Return the share of the weighted votes that each class has, for tools that want a table.

    Rows add up to 1. cleanlab takes the table as `pred_probs`, with the given labels.
    Where no epoch tells, all weigh the same.

    Raises:
        RecordError, NetworksMissing: as `audit` does.
        PredictionError: the table would exceed 4 GiB.
    """
    given, reader = _checked_given(reader), _in_memory(reader)
    check_table(reader.samples, reader.classes)
    weights = measure_contradiction(reader, given).whole_weights
    weights = weights if weights.any() else np.ones(reader.epochs, np.intp)
    shares = np.empty((reader.samples, reader.classes))
    for where, table in weigh_votes(reader, weights):
        shares[where] = table
    shares /= int(weights.sum()) * reader.networks
    return shares


def _checked_given(reader: RecordReader) -> NDArray[np.intp]:
    if reader.sample_info.given is None:
        raise RecordError(
            f"{reader.name}: an audit needs the labels that the networks were trained on, and this "
            f"record of the {reader.sample_info.split} split holds none. "
            "Audit the record of the training "
            "split (accord train: splits = ['test', 'train']), or give them when recording: "
            "Recorder(…, given=labels)"
        )
    given = reader.sample_info.given.astype(np.intp)
    if given.min() == given.max():
        samples = (
            "the only sample is" if reader.samples == 1 else f"all {reader.samples} samples are"
        )
        raise RecordError(
            f"{reader.name}: {samples} given class {given[0]}; an audit compares classes. "
            "Are these the right labels?"
        )
    if reader.networks < 2:
        raise NetworksMissing(
            f"{reader.name}: an audit trusts what two networks say against a label; there is one. "
            "Record another one, trained from another seed."
        )
    return given


def _in_memory(reader: RecordReader) -> RecordReader:
    if isinstance(reader, ArrayReader):
        return reader
    first = next(reader.blocks())
    if first.stop < reader.samples:
        return reader
    return ArrayReader(first.values, reader.sample_info, name=reader.name)


def _check_contradiction(reader: RecordReader, most: float) -> None:
    if most < BY_HEART:
        least = math.floor(1000 * (1 - most)) / 10  # never more than it is
        agreed = f"{least:.1f} % or more of the" if most else "all"
        raise RecordError(
            f"{reader.name}: at every epoch the networks agree with {agreed} given labels. "
            "They knew them by heart when recording began, or there was "
            "never a doubt: this record cannot tell wrong labels. Record from the first epoch on, "
            "and more often (accord train: every = 0.1)."
        )


def _begins_late(contradiction: Contradiction, first_epoch: float) -> bool:
    """Tell whether labels may have been known by heart before the first epoch.

    They are contradicted as much as ever there. Then either it is known to be a late one; or
    networks do not begin there: they contradict the same labels, beyond chance, and go on
    doing so, while beginners differ and learn fast.
    """
    share = contradiction.share
    if len(share) == 1 or share[0] < NEARLY * share.max():
        return False
    alike = contradiction.beyond[0] >= ALIKE * share[0]
    slow = share[:FIRST_EPOCHS].min() >= SLOW * share[0]
    return first_epoch > 1 or bool(alike and slow)


def _first_epoch(reader: RecordReader) -> float:
    return min(min(told.progress) for told in reader.networks_info())


def _adding_up(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def _score(
    reader: RecordReader,
    given: NDArray[Any],
    suspicion: NDArray[np.float64],
    flagged: NDArray[np.bool_],
) -> RankingScore | None:
    if reader.sample_info.truth is None:
        return None
    wrong = given != reader.sample_info.truth
    return score_ranking(suspicion, wrong, flagged) if 0 < wrong.sum() < len(wrong) else None

"""The result of an audit."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._record_notes import MEMORISED_LATE
from accord.kernels._checks import check_table

UNDECIDED: Final = 0.1  # of labels misjudged, by their own posteriors; above, use the mean
MOST_FITTED: Final = 0.1  # of labels flagged, above which they are not fitted at once
LEAST_TRUSTED: Final = 0.12  # of labels flagged, as fewer are on clean data
LEAST_FINAL_AGREEMENT: Final = 0.9  # with given labels; less: networks learn little
# The power of the odds above 1 that fits best is 0.1 to 1.1 on ten design records of 2 to 100
# classes, with a median of 0.45. The odds for a label need none: 0.65 to 1.3, median 1.1.
TEMPERED: Final = 0.6
MOST_OF_PAIR: Final = 3  # samples of one pair of classes in a short list
SETTLED: Final = 1 / 3  # of the contradicting votes differ between networks, or fewer


@dataclass(frozen=True)
class RankingScore:
    """Quality of a ranking of labels and of a selection from it."""

    auroc: float  # area under the ROC curve, ties count half
    average_precision: float  # mean precision over the wrong labels
    precision: float  # share of selected labels that are wrong, nan for an empty selection
    recall: float  # share of wrong labels that are selected


def score_ranking(
    scores: NDArray[np.float64],  # (sample,)
    wanted: NDArray[np.bool_],  # (sample,), neither all nor none
    chosen: NDArray[np.bool_],  # (sample,)
) -> RankingScore:
    """Evaluate a ranking and a selection of samples."""
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


def probability_of(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert log odds to probabilities."""
    return np.asarray(1 / (1 + np.exp(-log_odds)))


@dataclass(frozen=True)
class Audit:
    """Result of an audit of training labels."""

    given: NDArray[np.intp]  # (sample,), the labels audited
    proposed: NDArray[np.intp]  # (sample,), the given label if not flagged
    log_odds: NDArray[np.float64]  # (sample,), natural logarithm of the posterior odds against it
    flagged: NDArray[np.bool_]  # (sample,), whether that is more probable than not
    candidates: NDArray[np.intp]  # (sample, candidate), the given label, then its alternatives
    shares: NDArray[np.float64]  # (sample, alternative), of the suspicion, sum to 1
    agreement_given: NDArray[np.float64]  # (sample,), the given label's share of weighted votes
    agreement_proposed: NDArray[np.float64]  # (sample,), the proposed label's
    classes: int  # in the record
    weights: NDArray[np.float64]  # (epoch,), sum to 1
    informative_epochs: int  # at which networks contradict labels together beyond chance
    final_agreement: float  # share of the votes at the last epoch for the given label
    final_disagreement: float  # share of pairs of networks that differ there
    memorised_late: float | None  # share of the votes, None for few epochs or held-out samples
    beyond_chance: float  # share of pairs that agree against a label, at the epoch with the most
    excess: float  # of those pairs over chance, in standard errors
    first_epoch: float  # the true epoch of the first recorded votes
    begins_late: bool  # whether labels may have been memorised before it
    unpredicted: tuple[int, ...]  # given classes not predicted at epochs with a weight
    never_predicted: tuple[int, ...]  # those not predicted at any epoch
    score: RankingScore | None  # None if the truth is unknown or no label is wrong
    cross_fitted: bool = False  # whether no network was trained on the samples that it predicts
    notes: tuple[str, ...] = ()  # limitations, to be read first

    def __len__(self) -> int:
        return len(self.given)

    @cached_property
    def suspicion(self) -> NDArray[np.float64]:
        """Estimated probability that each given label is wrong, (sample,).

        Odds above 1 are tempered, as networks also err together.
        """
        odds = np.where(self.log_odds > 0, TEMPERED * self.log_odds, self.log_odds)
        return probability_of(odds)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Indices of the samples in decreasing order of suspicion."""
        return np.argsort(-self.log_odds, kind="stable")

    def most_suspicious(self, most: int) -> NDArray[np.intp]:
        """Indices of at most `most` flagged samples in decreasing order of suspicion.

        No pair of given and proposed class takes more than three places, unless there are so few
        pairs that places would stay empty.
        """
        ranked = self.ranking[: int(self.flagged.sum())]
        pairs = self.given[ranked] * self.classes + self.proposed[ranked]
        kinds, pairs = np.unique(pairs, return_inverse=True)
        order = np.argsort(pairs, kind="stable")
        first = np.searchsorted(pairs[order], np.arange(len(kinds)))
        place = np.empty(len(ranked), np.intp)  # of a sample within its pair
        place[order] = np.arange(len(ranked)) - first[pairs[order]]
        largest = max(MOST_OF_PAIR, -(-most // max(1, len(kinds))))
        return np.asarray(ranked[place < largest][:most])

    def posteriors(self, samples: slice = slice(None)) -> NDArray[np.float64]:
        """Compute the probability that each class is the true one, (sample, class).

        Rows sum to 1. At most five classes of a sample have a probability above 0: the given label,
        with 1 - `suspicion`, and its alternatives.

        Raises:
            PredictionError: the table would exceed 4 GiB; pass a slice of the samples.
        """
        candidates, suspicion = self.candidates[samples], self.suspicion[samples, np.newaxis]
        check_table(len(candidates), self.classes)
        table = np.zeros((len(candidates), self.classes))
        probabilities = np.hstack([1 - suspicion, suspicion * self.shares[samples]])
        np.put_along_axis(table, candidates, probabilities, axis=1)
        return table

    @property
    def fitted_at_once(self) -> bool:
        """Whether networks fit the labels at once, so that their votes show no wrong ones."""
        late, rate = self.memorised_late, self.noise_rate
        return late is not None and rate < MOST_FITTED and late < max(MEMORISED_LATE, rate / 2)

    @property
    def too_hard(self) -> bool:
        """Whether networks have settled without fitting the labels.

        Such labels may be wrong, or their samples too hard: the votes do not show which.
        """
        settled = self.final_disagreement < SETTLED * (1 - self.final_agreement)
        unfitted = self.final_agreement < LEAST_FINAL_AGREEMENT
        return self.memorised_late is not None and settled and unfitted and not self.unpredicted

    @property
    def proposals_doubtful(self) -> bool:
        """Whether taking proposals unseen may replace more right labels than wrong ones."""
        return bool(self.notes) or self.noise_rate < LEAST_TRUSTED

    @property
    def noise_rate(self) -> float:
        """Estimated fraction of wrong labels.

        This is the share of flagged labels or, where more than one label in ten is undecided and
        too few are flagged, the mean posterior.
        """
        return float(self._wrong.mean())

    @property
    def noise_rates(self) -> NDArray[np.float64]:
        """Estimated fraction of wrong labels in each class, nan for absent classes."""
        sizes = np.bincount(self.given, minlength=self.classes)
        wrong = np.bincount(self.given, self._wrong, minlength=self.classes)
        rates = np.divide(wrong, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
        return np.asarray(rates)

    @property
    def _wrong(self) -> NDArray[Any]:  # (sample,)
        return probability_of(self.log_odds) if self.undecided > UNDECIDED else self.flagged

    @property
    def undecided(self) -> float:
        """Expected fraction of misjudged labels."""
        return float(probability_of(-np.abs(self.log_odds)).mean())

    @property
    def confusion(self) -> NDArray[np.intp]:
        """Confusion matrix of given and proposed labels.

        Raises:
            PredictionError: the table would exceed 4 GiB.
        """
        check_table(self.classes, self.classes)
        cells = self.given * self.classes + self.proposed
        return np.bincount(cells, minlength=self.classes**2).reshape(self.classes, self.classes)

    @property
    def label_confusion(self) -> NDArray[np.float64]:
        """Confusion matrix normalised over the proposed classes.

        Suitable for `corrected_accuracy`. This is `confusion`, transposed and normalised. The
        labels of a class that is proposed for no sample count as right. Only flagged labels count
        as wrong, which are too few where many are `undecided`.
        """
        counts = self.confusion.T
        sizes = counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(counts, sizes, out=np.eye(self.classes), where=sizes > 0))

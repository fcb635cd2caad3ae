"""The result of an audit."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._record_notes import MEMORISED_LATE
from accord.kernels._checks import check_table

UNDECIDED: Final = 0.1  # of labels misjudged, by their own suspicions; above, use the mean
MOST_FITTED: Final = 0.1  # of labels flagged, above which they are not fitted at once
LEAST_TRUSTED: Final = 0.12  # of labels flagged, as fewer are on clean data
LEAST_FINAL_AGREEMENT: Final = 0.9  # with given labels; less: networks learn little
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


@dataclass(frozen=True)
class Audit:
    """Result of an audit of training labels."""

    given: NDArray[np.intp]  # (sample,), the labels audited
    proposed: NDArray[np.intp]  # (sample,), the given label if not flagged
    suspicion: NDArray[np.float64]  # (sample,), the estimated probability that the label is wrong
    flagged: NDArray[np.bool_]  # (sample,), whether that exceeds one half
    candidates: NDArray[np.intp]  # (sample, candidate), the given label, then its alternatives
    shares: NDArray[np.float64]  # (sample, alternative), of the suspicion, sum to 1
    agreement_given: NDArray[np.float64]  # (sample,), the given label's share of weighted votes
    agreement_proposed: NDArray[np.float64]  # (sample,), the proposed label's
    classes: int  # in the record
    weights: NDArray[np.float64]  # (epoch,), sum to 1
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

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Indices of the samples in decreasing order of suspicion."""
        return np.argsort(-self.suspicion, kind="stable")

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
        too few are flagged, the mean suspicion.
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
        return self.suspicion if self.undecided > UNDECIDED else self.flagged

    @property
    def undecided(self) -> float:
        """Expected fraction of misjudged labels."""
        return float(np.minimum(self.suspicion, 1 - self.suspicion).mean())

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

"""Wrong training labels, found from what the networks said before they knew them by heart."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.labels.contradiction import measure_contradiction
from accord.analysis.labels.evidence import count_moves, gather_evidence, weigh_votes
from accord.analysis.labels.ranking_score import RankingScore, score_ranking
from accord.analysis.labels.true_classes import tell_classes
from accord.errors import ChoiceError, RecordError
from accord.kernels.checks import check_table
from accord.store import ArrayRows, Rows

BY_HEART: Final = 0.01  # of the votes contradict the given labels, at the most, at every epoch


@dataclass(frozen=True)
class Audit:
    """Which training labels are probably wrong, and what they should be."""

    given: NDArray[np.intp]  # (sample,): the labels that were looked at
    proposed: NDArray[np.intp]  # (sample,): what to use instead; the given label if not flagged
    suspicion: NDArray[np.float64]  # (sample,): the estimated chance that the label is wrong
    flagged: NDArray[np.bool_]  # (sample,): whether that is above one half
    agreement_given: NDArray[np.float64]  # (sample,): the given label's share of weighted votes
    agreement_proposed: NDArray[np.float64]  # (sample,): the proposed label's
    confusion: NDArray[np.intp]  # (given, true class): samples, as far as the audit can tell
    weights: NDArray[np.float64]  # (epoch,): what its votes were worth, adding up to 1
    unpredicted: tuple[int, ...]  # given classes that no network predicts: not judged
    score: RankingScore | None  # against the truth, where it is known and some label is wrong

    def __len__(self) -> int:
        return len(self.given)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """All samples, the most suspicious first (sample,)."""
        return np.argsort(-self.suspicion, kind="stable")

    @property
    def noise_rate(self) -> float:
        """The estimated share of wrong labels."""
        return float(self.flagged.mean())

    @property
    def noise_rates(self) -> NDArray[np.float64]:
        """The estimated share of wrong labels among those given (class,); nan if there are none."""
        sizes = self.confusion.sum(axis=1)
        wrong = sizes - np.diag(self.confusion)
        rates = np.divide(wrong, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
        return np.asarray(rates)


def audit(rows: Rows) -> Audit:
    """Rank the given labels of a training record by suspicion, and propose corrections.

    Votes count where two networks contradict the given label in the same way more often
    than by chance: before the labels are known by heart, and after the beginning. From them
    and from the given labels follow the habits of both, say that cats are given as dogs and
    called dogs, but dogs not cats; and from the habits each class's chance to be the true one.
    A label is flagged if all others together are likelier. Nothing sees the truth.

    Reads the rows twice, or once if they fit in memory, and keeps a few numbers for each sample.

    Args:
        rows: a record of the samples that the networks were trained on.

    Raises:
        RecordError: there are no given labels, they are all of one class, or the networks
            agree with them from the first epoch on.
        ChoiceError: there is only one network.
    """
    given, rows = _checked_given(rows), _in_memory(rows)
    contradiction = measure_contradiction(rows, given)
    _check_contradiction(rows, float(contradiction.share.max()))
    evidence = gather_evidence(rows, given, contradiction)
    chances = tell_classes(evidence, classes=rows.classes)
    judged = evidence.predicted[given]
    suspicion = np.where(judged, chances[:, 1:].sum(axis=1), 0.0)
    flagged = suspicion > 0.5
    best = np.where(flagged, 1 + chances[:, 1:].argmax(axis=1), 0)[:, np.newaxis]
    proposed = np.take_along_axis(evidence.candidates, best, axis=1)[:, 0]
    was_given = np.bincount(given, minlength=rows.classes) > 0
    return Audit(
        given=given,
        proposed=proposed,
        suspicion=suspicion,
        flagged=flagged,
        agreement_given=evidence.shares[:, 0],
        agreement_proposed=np.take_along_axis(evidence.shares, best, axis=1)[:, 0],
        confusion=count_moves(given, proposed, classes=rows.classes),
        weights=_adding_up(contradiction.weights),
        unpredicted=tuple(np.flatnonzero(was_given & ~evidence.predicted).tolist()),
        score=_score(rows, given, suspicion, flagged),
    )


def audit_probabilities(rows: Rows) -> NDArray[np.float64]:  # (sample, class)
    """Return the share of the weighted votes that each class has, for tools that want a table.

    Rows add up to 1. cleanlab takes the table as `pred_probs`, with the given labels.
    Where no epoch tells, all weigh the same.

    Raises:
        RecordError, ChoiceError: as `audit` does.
        PredictionError: the table would exceed 4 GiB.
    """
    given, rows = _checked_given(rows), _in_memory(rows)
    check_table(rows.samples, rows.classes)
    steps = measure_contradiction(rows, given).steps
    steps = steps if steps.any() else np.ones(rows.epochs, np.intp)
    shares = np.empty((rows.samples, rows.classes))
    for where, table in weigh_votes(rows, steps):
        shares[where] = table
    shares /= int(steps.sum()) * rows.networks
    return shares


def _checked_given(rows: Rows) -> NDArray[np.intp]:
    if rows.facts.given is None:
        raise RecordError(
            f"{rows.name}: an audit needs the labels that the networks were trained on, and this "
            f"record of the {rows.facts.split} split holds none. Audit the record of the training "
            "split (accord train: splits = ['test', 'train']), or give them when recording: "
            "Recorder(…, given=labels)"
        )
    given = rows.facts.given.astype(np.intp)
    if given.min() == given.max():
        raise RecordError(
            f"{rows.name}: all {rows.samples} samples are given class {given[0]}; an audit "
            "compares classes. Are these the right labels?"
        )
    if rows.networks < 2:
        raise ChoiceError(
            f"{rows.name}: an audit trusts what two networks say against a label; there is one. "
            "Record another one, trained from another seed."
        )
    check_table(rows.classes, rows.classes)
    return given


def _in_memory(rows: Rows) -> Rows:
    if isinstance(rows, ArrayRows):
        return rows
    first = next(rows.blocks())
    if first.stop < rows.samples:
        return rows
    return ArrayRows(first.values, rows.facts, name=rows.name)


def _check_contradiction(rows: Rows, most: float) -> None:
    if most < BY_HEART:
        raise RecordError(
            f"{rows.name}: at every epoch the networks agree with {100 * (1 - most):.1f} % or more "
            "of the given labels. They knew them by heart when recording began, or there was "
            "never a doubt: this record cannot tell wrong labels. Record from the first epoch on, "
            "and more often (accord train: every = 0.1)."
        )


def _adding_up(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def _score(
    rows: Rows, given: NDArray[Any], suspicion: NDArray[np.float64], flagged: NDArray[np.bool_]
) -> RankingScore | None:
    if rows.facts.truth is None:
        return None
    wrong = given != rows.facts.truth
    return score_ranking(suspicion, wrong, flagged) if 0 < wrong.sum() < len(wrong) else None

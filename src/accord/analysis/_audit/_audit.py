"""Audit of training labels.

`audit` weights the epochs (`_evidence`), adds up their votes for each label and its alternatives,
and turns them into posteriors (`_posterior`); these weight the epochs anew. `_result` holds the
result, `_notes` the caveats that a reader should see first, `_review` and `_review_files` the
decisions of people.
"""

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._audit._evidence import (
    MOST_SAMPLES,
    TINY,
    Contradiction,
    collect_evidence,
    discriminant_weights,
    integer_weights,
    measure_contradiction,
    weigh_votes,
)
from accord.analysis._audit._notes import audit_notes
from accord.analysis._audit._posterior import class_posteriors
from accord.analysis._audit._result import Audit, RankingScore, probability_of, score_ranking
from accord.analysis._record_notes import memorised_late, network_notes
from accord.errors import NetworksMissing, RecordError
from accord.kernels._checks import check_table
from accord.rules import Context
from accord.store import RecordReader

LEAST_CONTRADICTION: Final = 0.01  # of the votes; less at every epoch: labels are memorised
NEARLY: Final = 0.9  # of the highest share of contradicting votes, at the first epoch
ALIKE: Final = 0.7  # of the contradictions of one network are shared by another, beyond chance
FIRST_EPOCHS: Final = 4  # within which untrained networks learn much:
NEAR_BEST: Final = 1.1  # of the least loss; chosen on one of five data sets, checked on the others
# On 28 records of perceptrons with 10 or 20 classes, weights by separation alone (a power of 0)
# changed the AUROC by 0.001 on average, but raised the noise rate by up to 0.04.
SEPARATION: Final = 20
LEAST_PROBABILITY: Final = 1e-4
TIES: Final = 1e-6  # added to log odds, for an order among equal ones
MOST_ODDS: Final = 700.0  # log odds of which the exponential is a number
SLOW: Final = 0.93  # of the contradicting votes remain after these if they do not


def suspect_unpredicted(
    reader: RecordReader, given: NDArray[np.intp], classes: NDArray[np.intp], *, rate: float
) -> NDArray[np.float64]:  # (sample,)
    # Networks learn some classes late, when most labels are memorised. On average these labels are
    # assumed to be wrong at the `rate` of all others; the more votes contradict one, at the epochs
    # at which any network predicts the class, the more suspicious it is, up to one half.
    suspicion = np.full(len(given), np.nan)
    if len(classes):
        chosen = np.flatnonzero(np.isin(given, classes))
        against = _share_against(reader, given, chosen)
        known = ~np.isnan(against)
        usual = float(against[known].mean()) if known.any() else 0.0
        suspicion[chosen] = np.minimum(0.5, against * (rate / usual if usual else 0.0))
    return suspicion


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
    at_epochs = predicted[:, given[chosen]]  # (epoch, chosen)
    votes = reader.networks * at_epochs.sum(axis=0)
    agreed = (agreeing * at_epochs).sum(axis=0)
    unknown = np.full(len(chosen), np.nan)
    return np.asarray(np.divide(votes - agreed, votes, out=unknown, where=votes > 0))


def audit(reader: RecordReader) -> Audit:
    """Find training labels that are probably wrong and propose corrections.

    Epochs are weighted by how often two networks contradict the given label with the same class
    beyond chance: after the first epochs, and before the labels are memorised. Error rates of
    labels and networks are fitted to the weighted votes, and give the posterior of each class.
    Then epochs are weighted by how well they separate the labels that are probably wrong from all
    others, and the posteriors are computed again. A label is flagged if all other classes together
    are more probable. True labels are not used.

    Reads the rows four times, or once if they fit in memory, and keeps a few numbers for each
    sample.

    Args:
        reader: of a record of the samples that the networks were trained on.

    Raises:
        RecordError: the record has no given labels, they are all of one class, or the
            networks agree with them from the first epoch on.
        NetworksMissing: the record has only one network.
        PredictionError: the tables of all classes that occur would exceed 4 GiB.
    """
    reader.check_complete("the audit")
    given, kept = _checked_given(reader), Context.of(reader)
    first_epoch = min(min(one.progress) for one in reader.networks_info())
    contradiction = measure_contradiction(kept, given)
    _check_contradiction(reader, float(contradiction.share.max()))
    weights = epoch_weights(kept, given, contradiction)
    evidence = collect_evidence(kept, given, weights)
    posteriors = class_posteriors(evidence)
    if kept.cross_fitted and kept.has_probabilities:
        best_epochs = kept.select(epochs=likeliest_epochs(kept, given))
        probabilities = mean_probabilities(best_epochs, evidence.candidates)
        posteriors = reassign_posteriors(posteriors, probabilities)
    log_odds = log_odds_of(posteriors[:, 1:].sum(axis=1), posteriors[:, 0])
    flagged = evidence.predicted[given] & (log_odds > 0)
    best = np.where(flagged, 1 + posteriors[:, 1:].argmax(axis=1), 0)[:, np.newaxis]
    occurs = np.bincount(given, minlength=reader.classes) > 0
    unpredicted = np.flatnonzero(occurs & ~evidence.predicted)
    others = flagged[evidence.predicted[given]]
    rate = float(others.mean()) if len(others) else 0.0
    against = suspect_unpredicted(kept, given, unpredicted, rate=rate)
    late = np.nan_to_num(against)
    log_odds = np.where(evidence.predicted[given], log_odds, log_odds_of(late, 1 - late))
    found = Audit(
        given=given,
        proposed=np.take_along_axis(evidence.candidates, best, axis=1)[:, 0],
        log_odds=log_odds,
        flagged=flagged,
        candidates=evidence.candidates,
        shares=share_among_alternatives(posteriors),
        agreement_given=evidence.shares[:, 0],
        agreement_proposed=np.take_along_axis(evidence.shares, best, axis=1)[:, 0],
        classes=reader.classes,
        weights=weights / weights.sum()
        if weights.any()
        else np.full_like(weights, 1 / len(weights)),
        informative_epochs=int(np.count_nonzero(contradiction.weights)),
        final_agreement=1 - float(contradiction.share[-1]),
        final_disagreement=float(contradiction.disagreement[-1]),
        memorised_late=kept.once(memorised_late),
        beyond_chance=float(contradiction.beyond[contradiction.weights.argmax()]),
        excess=float(contradiction.excess[contradiction.weights.argmax()]),
        first_epoch=first_epoch,
        begins_late=_begins_late(contradiction, first_epoch),
        unpredicted=tuple(unpredicted.tolist()),
        never_predicted=tuple(np.setdiff1d(unpredicted, given[~np.isnan(against)]).tolist()),
        score=_score(reader, given, log_odds, flagged),
        cross_fitted=kept.cross_fitted,
    )
    if found.fitted_at_once and kept.has_probabilities:
        likely = mean_probabilities(kept, given[:, np.newaxis])[:, 0]
        log_odds[~flagged] = order_by_probability(log_odds[~flagged], likely[~flagged])
        found = replace(found, score=_score(reader, given, log_odds, flagged))
    notes = audit_notes(found, reader.sample_info)
    return replace(found, notes=(*notes, *kept.once(network_notes)))


def log_odds_of(
    wrong: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:  # (sample,), as its arguments
    """Compute log odds, at most `MOST_ODDS` either way."""
    with np.errstate(divide="ignore"):
        odds = np.log(wrong) - np.log(right)
    return np.asarray(np.clip(odds, -MOST_ODDS, MOST_ODDS))


def epoch_weights(
    reader: RecordReader, given: NDArray[np.intp], contradiction: Contradiction
) -> NDArray[np.float64]:  # (epoch,)
    """Weight epochs by how well they separate the labels that contradiction finds wrong.

    With few classes this changes little, and with two nothing: the share of the new weights in
    their mean with those by contradiction is the share of contradictions that differ by chance (9
    in 10 with ten classes) to the power of `SEPARATION`. One round: further ones prefer ever later
    epochs, at which networks follow more of the wrong labels.
    """
    weights = contradiction.weights
    new = (1 - contradiction.alike) ** SEPARATION  # (epoch,), the share of the new weights
    if not (new * weights).any():
        return weights
    evidence = collect_evidence(reader, given, weights)
    posteriors, epochs = class_posteriors(evidence), np.flatnonzero(integer_weights(weights))
    found = np.zeros(reader.epochs)
    found[epochs] = discriminant_weights(
        reader.select(epochs=epochs.tolist()), evidence.candidates, posteriors
    )
    if not found.any():
        return weights
    found = new * found * (weights.sum() / found.sum()) + (1 - new) * weights
    return np.asarray(found * (weights.sum() / found.sum()))


def order_by_probability(
    log_odds: NDArray[np.float64], probabilities: NDArray[np.float64]
) -> NDArray[np.float64]:  # (sample,), as its arguments
    """Reassign log odds in the order of the probabilities of the given labels.

    Where networks were not trained on the samples, or fitted their labels at once, probabilities
    rank labels better than votes: on 28 of 33 records that were tried. Votes still determine how
    many labels are suspicious.
    """
    ordered = np.sort(log_odds)
    ordered += TIES * np.linspace(-1, 0, len(ordered))  # none equal
    found = np.empty(len(log_odds))
    found[np.argsort(-probabilities, kind="stable")] = ordered
    return found


def reassign_posteriors(
    posteriors: NDArray[np.float64],  # (sample, candidate), the given label first
    probabilities: NDArray[np.float64],  # the same
) -> NDArray[np.float64]:  # the same
    odds = log_odds_of(posteriors[:, 1:].sum(axis=1), posteriors[:, 0])
    suspicion = probability_of(order_by_probability(odds, probabilities[:, 0]))
    others = share_among_alternatives(probabilities) * suspicion[:, np.newaxis]
    return np.column_stack([1 - suspicion, others])


def share_among_alternatives(
    posteriors: NDArray[np.float64],  # (sample, candidate), the given label first
) -> NDArray[np.float64]:  # (sample, alternative)
    """Compute the probability of each alternative if the given label is wrong."""
    others = posteriors[:, 1:] + TINY
    return np.asarray(others / others.sum(axis=1, keepdims=True))


def likeliest_epochs(context: Context, given: NDArray[np.intp]) -> list[int]:
    """Find the epochs at which the given labels have nearly the highest likelihood.

    If networks were not trained on them, they have learnt by then and do not overfit yet.
    """
    step, losses = -(-context.samples // MOST_SAMPLES), []
    for epoch in range(context.epochs):
        table = context.read_probabilities(
            range(context.networks), [epoch], slice(None, None, step)
        )
        mean = table[:, 0].mean(axis=0, dtype=float)
        likely = np.take_along_axis(mean, given[::step, np.newaxis], axis=1)
        losses.append(float(-np.log(np.maximum(likely, LEAST_PROBABILITY)).mean()))
    return [epoch for epoch, loss in enumerate(losses) if loss <= NEAR_BEST * min(losses)]


def mean_probabilities(
    context: Context,
    classes: NDArray[np.intp],  # (sample, candidate)
) -> NDArray[np.float64]:  # (sample, candidate)
    """Average the probabilities of some classes of each sample over networks and epochs."""
    found = np.empty(classes.shape)
    for block in context.probability_blocks():
        table = block.values.mean(axis=(0, 1), dtype=float)
        found[block.where] = np.take_along_axis(table, classes[block.where], axis=1)
    return found


def audit_probabilities(reader: RecordReader) -> NDArray[np.float64]:  # (sample, class)
    """Compute class probabilities from the weighted votes.

    Rows sum to 1. cleanlab takes the table as `pred_probs`, with the given labels. If no epoch
    has a weight, all epochs weigh the same.

    Raises:
        RecordError, NetworksMissing: as `audit` does.
        PredictionError: the table would exceed 4 GiB.
    """
    reader.check_complete("the audit")
    given, reader = _checked_given(reader), Context.of(reader)
    check_table(reader.samples, reader.classes)
    contradiction = measure_contradiction(reader, given)
    weights = integer_weights(epoch_weights(reader, given, contradiction))
    weights = weights if weights.any() else np.ones(reader.epochs, np.intp)
    shares = np.empty((reader.samples, reader.classes))
    for where, table in weigh_votes(reader, weights):
        shares[where] = table
    shares /= int(weights.sum()) * reader.networks
    return shares


def _checked_given(reader: RecordReader) -> NDArray[np.intp]:
    if reader.sample_info.given is None:
        raise RecordError(
            f"{reader.name}: an audit requires the labels that the networks were trained on, and "
            f"this record of the {reader.sample_info.split} split holds none. Audit the record of "
            "the training split (accord train: splits = ['test', 'train']), or give them when "
            "recording: Recorder(…, given=labels)"
        )
    given = reader.sample_info.given.astype(np.intp)
    if given.min() == given.max():
        samples = "the only sample has" if reader.samples == 1 else "all samples have"
        raise RecordError(
            f"{reader.name}: {samples} the given label {given[0]}; an audit compares classes. "
            "Are these the right labels?"
        )
    if reader.networks < 2:
        raise NetworksMissing(
            f"{reader.name}: an audit compares networks, and there is one. Record another one, "
            "trained from another seed."
        )
    return given


def _check_contradiction(reader: RecordReader, most: float) -> None:
    if most < LEAST_CONTRADICTION:
        least = math.floor(1000 * (1 - most)) / 10  # rounded down
        agreed = f"{least:.1f} % or more of the" if most else "all"
        raise RecordError(
            f"{reader.name}: at every epoch the networks agree with {agreed} given labels. They "
            "had memorised them when recording began, or they follow a pattern that is learnt at "
            "once: wrong labels cannot be found in this record. Record from the first epoch on, "
            "and more often (accord train: every = 0.1), or have the labels judged by networks "
            "that were not trained on them (accord train SPEC --cross-fit 5)."
        )


def _begins_late(contradiction: Contradiction, first_epoch: float) -> bool:
    """Check whether labels may be memorised before the first recorded epoch."""
    # Contradictions are about as frequent there as ever, and either it is a late epoch, or the
    # networks are trained already: they contradict the same labels beyond chance and change slowly.
    share = contradiction.share
    if len(share) == 1 or share[0] < NEARLY * share.max():
        return False
    alike = contradiction.beyond[0] >= ALIKE * share[0]
    slow = share[:FIRST_EPOCHS].min() >= SLOW * share[0]
    return first_epoch > 1 or bool(alike and slow)


def _score(
    reader: RecordReader,
    given: NDArray[Any],
    log_odds: NDArray[np.float64],
    flagged: NDArray[np.bool_],
) -> RankingScore | None:
    if reader.sample_info.truth is None:
        return None
    wrong = given != reader.sample_info.truth
    return score_ranking(log_odds, wrong, flagged) if 0 < wrong.sum() < len(wrong) else None

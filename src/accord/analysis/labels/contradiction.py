"""When the networks agree with each other against the given labels, epoch by epoch."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.labels.beyond_chance import beyond_chance, independent_pairs
from accord.kernels import count_votes, equally_spaced
from accord.kernels.dense import count_matching
from accord.store import Rows

MOST_SAMPLES: Final = 2_000  # that are looked at, evenly spaced
MOST_EPOCHS: Final = 32  # whose votes count; neighbours say much the same

# Votes are added up as whole numbers, so that their order is without effect. On development
# records, eight steps ranked as well as weights that were not rounded; four did not.
STEPS: Final = 8


@dataclass(frozen=True)
class Contradiction:
    """How often networks contradict the given label, and how often in the same way."""

    share: NDArray[np.float64]  # (epoch,): of the votes that contradict it
    both: NDArray[np.float64]  # (epoch,): of pairs of networks that both contradict it
    same: NDArray[np.float64]  # (epoch,): of pairs that contradict it with one and the same class
    chance: NDArray[np.float64]  # (epoch,): of pairs that do so by chance
    alike: NDArray[np.float64]  # (epoch,): of two contradictions, by chance; 1 with two classes
    excess: NDArray[np.float64]  # (epoch,): of `same` over independent votes, in standard errors

    @property
    def beyond(self) -> NDArray[np.float64]:
        """The share of pairs that contradict a label with one class beyond chance (epoch,)."""
        return np.maximum(self.same - self.chance, 0)

    @property
    def weights(self) -> NDArray[np.float64]:
        """What each epoch's votes are worth (epoch,): between 0 and 1.

        Networks that know the given labels by heart never contradict them, and networks that
        know nothing contradict them at random. Between the two are the epochs that tell: two
        networks contradict the label, and agree on the class. The weight is the share of
        pairs that do so beyond chance, times that share among the pairs that contradict it.

        Where contradictions are alike anyway, as with two classes, a vote by heart cannot be
        told from one by insight: epochs that tell less than the best count for less still.
        """
        none = np.zeros(len(self.both))
        worth = np.divide(self.beyond**2, self.both, out=none, where=self.both > 0)
        return np.asarray(worth * (worth / (worth.max() or 1.0)) ** self.alike)

    @property
    def whole_weights(self) -> NDArray[np.intp]:
        """The weights as whole numbers (epoch,), in eighths of the largest.

        Of more than 32 epochs that are worth something, 32 are kept, equally spaced.
        """
        weights = self.weights
        most = weights.max() or 1.0
        rounded = np.asarray(np.rint(weights * (STEPS / most)), np.intp)
        useful = np.flatnonzero(rounded)
        if len(useful) <= MOST_EPOCHS:
            return rounded
        kept = useful[equally_spaced(len(useful), MOST_EPOCHS)]
        whole = np.zeros_like(rounded)
        whole[kept] = rounded[kept]
        return whole


def measure_contradiction(rows: Rows, given: NDArray[Any]) -> Contradiction:
    """Compare all pairs of networks at each epoch, on at most 2,000 samples, evenly spaced."""
    some = slice(None, None, -(-rows.samples // MOST_SAMPLES))
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), some)
    labels, known, classes = _renumbered(labels, given[some], classes=rows.classes)
    votes = np.ascontiguousarray(labels.transpose(0, 2, 1))  # sums down columns are fast
    against = votes != known.astype(votes.dtype)[:, np.newaxis]
    said = _count_said(votes, against, classes=classes)
    agreed = _count_all(votes, classes=classes) - said
    sizes = np.bincount(known, minlength=classes)
    both, same = _count_pairs(votes, against)
    return _shares(said, agreed, sizes, both, same)


def _renumbered(
    labels: NDArray[Any],  # (network, epoch, sample)
    given: NDArray[Any],  # (sample,)
    *,
    classes: int,
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Leave out classes that do not occur, if there are more classes than samples."""
    if classes <= len(given):
        return labels, given, classes
    occurs = np.zeros(classes, bool)
    occurs[labels], occurs[given] = True, True
    number = np.cumsum(occurs) - 1
    return number[labels], number[given], int(occurs.sum())


def _count_said(
    votes: NDArray[Any],  # (network, sample, epoch)
    against: NDArray[np.bool_],  # the same
    *,
    classes: int,
) -> NDArray[np.intp]:  # (network, epoch, class)
    """Count what each network says against the given labels, class by class."""
    agreeing = np.min_scalar_type(classes).type(classes)  # one class more, larger than all others
    marked = np.maximum(votes, ~against * agreeing)
    return _count_all(marked, classes=classes + 1)[:, :, :classes]


def _count_all(votes: NDArray[Any], *, classes: int) -> NDArray[np.intp]:  # (network, epoch, class)
    networks, samples, epochs = votes.shape
    by_sample = votes.transpose(1, 0, 2).reshape(samples, networks * epochs)
    return count_votes(by_sample, classes=classes).reshape(networks, epochs, classes)


def _count_pairs(
    votes: NDArray[Any],  # (network, sample, epoch)
    against: NDArray[np.bool_],  # the same
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # (epoch,) twice
    """Count pairs of networks that both contradict a label, and those that do so alike."""
    networks, _, epochs = votes.shape
    both, same = np.zeros(epochs, np.intp), np.zeros(epochs, np.intp)
    for one, other in combinations(range(networks), 2):
        both += _count_true(against[one] & against[other])
        same += _count_true(against[one] & (votes[one] == votes[other]))
    return both, same


def _count_true(flags: NDArray[np.bool_]) -> NDArray[np.intp]:  # (sample, epoch) -> (epoch,)
    return count_matching(flags.view(np.uint8), np.uint8(1))


def _shares(
    said: NDArray[np.intp],  # (network, epoch, class)
    agreed: NDArray[np.intp],  # (network, epoch, class)
    sizes: NDArray[np.intp],  # (class,)
    both: NDArray[np.intp],  # (epoch,)
    same: NDArray[np.intp],  # (epoch,)
) -> Contradiction:
    networks, samples = len(said), int(sizes.sum())
    pairs = samples * networks * (networks - 1) / 2
    share, same_share = said.sum(axis=(0, 2)) / (networks * samples), same / pairs
    independent, alike = independent_pairs(said, agreed, sizes)
    beyond = beyond_chance(same_share, independent, alike=alike, share=share)
    return Contradiction(
        share=share,
        both=both / pairs,
        same=same_share,
        chance=same_share - beyond,
        alike=alike,
        excess=_in_errors(same, pairs * independent),
    )


def _in_errors(
    found: NDArray[np.intp], expected: NDArray[np.float64]
) -> NDArray[np.float64]:  # (epoch,) each
    # The error of a count is its root. Of 7,200 single epochs of random votes (2 to 10 networks and
    # classes, 60 to 2,000 samples), two lie above 3.
    return np.asarray((found - expected) / np.sqrt(np.maximum(found, 1)))

"""When the networks agree with each other against the given labels, epoch by epoch."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
    chance: NDArray[np.float64]  # (epoch,): of pairs that would do so by chance

    @property
    def weights(self) -> NDArray[np.float64]:
        """What each epoch's votes are worth (epoch,): between 0 and 1.

        Networks that know the given labels by heart never contradict them, and networks that
        know nothing contradict them at random. Between the two are the epochs that tell: two
        networks contradict the label, and agree on the class. The weight is the share of
        pairs that do so beyond chance, times that share among the pairs that contradict it.
        """
        beyond = np.maximum(self.same - self.chance, 0)
        none = np.zeros(len(beyond))
        return np.asarray(np.divide(beyond**2, self.both, out=none, where=self.both > 0))

    @property
    def steps(self) -> NDArray[np.intp]:
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
        steps = np.zeros_like(rounded)
        steps[kept] = rounded[kept]
        return steps


def measure_contradiction(rows: Rows, given: NDArray[Any]) -> Contradiction:
    """Compare all pairs of networks at each epoch, on at most 2,000 samples, evenly spaced."""
    some = slice(None, None, -(-rows.samples // MOST_SAMPLES))
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), some)
    votes = np.ascontiguousarray(labels.transpose(0, 2, 1))  # sums down columns are fast
    against = votes != given[some].astype(votes.dtype)[:, np.newaxis]
    said = _count_said(votes, against, classes=rows.classes)
    both, same = _count_pairs(votes, against)
    return _shares(said, both, same, samples=votes.shape[1])


def _count_said(
    votes: NDArray[Any],  # (network, sample, epoch)
    against: NDArray[np.bool_],  # the same
    *,
    classes: int,
) -> NDArray[np.intp]:  # (network, epoch, class)
    """Count what each network says against the given labels, class by class."""
    agreeing = np.min_scalar_type(classes).type(classes)  # one class more, larger than all others
    marked = np.maximum(votes, ~against * agreeing).transpose(1, 0, 2)
    networks, samples, epochs = votes.shape
    said = count_votes(marked.reshape(samples, networks * epochs), classes=classes + 1)
    return said[:, :classes].reshape(networks, epochs, classes)


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
    both: NDArray[np.intp],  # (epoch,)
    same: NDArray[np.intp],  # (epoch,)
    *,
    samples: int,
) -> Contradiction:
    networks = len(said)
    pairs = samples * networks * (networks - 1) / 2
    votes = said.sum(axis=2)
    of_each = said / np.maximum(votes, 1)[:, :, np.newaxis]
    of_all = of_each.sum(axis=0)
    alike = (of_all**2).sum(axis=1) - (of_each**2).sum(axis=(0, 2))
    return Contradiction(
        share=votes.sum(axis=0) / (networks * samples),
        both=both / pairs,
        same=same / pairs,
        chance=both / pairs * alike / (networks * (networks - 1)),
    )

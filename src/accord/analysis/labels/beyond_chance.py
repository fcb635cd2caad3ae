"""How many pairs of networks say the same against a label for another reason than chance."""

from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

TINY: Final = 1e-9  # what is left of equal shares after rounding

Shares = NDArray[np.float64]  # (epoch,)


def independent_pairs(
    said: NDArray[np.intp],  # (network, epoch, class): what contradictions say
    agreed: NDArray[np.intp],  # (network, epoch, class): votes for given labels, by label
    sizes: NDArray[np.intp],  # (class,): samples by given label
) -> tuple[Shares, Shares]:
    """Return the pairs that would say the same, and their share of those that contradict.

    That is, if each network contradicted every label that is given alike with the same chance,
    its own, and said each other class as often as it does in all its contradictions.
    With two classes, whoever contradicts a label says the same: the second share is 1.
    """
    rates = np.divide(sizes - agreed, sizes, out=np.zeros(agreed.shape), where=sizes > 0)
    each = said / np.maximum(said.sum(axis=2, keepdims=True), 1)
    others = np.divide(rates, 1 - each, out=np.zeros(rates.shape), where=rates > 0)
    same, both = np.zeros(said.shape[1]), np.zeros(said.shape[1])
    pairs = list(combinations(range(len(said)), 2))
    for one, other in pairs:
        alike = each[one] * each[other]
        alike = alike.sum(axis=1, keepdims=True) - alike
        same += (others[one] * others[other] * alike) @ sizes
        both += (rates[one] * rates[other]) @ sizes
    share = np.divide(same, both, out=np.zeros(same.shape), where=both > 0)
    return same / (len(pairs) * sizes.sum()), share


def beyond_chance(same: Shares, independent: Shares, *, alike: Shares, share: Shares) -> Shares:
    """Return the share of pairs that say the same because of what they see.

    On a part of the samples all networks contradict the label with one class; on all others
    each contradicts it on its own. That part is looked for: with it, as many pairs say the
    same as do, and as many votes contradict labels. Independent networks leave none:

    >>> one = np.array([1.0])
    >>> beyond_chance(0.25 * one, 0.25 * one, alike=one, share=0.5 * one)
    array([0.])

    Two classes, 40 % wrong labels and no mistake: all pairs that contradict see it.

    >>> beyond_chance(0.4 * one, 0.16 * one, alike=one, share=0.4 * one).round(6)
    array([0.4])

    Args:
        same: of pairs that contradict a label with the same class.
        independent: of pairs that would do so if no network knew of the other.
        alike: of two contradictions of one label that say the same, then.
        share: of votes that contradict labels.
    """
    # With x for the part: same - x = alike · (independent / alike - 2 · share · x + x²) / (1 - x)
    excess = np.where(same - independent > TINY, same - independent, 0)
    linear = np.maximum(1 + same - 2 * alike * share, 0)
    total = linear + np.sqrt(np.maximum(linear**2 - 4 * (1 - alike) * excess, 0))
    part = np.divide(2 * excess, total, out=np.zeros(same.shape), where=total > 0)
    return np.asarray(np.minimum(part, same))

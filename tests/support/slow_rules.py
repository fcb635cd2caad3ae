"""The rules as they are defined, sample by sample; nothing here calls the package.

Each takes a record with `labels` (network, epoch, sample), `probabilities`, `truth` and `classes`,
and returns one label per sample. Weights and logarithms are rounded as the rules promise, so that
ties are ties here too.
"""

import itertools
import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from scipy.optimize import nnls


def winner(votes, classes):
    """Return the class with the most votes, the smallest of equals."""
    counts = [0] * classes
    for vote in np.ravel(votes):
        counts[vote] += 1
    return counts.index(max(counts))


def single(record):
    return record.labels[0, -1].tolist()


def majority(record):
    return [winner(votes, record.classes) for votes in record.labels[:, -1].T]


def max_agreement(record):
    return [
        winner(record.labels[:, :, sample], record.classes)
        for sample in range(record.labels.shape[2])
    ]


def consensus(record):
    networks, labels = len(record.labels), []
    for votes, label in zip(record.labels[:, -1].T, majority(record), strict=True):
        labels.append(label if 2 * (votes == label).sum() > networks else -1)
    return labels


def probability_average(record):
    return _most_probable(record.probabilities[:, -1:])


def soft_agreement(record):
    return _most_probable(record.probabilities)


def _most_probable(probabilities):  # (network, epoch, sample, class)
    labels = []
    for sample in range(probabilities.shape[2]):
        sums = [float(sum(map(float, one.ravel()))) for one in probabilities[:, :, sample].T]
        labels.append(sums.index(max(sums)))
    return labels


def oracle_best_epoch(record):
    epochs = range(record.labels.shape[1])
    votes = [majority(replace(record, labels=record.labels[:, : epoch + 1])) for epoch in epochs]
    return max(votes, key=lambda labels: (np.array(labels) == record.truth).sum())


def weighted_agreement(record):
    return weighted_votes(record, agreement_weights(record))


def dawid_skene(record):
    if len(record.labels) == 1:
        return max_agreement(record)
    within, across, shares = likeness(record.labels, record.classes)
    start = weighted_votes(record, regression_weights(within, reliability(across)))
    for louder in (1, 2, 4, 8, 16):
        found = fit_dawid_skene(record, start, within, across, shares, louder)
        if not classes_swapped(start, found, record.classes):
            return found
    return start


def before_overfit(record):
    before = epochs_before_overfitting(record)
    return dawid_skene(replace(record, labels=record.labels[:, :before]))


def leave_one_out(record):
    labels, classes = record.labels.astype(int), record.classes
    networks, epochs, samples = labels.shape
    if networks == 1 or classes == 1:
        return max_agreement(record)
    covariance = votes_covariance(labels, classes)
    distant = reliability(likeness(labels, classes)[1])
    group = group_of_epochs(epochs, -(-5 * classes**2 // (networks * samples)))
    evidence = [np.eye(classes)] * epochs  # (label, class): at first, each vote counts the same
    found, targets = explained_votes(labels, evidence)
    solved, changed = 0, 0.0
    for _ in range(20):
        if solved < 3 and changed < 0.01:
            weights = weights_for_targets(labels, targets, classes, covariance, distant)
            solved += 1
        tables = confusion_tables(labels, targets, classes, group)
        evidence = [weights[e] * rounded(np.log(tables[group[e]]), 16) for e in range(epochs)]
        before = targets
        found, targets = explained_votes(labels, evidence)
        changed = np.mean(targets != before)
        if solved == 3 and changed < 0.001:
            break
    return found


BY_NAME = {
    "single": single,
    "majority": majority,
    "max-agreement": max_agreement,
    "consensus": consensus,
    "probability-average": probability_average,
    "soft-agreement": soft_agreement,
    "oracle-best-epoch": oracle_best_epoch,
    "weighted-agreement": weighted_agreement,
    "dawid-skene": dawid_skene,
    "before-overfit": before_overfit,
    "leave-one-out": leave_one_out,
}


def rounded(value, bits):
    """Round to a multiple of 2**-bits, halves to even."""
    return np.rint(np.asarray(value, float) * 2**bits) / 2**bits


def weighted_votes(record, weights):
    labels = []
    for sample in range(record.labels.shape[2]):
        sums = [0.0] * record.classes
        for votes in record.labels[:, :, sample]:
            for epoch, vote in enumerate(votes):
                sums[vote] += float(weights[epoch])
        labels.append(sums.index(max(sums)))
    return labels


def likeness(labels, classes):
    """Return covariances of epochs within and across networks, and the shares of each class."""
    networks, epochs, samples = labels.shape
    votes = [
        [[(labels[n, e] == c) for c in range(classes)] for e in range(epochs)]
        for n in range(networks)
    ]
    sizes = np.array([[[int(one.sum()) for one in by] for by in some] for some in votes])
    within, across = np.zeros((epochs, epochs)), np.zeros((epochs, epochs))
    for a, b in itertools.product(range(epochs), repeat=2):
        same = other = 0
        for i, j in itertools.product(range(networks), repeat=2):
            equal = int((labels[i, a] == labels[j, b]).sum()) * samples
            excess = equal - int(sum(sizes[i, a, c] * sizes[j, b, c] for c in range(classes)))
            same, other = (same + excess, other) if i == j else (same, other + excess)
        within[a, b] = same / (networks * samples**2)
        across[a, b] = other / (max(1, networks * (networks - 1)) * samples**2)
    return within, across, sizes.sum(axis=0) / (networks * samples)


def far_apart(epochs):
    return np.array(
        [[abs(a - b) >= max(1, epochs // 4) for b in range(epochs)] for a in range(epochs)]
    )


def reliability(across):
    found = np.sqrt(np.maximum(np.diag(across), 0))
    if len(across) < 3:
        return found
    far = far_apart(len(across))
    for _ in range(300):
        fitted = np.zeros(len(across))
        for epoch, row in enumerate(np.where(far, across, 0)):
            square, terms = math.fsum(found[far[epoch]] ** 2), row * found
            # Rounding leaves of a sum of zero what would be amplified from round to round.
            if square > 0 and math.fsum(terms) > 1e-12 * math.fsum(abs(terms)):
                fitted[epoch] = math.fsum(terms) / square
        found = np.sqrt(found * fitted)
    return found


def regression_weights(within, reliabilities):
    epochs, variance = len(within), np.trace(within) / len(within)
    if variance <= 0 or not reliabilities.any():
        return rounded([1 / epochs] * epochs, 20)
    weights = np.linalg.solve(within + 0.3 * variance * np.eye(epochs), reliabilities)
    weights = np.maximum(weights, 0)
    return rounded(weights / weights.sum(), 20)


def agreement_weights(record):
    networks, epochs, _ = record.labels.shape
    before = early_overfit(record)
    if networks == 1 or (before is None and record.classes <= 2):
        return rounded([1 / epochs] * epochs, 20)
    labels = record.labels[:, :before]
    _, across, _ = likeness(labels[:, :, disputed_samples(labels)], record.classes)
    found = reliability(across)
    if found.any() and explained_share(across, found) < 0.95:
        found = reliability(likeness(labels, record.classes)[1])
    if found.max() <= 0:
        weights = rounded([1 / len(found)] * len(found), 20)
    else:
        powers = (found / found.max()) ** 4
        weights = rounded(powers / powers.sum(), 20)
    return np.array([*weights, *[0.0] * (epochs - len(weights))])


def disputed_samples(labels):
    margins = []
    for sample in range(labels.shape[2]):
        counts = sorted(np.unique(labels[:, :, sample], return_counts=True)[1])
        margins.append(counts[-1] - (counts[-2] if len(counts) > 1 else 0))
    below = [sample for sample, margin in enumerate(margins) if margin < np.median(margins)]
    return below or list(range(len(margins)))


def explained_share(across, found):
    if len(across) < 3:
        return 1.0
    far = far_apart(len(across))
    squares = (across[far] ** 2).sum()
    left = ((across - np.outer(found, found))[far] ** 2).sum()
    return 1 - left / squares if squares else 0.0


def fit_dawid_skene(record, start, within, across, shares, louder):
    labels, classes = record.labels, record.classes
    networks, epochs, samples = labels.shape
    width = max(1, min(-(-10 * classes**2 // samples), epochs // 4))
    group = [epoch // width for epoch in range(epochs)]
    weights = regression_weights(within, reliability(across))
    posterior, found = np.eye(classes)[start], list(start)
    for round_ in range(50):
        counts = np.zeros((networks, group[-1] + 1, classes, classes))  # label, true class
        right, sizes = np.zeros(epochs), posterior.sum(axis=0)
        for n, e, s in np.ndindex(labels.shape):
            counts[n, group[e], labels[n, e, s]] += posterior[s]
            right[e] += posterior[s, labels[n, e, s]]
        prior = np.maximum(sizes, 1e-10) / np.maximum(sizes, 1e-10).sum()
        if round_:
            beyond = right / (networks * sizes.sum()) - shares @ prior
            weights = regression_weights(within, np.maximum(beyond, 0))
        usual = counts.sum(axis=0) + 1e-10
        usual = usual / usual.sum(axis=-2, keepdims=True)
        smooth = np.maximum(counts + classes * usual, 1e-10)
        tables = rounded(np.log(smooth / smooth.sum(axis=-2, keepdims=True)), 16)
        votes = rounded(vote_shares(weights, within - across, networks, louder), 20)
        evidence = np.tile(rounded(np.log(prior), 16), (samples, 1))
        for n, e, s in np.ndindex(labels.shape):
            evidence[s] += votes[e] * tables[n, group[e], labels[n, e, s]]
        powers = np.exp(evidence - evidence.max(axis=1, keepdims=True))
        posterior = rounded(powers / powers.sum(axis=1, keepdims=True), 28)
        before, found = found, posterior.argmax(axis=1).tolist()
        if sum(a != b for a, b in zip(before, found, strict=True)) * 1000 < samples:
            break
    return found


def vote_shares(weights, own, networks, louder):
    alone, together = weights @ np.diag(own), weights @ own @ weights
    worth = min(max(alone / together, 1), len(weights)) if alone > 0 and together > 0 else 1.0
    shares = weights * max(worth, networks) / networks
    return np.maximum(shares, np.minimum(louder * shares, 1))


def classes_swapped(before, after, classes):
    moved = np.zeros((classes, classes), int)
    for one, other in zip(before, after, strict=True):
        moved[one, other] += 1
    return any(moved[c].max() > moved[c, c] for c in range(classes))


def early_overfit(record):
    """Return the epochs before an early fall of agreement whose later epochs do harm, or None."""
    epochs, before = record.labels.shape[1], epochs_before_overfitting(record)
    if before is None or before > 0.75 * epochs:
        return None
    within, across, _ = likeness(record.labels, record.classes)
    later = [
        within[a, b] / math.sqrt(within[a, a] * within[b, b])
        if within[a, a] > 0 and within[b, b] > 0
        else 1.0
        for a, b in itertools.combinations(range(before, epochs), 2)
    ]
    repeats = sum(later) / len(later) if later else 1.0
    best = max(across[e, e] / within[e, e] if within[e, e] > 0 else 0.0 for e in range(epochs))
    return before if repeats >= 0.65 or best >= 0.6 else None


def epochs_before_overfitting(record):
    """Return the epochs before agreement fell for good, now or while the record grew, or None."""
    labels = record.labels
    if len(labels) == 1:
        return None
    equal = np.array([[first == second for first, second in itertools.combinations(labels, 2)]])[
        0
    ].swapaxes(0, 1)  # (epoch, pair, sample)
    epochs = len(equal)
    curve = equal.mean(axis=(1, 2))
    falls = [first_fall(curve[:end]) for end in range(1, epochs + 1)]
    sizes = [0.0 if fall is None else fall_size(curve, fall) for fall in falls]
    deepest = sizes.index(max(sizes)) + 1
    ends = [(epochs, True)]
    ends += [(deepest, True)] if deepest < epochs else []
    ends += [(end, False) for end in range(1, epochs)]
    for end, with_majority in ends:
        part = replace(record, labels=labels[:, :end])
        fall = falls[end - 1]
        if fall is not None and overfits(part, equal[:end], fall, with_majority=with_majority):
            return fall[1] or None
    return None


def overfits(record, equal, fall, *, with_majority):
    curve, networks = equal.mean(axis=(1, 2)), len(record.labels)
    if fall_size(curve, fall) < 0.01:
        return False
    pairs = list(itertools.combinations(range(networks), 2))
    for left_out in range(networks) if networks > 2 else ():
        rest = [i for i, pair in enumerate(pairs) if left_out not in pair]
        if fall_size(equal[:, rest].mean(axis=(1, 2)), fall) < 0.01:
            return False
    if certainty(equal.mean(axis=1), fall) >= 0.99:
        return True
    if not with_majority:
        return False
    by_epoch = [majority(replace(record, labels=record.labels[:, [e]])) for e in range(len(curve))]
    right = np.array(by_epoch) == np.array(dawid_skene(record))  # (epoch, sample)
    fall = first_fall(right.mean(axis=1))
    return (
        fall is not None
        and fall_size(right.mean(axis=1), fall) >= 0.01
        and certainty(right, fall) >= 0.99
    )


def certainty(values, fall):
    """Return how sure a fall of (epoch, sample) values is, given their scatter and wobble."""
    groups = min(64, values.shape[1])
    parts = [values[:, group::groups] for group in range(groups)]
    falls = np.array([fall_size(part.mean(axis=1), fall) for part in parts])
    shares = np.array([part.shape[1] / values.shape[1] for part in parts])
    mean, sure = float(shares @ falls), 1 - 0.5**groups
    if groups > 1:
        error = math.sqrt(float(shares @ (falls - mean) ** 2) / (groups - 1))
        sure = min(sure, NormalDist().cdf(mean / error) if error else 1.0)
    curve = values.mean(axis=1)
    wobble = [curve[e] - window_mean(curve, e, 5) for e in range(len(curve))]
    wobble = np.array(wobble[max(0, fall[0] - 1) :]) * math.sqrt(5 / 4)
    generator = np.random.default_rng(0)
    shape = 2000, len(curve)
    drawn = generator.choice(wobble, shape) * generator.choice([-1.0, 1.0], shape)
    size = fall_size(curve, fall)
    as_deep = sum(any_fall_reaches(one, size) for one in drawn)
    return min(sure, 1 - (1 + as_deep) / 2001)


def any_fall_reaches(curve, size):
    lows = [curve[start : start + 5].mean() for start in range(len(curve) - 4)]
    return any(
        window_mean(curve, epoch, 3) - min(lows[epoch + 2 :]) >= size
        for epoch in range(len(lows) - 2)
    )


def window_mean(curve, epoch, width):
    return curve[max(0, epoch - width // 2) : epoch + width // 2 + 1].mean()


def first_fall(curve):
    """Return the first peak and the start of the lowest five epochs after it, or None."""
    smooth = [window_mean(curve, epoch, 3) for epoch in range(len(curve))]
    peak = next(e for e, value in enumerate(smooth) if value >= max(smooth) - 0.01)
    starts = range(peak + 2, len(curve) - 4)
    if not starts:
        return None
    return peak, min(starts, key=lambda start: (round(curve[start : start + 5].mean(), 12), start))


def fall_size(curve, fall):
    peak, low = fall
    return float(window_mean(curve, peak, 3) - curve[low : low + 5].mean())


def votes_covariance(labels, classes):
    """Return the covariance of the networks' mean votes at two epochs, summed over classes."""
    epochs = labels.shape[1]
    found = np.zeros((epochs, epochs))
    for class_ in range(classes):
        mean = (labels == class_).mean(axis=0)  # (epoch, sample)
        found += np.cov(mean, bias=True).reshape(epochs, epochs)
    return found


def group_of_epochs(epochs, wanted):
    """Return the group of each epoch, with at least four groups if there are as many epochs."""
    width = max(1, min(wanted, epochs // 4))
    return [epoch // width for epoch in range(epochs)]


def explained_votes(labels, evidence):
    """Return the class with the most evidence (sample,), and without each network."""
    networks, epochs, samples = labels.shape
    found, targets = [], np.zeros((networks, samples), int)
    for sample in range(samples):
        own = [
            sum(evidence[epoch][labels[network, epoch, sample]] for epoch in range(epochs))
            for network in range(networks)
        ]
        found.append(int(np.argmax(sum(own))))
        for network in range(networks):
            rest = [table for other, table in enumerate(own) if other != network]
            targets[network, sample] = np.argmax(sum(rest))
    return found, targets


def weights_for_targets(labels, targets, classes, covariance, distant):
    """Return non-negative weights by least squares on the covariance of the votes.

    The more targets are wrong and the more classes there are, the more the reliabilities between
    distant epochs count.
    """
    epochs = labels.shape[1]
    equal = (labels == targets[:, None]).mean(axis=(0, 2))
    # In integers: votes that equal their targets by chance have no weight, not a tiny one.
    excess = [
        int((labels[:, e] == targets).sum()) * targets.size
        - sum(int((labels[:, e] == c).sum()) * int((targets == c).sum()) for c in range(classes))
        for e in range(epochs)
    ]
    penalty = max(0.004 * np.trace(covariance), 1e-9) * np.eye(epochs)
    factor = np.linalg.cholesky(covariance + penalty)
    beyond = np.maximum(excess, 0) / targets.size**2
    doubt = (1 - equal.max()) ** 2 / ((1 - equal.max()) ** 2 + 25 / classes)
    beyond = beyond ** (1 - doubt) * distant**doubt
    found = nnls(factor.T, np.linalg.solve(factor, beyond))[0]
    return rounded(found / found.sum() if found.sum() > 0 else np.full(epochs, 1 / epochs), 20)


def confusion_tables(labels, targets, classes, group):
    """Return the probability of each label where the target is each class, by group of epochs."""
    tables = np.zeros((group[-1] + 1, classes, classes))
    for network, epoch, sample in np.ndindex(labels.shape):
        tables[group[epoch], labels[network, epoch, sample], targets[network, sample]] += 1
    for votes in tables:
        right = np.trace(votes) / votes.sum()
        prior = np.zeros((classes, classes))
        for class_ in range(classes):
            others = votes.sum(axis=1) / votes.sum() + 0.1 / classes
            others[class_] = 0
            prior[:, class_] = (1 - right) * others / others.sum()
            prior[class_, class_] = right
        votes[:] = (votes + classes * prior) / (votes.sum(axis=0) + classes)
    return np.maximum(tables, 1e-6)

"""Records with chosen accuracies, for tests of rules."""

import numpy as np

from accord.store import ArrayReader, SampleInfo

FADING = (0.9, 0.9, 0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3)  # accuracies by epoch
RISING = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)


def draw_rows(*, networks=4, accuracies=(0.9,) * 6, samples=600, classes=4, turns=None, seed=0):
    """Draw votes that are right with the accuracy of their epoch, and otherwise wrong.

    `turns` is the share of wrong votes for the next class instead of a random one.
    """
    generator = np.random.default_rng(seed)
    truth = np.arange(samples) % classes
    shape = networks, len(accuracies), samples
    right = generator.random(shape) < np.array(accuracies)[:, None]
    strange = (truth + generator.integers(1, classes, shape)) % classes
    turned = generator.random(shape) < (turns or 0)
    wrong = np.where(turned, (truth + 1) % classes, strange)
    labels = np.where(right, truth, wrong).astype(np.uint8)
    return ArrayReader(labels, SampleInfo(samples, classes, truth=truth), name="drawn")


def draw_late_starts():
    """Draw networks of which each predicts one class until two epochs after the one before."""
    rows = draw_rows(networks=5, accuracies=(0.5, 0.6, 0.6, *[0.7] * 9, *[0.6] * 4))
    labels = _labels_of(rows)
    for network, own in enumerate(labels):
        own[: 2 * network] = network % 4
    return ArrayReader(labels, rows.sample_info)


def draw_restarts(*, at_chance):
    """Draw networks that predict one class, or at random, at the start and after a restart."""
    rows = draw_rows(networks=4, accuracies=(0.25, 0.5, 0.7, 0.7, 0.25, 0.25, 0.5, 0.7, 0.7, 0.6))
    labels = _labels_of(rows)
    if not at_chance:
        labels[:, [0, 4, 5]] = 2
    return ArrayReader(labels, rows.sample_info)


def _labels_of(rows):
    return rows.read_labels(range(rows.networks), range(rows.epochs), slice(None)).copy()


def accuracy(rule, rows):
    return float((rule(rows).labels == rows.truth()).mean())


def two_samples(**sample_info):
    """Two networks that forget what they agreed on at first, with three epochs and classes."""
    labels = np.array([[[0, 2], [0, 2], [1, 0]], [[0, 1], [1, 2], [1, 1]]], np.uint8)
    return ArrayReader(labels, SampleInfo(samples=2, classes=3, **sample_info))

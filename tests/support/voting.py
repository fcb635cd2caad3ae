"""Records with chosen accuracies, for tests of rules."""

import numpy as np

from accord.store import ArrayReader, SampleInfo


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


def accuracy(rule, rows):
    return float((rule(rows).labels == rows.truth()).mean())

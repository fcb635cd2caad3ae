"""Records of networks that come to agree and, optionally, overfit."""

import numpy as np

from accord.store import ArrayReader, SampleInfo


def right_chances(epochs=40, *, peak=0.9, end=None, wobble=0.01, seed=0):
    """How often a network is right at each epoch: rising to a plateau, then perhaps falling."""
    progress = np.arange(epochs) / epochs
    rise = peak * (1 - np.exp(-progress * 12))
    fall = 0 if end is None else (peak - end) * np.clip((progress - 0.5) / 0.3, 0, 1)
    noise = np.random.default_rng([7, seed]).normal(0, wobble, epochs)
    return np.clip(rise - fall + noise, 0.05, 0.99)


def draw_run(chances, *, networks=5, samples=600, classes=5, truth=None, seed=0):
    """Draw labels: each network keeps its own luck with a sample, so that it does not flicker."""
    generator = np.random.default_rng(seed)
    truth = np.arange(samples) % classes if truth is None else truth
    luck = generator.random((networks, 1, samples))
    shake = generator.normal(0, 0.05, (networks, len(chances), samples))
    strange = (truth + generator.integers(1, classes, (networks, 1, samples))) % classes
    right = luck + shake < np.asarray(chances)[:, None]
    labels = np.where(right, truth, strange).astype(np.uint8)
    return ArrayReader(labels, SampleInfo(samples, classes, truth=truth), name="run")


def memorised(*, networks=4, classes=10, seed=0):
    """Networks that know most samples early and memorise wrong labels for most of the training."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, classes, 600)
    given = np.where(generator.random(600) < 0.4, generator.integers(0, classes, 600), truth)
    labels = np.empty((networks, 40, 600), np.uint8)
    for network in range(networks):
        when = 6 + 10 * generator.random(600)  # each learns each label by heart at its own time
        for epoch in range(40):
            known = generator.random(600) < min(0.9, 0.5 + 0.1 * epoch)
            guess = np.where(known, truth, generator.integers(0, classes, 600))
            forced = np.where(generator.random(600) < 0.9, given, guess)
            labels[network, epoch] = np.where(epoch > when, forced, guess)
    return ArrayReader(labels, SampleInfo(600, classes, truth=truth))

"""Records of networks that learn the true classes first and wrong labels by heart later."""

import numpy as np

from accord.store import ArrayReader, SampleInfo

NAMES = ("ant", "bee", "cat", "dog", "eel")
IDS = np.array([f"image-{sample}" for sample in range(600)])


def memorised_rows(
    *,
    networks=4,
    epochs=12,
    samples=600,
    classes=5,
    rate=0.3,
    directed=False,
    seed=0,
    **sample_info,
):
    """Draw votes: random at first, then right seven times in ten and more, then the given label.

    A share `rate` of the given labels is wrong: any other class, or the next if `directed`.
    """
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, classes, samples)
    move = np.ones(samples, int) if directed else generator.integers(1, classes, samples)
    given = np.where(generator.random(samples) < rate, (truth + move) % classes, truth)
    shape = networks, epochs, samples
    chance = np.where(np.arange(epochs) < 2, 0.1, 0.7)[:, np.newaxis]
    right = generator.random(shape) < chance
    votes = np.where(right, truth, generator.integers(0, classes, shape))
    by_heart = generator.integers(epochs // 2, epochs - 1, samples)
    votes = np.where(np.arange(epochs)[:, np.newaxis] >= by_heart, given, votes)
    known = {"truth": truth, "given": given, "split": "train"} | sample_info
    return ArrayReader(
        votes.astype(np.uint16), SampleInfo(samples, classes, **known), name="memorised"
    )

"""Small reproducible records for tests."""

import numpy as np

from accord._recorder import Recorder

SAMPLES, CLASSES = 40, 5


def labels_of(network, epoch, *, samples=SAMPLES, classes=CLASSES):
    """Return labels that depend only on network and epoch."""
    return np.random.default_rng([network, epoch]).integers(0, classes, samples)


def write_record(path, *, networks=2, epochs=3, **options):
    for network in range(networks):
        with Recorder(
            path, network=network, samples=SAMPLES, classes=CLASSES, **options
        ) as recorder:
            for epoch in range(recorder.epochs, epochs):
                recorder.record(labels_of(network, epoch), loss=1 / (epoch + 1))
    return path


def votes_of(networks, epochs):
    return np.array([[labels_of(n, e) for e in epochs] for n in networks])


def winners_by_definition(labels):
    flat = labels.reshape(-1, labels.shape[-1])
    return [max(range(CLASSES), key=lambda c: (flat[:, s] == c).sum()) for s in range(SAMPLES)]

"""Records in memory whose networks make more errors at later epochs."""

import numpy as np

from accord._record import Record
from accord.experiments.paper import Setting
from accord.store import make_sample_info
from accord.store._record_reader import ArrayReader


def make_record(
    *shape, truth=True, wrong=0.4, probabilities=False, class_names=None, name="runs/mine"
):
    networks, epochs, samples, classes = shape
    random = np.random.default_rng(0)
    true = random.integers(0, classes, samples)
    rates = wrong * np.linspace(0.5, 1.5, epochs)[:, None]
    errs = random.random((networks, epochs, samples)) < rates
    labels = np.where(errs, random.integers(0, classes, errs.shape), true)
    soft = (np.eye(classes)[labels] + 1 / classes).astype(np.float16) / 2
    sample_info = make_sample_info(
        samples=samples, classes=classes, truth=true if truth else None, class_names=class_names
    )
    return Record(
        ArrayReader(labels, sample_info, probabilities=soft if probabilities else None, name=name)
    )


def make_setting():
    """Return a setting with five networks on noisy labels, two on clean ones, and pictures."""
    noisy = make_record(5, 8, 120, 4, class_names=("ant", "bee", "cat", "dog"))
    clean = make_record(2, 5, 120, 4, wrong=0.1)
    pictures = np.arange(120 * 4, dtype=np.uint16).reshape(120, 2, 2) % 256
    return Setting("mine", noisy, clean=clean, samples_per_class=10, pictures=pictures)

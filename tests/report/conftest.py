"""Small records in memory, whose networks err the more the later the epoch."""

import numpy as np
import pytest

from accord._record import Record
from accord.store import make_sample_info
from accord.store._record_reader import ArrayReader


def build(*shape, truth=True, wrong=0.4, probabilities=False, class_names=None, name="runs/mine"):
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


@pytest.fixture(scope="session")
def make_record():
    """Build a record of so many networks, epochs, samples and classes."""
    return build


@pytest.fixture(scope="session")
def record():
    """Three networks, eight epochs, four classes, with probabilities."""
    return build(3, 8, 120, 4, probabilities=True)

"""Records in memory whose samples vary in difficulty."""

import numpy as np

from accord._record import Record
from accord.store import ArrayReader, make_sample_info


def make_hard_record(networks=5, epochs=12, samples=1000, classes=4, *, truth=True, **sample_info):
    """Draw a record whose samples get easier; on the hardest, most votes are for a wrong class."""
    random = np.random.default_rng(3)
    true = random.integers(0, classes, samples)
    hardness = np.linspace(0.46, 0, samples)
    luck = random.random((networks, 1, samples)) * 0.7
    shake = random.random((networks, epochs, samples)) * 0.3
    late = np.linspace(0, 0.1, epochs)[:, None]
    labels = np.where(luck + shake < hardness + late, (true + 1) % classes, true)
    made = make_sample_info(
        samples=samples, classes=classes, truth=true if truth else None, **sample_info
    )
    return Record(ArrayReader(labels, made, name="runs/mine"))


def with_bad_networks(record, *kinds):
    """Append networks that predict at random or always class 0."""
    reader, random = record.reader, np.random.default_rng(0)
    shape = len(kinds), reader.epochs, reader.samples
    bad = random.integers(0, reader.classes, shape)
    bad[[kind == "constant" for kind in kinds]] = 0
    return Record(
        ArrayReader(np.concatenate([record.labels[:], bad]), reader.sample_info, name=reader.name)
    )

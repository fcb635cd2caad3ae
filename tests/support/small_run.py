"""A small run on the digits, for tests of training."""

import numpy as np

import accord
from accord.training import parse_spec, train

TEXT = """
name = "small"
[data]
kind = "digits"
per_class = 20
[noise]
kind = "symmetric"
rate = 0.4
[train]
networks = 2
network = "small-cnn"
options = { width = 4 }
epochs = 4
batch = 64
optimizer = { lr = 0.02 }
augment = ["shift"]
[record]
splits = ["test", "train"]
checkpoints = 2
"""

SMALL_CNN = 'network = "small-cnn"\noptions = { width = 4 }'


def changed(*pairs):
    """Return the text of the spec with some parts replaced."""
    text = TEXT
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def train_text(out, text=TEXT, **options):
    """Train a spec from its text."""
    return train(parse_spec(text), out, source=text, **options)


def labels_of(out, split="test"):
    """Return the recorded labels of a split."""
    return np.asarray(accord.open(out / split).labels)

"""Runs are counted a few samples at a time."""

import tracemalloc
from importlib import import_module

import numpy as np
import pytest

from accord.analysis import persistence
from accord.store import ArrayReader, SampleInfo


def random_rows(samples, epochs):
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 10, (2, epochs, samples), np.uint8)
    return ArrayReader(labels, SampleInfo(samples, 10, truth=draw.integers(0, 10, samples)))


@pytest.mark.parametrize("at_once", [1, 7, 50])
def test_however_many_are_counted_at_once_the_counts_are_the_same(at_once, monkeypatch):
    rows = random_rows(samples=11, epochs=5)
    whole = persistence(rows)
    module = import_module("accord.analysis._dynamics")  # a function has its name
    monkeypatch.setattr(module, "LABELS_AT_ONCE", at_once)
    parts = persistence(rows)
    for name, expected in vars(whole).items():
        np.testing.assert_array_equal(getattr(parts, name), expected)


def test_a_block_takes_little_more_memory_than_its_labels():
    rows = random_rows(samples=60_000, epochs=100)
    tracemalloc.start()
    persistence(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6 + 80e6  # the labels, and 2**20 of them at work

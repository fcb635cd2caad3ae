"""Running winners are the winners of all epochs so far."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings

from accord.kernels import _numpy_loops as dense
from accord.kernels import running_winners, winners
from accord.kernels._blocks import Block
from accord.testing._contracts import labels_and_classes


def by_definition(labels):
    """Count anew after each epoch."""
    _, epochs, samples = labels.shape
    return [
        [majority(labels[:, : epoch + 1, sample].ravel().tolist()) for sample in range(samples)]
        for epoch in range(epochs)
    ]


def majority(labels):
    return min((-labels.count(label), label) for label in labels)[1]


@pytest.mark.usefixtures("engine")
@given(labels_and_classes(epochs=6))
def test_running_winners_equal_the_definition(drawn):
    labels, classes = drawn
    found = running_winners(labels, classes=classes)
    assert found.dtype == np.min_scalar_type(classes - 1)
    assert found.tolist() == by_definition(labels)


@pytest.mark.usefixtures("engine")
@settings(max_examples=20)
@given(labels_and_classes())
def test_the_last_running_winner_is_the_winner(drawn):
    labels, classes = drawn
    last = running_winners(labels, classes=classes)[-1]
    np.testing.assert_array_equal(last, winners(labels, classes=classes).labels)


@pytest.mark.usefixtures("engine")
def test_the_lead_passes_to_a_smaller_class_on_equal_votes_alone():
    labels = np.array([[[2], [1], [3], [0], [0]]], np.uint8)
    assert running_winners(labels, classes=4).ravel().tolist() == [2, 1, 1, 0, 0]


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("epochs", [300, 70_000])
def test_votes_do_not_overflow_a_byte_or_two(epochs):
    labels = np.ones((1, epochs, 2), np.uint8)
    labels[0, -epochs // 2 :] = 0
    found = running_winners(labels, classes=2)
    assert found[:-1].min() == 1
    assert found[-1].tolist() == [0, 0]


def test_many_votes_for_many_classes_still_fit_the_keys():
    classes, epochs = 2**20, 2**13
    labels = np.full((1, epochs, 1), classes - 1, np.uint32)
    labels[0, epochs // 2 + 1 :] = 0
    found = dense.run(Block(labels, 0, 1, classes))
    assert set(found.ravel().tolist()) == {classes - 1}


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("classes", [10, 5000, 100_000])
def test_many_samples_fall_into_many_blocks(classes):
    labels = np.random.default_rng(0).integers(0, 10, (2, 6, 9000)) * (classes // 10)
    labels = labels.astype(np.min_scalar_type(classes - 1))
    found = running_winners(labels, classes=classes)
    for epoch in range(6):
        expected = winners(labels[:, : epoch + 1], classes=classes).labels
        np.testing.assert_array_equal(found[epoch], expected)


@pytest.mark.usefixtures("loops")
def test_many_classes_need_no_table_of_classes():
    labels = np.random.default_rng(0).integers(0, 100_000, (2, 5, 4000)).astype(np.uint32)
    running_winners(labels[..., :9], classes=100_000)
    tracemalloc.start()
    running_winners(labels, classes=100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 * 2**20  # one table of all samples: 1.5 GiB

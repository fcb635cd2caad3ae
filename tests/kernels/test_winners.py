import tracemalloc
from collections import Counter

import numpy as np
import pytest
from drawn_labels import labels_and_classes
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.kernels import _numpy_loops as dense
from accord.kernels import running_winners, winners
from accord.kernels._blocks import Block


def by_definition(labels):
    """The most voted class of each sample, the smaller of two, with its votes."""
    columns = labels.reshape(-1, labels.shape[-1]).T
    return [min((-votes, label) for label, votes in Counter(c.tolist()).items()) for c in columns]


def assert_won(labels, classes):
    found = winners(labels, classes=classes)
    assert (found.labels.dtype, found.votes.dtype) == (np.intp, np.intp)
    expected = by_definition(labels)
    assert found.labels.tolist() == [label for _, label in expected]
    assert found.votes.tolist() == [-votes for votes, _ in expected]


def votes_with_leader(share, *, voters, samples, classes, seed=0):
    random = np.random.default_rng(seed)
    leader = random.integers(0, classes, samples)
    others = random.integers(0, classes, (voters, samples))
    labels = np.where(random.random((voters, samples)) < share, leader, others)
    return labels.astype(np.min_scalar_type(classes - 1))


@pytest.mark.usefixtures("engine")
@given(labels_and_classes())
def test_winners_equal_the_definition(drawn):
    assert_won(*drawn)


@pytest.mark.usefixtures("engine")
@settings(max_examples=20)
@given(labels_and_classes(), st.randoms(use_true_random=False))
def test_the_order_of_voters_changes_nothing(drawn, random):
    labels, classes = drawn
    networks, epochs = list(range(labels.shape[0])), list(range(labels.shape[1]))
    random.shuffle(networks)
    random.shuffle(epochs)
    shuffled = winners(labels[networks][:, epochs], classes=classes)
    np.testing.assert_array_equal(shuffled, winners(labels, classes=classes))


@pytest.mark.usefixtures("engine")
@settings(max_examples=20)
@given(labels_and_classes())
def test_seeing_every_epoch_twice_changes_no_winner(drawn):
    labels, classes = drawn
    once = winners(labels, classes=classes)
    twice = winners(np.concatenate([labels, labels], axis=1), classes=classes)
    np.testing.assert_array_equal(twice.labels, once.labels)
    np.testing.assert_array_equal(twice.votes, 2 * once.votes)


@pytest.mark.usefixtures("engine")
def test_equal_votes_go_to_the_smaller_class():
    labels = np.array([[3, 0, 2], [1, 2, 2], [3, 2, 0], [1, 0, 0]], np.uint8)
    assert winners(labels, classes=4).labels.tolist() == [1, 0, 0]


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("classes", [2, 10, 100, 1000, 100_000])
@pytest.mark.parametrize("share", [0.9, 0.6, 0.35, 0.1])
def test_winners_hold_where_the_guess_does_not(share, classes):
    assert_won(votes_with_leader(share, voters=40, samples=300, classes=classes), classes)


@pytest.mark.usefixtures("loops")
def test_easy_samples_stand_beside_hard_ones():
    easy = votes_with_leader(0.9, voters=50, samples=200, classes=50)
    hard = votes_with_leader(0.2, voters=50, samples=60, classes=50)
    mixed = np.concatenate([easy, hard], axis=1)
    assert_won(mixed[:, np.random.default_rng(1).permutation(260)], 50)


@pytest.mark.usefixtures("loops")
def test_a_leader_whom_no_guesser_heard_still_wins():
    labels = np.zeros((1000, 1), np.uint8)
    for guessers in (16, 31):
        labels[np.arange(guessers) * 1000 // guessers] = 1
    assert labels.mean() < 0.1
    assert winners(labels, classes=2).labels == [0]


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("voters", [254, 255, 256, 300, 511, 70_000])
def test_votes_do_not_overflow_a_byte_or_two(voters):
    labels = np.full((voters, 2), 7, np.uint16)
    labels[0] = 3
    assert winners(labels, classes=1000).votes.tolist() == [voters - 1] * 2


@pytest.mark.usefixtures("loops")
def test_many_samples_fall_into_many_blocks():
    assert_won(votes_with_leader(0.5, voters=5, samples=40_000, classes=5), 5)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("classes", [500, 100_000])
def test_no_table_of_all_samples_is_made(classes):
    labels = votes_with_leader(0.3, voters=10, samples=20_000, classes=classes)
    winners(labels[:, :20], classes=classes)
    tracemalloc.start()
    winners(labels, classes=classes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 * 2**20  # one table of all samples: 76 MiB or 15 GiB


@pytest.mark.usefixtures("loops")
def test_labels_are_left_as_they_came():
    labels = votes_with_leader(0.4, voters=20, samples=30, classes=9)
    before = labels.copy()
    winners(labels, classes=9)
    np.testing.assert_array_equal(labels, before)


def running_by_definition(labels):
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
    assert found.tolist() == running_by_definition(labels)


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
def test_running_votes_do_not_overflow_a_byte_or_two(epochs):
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
def test_many_samples_run_in_many_blocks(classes):
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

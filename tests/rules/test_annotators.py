import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.kernels._votes import on_grid
from accord.rules import _annotators as confusion
from accord.rules._annotators import ExpectedClasses, add_evidence, join, voters_at_once


@st.composite
def votes_and_posteriors(draw):
    samples, classes = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    voters = draw(st.integers(1, voters_at_once(classes)))
    labels = generator.integers(0, classes, (voters, samples))
    kind = draw(st.sampled_from(["u1", "u2", "i8"]))
    return labels.astype(kind), on_grid(generator.dirichlet(np.full(classes, 0.05), samples), 20)


@given(votes_and_posteriors(), st.sampled_from([0, 1, 10**9]))
def test_confusion_is_what_adding_one_by_one_gives(drawn, dense_from):
    labels, posterior = drawn
    expected = np.zeros((len(labels),) + (posterior.shape[1],) * 2)
    for voter, sample in np.ndindex(labels.shape):
        expected[voter, labels[voter, sample]] += posterior[sample]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confusion, "DENSE_FROM", dense_from)
        counts = ExpectedClasses(posterior).count(join(labels, posterior.shape[1]), len(labels))
    np.testing.assert_array_equal(counts, expected)


def test_labels_above_a_byte_over_classes_do_not_wrap_around():
    posterior = np.zeros((1, 200))
    posterior[0, 7] = 1
    counts = ExpectedClasses(posterior).count(join(np.array([[199]], np.uint8), 200), 1)
    assert counts[0, 199, 7] == counts.sum() == 1


def test_evidence_is_added_to_what_is_there():
    evidence = np.ones((2, 2))
    add_evidence(evidence, np.array([1, 1]), np.array([[[5.0, 5.0], [1.0, 2.0]]]))
    np.testing.assert_array_equal(evidence, [[2, 3], [2, 3]])


@given(st.integers(1, 40), st.sampled_from([1, 60, 2**17]), st.integers(0, 2**32 - 1))
def test_several_voters_at_once_are_each_added(classes, cells, seed):
    generator = np.random.default_rng(seed)
    voters = voters_at_once(classes)
    assert classes**voters <= 1024
    labels = generator.integers(0, classes, (voters, 5)).astype(np.uint8)
    tables = on_grid(generator.normal(size=(voters, classes, classes)), 16)
    evidence = np.zeros((5, classes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confusion, "TABLE_CELLS", cells)
        add_evidence(evidence, join(labels, classes), tables)
    expected = [
        sum(table[label] for table, label in zip(tables, votes, strict=True)) for votes in labels.T
    ]
    np.testing.assert_array_equal(evidence, expected)


def test_tables_of_several_voters_stay_small():
    assert [voters_at_once(classes) for classes in (1, 2, 10, 32, 33, 1000, 2000)] == [
        *(10, 10, 3, 2, 1, 1, 1)
    ]


@given(st.lists(st.floats(-1000, 1000), min_size=1, max_size=50), st.randoms())
def test_sums_on_a_grid_are_the_same_in_any_order(values, random):
    rounded = on_grid(np.array(values), 20)
    np.testing.assert_allclose(rounded, values, atol=2**-21)
    shuffled = rounded.tolist()
    random.shuffle(shuffled)
    assert sum(shuffled) == sum(rounded.tolist()) == rounded.sum()

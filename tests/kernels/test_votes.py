import numpy as np
import pytest
from drawn_labels import labels_and_classes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from accord.errors import PredictionError
from accord.kernels import _votes as weighted
from accord.kernels import agreement, count_votes, error_consensus, final_margins, margins
from accord.kernels._votes import count_matching_pairs, count_weighted


def by_definition(labels, classes):
    """One vote after another: slow, obvious."""
    votes = np.zeros((labels.shape[-1], classes), np.intp)
    for column, row in zip(labels.reshape(-1, labels.shape[-1]).T, votes, strict=True):
        for label in column.tolist():
            row[label] += 1
    return votes


SMALL_TABLES = labels_and_classes().filter(lambda drawn: drawn[1] < 2**32)


@pytest.mark.usefixtures("engine")
@given(SMALL_TABLES)
def test_votes_equal_the_definition(drawn):
    labels, classes = drawn
    votes = count_votes(labels, classes=classes)
    assert votes.dtype == np.intp
    np.testing.assert_array_equal(votes, by_definition(labels, classes))


@pytest.mark.usefixtures("loops")
@settings(max_examples=30)
@given(SMALL_TABLES)
def test_agreement_is_the_share_of_votes(drawn):
    labels, classes = drawn
    shares = by_definition(labels, classes) / labels[..., 0].size
    np.testing.assert_array_equal(agreement(labels, classes=classes), shares)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("voters", [255, 256, 300, 70_000])
@pytest.mark.parametrize("classes", [2, 100])
def test_votes_do_not_overflow_a_byte_or_two(voters, classes):
    labels = np.ones((voters, 2), np.uint8)
    labels[:3] = 0
    assert count_votes(labels, classes=classes)[:, :2].tolist() == [[3, voters - 3]] * 2


@pytest.mark.usefixtures("loops")
def test_many_samples_fall_into_many_blocks():
    labels = np.random.default_rng(0).integers(0, 20, (3, 10_000)).astype(np.uint8)
    votes = count_votes(labels, classes=20)
    np.testing.assert_array_equal(votes, (labels[..., None] == np.arange(20)).sum(axis=0))


def weighted_by_definition(labels, weights, classes):
    """One vote after another: slow, obvious."""
    table = np.zeros((labels.shape[2], classes), int)
    for network, epoch, sample in np.ndindex(labels.shape):
        table[sample, labels[network, epoch, sample]] += weights[epoch]
    return table


@st.composite
def weighted_labels(draw):
    """Labels of one to thirty classes, with weights of which some are zero."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 7)))
    classes, largest = draw(st.integers(1, 30)), draw(st.sampled_from([1, 8, 300]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from([np.uint8, np.int64]))
    labels = generator.integers(0, classes, shape).astype(kind)
    weights = generator.integers(0, largest + 1, shape[1])
    return labels, np.where(generator.random(shape[1]) < 0.3, 0, weights), classes


@given(weighted_labels())
def test_weighted_votes_equal_the_definition(drawn):
    labels, weights, classes = drawn
    table = count_weighted(labels, weights, classes=classes)
    np.testing.assert_array_equal(table, weighted_by_definition(labels, weights, classes))
    assert table.dtype == np.min_scalar_type(len(labels) * weights.sum())


@settings(max_examples=30)
@given(weighted_labels())
def test_in_narrow_spans_the_votes_are_the_same(drawn):
    labels, weights, classes = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weighted, "COMPARED_AT_ONCE", 2 * labels[..., 0].size)
        patch.setattr(weighted.blocks, "width_for", lambda *_: 2)
        table = count_weighted(labels, weights, classes=classes)
    np.testing.assert_array_equal(table, weighted_by_definition(labels, weights, classes))


@pytest.mark.parametrize("voters", [255, 256, 600])
@pytest.mark.parametrize("classes", [3, 100])
def test_votes_do_not_overflow_a_byte(voters, classes):
    labels = np.ones((voters, 1, 2), np.uint8)
    labels[:3] = 0
    table = count_weighted(labels, np.array([7]), classes=classes)
    assert table[:, :2].tolist() == [[21, 7 * (voters - 3)]] * 2
    assert table.sum() == 2 * 7 * voters


def test_epochs_without_weight_leave_an_empty_table():
    for classes in (2, 50):
        table = count_weighted(np.ones((2, 3, 4), np.uint8), np.zeros(3, int), classes=classes)
        assert table.shape == (4, classes)
        assert not table.any()


def test_labels_out_of_shape_or_range_are_refused():
    with pytest.raises(PredictionError, match=r"\(network, epoch, sample\); got shape \(2, 3\)"):
        count_weighted(np.zeros((2, 3), int), np.ones(3, int), classes=2)
    with pytest.raises(PredictionError, match=r"0\.\.1 for 2 classes; got 0\.\.5"):
        count_weighted(np.array([[[0, 5]]]), np.ones(1, int), classes=2)
    with pytest.raises(PredictionError, match="the largest is 4 GiB"):
        count_weighted(np.zeros((1, 1, 2**16), int), np.ones(1, int), classes=2**16)


def majority(labels):
    return min((-labels.count(label), label) for label in labels)[1]


def lead(votes, label):
    """The votes of a class less those of the best other class, as a share of all."""
    others = [votes.count(other) for other in votes if other != label]
    return (votes.count(label) - max(others, default=0)) / len(votes)


def columns(labels):
    return labels.reshape(-1, labels.shape[-1]).T.tolist()


@pytest.mark.usefixtures("engine")
@given(labels_and_classes())
def test_margin_is_best_less_second_best(drawn):
    labels, classes = drawn
    found = margins(labels, classes=classes)
    assert found.dtype == np.float64
    assert found.tolist() == [lead(votes, majority(votes)) for votes in columns(labels)]


@pytest.mark.usefixtures("engine")
@given(labels_and_classes())
def test_final_margin_is_that_of_the_last_majority(drawn):
    labels, classes = drawn
    last = [majority(votes) for votes in columns(labels[:, -1])]
    expected = [lead(votes, label) for votes, label in zip(columns(labels), last, strict=True)]
    found = final_margins(labels, classes=classes)
    assert found.dtype == np.float64
    assert found.tolist() == expected


@pytest.mark.usefixtures("loops")
@settings(max_examples=20)
@given(labels_and_classes())
def test_seeing_every_epoch_twice_changes_no_margin(drawn):
    labels, classes = drawn
    twice = np.concatenate([labels, labels], axis=1)
    for kernel in (margins, final_margins):
        np.testing.assert_array_equal(
            kernel(twice, classes=classes), kernel(labels, classes=classes)
        )


@pytest.mark.usefixtures("engine")
def test_a_class_without_rivals_leads_by_its_full_share():
    labels = np.zeros((3, 2, 4), np.uint8)
    assert margins(labels, classes=1).tolist() == [1.0] * 4
    assert final_margins(labels, classes=1).tolist() == [1.0] * 4


@pytest.mark.usefixtures("engine")
def test_a_tie_has_no_margin():
    assert margins(np.array([[1], [2], [2], [1]]), classes=3).tolist() == [0.0]


TYPES = st.sampled_from([np.uint8, np.uint16, np.int64])


def consensus_by_definition(labels, truth):
    """Look at each pair of a sample with a network, then at all networks again."""
    counts = [0] * len(labels)
    for column, true in zip(labels.T.tolist(), truth.tolist(), strict=True):
        for label in column:
            if label != true:
                counts[column.count(label) - 1] += 1
    return counts


@given(st.data(), st.integers(1, 6), st.integers(0, 8), TYPES, TYPES)
def test_error_consensus_equals_the_definition(data, networks, samples, kind, true_kind):
    few = st.integers(0, 2)
    labels = data.draw(arrays(kind, (networks, samples), elements=few))
    truth = data.draw(arrays(true_kind, samples, elements=few))
    found = error_consensus(labels, truth)
    assert found.dtype == np.intp
    assert found.tolist() == consensus_by_definition(labels, truth)


def test_every_wrong_pair_is_counted_once():
    random = np.random.default_rng(0)
    labels, truth = random.integers(0, 5, (300, 40)), random.integers(0, 5, 40)
    assert error_consensus(labels, truth).sum() == (labels != truth).sum()


@pytest.mark.parametrize(
    "labels", [np.zeros((0, 2), int), np.zeros((2, 2)), np.zeros((1, 1, 2), int)]
)
def test_labels_of_another_form_are_refused(labels):
    with pytest.raises(PredictionError, match=r"integers \(network, sample\).*labels\[:, -1\]"):
        error_consensus(labels, np.zeros(2, int))


@pytest.mark.parametrize("truth", [np.zeros(3, int), np.zeros(2), np.zeros((2, 1), int)])
def test_truth_that_does_not_fit_is_refused(truth):
    with pytest.raises(PredictionError, match=r"2 integers, one per sample.*another split"):
        error_consensus(np.zeros((1, 2), int), truth)


@given(labels_and_classes())
def test_pairs_are_what_comparing_one_by_one_gives(drawn):
    labels, _ = drawn
    flat = labels.reshape(-1, labels.shape[-1])
    expected = [[np.sum(one == other) for other in flat] for one in flat]
    np.testing.assert_array_equal(count_matching_pairs(flat), expected)


@pytest.mark.parametrize("samples", [1, 63, 64, 65, 1000])
def test_all_bits_of_all_samples_are_compared(samples):
    labels = np.random.default_rng(0).integers(0, 1000, (4, samples)).astype(np.uint16)
    labels[1] = labels[0]
    labels[2] = labels[0] ^ 512
    labels[3, -1] = labels[0, -1]
    expected = (labels[:, np.newaxis] == labels).sum(axis=2)
    np.testing.assert_array_equal(count_matching_pairs(labels), expected)

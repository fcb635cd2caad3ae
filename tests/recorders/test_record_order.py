"""Samples and classes in any order end up in the record's order."""

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord._recorders.record_order import (
    Order,
    as_ids,
    assemble,
    place_columns,
    place_labels,
    positions_of,
)
from accord.errors import ChoiceError, PredictionError
from accord.store import SampleInfo


def by_definition(predicted, ids, order):
    """Search all predictions for the first of each sample."""
    return [
        next(one for one, name in zip(predicted, ids, strict=True) if name == wanted)
        for wanted in order
    ]


numbers = st.integers(-(2**63), 2**63 - 1)
names = st.text(string.ascii_letters + "é ", max_size=4)


@st.composite
def arrivals(draw):
    """Draw the ids of a record, and ids of predictions: each at least once, in any order."""
    kind = draw(st.sampled_from([numbers, st.integers(0, 9), names]))
    order = draw(st.lists(kind, min_size=1, max_size=12, unique=True))
    more = draw(st.lists(st.sampled_from(order), max_size=6))
    return order, draw(st.permutations(order + more))


@given(arrivals(), st.booleans())
def test_assembling_equals_a_linear_search(case, tables):
    order, ids = case
    predicted = np.arange(len(ids) * 2).reshape(-1, 2) if tables else np.arange(len(ids))
    found = assemble(predicted, ids, Order(len(order), order))
    np.testing.assert_array_equal(found, by_definition(predicted, ids, order))


@given(st.permutations(range(7)), st.lists(st.integers(0, 6), max_size=5))
def test_without_ids_in_the_record_ids_are_positions(once, again):
    ids = [*once, *again]
    predicted = np.arange(len(ids))
    found = assemble(predicted, np.array(ids), Order(7))
    np.testing.assert_array_equal(found, by_definition(predicted, ids, range(7)))


def test_the_first_of_two_predictions_for_one_sample_counts():
    assert assemble(np.array([5, 6, 7]), [1, 0, 1], Order(2)).tolist() == [6, 5]


def test_without_ids_predictions_keep_their_order():
    assert assemble(np.array([5, 6, 7]), None, Order(3, ids=["c", "a", "b"])).tolist() == [5, 6, 7]


def test_too_few_samples_name_the_likely_cause():
    with pytest.raises(
        PredictionError, match=r"^got 2 predictions for 3 samples.*drop the last batch.*size"
    ):
        assemble(np.array([5, 6]), None, Order(3))


def test_too_many_samples_name_the_likely_cause():
    with pytest.raises(
        PredictionError, match=r"^got 4 predictions for 3 samples.*repeat samples.*requires ids"
    ):
        assemble(np.arange(4), None, Order(3))


def test_missing_samples_are_counted_and_the_first_ones_named():
    with pytest.raises(
        PredictionError, match=r"^5 of 6 samples are missing: 0, 1, 3, …\. Does.*last batch"
    ):
        assemble(np.array([1]), [2], Order(6))
    with pytest.raises(PredictionError, match=r"^2 of 3 samples are missing: 'c', 'b'\."):
        assemble(np.array([1]), ["a"], Order(3, ids=["c", "a", "b"]))


@pytest.mark.parametrize("strange", [3, -1, 2**40])
def test_unknown_positions_are_refused(strange):
    with pytest.raises(
        PredictionError,
        match=rf"^1 of the ids are not in .*: {strange}\. It has 3 samples, 0, 1",
    ):
        assemble(np.arange(4), [0, 1, 2, strange], Order(3))


@pytest.mark.parametrize("strange", ["", "bb", "z"])
def test_unknown_names_are_refused(strange):
    order = Order(2, ids=["c", "b"])
    with pytest.raises(
        PredictionError, match=rf"1 of the ids are not in the record: '{strange}'\. It has 2.*'c'"
    ):
        assemble(np.arange(3), ["b", "c", strange], order)


def test_long_lists_of_unknown_ids_are_cut():
    with pytest.raises(
        PredictionError, match=r"4 of the ids are not in the record: 7, 8, 9, …\. It has 1 sample"
    ):
        assemble(np.arange(5), [0, 7, 8, 9, 10], Order(1))


def test_three_ids_are_listed_in_full():
    with pytest.raises(PredictionError, match=r"^3 of the ids .*: 7, 8, 9\. It has 1 sample"):
        assemble(np.arange(4), [0, 7, 8, 9], Order(1))
    with pytest.raises(PredictionError, match=r"^3 of 4 samples are missing: 1, 2, 3\. Does"):
        assemble(np.arange(1), [0], Order(4))


def test_number_ids_are_refused_by_a_record_with_text_ids():
    with pytest.raises(PredictionError, match=r"ids such as 'a'; the batches carry 0\..*with_ids"):
        Order(1, ids=["a"]).positions([0])


def test_text_ids_are_refused_by_a_record_without_ids():
    with pytest.raises(PredictionError, match=r"'a', and the record does not.*Recorder\(…, ids="):
        Order(1).positions(["a"])


def test_ids_match_across_integer_types():
    order = Order(2, ids=np.array([250, 3], np.uint8))
    assert order.positions(np.array([3, 250], np.uint64)).tolist() == [1, 0]


def test_large_ids_do_not_round_to_each_other():
    ids = np.array([2**62 + 1, 2**62], np.int64)
    assert Order(2, ids=ids).positions(ids.astype(np.uint64)).tolist() == [0, 1]


def test_each_prediction_requires_an_id():
    with pytest.raises(PredictionError, match="got 3 predictions and 2 ids"):
        assemble(np.arange(3), [0, 1], Order(2))


@pytest.mark.parametrize(
    ("ids", "got"),
    [
        ([0.5], r"float64 of shape \(1,\)"),
        ([[1, 2]], r"int64 of shape \(1, 2\)"),
        ([True], "bool"),
    ],
)
def test_ids_that_are_neither_numbers_nor_text_are_refused(ids, got):
    with pytest.raises(PredictionError, match=f"whole numbers or text.*{got}"):
        as_ids(ids)


def test_ids_beyond_64_bits_are_refused():
    with pytest.raises(PredictionError, match=r"fit into signed 64-bit.*9223372036854775808"):
        as_ids(np.array([2**63], np.uint64))
    assert as_ids(np.array([2**63 - 1], np.uint64)).tolist() == [2**63 - 1]


def test_object_arrays_of_text_are_text():
    assert as_ids(np.array(["a", "bc"], object)).dtype.kind == "U"


# Classes


def sample_info(classes, names=None):
    return SampleInfo(
        samples=1, classes=classes, class_names=None if names is None else tuple(names)
    )


@pytest.mark.parametrize(
    ("classes", "names", "expected"),
    [
        (["b", "a"], "ab", [1, 0]),
        (np.array(["c"]), "abc", [2]),
        ([7, 30], ["7", "12", "30"], [0, 2]),
        ([0, 2], None, [0, 2]),
        ([0.0, 2.0], None, [0, 2]),
        ([0, 2], "abc", [0, 2]),  # unrelated names: numbers are positions
        ([0, 1, 2], ["1", "2", "3"], [0, 1, 2]),  # 0 is not a name, so all are positions
        ([1, 2, 3], ["1", "2", "3"], [0, 1, 2]),  # 3 is not a position, so all are names
        ([0, 1], ["0", "1", "2"], [0, 1]),  # both readings agree
        ([False, True], ["False", "True"], [0, 1]),
        ([0, 1], ["same", "same"], [0, 1]),
    ],
)
def test_classes_are_found_by_name_or_by_value(classes, names, expected):
    count = 3 if names is None else len(names)
    np.testing.assert_array_equal(positions_of(classes, sample_info(count, names)), expected)


@pytest.mark.parametrize(
    ("classes", "names", "words"),
    [
        ([1, 2], ["1", "2", "3"], "could be names or positions among the record's 1, 2, 3"),
        (["a", "z"], "abc", "classes a, z are not all among the record's, a, b, c"),
        (["a"], None, r"classes a are not all among the record's, 0, 1, 2\. .*class_names"),
        ([0, 3], None, "classes 0, 3 are not all among"),
        ([-1, 1], None, "classes -1, 1 are not all among"),
        ([0.5], None, "classes 0.5 are not all among"),
        ([[0, 1], [0, 1]], None, r"a flat list, got shape \(2, 2\).*multi-output"),
    ],
)
def test_unknown_or_ambiguous_classes_are_refused(classes, names, words):
    with pytest.raises(ChoiceError, match=words):
        positions_of(classes, sample_info(3, names))


def test_a_long_list_of_classes_is_cut_short_in_the_message():
    with pytest.raises(ChoiceError, match=r"classes 0, 1, 2, 3, 4 … are not all"):
        positions_of(range(9), sample_info(3))


@given(st.permutations(["a", "b", "c", "d"]), st.lists(st.sampled_from("abcd"), max_size=9))
def test_labels_keep_their_meaning_in_any_order_of_classes(known, labels):
    positions = np.array([ord(name) - ord("a") for name in known])
    placed = place_labels(np.array(labels, "<U1"), np.array(known), positions)
    np.testing.assert_array_equal(placed, [ord(name) - ord("a") for name in labels])


@pytest.mark.parametrize("strange", ["A", "ab", "z"])
def test_an_unknown_label_is_refused(strange):
    with pytest.raises(PredictionError, match=rf"'{strange}'\)? was predicted but is none of a, c"):
        place_labels(["a", strange], ["a", "c"], np.arange(2))


def test_a_column_of_labels_is_flattened():
    column = np.array([["owl"], ["cat"], ["owl"]])
    assert place_labels(column, ["cat", "owl"], np.array([0, 1])).tolist() == [1, 0, 1]


@given(st.data())
def test_columns_move_to_their_classes(data):
    classes = data.draw(st.integers(2, 6))
    positions = np.array(data.draw(st.permutations(range(classes)))[: data.draw(st.integers(2, 6))])
    table = np.random.default_rng(0).dirichlet(np.ones(len(positions)), 5)
    placed = place_columns(table, positions, classes=classes)
    assert placed.shape == (5, classes)
    for column, position in enumerate(positions):
        np.testing.assert_array_equal(placed[:, position], table[:, column])
    np.testing.assert_allclose(placed.sum(axis=1), 1)


def test_an_unknown_class_has_no_share_in_the_softmax_of_logits():
    placed = place_columns(np.array([[-3.0, 2.0]]), np.array([2, 0]), classes=3, logits=True)
    powers = np.exp(placed - placed.max())
    np.testing.assert_array_equal(placed[0, [2, 0]], [-3, 2])
    assert powers[0, 1] == 0


def test_nan_stays_in_its_column():
    placed = place_columns(np.full((1, 2), np.nan), np.array([0, 1]), classes=3, logits=True)
    np.testing.assert_array_equal(np.isnan(placed), [[True, True, False]])


@pytest.mark.parametrize("table", [np.ones((2, 3)), np.ones(2)])
def test_a_table_with_other_columns_is_refused(table):
    with pytest.raises(PredictionError, match="one column for each of 2 classes was expected"):
        place_columns(table, np.arange(2), classes=2)

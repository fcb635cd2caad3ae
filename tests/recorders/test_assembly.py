"""What arrives in batches, in any order, ends up in the record's order."""

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord._recorders.record_order import Order, as_ids, assemble
from accord.errors import PredictionError


def by_definition(predicted, ids, order):
    """Look through everything that arrived for the first prediction of each sample."""
    return [
        next(one for one, name in zip(predicted, ids, strict=True) if name == wanted)
        for wanted in order
    ]


numbers = st.integers(-(2**63), 2**63 - 1)
names = st.text(string.ascii_letters + "é ", max_size=4)


@st.composite
def arrivals(draw):
    """A record's ids, and ids that arrive: each at least once, in any order."""
    kind = draw(st.sampled_from([numbers, st.integers(0, 9), names]))
    order = draw(st.lists(kind, min_size=1, max_size=12, unique=True))
    more = draw(st.lists(st.sampled_from(order), max_size=6))
    return order, draw(st.permutations(order + more))


@given(arrivals(), st.booleans())
def test_assembling_equals_looking_for_each_sample(case, tables):
    order, ids = case
    predicted = np.arange(len(ids) * 2).reshape(-1, 2) if tables else np.arange(len(ids))
    found = assemble(predicted, ids, Order(len(order), order))
    np.testing.assert_array_equal(found, by_definition(predicted, ids, order))


@given(st.permutations(range(7)), st.lists(st.integers(0, 6), max_size=5))
def test_without_ids_in_the_record_a_sample_is_called_by_its_position(once, again):
    ids = [*once, *again]
    predicted = np.arange(len(ids))
    found = assemble(predicted, np.array(ids), Order(7))
    np.testing.assert_array_equal(found, by_definition(predicted, ids, range(7)))


def test_of_two_predictions_for_one_sample_the_first_counts():
    assert assemble(np.array([5, 6, 7]), [1, 0, 1], Order(2)).tolist() == [6, 5]


def test_without_ids_the_order_of_arrival_counts():
    assert assemble(np.array([5, 6, 7]), None, Order(3, ids=["c", "a", "b"])).tolist() == [5, 6, 7]


def test_too_few_samples_name_the_likely_cause():
    with pytest.raises(
        PredictionError, match=r"^2 predictions arrived for 3 samples.*drop the last batch.*size"
    ):
        assemble(np.array([5, 6]), None, Order(3))


def test_too_many_samples_name_the_likely_cause():
    with pytest.raises(
        PredictionError, match=r"^4 predictions arrived for 3 samples.*repeat samples.*need ids"
    ):
        assemble(np.arange(4), None, Order(3))


def test_missing_samples_are_counted_and_the_first_ones_named():
    with pytest.raises(
        PredictionError, match=r"^5 of 6 samples did not arrive: 0, 1, 3, …\. Does.*last batch"
    ):
        assemble(np.array([1]), [2], Order(6))
    with pytest.raises(PredictionError, match=r"^2 of 3 samples did not arrive: 'c', 'b'\."):
        assemble(np.array([1]), ["a"], Order(3, ids=["c", "a", "b"]))


@pytest.mark.parametrize("strange", [3, -1, 2**40])
def test_unknown_positions_are_refused(strange):
    with pytest.raises(
        PredictionError, match=rf"does not know 1 of the ids.*: {strange}\. It has 3 samples, 0, 1"
    ):
        assemble(np.arange(4), [0, 1, 2, strange], Order(3))


@pytest.mark.parametrize("strange", ["", "bb", "z"])
def test_unknown_names_are_refused(strange):
    order = Order(2, ids=["c", "b"])
    with pytest.raises(
        PredictionError, match=rf"does not know 1 of.*: '{strange}'\. It has 2.*'c'"
    ):
        assemble(np.arange(3), ["b", "c", strange], order)


def test_many_unknown_ids_are_not_all_named():
    with pytest.raises(
        PredictionError, match=r"does not know 4 of.*: 7, 8, 9, …\. It has 1 sample"
    ):
        assemble(np.arange(5), [0, 7, 8, 9, 10], Order(1))


def test_three_ids_are_all_named():
    with pytest.raises(PredictionError, match=r"does not know 3 of.*: 7, 8, 9\. It has 1 sample"):
        assemble(np.arange(4), [0, 7, 8, 9], Order(1))
    with pytest.raises(PredictionError, match=r"^3 of 4 samples did not arrive: 1, 2, 3\. Does"):
        assemble(np.arange(1), [0], Order(4))


def test_numbers_where_the_record_has_names_are_refused():
    with pytest.raises(PredictionError, match=r"ids such as 'a'; the batches carry 0\..*with_ids"):
        Order(1, ids=["a"]).positions([0])


def test_names_where_the_record_has_none_are_refused():
    with pytest.raises(PredictionError, match=r"'a', and the record does not.*Recorder\(…, ids="):
        Order(1).positions(["a"])


def test_ids_of_any_whole_type_meet():
    order = Order(2, ids=np.array([250, 3], np.uint8))
    assert order.positions(np.array([3, 250], np.uint64)).tolist() == [1, 0]


def test_large_ids_do_not_round_to_each_other():
    ids = np.array([2**62 + 1, 2**62], np.int64)
    assert Order(2, ids=ids).positions(ids.astype(np.uint64)).tolist() == [0, 1]


def test_as_many_ids_as_predictions_are_needed():
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
    with pytest.raises(PredictionError, match=r"fit into 64 bits.*9223372036854775808"):
        as_ids(np.array([2**63], np.uint64))
    assert as_ids(np.array([2**63 - 1], np.uint64)).tolist() == [2**63 - 1]


def test_text_of_any_library_is_text():
    assert as_ids(np.array(["a", "bc"], object)).dtype.kind == "U"

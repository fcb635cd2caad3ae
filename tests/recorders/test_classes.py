import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord._recorders.record_order import place_columns, place_labels, positions_of
from accord.errors import ChoiceError, PredictionError
from accord.store import SampleInfo


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
        ([0, 2], "abc", [0, 2]),  # names of something else: numbers are positions
        ([0, 1, 2], ["1", "2", "3"], [0, 1, 2]),  # 0 is no name, so all are positions
        ([1, 2, 3], ["1", "2", "3"], [0, 1, 2]),  # 3 is no position, so all are names
        ([0, 1], ["0", "1", "2"], [0, 1]),  # both readings say the same
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
        ([[0, 1], [0, 1]], None, r"one list, got shape \(2, 2\).*multi-output"),
    ],
)
def test_classes_that_are_not_the_records_are_refused(classes, names, words):
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
def test_a_label_that_is_no_class_is_refused(strange):
    with pytest.raises(PredictionError, match=rf"'{strange}'\)? was predicted and is none of a, c"):
        place_labels(["a", strange], ["a", "c"], np.arange(2))


@given(st.data())
def test_columns_go_to_their_classes_and_nothing_to_the_others(data):
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


def test_nan_stays_where_it_was():
    placed = place_columns(np.full((1, 2), np.nan), np.array([0, 1]), classes=3, logits=True)
    np.testing.assert_array_equal(np.isnan(placed), [[True, True, False]])


@pytest.mark.parametrize("table", [np.ones((2, 3)), np.ones(2)])
def test_a_table_with_other_columns_is_refused(table):
    with pytest.raises(PredictionError, match="one column for each of 2 classes is wanted"):
        place_columns(table, np.arange(2), classes=2)

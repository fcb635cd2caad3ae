"""Predictions are checked and converted for storage."""

import numpy as np
import pytest
import torch

from accord.errors import ChoiceError, PredictionError
from accord.store._validation import (
    as_labels,
    plain,
    row_from_logits,
    row_from_predictions,
    to_numpy,
)

SIZE = {"samples": 2, "classes": 3}


def row(predicted, *, probabilities=False):
    return row_from_predictions(predicted, **SIZE, probabilities=probabilities)


@pytest.mark.parametrize(
    ("predicted", "words"),
    [
        ([0, 3], r"0\.\.2 for 3 classes; got 0\.\.3.*counted from 1"),
        ([-1, 0], r"0\.\.2 for 3 classes; got -1\.\.0.*without a class\? Leave those"),
        ([0.5, 1], r"whole numbers; got 0\.5"),
        ([np.nan, 1], r"whole numbers; got nan"),
        (["a", "b"], r"whole numbers; got <U1 values\. Number the classes"),
        (np.array(["a", "b"], object), r"got object values\. Number the classes"),
        (np.zeros((2, 1, 3)), r"shape \(2,\).*got \(2, 1, 3\).*np\.concatenate\(batches\)"),
        ([True, False], r"whole numbers; got bool values\. Add \.astype\(int\)"),
        ([[0], [1]], r"shape \(2,\), one class per sample; got \(2, 1\).*reshape\(-1\)"),
        ([0, 1, 2], r"shape \(2,\), one class per sample; got \(3,\).*drop the last batch"),
        ([[0.5, 0.5, 0.0]], r"shape \(2, 3\).*got \(1, 3\).*drop the last batch"),
        ([[0.5, 0.5]] * 2, r"shape \(2, 3\).*got \(2, 2\)\. Is `classes` wrong\?"),
        (np.eye(3, dtype=bool)[:2], r"must be numbers; got bool values\. Add \.astype\(float\)"),
        (
            (label for label in [0, 1]),
            r"an array, tensor or list; got a generator.*list\(",
        ),
        ([[0, 1], [2]], r"list whose parts differ in shape.*np\.concatenate\(batches\)"),
        ([[0.5, 0.5, np.nan]] * 2, r"finite; sample 0 holds NaN.*diverged"),
        ([[0.5, 0.4, 0.4], [1, 0, 0]], r"sum to 1.*sample 0 sums to 1\.3.*logits="),
        ([[2.0, -1.0, 0.0]] * 2, r"lie in 0\.\.1.*got -1\.\.2"),
    ],
)
def test_bad_predictions_are_refused_with_the_likely_cause(predicted, words):
    with pytest.raises(PredictionError, match=words):
        row(predicted)


def test_one_column_for_two_classes_is_refused_with_the_way_to_make_two():
    one = np.array([[0.2], [0.7]])
    sizes = {"samples": 2, "classes": 2}
    with pytest.raises(PredictionError, match=r"got \(2, 1\).*column_stack\(\[1 - p, p\]\)"):
        row_from_predictions(one, **sizes, probabilities=False)
    with pytest.raises(PredictionError, match=r"got \(2, 1\).*column_stack\(\[0 \* z, z\]\)"):
        row_from_logits(one, **sizes, keep=False)


def test_one_hot_labels_are_refused_with_the_way_to_classes():
    with pytest.raises(PredictionError, match=r"truth must have shape.*argmax\(axis=1\)"):
        as_labels(np.eye(3)[:2], **SIZE, name="truth")


def test_whole_numbers_as_floats_are_labels():
    np.testing.assert_array_equal(row(np.array([2.0, 0.0])).labels, [2, 0])


def test_labels_are_taken_before_rounding():
    close = np.array([[0.33333, 0.33334, 0.33333], [0.2, 0.2, 0.6]])
    kept = row(close, probabilities=True)
    assert kept.probabilities.argmax(axis=1)[0] == 0  # equal in half precision
    np.testing.assert_array_equal(kept.labels, [1, 2])


def test_equal_probabilities_go_to_the_smaller_class():
    np.testing.assert_array_equal(row([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]).labels, [1, 0])


def test_labels_are_refused_if_probabilities_are_stored():
    with pytest.raises(PredictionError, match=r"stores probabilities, of shape \(2, 3\)"):
        row([0, 1], probabilities=True)


def test_large_logits_become_probabilities_without_overflow():
    kept = row_from_logits([[1e4, 0, 0], [0, 1, 0]], **SIZE, keep=True)
    np.testing.assert_array_equal(kept.labels, [0, 1])
    np.testing.assert_allclose(kept.probabilities.sum(axis=1), 1, atol=1e-3)
    assert kept.probabilities[1, 1] == np.float16(np.e / (np.e + 2))


def test_logits_in_batches_are_refused_with_the_way_to_join_them():
    with pytest.raises(PredictionError, match=r"got \(2, 1, 3\).*np\.concatenate\(batches\)"):
        row_from_logits(np.zeros((2, 1, 3)), **SIZE, keep=False)


def test_infinite_logits_are_refused():
    with pytest.raises(PredictionError, match=r"logits must be finite; sample 1 .*infinity\. Has"):
        row_from_logits([[0, 0, 0], [np.inf, 0, 0]], **SIZE, keep=False)
    with pytest.raises(PredictionError, match=r"sample 0 .*infinity, like 1 other\. Has"):
        row_from_logits([[0, np.nan, 0], [np.inf, 0, 0]], **SIZE, keep=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tensors_of_any_type_are_accepted(dtype):
    tensor = torch.tensor([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    np.testing.assert_array_equal(row(tensor).labels, [1, 0])
    assert to_numpy(torch.tensor([1, 2])).tolist() == [1, 2]
    np.testing.assert_array_equal(row(list(tensor)).labels, [1, 0])


@pytest.mark.parametrize(
    ("classes", "dtype"), [(256, "uint8"), (257, "uint16"), (70_000, "uint32")]
)
def test_labels_take_the_smallest_type_that_holds_every_class(classes, dtype):
    assert as_labels(np.array([classes - 1]), samples=1, classes=classes).dtype == dtype


@pytest.mark.parametrize(
    "values",
    [
        np.ma.masked_equal([0, 1, 2], 1),
        [np.array([0, 1]), np.ma.masked_equal([0, 1], 1)],
    ],
)
def test_masked_elements_are_refused(values):
    with pytest.raises(PredictionError, match=r"masked array with 1 masked\..*array\.filled"):
        to_numpy(values)


def test_a_masked_array_without_masked_elements_is_accepted():
    np.testing.assert_array_equal(to_numpy(np.ma.array([0, 1])), [0, 1])


@pytest.mark.parametrize("form", ["to_sparse_coo", "to_sparse_csr"])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_are_refused_with_the_way_to_dense_ones(form):
    with pytest.raises(PredictionError, match=r"layout torch\.sparse_.*to_dense\(\)"):
        to_numpy(getattr(torch.eye(2), form)())


def test_metadata_become_json():
    values = {"loss": np.float32(0.5), "rates": (1, 2), "bad": float("inf"), "deep": {"x": None}}
    assert plain(values) == {"loss": 0.5, "rates": [1, 2], "bad": "inf", "deep": {"x": None}}
    assert plain({"loss": torch.tensor(0.25)}) == {"loss": 0.25}


def test_metadata_that_are_not_json_are_refused_by_name():
    with pytest.raises(ChoiceError, match="hook cannot be stored with the record: function"):
        plain({"hook": lambda: None})

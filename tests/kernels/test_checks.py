"""Labels are refused with what was wanted, what came and the likely cure."""

import numpy as np
import pytest

from accord import kernels
from accord.errors import PredictionError

ALL = [
    kernels.agreement,
    kernels.check_labels,
    kernels.count_votes,
    kernels.final_margins,
    kernels.margins,
    kernels.running_winners,
    kernels.winners,
    lambda labels, classes: kernels.winners_by_subset(labels, [(0,)], classes=classes),
    lambda labels, classes: kernels.winners_by_spacing(labels, [1], classes=classes),
]
BY_EPOCH = [ALL[i] for i in (3, 5, 7, 8)]


@pytest.mark.parametrize("kernel", ALL)
@pytest.mark.parametrize("kind", [np.uint8, np.int64])
def test_label_past_the_last_class_is_refused_with_the_likely_cause(kernel, kind):
    with pytest.raises(PredictionError, match=r"0\.\.3 for 4 classes; got 1\.\.4.*counted from 1"):
        kernel(np.array([[[1, 4]]], kind), classes=4)


@pytest.mark.parametrize("kernel", ALL)
def test_negative_label_is_refused(kernel):
    with pytest.raises(PredictionError, match=r"0\.\.3 for 4 classes; got -1\.\.3"):
        kernel(np.array([[[-1, 3]]]), classes=4)


@pytest.mark.parametrize("kernel", ALL)
def test_labels_that_are_not_integers_are_refused(kernel):
    with pytest.raises(PredictionError, match=r"integers; got float64.*probabilities or logits"):
        kernel(np.zeros((2, 2, 2)), classes=4)


@pytest.mark.parametrize("kernel", ALL)
@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (3,)])
def test_labels_without_a_voter_are_refused(kernel, shape):
    with pytest.raises(PredictionError, match=r"at least one voter.*got shape \(.*labels\[None\]"):
        kernel(np.zeros(shape, np.uint8), classes=4)


@pytest.mark.parametrize("kernel", BY_EPOCH)
def test_labels_without_epochs_are_refused(kernel):
    with pytest.raises(PredictionError, match=r"\(network, epoch, sample\); got shape \(2, 3\)"):
        kernel(np.zeros((2, 3), np.uint8), classes=4)


@pytest.mark.parametrize("kernel", ALL)
def test_there_must_be_a_class(kernel):
    with pytest.raises(PredictionError, match="at least 1; got 0"):
        kernel(np.zeros((1, 1, 1), np.uint8), classes=0)


def test_the_largest_label_of_a_type_is_refused_unless_there_is_such_a_class():
    labels = np.full((1, 2), 255, np.uint8)
    kernels.check_labels(labels, classes=256)
    with pytest.raises(PredictionError, match=r"0\.\.254 for 255 classes; got 255\.\.255"):
        kernels.check_labels(labels, classes=255)


@pytest.mark.parametrize("kernel", [kernels.agreement, kernels.count_votes])
def test_a_table_past_4_gib_is_refused_with_what_to_use_instead(kernel):
    with pytest.raises(PredictionError, match=r"8\.0 GiB; the largest is 4 GiB.*`winners`"):
        kernel(np.zeros((1, 2**20), np.uint8), classes=2**10)


@pytest.mark.parametrize("kernel", ALL[3:])
def test_no_samples_give_nothing(kernel):
    found = kernel(np.zeros((2, 3, 0), np.uint8), classes=4)
    assert np.asarray(found).shape[-1] == 0


@pytest.mark.parametrize("classes", [2.0, None, "2", 0])
def test_a_number_of_classes_that_is_none_is_refused(classes):
    with pytest.raises(PredictionError, match="classes must be a whole number, at least 1; got"):
        kernels.check_labels(np.array([[0, 1]]), classes=classes)

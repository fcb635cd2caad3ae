"""Consensus answers where enough networks agree, surely enough, and abstains elsewhere."""

import numpy as np
import pytest

from accord.errors import ChoiceError, ProbabilitiesMissing
from accord.rules.consensus import Consensus
from accord.store import reader_from_arrays

LABELS = np.array([[[0, 2, 1]], [[0, 2, 2]], [[1, 2, 0]]])  # (network, epoch, sample)
TABLE = np.array(
    [
        [[[0.9, 0.1, 0.0], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]]],
        [[[0.6, 0.4, 0.0], [0.0, 0.1, 0.9], [0.1, 0.1, 0.8]]],
        [[[0.2, 0.8, 0.0], [0.0, 0.0, 1.0], [0.7, 0.2, 0.1]]],
    ]
)


def predict(*, least=None, threshold=0.0, probabilities=True):
    arrays = {"labels": LABELS}
    if probabilities:
        arrays["probabilities"] = TABLE.astype(np.float16)
    return Consensus(least=least, threshold=threshold)(reader_from_arrays(arrays, classes=3))


def test_more_than_half_must_agree():
    assert predict().labels.tolist() == [0, 2, -1]
    np.testing.assert_allclose(predict().scores, [2 / 3, 1, 1 / 3])


def test_the_number_of_networks_can_be_given():
    assert predict(least=3).labels.tolist() == [-1, 2, -1]
    assert predict(least=1).labels.tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("threshold", "wanted"), [(0.5, [0, 2, -1]), (0.7, [-1, 2, -1]), (0.95, [-1, -1, -1])]
)
def test_networks_that_are_not_sure_do_not_count(threshold, wanted):
    assert predict(threshold=threshold).labels.tolist() == wanted


def test_half_is_not_enough():
    rows = reader_from_arrays({"labels": np.array([[[0]], [[1]]])}, classes=2)
    assert Consensus()(rows).labels.tolist() == [-1]


def test_a_threshold_needs_probabilities():
    with pytest.raises(ProbabilitiesMissing):
        predict(threshold=0.5, probabilities=False)


def test_a_threshold_is_a_need_for_probabilities():
    rows = reader_from_arrays({"labels": LABELS}, classes=3)
    assert Consensus().allowed(rows)
    assert not Consensus(threshold=0.5).allowed(rows)


@pytest.mark.parametrize("label", [0, 1])
def test_labels_count_even_if_another_class_is_as_probable_in_half_precision(label):
    even = np.full((3, 1, 1, 2), 0.5, np.float16)
    arrays = {"labels": np.full((3, 1, 1), label), "probabilities": even}
    rows = reader_from_arrays(arrays, classes=2)
    assert Consensus(threshold=0.5)(rows).labels.tolist() == [label]


def test_after_each_epoch_a_threshold_counts_too():
    labels = np.concatenate([LABELS[:, :, ::-1], LABELS], axis=1)
    table = np.concatenate([TABLE[:, :, ::-1], TABLE], axis=1).astype(np.float16)
    rows = reader_from_arrays({"labels": labels, "probabilities": table}, classes=3)
    for rule in (Consensus(), Consensus(threshold=0.7)):
        (block,) = rule.after_each_epoch(rows)
        assert block.values[1].tolist() == rule(rows).labels.tolist()
        assert block.values[0].tolist() == rule(rows).labels.tolist()[::-1]


@pytest.mark.parametrize("wrong", [{"least": 0}, {"threshold": 1.5}, {"threshold": -0.1}])
def test_impossible_wishes_are_refused(wrong):
    with pytest.raises(ChoiceError, match=r"at least 1 network and a threshold in 0\.\.1; got"):
        Consensus(**wrong)

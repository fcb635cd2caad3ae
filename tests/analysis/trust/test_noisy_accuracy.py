import numpy as np
import pytest

from accord.analysis._trust._confidence_intervals import share_interval
from accord.analysis._trust._noisy_accuracy import (
    corrected_accuracy,
    corrected_difference,
    symmetric_confusion,
)
from accord.errors import PredictionError

CLASSES = 4


def turn(truth, confusion, seed):
    chances = confusion[truth].cumsum(axis=1)
    return (chances > np.random.default_rng(seed).random((len(truth), 1))).argmax(axis=1)


def draw(samples=2000, *, right=0.8, seed=0):
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, CLASSES, samples)
    wrong = generator.random(samples) >= right
    shift = generator.integers(1, CLASSES, samples)
    return truth, np.where(wrong, (truth + shift) % CLASSES, truth)


ASYMMETRIC = 0.7 * np.eye(CLASSES) + 0.3 * np.roll(np.eye(CLASSES), 1, axis=1)


@pytest.mark.parametrize(
    "confusion", [symmetric_confusion(0.4, classes=CLASSES), ASYMMETRIC, np.eye(CLASSES)]
)
def test_the_interval_has_its_nominal_coverage(confusion):
    covered = values = 0.0
    for seed in range(300):
        truth, predicted = draw(400, seed=seed)
        found = corrected_accuracy(predicted, turn(truth, confusion, 1000 + seed), confusion)
        covered += found.low <= 0.8 <= found.high
        values += found.value
    assert 0.91 <= covered / 300 <= 0.99
    assert values / 300 == pytest.approx(0.8, abs=0.01)


def test_without_noise_it_is_the_accuracy():
    truth, predicted = draw()
    found = corrected_accuracy(predicted, truth, np.eye(CLASSES))
    assert found.value == pytest.approx((truth == predicted).mean())
    deviation = np.sqrt(found.value * (1 - found.value) / 2000)
    assert found.error == pytest.approx(deviation, rel=1e-3)
    low, high = share_interval(int((truth == predicted).sum()), 2000)
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize("samples", [1, 5, 30])
@pytest.mark.parametrize("right", [0.8, 0.97])
@pytest.mark.parametrize("confusion", [symmetric_confusion(0.3, classes=CLASSES), ASYMMETRIC])
def test_the_interval_holds_for_few_samples_too(samples, right, confusion):
    covered = 0
    for seed in range(200):
        truth, predicted = draw(samples, right=right, seed=seed)
        found = corrected_accuracy(predicted, turn(truth, confusion, 1000 + seed), confusion)
        covered += found.low <= right <= found.high
        assert found.low <= found.value <= found.high
        assert found.low < found.high
    assert covered >= 0.93 * 200


def test_under_symmetric_noise_the_interval_is_that_of_the_share_seen():
    truth, predicted = draw(50)
    confusion = symmetric_confusion(0.3, classes=CLASSES)
    given = turn(truth, confusion, 1)
    found = corrected_accuracy(predicted, given, confusion)
    low, high = share_interval(int((given == predicted).sum()), 50)
    other = 0.3 / (CLASSES - 1)
    expected = [(seen - other) / (1 - 0.3 - other) for seen in (low, high)]
    assert (found.low, found.high) == pytest.approx(expected)


def test_labels_that_never_differ_leave_a_difference_in_doubt():
    labels = np.zeros(20, int)
    found = corrected_difference(labels, labels, labels, symmetric_confusion(0.3, classes=CLASSES))
    assert found.value == pytest.approx(0)
    assert found.low < -0.05
    assert found.high > 0.05


def test_the_interval_of_a_difference_holds_for_few_samples():
    covered = 0
    for seed in range(200):
        truth, second = draw(25, right=0.9, seed=seed)
        worse = np.random.default_rng(5000 + seed).random(25) < 0.1
        first = np.where(worse, (truth + 1) % CLASSES, second)  # 0.1 of 0.9 right ones lost
        found = corrected_difference(first, second, turn(truth, ASYMMETRIC, seed), ASYMMETRIC)
        covered += found.low <= 0.09 <= found.high
    assert covered >= 0.93 * 200


def test_lists_are_labels_too():
    found = corrected_accuracy([0, 1, 1], [0, 1, 0], np.eye(2))
    assert found.value == pytest.approx(2 / 3)


def test_one_class_is_always_right():
    found = corrected_accuracy([0, 0], [0, 0], np.eye(1))
    assert (found.value, found.low, found.high, found.error) == (1, 1, 1, 0)


def test_labels_that_are_no_whole_numbers_are_refused():
    for labels in ([0.0, 1.0], [True, False]):
        with pytest.raises(PredictionError, match=r"whole numbers; got .*astype\(int\)"):
            corrected_accuracy(labels, [0, 1], np.eye(2))


def test_symmetric_noise_is_the_textbook_formula():
    truth, predicted = draw()
    given = turn(truth, symmetric_confusion(0.3, classes=CLASSES), 1)
    seen, other = (given == predicted).mean(), 0.3 / (CLASSES - 1)
    found = corrected_accuracy(predicted, given, symmetric_confusion(0.3, classes=CLASSES))
    assert found.value == pytest.approx((seen - other) / (1 - 0.3 - other))


def test_the_difference_is_that_of_two_accuracies_and_surer():
    truth, second = draw(right=0.9)
    first = second.copy()
    first[:100] = (first[:100] + 1) % CLASSES
    given = turn(truth, ASYMMETRIC, 3)
    difference = corrected_difference(first, second, given, ASYMMETRIC)
    one, other = (corrected_accuracy(labels, given, ASYMMETRIC) for labels in (first, second))
    assert difference.value == pytest.approx(other.value - one.value)
    assert difference.error < other.error
    assert difference.low < 0.041 < difference.high


@pytest.mark.parametrize(
    ("predicted", "given", "confusion", "words"),
    [
        ([0], [0, 1], np.eye(2), "got shapes"),
        ([], [], np.eye(2), "at least one sample"),
        ([-1], [0], np.eye(2), r"0\.\.1 for 2 classes; got -1\.\.-1.*without a class"),
        ([0], [2], np.eye(2), r"0\.\.1 for 2 classes; got 2\.\.2"),
        ([0], [1], np.ones((2, 2)), "rows that sum to 1"),
        ([0], [1], np.ones((2, 3)) / 3, "rows that sum to 1"),
        ([0], [1], [[1.5, -0.5], [0, 1]], "rows that sum to 1"),
        ([0], [1], np.full((2, 2), 0.5), "singular: some classes"),
    ],
)
def test_what_cannot_be_corrected_is_refused(predicted, given, confusion, words):
    with pytest.raises(PredictionError, match=words):
        corrected_accuracy(np.array(predicted, int), np.array(given, int), np.array(confusion))


def test_impossible_noise_is_refused():
    for rate, classes in ((1.5, 3), (-0.1, 3), (0.1, 1)):
        with pytest.raises(PredictionError, match="at least two classes"):
            symmetric_confusion(rate, classes=classes)

"""Rounds of a boosting network are recorded once, every `every` rounds."""

import numpy as np
import pytest

import accord
from accord._recorders.round_recorder import RoundRecorder
from accord.errors import ChoiceError, PredictionError, RecordClosed, RecordError, RowExists


@pytest.fixture
def open_recorder(tmp_path):
    opened = []

    def open_one(classes=3, **options):
        options = {"network": 0, "samples": 2, **options}
        opened.append(accord.Recorder(tmp_path / "record", classes=classes, **options))
        return opened[-1]

    yield open_one
    for recorder in opened:
        recorder.close()


def record_rounds(recorder, last, *, every=1):
    """Record rounds 1 to `last` and return those for which predictions were computed."""
    rounds, predicted = RoundRecorder(recorder, every=every), []
    for number in range(1, last + 1):
        rounds.record(number, lambda n=number: predicted.append(n) or [0, n % 3], loss=number)
    return predicted


def test_every_third_round_makes_a_row(open_recorder, tmp_path):
    with open_recorder() as recorder:
        assert record_rounds(recorder, 10, every=3) == [3, 6, 9]
    record = accord.open(tmp_path / "record")
    assert record.progress == (3, 6, 9)
    assert [metrics["loss"] for metrics in record.networks_info[0].metrics] == [3, 6, 9]


def test_rounds_in_the_record_are_not_predicted_again(open_recorder):
    for last, predicted in ((4, [2, 4]), (9, [6, 8]), (9, [])):
        with open_recorder() as recorder:
            assert record_rounds(recorder, last, every=2) == predicted
    assert open_recorder().epochs == 4


def test_a_skipped_round_is_refused(open_recorder):
    with pytest.raises(RecordError, match="the next is 0; got epoch 2"):
        RoundRecorder(open_recorder()).record(3, lambda: [0, 1])


def test_a_different_spacing_from_the_record_is_refused(open_recorder):
    with open_recorder() as recorder:
        RoundRecorder(recorder, every=5).record(5, lambda: [0, 1])
    with pytest.raises(RowExists, match="the last at progress 5; got 2"):
        RoundRecorder(open_recorder()).record(2, lambda: [0, 1])


def test_a_recorder_serves_one_network(open_recorder):
    recorder = open_recorder()
    RoundRecorder(recorder)
    with pytest.raises(RecordError, match="this recorder is in use for another network"):
        RoundRecorder(recorder)
    RoundRecorder(open_recorder(network=1))


def test_a_closed_recorder_is_refused(open_recorder):
    recorder = open_recorder()
    recorder.close()
    with pytest.raises(RecordClosed, match="is closed"):
        RoundRecorder(recorder).record(1, lambda: [0, 1])


@pytest.mark.parametrize("every", [0, -1])
def test_every_is_at_least_one(open_recorder, every):
    with pytest.raises(ChoiceError, match=f"every must be .* at least 1; got {every}"):
        RoundRecorder(open_recorder(), every=every)


def test_unknown_classes_get_probability_0(open_recorder, tmp_path):
    with open_recorder(class_names=["c", "a", "b"], probabilities=True) as recorder:
        rounds = RoundRecorder(recorder, classes=["a", "c"])
        rounds.record(1, lambda: [[0.0, np.log(3)], [5.0, -5.0]], logits=True)
    rows = accord.open(tmp_path / "record").reader
    whole = [0], [0], slice(None)
    np.testing.assert_array_equal(rows.read_labels(*whole)[0, 0], [0, 1])
    np.testing.assert_allclose(rows.read_probabilities(*whole)[0, 0, 0], [0.75, 0.25, 0], atol=1e-3)


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_a_single_score_belongs_to_the_second_class(open_recorder, tmp_path, shape):
    with open_recorder(classes=2) as recorder:
        RoundRecorder(recorder).record(1, lambda: np.array([0.1, -0.1]).reshape(shape), logits=True)
    np.testing.assert_array_equal(accord.open(tmp_path / "record").labels[0, 0], [1, 0])


def test_logits_with_another_number_of_classes_are_refused(open_recorder):
    with pytest.raises(ChoiceError, match=r"has 2 classes and 3 are expected.*np\.unique"):
        RoundRecorder(open_recorder()).record(1, lambda: np.zeros((2, 2)), logits=True)


def test_nan_is_refused(open_recorder):
    recorder = open_recorder()
    rounds = RoundRecorder(recorder, classes=[0, 2])
    with pytest.raises(PredictionError, match="sample 1 holds NaN"):
        rounds.record(1, lambda: [[0.0, 1.0], [np.nan, 0.0]], logits=True)
    assert recorder.epochs == 0

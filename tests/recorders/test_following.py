import numpy as np
import pytest

import accord
from accord._recorders.boosting_rounds import RoundFollower, two_columns
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


def test_every_so_many_rounds_make_a_row(open_recorder, tmp_path):
    with open_recorder() as recorder:
        follower = RoundFollower(recorder, every=3)
        for training_round in range(1, 11):
            if follower.wants(training_round):
                follower.record(training_round, [0, training_round % 3], loss=training_round)
    record = accord.open(tmp_path / "record")
    assert record.progress == (3, 6, 9)
    assert [told["loss"] for told in record.networks_info[0].metrics] == [3, 6, 9]


def test_rounds_that_the_record_holds_are_passed_over(open_recorder):
    for last, written in ((4, 2), (9, 2), (9, 0)):
        with open_recorder() as recorder:
            follower = RoundFollower(recorder, every=2)
            wanted = [number for number in range(1, last + 1) if follower.wants(number)]
            for number in wanted:
                follower.record(number, [0, 1])
            assert len(wanted) == written
    assert open_recorder().epochs == 4


def test_a_round_that_comes_too_early_is_refused(open_recorder):
    follower = RoundFollower(open_recorder())
    assert follower.wants(3)
    with pytest.raises(RecordError, match="the next is 0; got epoch 2"):
        follower.record(3, [0, 1])


def test_another_spacing_than_the_records_is_refused(open_recorder):
    with open_recorder() as recorder:
        RoundFollower(recorder, every=5).record(5, [0, 1])
    with pytest.raises(RowExists, match="the last at progress 5; got 2"):
        RoundFollower(open_recorder()).record(2, [0, 1])


def test_a_recorder_follows_one_network(open_recorder):
    recorder = open_recorder()
    RoundFollower(recorder)
    with pytest.raises(RecordError, match="this recorder follows a network already"):
        RoundFollower(recorder)
    RoundFollower(open_recorder(network=1))


def test_a_closed_recorder_is_refused(open_recorder):
    recorder = open_recorder()
    recorder.close()
    with pytest.raises(RecordClosed, match="is closed"):
        RoundFollower(recorder).record(1, [0, 1])


@pytest.mark.parametrize("every", [0, -1])
def test_every_counts_from_one(open_recorder, every):
    with pytest.raises(ChoiceError, match=f"every must be .* from 1; got {every}"):
        RoundFollower(open_recorder(), every=every)


def test_logits_of_some_classes_leave_nothing_to_the_others(open_recorder, tmp_path):
    with open_recorder(class_names=["c", "a", "b"], probabilities=True) as recorder:
        follower = RoundFollower(recorder, classes=["a", "c"])
        follower.record_logits(1, [[0.0, np.log(3)], [5.0, -5.0]])
    rows = accord.open(tmp_path / "record").reader
    whole = [0], [0], slice(None)
    np.testing.assert_array_equal(rows.read_labels(*whole)[0, 0], [0, 1])
    np.testing.assert_allclose(rows.read_probabilities(*whole)[0, 0, 0], [0.75, 0.25, 0], atol=1e-3)


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_one_score_per_sample_is_the_second_classs(open_recorder, tmp_path, shape):
    with open_recorder(classes=2) as recorder:
        RoundFollower(recorder).record_logits(1, np.array([0.1, -0.1]).reshape(shape))
    np.testing.assert_array_equal(accord.open(tmp_path / "record").labels[0, 0], [1, 0])


def test_logits_of_other_classes_than_told_are_refused(open_recorder):
    with pytest.raises(ChoiceError, match=r"tells 2 classes apart and 3 are expected.*np\.unique"):
        RoundFollower(open_recorder()).record_logits(1, np.zeros((2, 2)))


def test_nan_is_refused(open_recorder):
    recorder = open_recorder()
    with pytest.raises(PredictionError, match="sample 1 holds NaN"):
        RoundFollower(recorder, classes=[0, 2]).record_logits(1, [[0.0, 1.0], [np.nan, 0.0]])
    assert recorder.epochs == 0


def test_two_columns_leaves_a_table_as_it_is():
    table = np.arange(6.0).reshape(2, 3)
    assert two_columns(table) is table

"""A callback's rows: opened, resumed, appended and closed."""

import logging

import numpy as np
import pytest

import accord
from accord._recorders.callback_recorder import Keeper
from accord._recorders.evaluate import keep_of
from accord.errors import ChoiceError, PredictionError, RecordBusy, RecordError


def keeper_of(path, *, every=1.0, **sample_info):
    return Keeper(path, network=0, samples=3, classes=2, every=every, facts=sample_info)


def append(keeper, *rows):
    for row in rows:
        keeper.append(np.array(row), progress=keeper.rows + 1.0, told={"loss": 0.5})


def test_it_goes_on_where_it_stopped(tmp_path):
    first = keeper_of(tmp_path)
    assert first.open() == 0
    append(first, [0, 1, 1], [0, 0, 1])
    assert first.rows == 2
    first.close()
    second = keeper_of(tmp_path)
    assert second.open() == 2
    assert not second.is_due(1, 2)
    assert second.is_due(2, 3)
    append(second, [1, 1, 1])
    assert not second.is_due(2, 3)
    second.close()
    record = accord.open(tmp_path)
    assert np.asarray(record.labels).tolist() == [[[0, 1, 1], [0, 0, 1], [1, 1, 1]]]
    assert record.networks_info[0].metrics[2] == {"loss": 0.5}


def test_opening_again_lets_the_first_go(tmp_path):
    keeper = keeper_of(tmp_path)
    keeper.open()
    append(keeper, [0, 1, 1])
    assert keeper.open() == 1
    keeper.close()
    keeper.close()


def test_a_gap_is_refused_and_named(tmp_path):
    keeper = keeper_of(tmp_path, every=0.5)
    keeper.open()
    keeper.check_whole(0.4)
    with pytest.raises(
        RecordError, match=r"holds 0 epochs.*from progress 1: the row at progress 0\.5 is missing"
    ):
        keeper.check_whole(1)
    with pytest.raises(RecordError, match=r"the row at progress 0\.5 is missing"):
        keeper.is_due(0.75, 1)
    keeper.close()


def test_a_step_that_passes_two_rows_is_refused(tmp_path):
    keeper = keeper_of(tmp_path, every=0.1)
    with pytest.raises(ChoiceError, match="more rows than training has steps"):
        keeper.is_due(0, 0.5)


def test_rows_that_are_there_when_training_begins_are_told(tmp_path, caplog):
    keeper = keeper_of(tmp_path)
    keeper.open()
    with caplog.at_level(logging.WARNING):
        keeper.note_begin()
        assert caplog.text == ""
        append(keeper, [0, 1, 1])
        keeper.note_begin()
    keeper.close()
    assert "network 0 already holds 1 epoch; training begins anew" in caplog.text


def test_a_second_one_is_told_how_to_close_the_first(tmp_path):
    first = keeper_of(tmp_path)
    first.open()
    with pytest.raises(RecordBusy, match=r"another recorder.*attached twice.*callback\.close\(\)"):
        keeper_of(tmp_path).open()
    first.close()


def test_an_error_closes_it(tmp_path):
    keeper = keeper_of(tmp_path)
    keeper.open()
    with pytest.raises(KeyError, match="x"), keeper.closed_on_error():
        raise KeyError("x")
    keeper_of(tmp_path).open()
    with pytest.raises(ChoiceError, match="records while a training runs"):
        append(keeper, [0, 1, 1])


def test_scores_that_are_not_numbers_are_refused_and_named(tmp_path):
    keeper = keeper_of(tmp_path, ids=["a", "b", "c"])
    keeper.open()
    kept = keep_of(np.array([[0, 1], [0, np.nan], [2, 1]]), classes=2, probabilities=False)
    with pytest.raises(
        PredictionError, match=r"network 0, epoch 0 \(progress 1\): .*NaN.*1 of 3 samples: 'b'"
    ):
        append(keeper, kept)
    append(keeper, [0, 1, 1])
    keeper.close()


def test_tables_are_logits_or_probabilities(tmp_path):
    keeper = keeper_of(tmp_path, probabilities=True)
    keeper.open()
    table = np.array([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])
    keeper.append(table, progress=1, told={}, are_logits=False)
    keeper.append(table, progress=2, told={})
    keeper.close()
    found = np.asarray(accord.open(tmp_path).probabilities)[0]
    np.testing.assert_array_equal(found[0], table)
    np.testing.assert_allclose(found[1, 0], [0.6225, 0.3775], atol=1e-3)


def test_facts_are_checked_at_once(tmp_path):
    with pytest.raises(PredictionError, match=r"given must have shape \(3,\)"):
        keeper_of(tmp_path, given=[0])
    with pytest.raises(PredictionError, match="class_names must be 2 names"):
        keeper_of(tmp_path, class_names=["a"])
    with pytest.raises(PredictionError, match="ids must differ"):
        keeper_of(tmp_path, ids=[1, 1, 2])
    with pytest.raises(TypeError, match="takes no 'turth'; it hands on to the recorder: truth"):
        keeper_of(tmp_path, turth=[0, 1, 1])
    assert not list(tmp_path.iterdir())

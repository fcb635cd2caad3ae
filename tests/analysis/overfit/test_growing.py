import numpy as np
import pytest
from overfitting import draw_run, right_chances

from accord._recorder import Recorder
from accord.analysis import _watch as growing
from accord.analysis._watch import RecordFollower, watch
from accord.errors import RecordMissing
from accord.rules._overfitting import judge_with_majority
from accord.store import open_reader

SAMPLES, CLASSES, EPOCHS = 600, 5, 40


@pytest.fixture(scope="module")
def overfitted():
    rows = draw_run(right_chances(EPOCHS, end=0.5), networks=3, samples=SAMPLES, classes=CLASSES)
    return rows.read_labels(range(3), range(EPOCHS), slice(None))


def recorder(path, network):
    return Recorder(path, network=network, samples=SAMPLES, classes=CLASSES)


def grow(path, labels, *, network, epochs):
    with recorder(path, network) as writer:
        for epoch in range(writer.epochs, epochs):
            writer.record(labels[network, epoch])


def test_each_epoch_is_told_once_and_the_alarm_once(tmp_path, overfitted):
    follower = RecordFollower(tmp_path / "record")
    told = []
    for until in (3, 3, 10, 31, EPOCHS):
        for network in range(3):
            grow(tmp_path / "record", overfitted, network=network, epochs=until)
        seen = follower.poll()
        told += seen
        assert len(told) == until
    assert [one.epoch for one in told] == list(range(EPOCHS))
    whole = watch(open_reader(tmp_path / "record"))
    np.testing.assert_array_equal([one.agreement for one in told], whole.agreement)
    alarms = [one for one in told if one.best_epoch is not None]
    assert len(alarms) == 1
    assert alarms[0].verdict.alarm
    assert 20 < alarms[0].epoch < EPOCHS
    assert alarms[0].best_epoch < alarms[0].epoch
    assert follower.alarmed


def test_a_writer_may_hold_the_record_meanwhile(tmp_path, overfitted):
    grow(tmp_path / "record", overfitted, network=0, epochs=5)
    follower = RecordFollower(tmp_path / "record")
    with recorder(tmp_path / "record", 1) as writer:
        for epoch in range(3):
            writer.record(overfitted[1, epoch])
            assert [one.epoch for one in follower.poll()] == [epoch]


def test_until_there_are_two_networks_with_epochs_it_waits(tmp_path, overfitted):
    follower = RecordFollower(tmp_path / "record")
    assert follower.poll() == []
    assert "record: there is no record yet. Is the path right?" in follower.waiting_for
    assert isinstance(follower.missing, RecordMissing)
    with recorder(tmp_path / "record", 0):
        assert follower.poll() == []
    assert "has no epochs yet" in follower.waiting_for
    assert follower.missing is None
    grow(tmp_path / "record", overfitted, network=0, epochs=2)
    assert follower.poll() == []
    assert "one network so far; agreement needs two" in follower.waiting_for
    with recorder(tmp_path / "record", 1):
        assert follower.poll() == []
    assert "a network has no epochs yet" in follower.waiting_for
    grow(tmp_path / "record", overfitted, network=1, epochs=2)
    assert [one.epoch for one in follower.poll()] == [0, 1]
    assert follower.waiting_for == ""


def test_an_example_that_is_missing_is_not_waited_for():
    with pytest.raises(RecordMissing, match="no such example"):
        RecordFollower("example://none").poll()


def test_a_network_that_joins_begins_it_anew(tmp_path, overfitted):
    for network in (0, 1):
        grow(tmp_path / "record", overfitted, network=network, epochs=EPOCHS)
    follower = RecordFollower(tmp_path / "record")
    assert len(follower.poll()) == EPOCHS
    assert follower.alarmed
    grow(tmp_path / "record", overfitted, network=2, epochs=4)
    assert [one.epoch for one in follower.poll()] == [0, 1, 2, 3]
    assert not follower.alarmed
    chosen = RecordFollower(tmp_path / "record", networks=[0, 1])
    assert len(chosen.poll()) == EPOCHS


def test_how_sure_and_how_deep_are_choices(tmp_path, overfitted):
    for network in (0, 1):
        grow(tmp_path / "record", overfitted, network=network, epochs=EPOCHS)
    for options in ({"sure": 0.99999}, {"least_fall": 0.9}):
        follower = RecordFollower(tmp_path / "record", **options)
        follower.poll()
        assert not follower.alarmed


def test_each_epoch_is_judged_by_the_rows_up_to_it(tmp_path, overfitted, monkeypatch):
    judged = []

    def remember(rows, pairs, *options):
        judged.append((rows.epochs, pairs.epochs))
        return judge_with_majority(rows, pairs, *options)

    monkeypatch.setattr(growing, "judge_with_majority", remember)
    for network in (0, 1):
        grow(tmp_path / "record", overfitted, network=network, epochs=6)
    RecordFollower(tmp_path / "record").poll()
    assert judged == [(epochs, epochs) for epochs in range(1, 7)]

"""Networks are removed, or recorded anew, so that a process may stop at any point."""

import shutil

import numpy as np
import pytest
from recorded import CLASSES, SAMPLES, labels_of, write_record

import accord
from accord import Recorder
from accord.errors import ChoiceError, NotARecord, RecordBusy, RecordMismatch
from accord.store import Folder, check_record, describe, pack_record

SIZE = {"samples": SAMPLES, "classes": CLASSES}
NEW = labels_of(5, 5)


def all_labels(path):
    record = accord.open(path, common=True)
    return np.asarray(record.labels)


def test_a_removed_network_leaves_no_file(record):
    accord.remove(record, [0])
    assert accord.open(record).networks_info[0].network == 1
    assert not (record / "network-000").exists()
    np.testing.assert_array_equal(all_labels(record)[0], [labels_of(1, e) for e in range(3)])
    with Recorder(record, network=0, **SIZE) as recorder:
        assert recorder.epochs == 0
        recorder.record(NEW)


def test_networks_that_do_not_exist_or_are_recorded_are_refused(record):
    with pytest.raises(ChoiceError, match="no network 7; there are 0, 1"):
        accord.remove(record, [0, 7])
    with pytest.raises(ChoiceError, match="no network is selected"):
        accord.remove(record, [])
    with Recorder(record, network=1, **SIZE) as recorder:
        recorder.record(NEW)
        with pytest.raises(RecordBusy, match=r"recorder\.close\(\)"):
            accord.remove(record, [0, 1])
    assert describe(record).epochs == {0: 3, 1: 4}


def test_a_packed_record_keeps_its_networks(record, tmp_path):
    pack_record(record, tmp_path / "packed")
    with pytest.raises(RecordMismatch, match=r"packed and read-only.*accord pack .* --networks"):
        accord.remove(tmp_path / "packed", [0])


def test_a_network_is_removed_from_all_records_of_a_run_with_its_checkpoints(tmp_path):
    for split in ("test", "train"):
        write_record(tmp_path / split, split=split)
    for number in range(2):
        (tmp_path / f"checkpoints/network-00{number}").mkdir(parents=True)
    accord.remove(tmp_path, [1])
    assert describe(tmp_path / "test").epochs == describe(tmp_path / "train").epochs == {0: 3}
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["network-000"]


def test_a_network_in_an_object_store_is_removed():
    pytest.importorskip("obstore")
    url = write_record("memory://to-remove")
    accord.remove(url, [1])
    assert describe(url).epochs == {0: 3}


def test_overwriting_starts_one_network_anew(record):
    with Recorder(record, network=0, **SIZE, metadata={"lr": 0.1}, overwrite=True) as recorder:
        assert recorder.epochs == 0
        recorder.record(NEW)
    np.testing.assert_array_equal(all_labels(record), [[NEW], [labels_of(1, 0)]])
    opened = accord.open(record, common=True)
    assert opened.networks_info[0].metadata == {"lr": 0.1}
    assert opened.truth is not None


@pytest.mark.parametrize(
    "changed",
    [{"samples": 3}, {"classes": 7}, {"split": "train"}, {"truth": labels_of(8, 8)}],
    ids=lambda changed: next(iter(changed)),
)
def test_overwriting_with_other_samples_starts_the_record_anew(record, changed):
    with pytest.raises(RecordMismatch, match="overwrite=True"):
        Recorder(record, network=1, **SIZE | changed)
    with Recorder(record, network=1, **SIZE | changed, overwrite=True) as recorder:
        recorder.record(np.zeros(recorder.sample_info.samples, int))
    opened = accord.open(record)
    assert [info.network for info in opened.networks_info] == [1]
    assert (opened.truth is None) == ("truth" not in changed)
    with Recorder(record, network=0, **SIZE | changed, overwrite=True) as recorder:
        recorder.record(np.ones(recorder.sample_info.samples, int))
    assert accord.open(record).networks == 2


def test_nothing_is_overwritten_while_another_recorder_writes(record):
    with Recorder(record, network=1, **SIZE) as other:
        with pytest.raises(RecordBusy, match="another recorder holds this network"):
            Recorder(record, network=1, **SIZE, overwrite=True)
        with pytest.raises(RecordBusy, match="another recorder holds this network"):
            Recorder(record, network=0, samples=3, classes=2, overwrite=True)
        other.record(NEW)
    assert describe(record).epochs == {0: 3, 1: 4}


def test_a_new_path_and_a_packed_record_are_not_overwritten(path, record, tmp_path):
    with Recorder(tmp_path / "new", network=0, **SIZE, overwrite=True) as recorder:
        recorder.record(NEW)
    pack_record(record, tmp_path / "packed")
    with pytest.raises(RecordMismatch, match="packed and read-only; record elsewhere"):
        Recorder(tmp_path / "packed", network=0, **SIZE, overwrite=True)
    assert accord.open(tmp_path / "packed").networks == 2


class Stopped(BaseException):
    """A kill at a change of the storage."""


@pytest.fixture
def stop_after(monkeypatch):
    """Let a number of changes pass, then stop at every later one."""

    def start(allowed):
        left = iter(range(allowed))

        def patched(change):
            def change_or_stop(self, *args, **options):
                if next(left, None) is None:
                    raise Stopped
                return change(self, *args, **options)

            return change_or_stop

        for name in ("remove", "put", "create"):
            monkeypatch.setattr(Folder, name, patched(getattr(Folder, name)))

    yield start
    monkeypatch.undo()


@pytest.mark.parametrize("samples", [SAMPLES, 3], ids=["one network", "the record"])
def test_a_process_may_stop_at_any_change(record, tmp_path, monkeypatch, stop_after, samples):
    old = {n: [labels_of(n, e).tolist() for e in range(3)] for n in range(2)}
    new = [0] * samples
    sizes = {"samples": samples, "classes": CLASSES, "metadata": {"new": True}}
    for allowed in range(200):
        copy = tmp_path / f"copy-{allowed}"
        shutil.copytree(record, copy)
        stop_after(allowed)
        try:
            with Recorder(copy, network=0, **sizes, overwrite=True) as recorder:
                recorder.record(new)
            done = True
        except Stopped:
            done = False
        monkeypatch.undo()
        assert check_record(copy).sound
        for network, epochs in describe(copy).epochs.items():
            if not epochs:
                continue
            opened = accord.open(copy, networks=[network])
            rows = np.asarray(opened.labels)[0].tolist()
            if opened.networks_info[0].metadata == {"new": True}:
                assert (network, rows) == (0, [new])
            else:
                assert rows == old[network][:epochs]
        with Recorder(copy, network=0, **sizes, overwrite=True) as recorder:
            recorder.record(new)
        assert np.asarray(accord.open(copy, networks=[0]).labels).tolist() == [[new]]
        if done:
            break
    assert allowed > 12


def test_a_record_without_networks_has_no_epochs(record):
    accord.remove(record, [0, 1])
    with pytest.raises(NotARecord, match="has no epochs yet"):
        accord.open(record)

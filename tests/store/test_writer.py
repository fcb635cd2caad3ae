"""Rows are appended durably, by one writer per network."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from recorded import CLASSES, SAMPLES, labels_of, write_record

from accord._recorder import Recorder
from accord.errors import (
    ChoiceError,
    NotARecord,
    PredictionError,
    RecordBusy,
    RecordClosed,
    RecordError,
    RecordMismatch,
    RowDamaged,
    RowExists,
    StorageError,
)
from accord.store import SampleInfo, Writer, open_reader, pack_record
from accord.store import _metadata as facts_module
from accord.store._metadata import encode_sample_array, read_sample_info
from accord.store._storage import Folder
from accord.store._validation import Row

SIZE = {"samples": SAMPLES, "classes": CLASSES}


def all_labels(path, **options):
    rows = open_reader(path, **options)
    return rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))


def test_what_was_recorded_is_read_back(record):
    expected = [[labels_of(network, epoch) for epoch in range(3)] for network in range(2)]
    np.testing.assert_array_equal(all_labels(record), expected)


def test_probabilities_are_stored_in_half_precision(path):
    tables = np.random.default_rng(0).dirichlet(np.ones(CLASSES), (3, SAMPLES))
    with Recorder(path, network=0, **SIZE, probabilities=True) as recorder:
        for table in tables:
            recorder.record(table)
    kept = open_reader(path).read_probabilities([0], range(3), slice(None))[0]
    np.testing.assert_array_equal(kept, tables.astype(np.float16))


def test_reopening_appends_after_the_last_row(record):
    write_record(record, epochs=5)
    expected = [labels_of(1, epoch) for epoch in range(5)]
    np.testing.assert_array_equal(all_labels(record)[1], expected)


def test_metrics_are_stored_with_each_row(path):
    with Recorder(path, network=0, **SIZE, metadata={"seed": 7}) as recorder:
        recorder.record(labels_of(0, 0), progress=0.1, loss=np.float64(0.5))
        recorder.record(labels_of(0, 1), progress=0.2, loss=float("nan"))
    (info,) = open_reader(path).networks_info()
    assert info.progress == (0.1, 0.2)
    assert info.metrics == ({"loss": 0.5}, {"loss": "nan"})
    assert info.metadata == {"seed": 7}


def test_a_later_recorder_can_add_the_truth(path):
    write_record(path, networks=1)
    write_record(path, truth=labels_of(9, 9))
    np.testing.assert_array_equal(open_reader(path).truth(), labels_of(9, 9))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"samples": SAMPLES + 1}, "record has samples 40; this recorder has 41"),
        ({"classes": CLASSES + 1}, "record has classes 5; this recorder has 6"),
        ({"split": "train"}, "record has split test; this recorder has train"),
        ({"truth": labels_of(1, 1)}, "record's truth differ from this recorder's"),
        (
            {"metadata": {"seed": 3}},
            r"network 0 was recorded with metadata \{\}.*another network number",
        ),
        ({"probabilities": True}, r"recorded with arrays \['labels'\]"),
    ],
)
def test_other_data_are_refused_on_reopening(record, changed, words):
    with pytest.raises(RecordMismatch, match=words):
        Recorder(record, network=0, **{**SIZE, **changed})


def test_class_names_and_ids_must_fit(path):
    with pytest.raises(PredictionError, match="class_names must be 5 names"):
        Recorder(path, network=0, **SIZE, class_names=["a"])
    with pytest.raises(PredictionError, match=r"must be unique; classes 1 and 3 .* 'b'\. Rename"):
        Recorder(path, network=0, **SIZE, class_names=["a", "b", "c", "b", "b"])
    with pytest.raises(PredictionError, match="ids must be unique; 7 occurs twice"):
        Recorder(path, network=0, **SIZE, ids=[7, *range(SAMPLES - 1)])
    with pytest.raises(PredictionError, match="at least one sample and one class; got 0 and 5"):
        Recorder(path, network=0, samples=0, classes=5)


def test_class_names_may_be_bytes_of_text(path):
    names = np.array([b"a", b"b", b"c", b"d", "é".encode()])  # as HDF5 stores them
    Recorder(path, network=0, **SIZE, class_names=names).close()
    assert read_sample_info(Folder(path)).class_names == ("a", "b", "c", "d", "é")


def test_ids_may_be_bytes_of_text(path):
    Recorder(path, network=0, **SIZE, ids=[f"é{i}".encode() for i in range(SAMPLES)]).close()
    assert read_sample_info(Folder(path)).ids.tolist() == [f"é{i}" for i in range(SAMPLES)]


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        ([2**63 + 1, 5], [2**63 + 1, 5]),
        ([2**63 + 1, -5], ["9223372036854775809", "-5"]),
        ([2**64, 5], ["18446744073709551616", "5"]),
    ],
)
def test_large_ids_are_kept_exactly(path, ids, kept):
    Recorder(path, network=0, samples=2, classes=2, ids=ids).close()
    assert read_sample_info(Folder(path)).ids.tolist() == kept


def test_no_ids_are_too_few(path):
    with pytest.raises(PredictionError, match=r"ids must have shape \(2,\); got \(0,\)"):
        Recorder(path, network=0, samples=2, classes=2, ids=[])


@pytest.mark.parametrize("what", ["ids", "class_names"])
@pytest.mark.parametrize(("strange", "shown"), [("\udc80", r"'\\udc80'"), (b"\xff", r"b'\\xff'")])
def test_invalid_text_is_refused_before_anything_is_written(path, what, strange, shown):
    size = SAMPLES if what == "ids" else CLASSES
    values = np.array([*(f"a{i}" for i in range(size - 2)), strange, strange], dtype=object)
    words = rf"{what} must be text in UTF-8; number {size - 2} is {shown}\. Is it .* Decode it"
    with pytest.raises(PredictionError, match=words):
        Recorder(path, network=0, **SIZE, **{what: values})
    assert not path.exists()


def test_a_record_whose_class_names_do_not_differ_is_still_read(path, tmp_path):
    sample_info = SampleInfo(SAMPLES, CLASSES, class_names=("a", "a", "b", "c", "d"))
    with Writer(path, sample_info, network=0) as writer:
        writer.write(Row(labels_of(0, 0).astype(np.uint8)))
    assert open_reader(path).sample_info.class_names == sample_info.class_names
    pack_record(path, tmp_path / "packed")
    assert open_reader(tmp_path / "packed").sample_info.class_names == sample_info.class_names


def test_text_is_stored_unchanged(path):
    ids = [f"bild-ü{i}.png" for i in range(SAMPLES)]
    write_record(path, ids=ids, class_names=["née", "b", "c", "d", "e"])
    sample_info = open_reader(path).sample_info
    assert sample_info.ids.tolist() == ids
    assert sample_info.class_names == ("née", "b", "c", "d", "e")


def test_a_row_written_twice_is_refused(path):
    with Recorder(path, network=0, **SIZE) as recorder:
        recorder.record(labels_of(0, 0), epoch=0)
        with pytest.raises(
            RowExists, match=r"holds 1 epoch; epoch 0 was.*start at recorder\.epochs"
        ):
            recorder.record(labels_of(0, 0), epoch=0)
        for before in (0.5, 1.0):
            with pytest.raises(RowExists, match=rf"last at progress 1; got {before:g}, which"):
                recorder.record(labels_of(0, 0), progress=before)
        with pytest.raises(RecordError, match="the next is 1; got epoch 5"):
            recorder.record(labels_of(0, 0), epoch=5)
        recorder.record(labels_of(0, 1), epoch=1)
    assert open_reader(path).epochs == 2


@pytest.mark.parametrize("progress", ["a", -1, float("nan"), float("inf"), [1, 2], torch.ones(2)])
def test_an_invalid_progress_is_refused(path, progress):
    with Recorder(path, network=0, **SIZE) as recorder:
        with pytest.raises(RecordError, match=r"progress must be a finite number, 0 or .*omit it"):
            recorder.record(labels_of(0, 0), progress=progress)
        recorder.record(labels_of(0, 0), progress=torch.tensor(0.5))
        assert recorder.epochs == 1


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (["seed"], r"metadata must be a mapping; got a list\..*metadata=\{"),
        ([], "got a list"),
        ({"network": object()}, "network cannot be stored"),
    ],
)
def test_invalid_metadata_are_refused_before_anything_is_written(path, metadata, words):
    with pytest.raises(ChoiceError, match=words):
        Recorder(path, network=0, **SIZE, metadata=metadata)
    assert not path.exists()


def test_refused_predictions_leave_no_row(path):
    with Recorder(path, network=0, **SIZE) as recorder:
        recorder.record(labels_of(0, 0))
        with pytest.raises(PredictionError, match="either predictions or logits"):
            recorder.record()
        with pytest.raises(PredictionError, match=r"got \(39,\)"):
            recorder.record(labels_of(0, 0)[:-1])
        with pytest.raises(ChoiceError, match="note cannot be stored"):
            recorder.record(labels_of(0, 0), note=object())
        assert recorder.epochs == 1
        recorder.record(labels_of(0, 1))
    np.testing.assert_array_equal(all_labels(path)[0], [labels_of(0, 0), labels_of(0, 1)])


def test_a_second_recorder_of_the_same_network_is_refused_while_the_first_lives(path):
    with Recorder(path, network=0, **SIZE):
        with pytest.raises(RecordBusy, match="another recorder holds this network"):
            Recorder(path, network=0, **SIZE)
        Recorder(path, network=1, **SIZE).close()
    Recorder(path, network=0, **SIZE).close()


def test_a_failed_opening_releases_the_network(record):
    (record / "network-000/commits/c.0").unlink()
    with pytest.raises(RowDamaged, match="network 0, epoch 0 is missing, but later ones"):
        Recorder(record, network=0, **SIZE)
    (record / "network-000/commits/c.0").write_text("{}")
    Recorder(record, network=0, **SIZE).close()


def test_a_lock_dies_with_its_process_even_if_a_forked_child_lives_on(path):
    script = f"""
import os, sys, time
from accord import Recorder
recorder = Recorder({str(path)!r}, network=0, samples={SAMPLES}, classes={CLASSES})
if os.fork() == 0:
    print(os.getpid())
    try:
        recorder.record([0] * {SAMPLES})
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os.close(1)
    time.sleep(10_000)
os.kill(os.getpid(), 9)
"""
    writer = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=300, check=False
    )
    child = int(writer.stdout.partition("\n")[0])
    try:
        assert "RecordClosed" in writer.stdout
        assert "a forked process must open its own" in writer.stdout
        Recorder(path, network=0, **SIZE).close()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_closed_recorder_takes_no_more_rows(path):
    recorder = Recorder(path, network=0, **SIZE)
    recorder.close()
    recorder.close()
    with pytest.raises(RecordClosed, match="recorder of network 0 is closed"):
        recorder.record(labels_of(0, 0))


def test_a_folder_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(NotARecord, match=r"contains 'thesis\.tex' and no record"):
        Recorder(tmp_path, network=0, **SIZE)


def test_a_packed_record_is_read_only(record, tmp_path):
    pack_record(record, tmp_path / "packed")
    with pytest.raises(RecordMismatch, match="is packed and read-only"):
        Recorder(tmp_path / "packed", network=0, **SIZE)


@pytest.mark.parametrize("network", [-1, 1_000_000, 1.5, "0"])
def test_an_invalid_network_number_is_refused(path, network):
    words = rf"network must be a whole number in 0\.\.999999; got {network!r}"
    with pytest.raises(ChoiceError, match=words):
        Recorder(path, network=network, **SIZE)


def test_sizes_may_be_numbers_of_numpy(path):
    truth = np.arange(3)
    sizes = {"samples": np.int64(3), "classes": truth.max() + 1}
    with Recorder(path, network=np.int64(2), **sizes) as recorder:
        recorder.record(truth)
    assert (open_reader(path).numbers, open_reader(path).classes) == ((2,), 3)


@pytest.mark.parametrize(
    ("sample_info", "words"),
    [
        ({"samples": 4.0, "classes": 3}, r"samples must be a whole number; got 4\.0"),
        ({"samples": 4, "classes": "3"}, "classes must be a whole number; got '3'"),
        ({"samples": 0, "classes": 3}, "at least one sample and one class; got 0 and 3"),
        ({"samples": 4, "classes": 2**32 + 1}, r"at most 4294967296 classes; got 4294967297.*ids"),
        ({"samples": 4, "classes": 3, "split": None}, 'split must be a name such as "test"; got N'),
        (
            {"samples": 4, "classes": 3, "split": ""},
            "split must be a name such as \"test\"; got ''",
        ),
    ],
)
def test_invalid_sizes_are_refused_before_anything_is_written(path, sample_info, words):
    with pytest.raises(PredictionError, match=words):
        Recorder(path, network=0, **sample_info)
    assert not path.exists()


def test_leftovers_of_a_dead_writer_are_overwritten_and_swept(record):
    (record / "network-000/labels/c.3.0").write_bytes(b"torn")
    part = record / "network-000/labels/.c.3.0.abc.part"
    part.write_bytes(b"half")
    write_record(record, epochs=4)
    assert not part.exists()
    np.testing.assert_array_equal(all_labels(record)[0][3], labels_of(0, 3))


def test_a_row_whose_commit_failed_can_be_written_again(path, monkeypatch):
    create = Folder.create

    def fail_at_commits(self, key, data, **options):
        if "commits" in key:
            raise StorageError("full")
        return create(self, key, data, **options)

    with Recorder(path, network=0, **SIZE) as recorder:
        recorder.record(labels_of(0, 0))
        monkeypatch.setattr(Folder, "create", fail_at_commits)
        with pytest.raises(StorageError, match="full"):
            recorder.record(labels_of(0, 7))
        monkeypatch.undo()
        recorder.record(labels_of(0, 1))
    np.testing.assert_array_equal(all_labels(path)[0], [labels_of(0, 0), labels_of(0, 1)])


def test_a_row_is_recorded_even_if_the_shapes_cannot_be_updated(path, monkeypatch):
    put = Folder.put

    def fail_at_shapes(self, key, data, **options):
        if key.endswith("labels/zarr.json"):
            raise StorageError("full")
        return put(self, key, data, **options)

    with Recorder(path, network=0, **SIZE) as recorder:
        monkeypatch.setattr("accord.store._writer.RESIZE_SECONDS", -1)
        monkeypatch.setattr(Folder, "put", fail_at_shapes)
        recorder.record(labels_of(0, 0))
        recorder.record(labels_of(0, 1))
    assert open_reader(path).epochs == 2


def test_a_path_through_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="a part of the path is a file"):
        Recorder(tmp_path / "file" / "record", network=0, **SIZE)


def test_every_commit_holds_checksums_and_metadata(record):
    sample_info = json.loads((record / "network-001/commits/c.2").read_bytes()[8:])
    assert sample_info["epoch"] == 2
    assert sample_info["progress"] == 3.0
    assert set(sample_info["objects"]["labels"]) == {"bytes", "blake2b"}
    assert sample_info["writer"]
    assert sample_info["time"].endswith("+00:00")


@pytest.mark.parametrize("leave", [shutil.rmtree, lambda path: path.rename(f"{path}-moved")])
def test_a_deleted_record_is_not_created_again(path, leave, monkeypatch):
    monkeypatch.setattr("accord.store._writer.RESIZE_SECONDS", -1)
    with Recorder(path, network=0, **SIZE, probabilities=True) as recorder:
        recorder.record(np.eye(CLASSES)[labels_of(0, 0)])
        leave(path)
        with pytest.raises(StorageError, match=r"folder is missing\..*record moved or deleted"):
            recorder.record(np.eye(CLASSES)[labels_of(0, 1)])
        assert recorder.epochs == 1
    assert not path.exists()


def test_a_refused_recorder_writes_nothing(path):
    names = {"truth": labels_of(9, 9), "class_names": list("abcde")}
    with Recorder(path, network=0, **SIZE) as recorder:
        recorder.record(labels_of(0, 0))
        with pytest.raises(RecordBusy, match="another recorder holds this network"):
            Recorder(path, network=0, **SIZE, **names)
    with pytest.raises(RecordMismatch, match="was recorded with metadata"):
        Recorder(path, network=0, **SIZE, **names, metadata={"seed": 3})
    sample_info = open_reader(path).sample_info
    assert (sample_info.truth, sample_info.class_names) == (None, None)


def test_a_recorder_refused_for_its_truth_leaves_no_network_behind(record):
    with pytest.raises(RecordMismatch, match="record's truth differ from this recorder's"):
        Recorder(record, network=7, **SIZE, ids=range(SAMPLES), truth=labels_of(1, 1))
    assert open_reader(record).numbers == (0, 1)
    assert open_reader(record).sample_info.ids is None


def test_a_forked_child_never_closes_a_file_that_is_not_the_lock(path):
    script = f"""
import os
from accord import Recorder
recorder = Recorder({str(path)!r}, network=0, samples={SAMPLES}, classes={CLASSES})
child = os.fork()
if child == 0:
    mine = [os.open(os.devnull, os.O_RDONLY) for _ in range(9)]  # reuses the lock's number
    del recorder
    for number in mine:
        os.fstat(number)
    print("all open", flush=True)
    os._exit(0)
os.waitpid(child, 0)
recorder.record([0] * {SAMPLES})
recorder.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("all open\n", "", 0)


def interrupt_after(monkeypatch, part):
    """Raise KeyboardInterrupt after a file of this kind is written."""
    create = Folder.create

    def create_then_stop(self, key, data, **options):
        written = create(self, key, data, **options)
        if part in key:
            raise KeyboardInterrupt("stopped")
        return written

    monkeypatch.setattr(Folder, "create", create_then_stop)


@pytest.mark.parametrize("part", ["labels", "commits"])
def test_an_interrupted_row_can_be_written_again(path, monkeypatch, part):
    with Recorder(path, network=0, **SIZE) as recorder:
        recorder.record(labels_of(0, 0))
        interrupt_after(monkeypatch, part)
        with pytest.raises(KeyboardInterrupt, match="stopped"):
            recorder.record(labels_of(0, 7))
        monkeypatch.undo()
        recorder.record(labels_of(0, 1))
        recorder.record(labels_of(0, 2))
    np.testing.assert_array_equal(all_labels(path)[0], [labels_of(0, epoch) for epoch in range(3)])


def test_a_commit_that_cannot_be_written_leaves_no_labels(path, monkeypatch):
    def refuse(_):
        raise ValueError("no JSON")

    with Recorder(path, network=0, **SIZE) as recorder:
        monkeypatch.setattr("accord.store._record_format.commit_document", refuse)
        with pytest.raises(ValueError, match="no JSON"):
            recorder.record(labels_of(0, 0))
    assert not (path / "network-000/labels/c.0.0").exists()


@pytest.mark.parametrize("epoch", ["0", float("nan"), 0.0, [0]])
def test_an_epoch_must_be_a_whole_number(path, epoch):
    with Recorder(path, network=0, **SIZE) as recorder:
        with pytest.raises(RecordError, match="epoch must be a whole number; got "):
            recorder.record(labels_of(0, 0), epoch=epoch)
        recorder.record(labels_of(0, 0), epoch=np.int64(0))
        assert recorder.epochs == 1


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(facts_module, "WAIT_SECONDS", 0.05)


def leave_half_a_truth(path, values):
    """Leave the state of a recorder killed before it wrote the metadata of the truth."""
    Recorder(path, network=0, samples=4, classes=3).close()
    Folder(path).create("truth/c.0", encode_sample_array(np.array(values))[1])


def test_truth_left_by_a_killed_recorder_is_replaced(tmp_path, impatient):
    leave_half_a_truth(tmp_path / "run", [0, 1, 2, 1])
    for _ in range(2):
        with Recorder(tmp_path / "run", network=0, samples=4, classes=3, truth=[0, 1, 2, 0]):
            pass
    assert read_sample_info(Folder(tmp_path / "run")).truth.tolist() == [0, 1, 2, 0]
    with pytest.raises(RecordMismatch, match="truth differ"):
        Recorder(tmp_path / "run", network=0, samples=4, classes=3, truth=[0, 1, 2, 1])


def test_a_recorder_waits_for_truth_that_another_one_is_writing(tmp_path):
    values = np.array([0, 1, 2, 0], np.int16)  # stored differently from int64, but equal
    leave_half_a_truth(tmp_path / "run", values)
    root = encode_sample_array(values)[0]
    later = threading.Timer(0.1, Folder(tmp_path / "run").create, ["truth/zarr.json", root])
    later.start()
    with Recorder(tmp_path / "run", network=0, samples=4, classes=3, truth=[0, 1, 2, 0]):
        pass
    later.join()
    assert read_sample_info(Folder(tmp_path / "run")).truth.dtype == np.int16

"""Votes are kept as counts, as arrays, or as a record that an interrupted inference resumes."""

import numpy as np
import pytest

import accord
from accord import Recorder
from accord.data import read_dataset
from accord.errors import RecordMismatch, StorageError
from accord.inference import _evaluator, infer
from accord.inference._checkpoints_of_run import checkpoints_of_run
from accord.inference._collected_votes import AllVotes
from accord.store import SampleInfo, pack_record

TEST = read_dataset("digits").test


def test_a_record_holds_the_votes_of_the_training(whole, recorded, tmp_path):
    found = infer(whole, TEST.inputs, record=tmp_path / "votes")
    kept = accord.open(tmp_path / "votes")
    np.testing.assert_array_equal(kept.labels[:], recorded.labels[:])
    assert (kept.split, kept.truth, kept.class_names) == ("new", None, recorded.class_names)
    assert kept.progress == (1, 3, 4, 6)
    assert found.epochs == (0, 2, 3, 5)
    np.testing.assert_array_equal(found.labels, recorded.predict().labels)


def test_a_record_holds_all_epochs_whatever_the_rule_reads(whole, tmp_path):
    kept = infer(whole, TEST.inputs[:5], rule="majority", record=tmp_path / "votes")
    assert accord.open(tmp_path / "votes").epochs == len(kept.epochs) == 4


def test_an_interrupted_record_is_resumed(whole, recorded, tmp_path, monkeypatch):
    class Interrupted(Exception):
        pass

    def interrupt(done, total):
        assert total == 12 * len(TEST)
        if done == total // 2:
            raise Interrupted

    with pytest.raises(Interrupted):
        infer(whole, TEST.inputs, record=tmp_path / "votes", progress=interrupt)
    evaluated, predict = [], _evaluator.Evaluator.predict

    def watch(self, checkpoint, samples):
        evaluated.append((checkpoint.network.number, checkpoint.epoch))
        return predict(self, checkpoint, samples)

    monkeypatch.setattr(_evaluator.Evaluator, "predict", watch)
    infer(whole, TEST.inputs, record=tmp_path / "votes")
    assert evaluated == [(1, 3), (1, 5), (2, 0), (2, 2), (2, 3), (2, 5)]
    np.testing.assert_array_equal(accord.open(tmp_path / "votes").labels[:], recorded.labels[:])


def test_a_record_of_other_samples_is_refused(whole, tmp_path):
    infer(whole, TEST.inputs[:9], record=tmp_path / "votes")
    for others in (TEST.inputs[1:10], TEST.inputs[:5]):
        with pytest.raises(RecordMismatch, match=r"holds the votes on other samples\..*--record"):
            infer(whole, others, record=tmp_path / "votes")


def test_a_record_without_the_probabilities_of_a_rule_is_refused(whole, tmp_path):
    infer(whole, TEST.inputs[:9], record=tmp_path / "votes")
    with pytest.raises(RecordMismatch, match="labels alone, and the rule needs probabilities"):
        infer(whole, TEST.inputs[:9], record=tmp_path / "votes", rule="soft-agreement")


def test_a_record_with_other_labels_is_refused(whole, tmp_path):
    for labels in (TEST.labels[:9], 1 - TEST.labels[:9] % 2):
        np.savez(tmp_path / "new.npz", images=TEST.inputs[:9], labels=labels)
        if (tmp_path / "votes").exists():
            with pytest.raises(RecordMismatch, match="with other labels, ids or classes"):
                infer(whole, tmp_path / "new.npz", record=tmp_path / "votes")
        else:
            infer(whole, tmp_path / "new.npz", record=tmp_path / "votes")


def test_a_record_of_another_run_or_of_training_is_refused(whole, tmp_path, train_small):
    infer(whole, TEST.inputs[:9], record=tmp_path / "votes")
    with pytest.raises(RecordMismatch, match="predictions of the split test, not of an inference"):
        infer(whole, TEST.inputs[:9], record=whole / "test")
    other = train_small(tmp_path / "other", ("lr = 0.1", "lr = 0.2"))
    with pytest.raises(RecordMismatch, match="holds the votes of another run"):
        infer(other, TEST.inputs[:9], record=tmp_path / "votes")


def test_a_record_of_other_epochs_is_refused(copied, tmp_path):
    infer(copied, TEST.inputs[:9], record=tmp_path / "votes")
    for file in copied.glob("checkpoints/*/epoch-0002*"):
        file.unlink()
    with pytest.raises(RecordMismatch, match=r"epochs \[0, 2, 3, 5\], and .* of \[0, 3, 5\]"):
        infer(copied, TEST.inputs[:9], record=tmp_path / "votes")


def test_a_packed_record_is_refused(whole, tmp_path):
    infer(whole, TEST.inputs[:9], record=tmp_path / "votes")
    pack_record(tmp_path / "votes", tmp_path / "packed")
    with pytest.raises(RecordMismatch, match="the record is packed and read-only"):
        infer(whole, TEST.inputs[:9], record=tmp_path / "packed")


def test_votes_that_fit_nowhere_are_an_error(whole):
    run = checkpoints_of_run(whole)
    with pytest.raises(StorageError, match=r"no space for .* GB of votes.*TMPDIR"):
        AllVotes(run, SampleInfo(2**55, 10), probabilities=False)


def test_a_record_is_resumed_between_the_members_of_a_batch_ensemble(
    train_small, tmp_path, monkeypatch
):
    run = train_small(
        tmp_path / "run",
        ("networks = 3", "networks = 1\nbatch_ensemble = 2"),
        ("epochs = 6", "epochs = 2"),
        ("checkpoints = 4", 'checkpoints = "all"'),
    )
    record, calls = Recorder.record, []

    def interrupt(*arguments, **options):
        calls.append(options)
        if len(calls) == 2:  # the second member, at the first epoch
            raise KeyboardInterrupt
        record(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "record", interrupt)
        with pytest.raises(KeyboardInterrupt):
            infer(run, TEST.inputs, record=tmp_path / "votes")
    infer(run, TEST.inputs, record=tmp_path / "votes")
    kept = accord.open(tmp_path / "votes").labels[:]
    np.testing.assert_array_equal(kept, accord.open(run / "test").labels[:])

"""Targets of a student follow from the votes of a run on its training samples."""

from dataclasses import replace

import numpy as np
import pytest

import accord
from accord.errors import NetworksMissing, RecordMissing, RowDamaged, SourceError
from accord.inference._distill_targets import (
    TARGETS,
    audit_labels,
    make_targets,
    no_gain_note,
    open_train_record,
    vote_shares,
)
from accord.training import Run


@pytest.fixture(scope="module")
def record(distillable):
    return open_train_record(Run.open(distillable))


@pytest.fixture(scope="module")
def audit(record):
    return audit_labels(record, required=True)


@pytest.mark.parametrize("name", TARGETS)
def test_each_row_holds_probabilities(record, audit, name):
    table = make_targets(record, audit, name)
    assert table.shape == (record.samples, record.classes)
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-6)
    assert (table >= 0).all()
    assert (((table == 0) | (table == 1)).all()) == (name in ("proposed", "map", "given"))


def test_targets_are_what_their_names_promise(record, audit):
    def best(name):
        return make_targets(record, audit, name).argmax(axis=1)

    np.testing.assert_array_equal(best("given"), record.given)
    np.testing.assert_array_equal(best("proposed"), audit.proposed)
    np.testing.assert_array_equal(best("map"), record.predict().labels)
    np.testing.assert_array_equal(make_targets(record, audit, "shares"), record.agreement())
    posterior = make_targets(record, audit, "posterior")
    of_given = np.take_along_axis(posterior, record.given.astype(int)[:, np.newaxis], axis=1)[:, 0]
    np.testing.assert_allclose(of_given, 1 - audit.suspicion)


def test_posteriors_are_closer_to_the_truth_than_given_labels(record, audit):
    true = np.eye(record.classes)[record.truth.astype(int)]
    near = [(make_targets(record, audit, name) * true).sum() for name in ("given", "posterior")]
    assert near[1] > near[0] + 0.1 * record.samples


def test_an_audit_that_is_refused_leaves_the_given_labels(tmp_path):
    given = np.arange(40) % 4
    for network in range(2):
        options = {"samples": 40, "classes": 4, "given": given, "split": "train"}
        with accord.Recorder(tmp_path / "record", network=network, **options) as recorder:
            for _ in range(4):
                recorder.record(given)
    record = accord.open(tmp_path / "record")
    refused = audit_labels(record, required=True)
    assert make_targets(record, refused, "posterior").argmax(axis=1).tolist() == given.tolist()
    note = no_gain_note(refused)
    assert note.startswith("no gain over training on the given labels is to be expected")
    assert "there is no audit (" in note
    assert "at every epoch the networks agree with all given labels" in note
    assert "Labels made by rules are a blind spot" in note


def test_one_network_has_no_audit(record):
    alone = record.select(networks=[0])
    assert audit_labels(alone, required=False) is None
    assert no_gain_note(None) is None
    with pytest.raises(NetworksMissing, match="an audit compares networks"):
        audit_labels(alone, required=True)


def test_gain_is_doubted_where_few_labels_are_wrong_or_memorised(audit):
    assert no_gain_note(audit) is None
    none = {"flagged": np.zeros_like(audit.flagged), "log_odds": np.full(len(audit), -9.0)}
    few = replace(audit, **none, memorised_late=0.1)
    assert "the audit finds 0.0 % wrong labels" in no_gain_note(few)
    at_once = replace(audit, memorised_late=0.0)
    assert "the networks memorised hardly any label late" in no_gain_note(at_once)


def test_a_run_without_a_record_of_its_training_split_is_refused(whole):
    with pytest.raises(RecordMissing, match=r'did not record its training split.*"train"\]'):
        open_train_record(Run.open(whole))


def test_damaged_rows_are_not_taken_for_a_refused_audit(distillable, copy_run):
    run = copy_run(distillable)
    row = run / "train/network-000/labels/c.0.0"
    row.write_bytes(row.read_bytes()[:-4] + b"oops")
    with pytest.raises(RowDamaged):
        audit_labels(open_train_record(Run.open(run)), required=True)


def test_a_record_of_other_samples_is_refused(distillable, copy_run):
    run = copy_run(distillable)
    spec = run / "spec.toml"
    spec.write_text(spec.read_text().replace("per_class = 40", "per_class = 39"))
    with pytest.raises(SourceError, match=r"holds 400 samples; the training data hold 390"):
        open_train_record(Run.open(run))


def test_extra_samples_have_the_shares_of_the_votes_of_checkpoints(distillable, tmp_path, digits):
    np.save(tmp_path / "extra.npy", digits.inputs[:20])
    shares = vote_shares(Run.open(distillable), tmp_path / "extra.npy")
    votes = accord.open(distillable / "test").labels[:, [0, -1], :20]
    counts = np.stack([(votes == one).sum(axis=(0, 1)) for one in range(10)], axis=1)
    np.testing.assert_allclose(shares, counts / (votes.shape[0] * 2))

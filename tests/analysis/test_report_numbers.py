"""The summary that a report shows."""

import pytest

from accord import Recorder
from accord.analysis import TRAINED_ON, summarize
from accord.analysis._record_notes import NONE_LATE
from accord.store import open_reader


def test_recall_is_the_share_of_a_class_that_a_rule_finds(record):
    labels = record.predict("max-agreement").labels
    for label, one in enumerate(summarize(record.reader).scored.recalls):
        assert one.max_agreement == pytest.approx((labels[record.truth == label] == label).mean())
        assert one.samples == (record.truth == label).sum()


def test_a_class_that_does_not_occur_has_no_recall(make_record):
    assert len(summarize(make_record(2, 2, 3, 50).reader).scored.recalls) <= 3


def test_margins_are_counted_once_per_sample(record):
    assert summarize(record.reader).margins.sum() == record.samples


def test_cross_fitted_networks_are_not_called_trained_on_their_samples(make_record, tmp_path):
    made = make_record(3, 8, 150, 3)
    shared = {"samples": 150, "classes": 3, "given": made.truth, "split": "train"}
    for network in range(3):
        settings = {"network": network, "metadata": {"cross_fit": 2}, **shared}
        with Recorder(tmp_path / "record", **settings) as recorder:
            for labels in made.labels[network]:
                recorder.record(labels)
    found = summarize(open_reader(tmp_path / "record"))
    assert not found.overview.trained_on
    assert found.scored.found.gain is not None
    assert all(one.corrected for one in found.scored.found.scores)
    assert not {TRAINED_ON, NONE_LATE} & {*found.notes, *found.scored.found.notes}
    assert found.watch.verdict

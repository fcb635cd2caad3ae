"""The summary that a report shows."""

import pytest

from accord.analysis import summarize


def test_recall_is_the_share_of_a_class_that_a_rule_finds(record):
    labels = record.predict("max-agreement").labels
    for label, one in enumerate(summarize(record.reader).scored.recalls):
        assert one.max_agreement == pytest.approx((labels[record.truth == label] == label).mean())
        assert one.samples == (record.truth == label).sum()


def test_a_class_that_does_not_occur_has_no_recall(make_record):
    assert len(summarize(make_record(2, 2, 3, 50).reader).scored.recalls) <= 3


def test_margins_are_counted_once_per_sample(record):
    assert summarize(record.reader).margins.sum() == record.samples

"""What the report measures itself equals its definition."""

from itertools import combinations

import numpy as np
import pytest

from accord.report.measured import Measured


def test_agreement_is_the_share_of_equal_pairs_of_networks(make_record):
    record = make_record(5, 3, 40, 3)
    labels = record.labels[:]
    by_definition = [
        np.mean([labels[a, epoch] == labels[b, epoch] for a, b in combinations(range(5), 2)])
        for epoch in range(3)
    ]
    np.testing.assert_allclose(Measured(record).agreement, by_definition)


def test_recall_is_the_share_of_a_class_that_a_rule_finds(record):
    labels = record.predict("max-agreement").labels
    for label, one in enumerate(Measured(record).recalls):
        assert one.second == pytest.approx((labels[record.truth == label] == label).mean())
        assert one.samples == (record.truth == label).sum()


def test_a_class_that_does_not_occur_has_no_recall(make_record):
    assert len(Measured(make_record(2, 2, 3, 50)).recalls) <= 3


def test_margins_are_counted_once_per_sample(record):
    assert Measured(record).margins.sum() == record.samples

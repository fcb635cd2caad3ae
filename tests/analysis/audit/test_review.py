import numpy as np
import pytest

from accord.analysis._audit._review import (
    Decisions,
    corrected_labels,
    expected_gain,
    measure_gain,
    review_queue,
)
from accord.errors import ChoiceError


def test_the_queue_is_the_head_of_the_ranking(found):
    np.testing.assert_array_equal(review_queue(found, 7), found.ranking[:7])
    np.testing.assert_array_equal(np.sort(review_queue(found)), np.flatnonzero(found.flagged))
    assert len(review_queue(found, 10_000)) == 600
    with pytest.raises(ChoiceError, match="at least one label must be reviewed; got 0"):
        review_queue(found, 0)


def test_decisions_go_before_proposals(found):
    flagged, before = np.flatnonzero(found.flagged), found.given.copy()
    corrected_labels(found, Decisions(np.arange(600), found.proposed))
    np.testing.assert_array_equal(found.given, before)
    kept = Decisions(flagged[:1], found.given[flagged[:1]])
    decided = corrected_labels(found, kept, proposals=True)
    assert decided[flagged[0]] == found.given[flagged[0]]
    np.testing.assert_array_equal(decided[flagged[1:]], found.proposed[flagged[1:]])
    np.testing.assert_array_equal(corrected_labels(found), found.given)
    np.testing.assert_array_equal(corrected_labels(found, proposals=True), found.proposed)


def test_the_gain_is_what_people_changed(found, record):
    queue, truth = np.sort(review_queue(found, 100)), record.truth()
    planned = expected_gain(found, queue)
    assert planned.reviewed == 100
    assert planned.expected == found.suspicion[queue].mean()
    assert planned.by_chance == found.noise_rate
    assert planned.actual is None
    labels = truth[queue].copy()
    labels[:10] = found.given[queue[:10]]  # people overlook ten
    gain = measure_gain(found, Decisions(queue, labels), truth)
    assert gain.changed == (labels != found.given[queue]).sum()
    assert gain.actual == gain.changed / 100
    assert (
        gain.as_proposed
        == ((found.proposed[queue] == labels) & (labels != found.given[queue])).sum()
    )
    assert gain.right == (labels == truth[queue]).sum()
    assert measure_gain(found, Decisions(queue, labels)).right is None
    assert expected_gain(found, queue[:0]).expected == 0
    kept = measure_gain(found, Decisions(np.arange(600), found.given))
    assert (kept.changed, kept.as_proposed) == (0, 0)

"""The record that comes with Accord, counted by hand."""

import numpy as np
import pytest

import accord
from accord.errors import RecordMissing
from accord.store import check_record, describe

EXAMPLE = "example://cifar10-sym40"


@pytest.fixture(scope="module")
def record():
    return accord.open(EXAMPLE)


def most_voted(labels):
    """Count with np.add.at, which nothing in Accord uses."""
    rows = labels.reshape(-1, labels.shape[-1])
    votes = np.zeros((rows.shape[1], 10), int)
    for row in rows:
        np.add.at(votes, (np.arange(rows.shape[1]), row), 1)
    return votes.argmax(axis=1)


def test_it_is_sound_and_small():
    assert check_record(EXAMPLE).findings == ()
    assert describe(EXAMPLE).size < 1_000_000


def test_its_scores_are_an_independent_count(record):
    labels, truth = np.asarray(record.labels), record.truth
    scores = {score.rule: score for score in record.score()}
    assert scores["max-agreement"].accuracy == (most_voted(labels) == truth).mean()
    by_epoch = [(most_voted(labels[:, [epoch]]) == truth).mean() for epoch in range(75)]
    assert scores["majority"].accuracy == by_epoch[-1]
    assert scores["oracle-best-epoch"].accuracy == max(by_epoch)
    assert scores["oracle-best-epoch"].epoch == int(np.argmax(by_epoch))
    per_network = (labels[:, -1] == truth).mean(axis=1)
    assert scores["single"].per_network == tuple(per_network)
    # To the last digit on every Python: 31,365 of 50,000.
    assert scores["single"].accuracy == 0.6273


def test_it_shows_what_max_agreement_is_for(record):
    scores = {score.rule: score.accuracy for score in record.score()}
    assert scores["single"] < scores["majority"] < scores["oracle-best-epoch"]
    assert scores["oracle-best-epoch"] < scores["max-agreement"]


def test_an_unknown_example_is_refused():
    with pytest.raises(RecordMissing, match="no such example; there is example://cifar10-sym40"):
        accord.open("example://imagenet")

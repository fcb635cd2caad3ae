"""A record that is asked again gives the labels of all its votes, for fewer of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from voting import draw_rows

from accord.inference._early_exit import AskAll, Ballot, Certain, join, order_voters, replay
from accord.rules import find_rule
from accord.store import ArrayReader, SampleInfo


@st.composite
def small_rows(draw):
    networks, epochs, samples = (draw(st.integers(1, most)) for most in (3, 5, 6))
    classes = draw(st.integers(1, 4))
    votes = draw(
        st.lists(
            st.integers(0, classes - 1),
            min_size=networks * epochs * samples,
            max_size=networks * epochs * samples,
        )
    )
    labels = np.array(votes, np.uint8).reshape(networks, epochs, samples)
    return ArrayReader(labels, SampleInfo(samples, classes))


def asked_by_definition(labels, order, classes):
    """How many votes of one sample must be seen until the rest cannot matter."""
    votes = np.zeros((1, classes), int)
    for at, voter in enumerate(order, start=1):
        votes[0, labels[voter]] += 1
        if Certain().settled(votes, left=len(order) - at)[0]:
            return at
    raise AssertionError("the last vote settles it")


@given(small_rows())
def test_an_exact_exit_gives_the_labels_of_all_votes_and_asks_as_few_as_it_can(rows):
    found = replay(rows, exit="exact")
    np.testing.assert_array_equal(found.labels, find_rule("max-agreement")(rows).labels)
    size = rows.networks, rows.epochs
    order = order_voters(rows, size, Certain(), seed=0)
    votes = rows.read_labels(range(size[0]), range(size[1]), slice(None)).reshape(len(order), -1)
    wanted = [asked_by_definition(sample, order, rows.classes) for sample in votes.T]
    assert found.asked.tolist() == wanted


@given(small_rows())
def test_without_an_exit_every_vote_is_counted_as_the_rule_counts(rows):
    found, wanted = replay(rows, exit="none"), find_rule("max-agreement")(rows)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(found.prediction.scores, wanted.scores)
    assert found.saved == 0
    assert found.voters == rows.networks * rows.epochs


@pytest.mark.parametrize("risk", [0.05, 0.3])
def test_a_risk_saves_more_and_changes_few_labels(risk):
    rows = draw_rows(networks=6, accuracies=(0.55,) * 20, classes=3, samples=800)
    exact, likely = replay(rows, exit="exact"), replay(rows, exit=risk)
    assert likely.saved > exact.saved + 0.1
    changed = np.mean([(replay(rows, exit=risk, seed=seed).labels != exact.labels).mean()
                       for seed in range(5)])  # fmt: skip
    assert changed <= risk


def test_the_order_of_a_risk_follows_from_the_seed():
    rows = draw_rows(accuracies=(0.5,) * 12)
    first, again, other = (replay(rows, exit=0.2, seed=seed).asked for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_those_who_go_with_the_others_are_asked_first():
    labels = np.zeros((2, 3, 40), np.uint8)
    labels[1, 2] = 1  # one voter is always alone, another half of the time
    labels[0, 0, ::2] = 1
    rows = ArrayReader(labels, SampleInfo(40, 2))
    assert order_voters(rows, (2, 3), Certain(), seed=0).tolist() == [1, 2, 3, 4, 0, 5]
    assert order_voters(None, (2, 3), AskAll(), seed=0).tolist() == [2, 5, 1, 4, 0, 3]


def test_only_open_samples_are_counted():
    ballot = Ballot(3, classes=2, left=5)
    ballot.count(np.array([0, 0, 1]), weight=2)
    ballot.count(np.array([0, 1, 1]))
    ballot.close(Certain())
    assert ballot.open.tolist() == [1]
    ballot.count(np.array([1]))
    prediction, asked = join([ballot, ballot])
    assert asked.tolist() == [2, 3, 2] * 2
    assert prediction.labels.tolist() == [0, 0, 1] * 2
    assert prediction.scores.tolist() == [1, 0.5, 1] * 2

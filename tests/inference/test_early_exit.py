"""An early exit settles samples where it may, and errs no more often than its risk."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from voting import draw_rows

from accord.errors import ChoiceError
from accord.inference._early_exit import (
    BET,
    ExactExit,
    NoExit,
    RiskExit,
    VoteCounts,
    evidence,
    find_exit,
    join_counts,
    log_factorials,
    order_checkpoints,
    replay,
)
from accord.rules import find_rule
from accord.store import ArrayReader, SampleInfo


def winner(votes):
    return max(range(len(votes)), key=lambda c: (votes[c], -c))


def may_change(votes, left):
    """Try every outcome of the remaining votes."""
    additions = itertools.product(range(left + 1), repeat=len(votes))
    return any(
        winner([one + more for one, more in zip(votes, added, strict=True)]) != winner(votes)
        for added in additions
        if sum(added) == left
    )


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 5))
def test_the_exact_exit_settles_what_no_remaining_votes_can_change(votes, left):
    (found,) = ExactExit().settled(np.array([votes]), left=left)
    assert found == (not may_change(votes, left))


def test_without_an_exit_nothing_is_settled_before_the_last_vote():
    assert not NoExit().settled(np.array([[9, 0]]), left=1).any()
    assert NoExit().settled(np.array([[9, 0]]), left=0).all()


def falling(number, times):
    return math.prod(number - one for one in range(times))


def evidence_by_definition(leader, other, left):
    """The bet, vote by vote, against the likeliest way in which the other class catches up."""
    bet, seen = 1.0, leader + other
    for at in range(leader):
        bet *= (BET + at) / (BET + 1 + at)
    for at in range(other):
        bet *= (1 + at) / (BET + 1 + leader + at)
    most = seen + left + (seen + left) % 2
    chances = [
        falling(mine, leader) * falling(total - mine, other) / falling(total, seen)
        for total in range(seen, most + 1)
        for mine in range(leader, total // 2 + 1)
        if total - mine >= other
    ]
    return math.inf if not chances else math.log(bet / max(chances))


@given(st.integers(0, 25), st.integers(0, 12), st.integers(0, 30))
def test_evidence_equals_the_definition_where_the_lead_is_clear(leader, other, left):
    found = evidence(np.array([leader]), np.array([other]), left=left)[0]
    clear = leader > other and (leader - other) ** 2 >= leader + other
    if clear or leader > (leader + other + left + 1) // 2:
        wanted = evidence_by_definition(leader, other, left)
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    else:
        assert found == -math.inf


@given(st.integers(0, 40), st.integers(0, 20), st.integers(0, 60))
def test_evidence_against_a_class_with_more_votes_is_never_more(leader, other, left):
    fewer, more = evidence(np.full(2, leader), np.array([other, other + 1]), left=left)
    assert more <= fewer or more == pytest.approx(fewer)


def test_evidence_for_a_lead_that_cannot_be_lost_is_infinite():
    assert evidence(np.array([9, 1000]), np.array([0, 0]), left=7).tolist() == [math.inf] * 2


def test_log_factorials_are_cumulated_logarithms():
    assert log_factorials(5)[5] == pytest.approx(math.log(120))
    assert len(log_factorials(1000)) == 1001
    assert log_factorials(0).tolist() == [0]


def orders(votes):
    """Yield every different order of the votes, all equally likely."""
    if not any(votes):
        yield ()
    for c, count in enumerate(votes):
        if count:
            rest = [one - (at == c) for at, one in enumerate(votes)]
            for tail in orders(rest):
                yield (c, *tail)


def exit_early(orders, limit, classes):
    """Return the label and the number of counted votes, for each order."""
    orders = np.array(list(orders))
    votes = np.zeros((len(orders), classes), np.int64)
    open_, counted = np.arange(len(orders)), np.zeros(len(orders), int)
    for at in range(orders.shape[1]):
        votes[open_, orders[open_, at]] += 1
        counted[open_] += 1
        open_ = open_[~limit.settled(votes[open_], left=orders.shape[1] - at - 1)]
    return votes.argmax(axis=1), counted


@pytest.mark.parametrize("votes", [(6, 6), (5, 7), (4, 8), (6, 7), (3, 4, 3), (4, 2, 4), (5, 5, 1)])
@pytest.mark.parametrize("risk", [0.2, 0.5])
def test_over_all_orders_the_label_changes_no_more_often_than_the_risk(votes, risk):
    found, _ = exit_early(orders(votes), RiskExit(risk), len(votes))
    assert np.mean(found != winner(votes)) <= risk


def test_some_labels_change_under_a_risk():
    """Otherwise the test above would hold for an exit that changes nothing."""
    labels, counted = exit_early(orders((5, 7)), RiskExit(0.5), 2)
    assert 0 < np.mean(labels != 1) <= 0.5
    assert counted.mean() < exit_early(orders((5, 7)), ExactExit(), 2)[1].mean()


def test_a_smaller_risk_counts_more_votes():
    unanimous = [(0,) * 100]
    counted = [exit_early(unanimous, RiskExit(risk), 10)[1][0] for risk in (0.1, 0.01, 0.001)]
    assert counted == sorted(set(counted))
    assert counted[-1] < 25


def test_more_classes_need_more_votes():
    votes = np.array([[9, 0]])
    many = np.pad(votes, ((0, 0), (0, 998)))
    assert RiskExit(0.05).settled(votes, left=91).all()
    assert not RiskExit(0.05).settled(many, left=91).any()


def test_the_leader_must_beat_every_class():
    votes = np.array([[20, 0, 18], [20, 18, 0], [0, 18, 20], [30, 0, 0]])
    assert RiskExit(0.05).settled(votes, left=60).tolist() == [False] * 3 + [True]


def test_a_risk_settles_what_is_certain():
    assert RiskExit(1e-9).settled(np.array([[3, 0], [0, 3]]), left=3).tolist() == [True, False]
    assert RiskExit(0.5).settled(np.array([[7]]), left=90).tolist() == [True]
    assert RiskExit(0.5).settled(np.zeros((0, 3), int), left=9).tolist() == []


@pytest.mark.parametrize(
    ("exit_", "words"),
    [
        ("sometimes", "exit must be none, exact or a risk such as 0.01; got 'sometimes'"),
        ("1", "a risk must lie between 0 and 1, such as 0.01; got 1"),
        (0.0, "a risk must lie between 0 and 1, such as 0.01; got 0"),
        ("nan", "a risk must lie between 0 and 1, such as 0.01; got nan"),
    ],
)
def test_other_exits_are_refused(exit_, words):
    with pytest.raises(ChoiceError, match=words):
        find_exit(exit_)


def test_exits_are_found_by_name_or_risk():
    own = RiskExit(0.3)
    assert find_exit(own) is own
    assert isinstance(find_exit("none"), NoExit)
    assert isinstance(find_exit("exact"), ExactExit)
    assert find_exit(0.01).risk == find_exit("0.01").risk == 0.01


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


def votes_needed(labels, order, classes):
    """Return the number of votes of one sample after which the rest cannot matter."""
    votes = np.zeros((1, classes), int)
    for at, checkpoint in enumerate(order, start=1):
        votes[0, labels[checkpoint]] += 1
        if ExactExit().settled(votes, left=len(order) - at)[0]:
            return at
    raise AssertionError("the last vote settles it")


@given(small_rows())
def test_an_exact_exit_gives_the_labels_of_all_votes_from_as_few_as_possible(rows):
    found = replay(rows, exit="exact")
    np.testing.assert_array_equal(found.labels, find_rule("max-agreement")(rows).labels)
    size = rows.networks, rows.epochs
    order = order_checkpoints(rows, size, ExactExit(), seed=0)
    votes = rows.read_labels(range(size[0]), range(size[1]), slice(None)).reshape(len(order), -1)
    wanted = [votes_needed(sample, order, rows.classes) for sample in votes.T]
    assert found.evaluated.tolist() == wanted


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
    first, again, other = (replay(rows, exit=0.2, seed=seed).evaluated for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_checkpoints_that_agree_with_the_winner_come_first():
    labels = np.zeros((2, 3, 40), np.uint8)
    labels[1, 2] = 1  # one never agrees with the winner, another half of the time
    labels[0, 0, ::2] = 1
    rows = ArrayReader(labels, SampleInfo(40, 2))
    assert order_checkpoints(rows, (2, 3), ExactExit(), seed=0).tolist() == [1, 2, 3, 4, 0, 5]
    assert order_checkpoints(None, (2, 3), NoExit(), seed=0).tolist() == [2, 5, 1, 4, 0, 3]


def test_only_open_samples_are_counted():
    votes = VoteCounts(3, classes=2, total=5, exit=ExactExit())
    votes.count(np.array([0, 0, 1]), weight=2)
    votes.count(np.array([0, 1, 1]))
    votes.settle()
    assert votes.open.tolist() == [1]
    votes.count(np.array([1]))
    prediction, evaluated = join_counts([votes, votes])
    assert evaluated.tolist() == [2, 3, 2] * 2
    assert prediction.labels.tolist() == [0, 0, 1] * 2
    assert prediction.scores.tolist() == [1, 0.5, 1] * 2

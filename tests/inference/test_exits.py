"""An exit stops where it may, and errs no more often than it says."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import ChoiceError
from accord.inference._early_exit import (
    BET,
    AskAll,
    Certain,
    Likely,
    evidence,
    find_exit,
    log_factorials,
)


def winner(votes):
    return max(range(len(votes)), key=lambda c: (votes[c], -c))


def may_change(votes, left):
    """Try all that the votes to come may say."""
    additions = itertools.product(range(left + 1), repeat=len(votes))
    return any(
        winner([one + more for one, more in zip(votes, added, strict=True)]) != winner(votes)
        for added in additions
        if sum(added) == left
    )


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 5))
def test_certain_is_what_no_votes_to_come_can_change(votes, left):
    (found,) = Certain().settled(np.array([votes]), left=left)
    assert found == (not may_change(votes, left))


def test_asking_all_ends_with_the_last_vote():
    assert not AskAll().settled(np.array([[9, 0]]), left=1).any()
    assert AskAll().settled(np.array([[9, 0]]), left=0).all()


def falling(number, times):
    return math.prod(number - one for one in range(times))


def evidence_by_definition(leader, other, left):
    """The bet, vote by vote, against the likeliest way in which the other may catch up."""
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


def test_a_lead_that_cannot_be_caught_up_with_is_beyond_doubt():
    assert evidence(np.array([9, 1000]), np.array([0, 0]), left=7).tolist() == [math.inf] * 2


def test_log_factorials_are():
    assert log_factorials(5)[5] == pytest.approx(math.log(120))
    assert len(log_factorials(1000)) > 1000
    assert log_factorials(0)[:2].tolist() == [0, 0]


def orders(votes):
    """Every different order of a pile of votes, each as likely as any other."""
    if not any(votes):
        yield ()
    for c, count in enumerate(votes):
        if count:
            rest = [one - (at == c) for at, one in enumerate(votes)]
            for tail in orders(rest):
                yield (c, *tail)


def exit_early(orders, leaving, classes):
    """Return the label and the number of votes asked for, of each order."""
    orders = np.array(list(orders))
    votes = np.zeros((len(orders), classes), np.int64)
    open_, asked = np.arange(len(orders)), np.zeros(len(orders), int)
    for at in range(orders.shape[1]):
        votes[open_, orders[open_, at]] += 1
        asked[open_] += 1
        open_ = open_[~leaving.settled(votes[open_], left=orders.shape[1] - at - 1)]
    return votes.argmax(axis=1), asked


@pytest.mark.parametrize("votes", [(6, 6), (5, 7), (4, 8), (6, 7), (3, 4, 3), (4, 2, 4), (5, 5, 1)])
@pytest.mark.parametrize("risk", [0.2, 0.5])
def test_over_all_orders_the_label_changes_no_more_often_than_the_risk(votes, risk):
    found, _ = exit_early(orders(votes), Likely(risk), len(votes))
    assert np.mean(found != winner(votes)) <= risk


def test_the_risk_is_taken_where_it_pays():
    """Else the test above would hold for an exit that never dares anything."""
    labels, asked = exit_early(orders((5, 7)), Likely(0.5), 2)
    assert 0 < np.mean(labels != 1) <= 0.5
    assert asked.mean() < exit_early(orders((5, 7)), Certain(), 2)[1].mean()


def test_a_smaller_risk_asks_for_more():
    unanimous = [(0,) * 100]
    asked = [exit_early(unanimous, Likely(risk), 10)[1][0] for risk in (0.1, 0.01, 0.001)]
    assert asked == sorted(set(asked))
    assert asked[-1] < 25


def test_more_classes_ask_for_more():
    votes = np.array([[9, 0]])
    many = np.pad(votes, ((0, 0), (0, 998)))
    assert Likely(0.05).settled(votes, left=91).all()
    assert not Likely(0.05).settled(many, left=91).any()


def test_every_class_must_be_beaten_not_the_first_one():
    votes = np.array([[20, 0, 18], [20, 18, 0], [0, 18, 20], [30, 0, 0]])
    assert Likely(0.05).settled(votes, left=60).tolist() == [False] * 3 + [True]


def test_what_is_certain_is_always_settled():
    assert Likely(1e-9).settled(np.array([[3, 0], [0, 3]]), left=3).tolist() == [True, False]
    assert Likely(0.5).settled(np.array([[7]]), left=90).tolist() == [True]
    assert Likely(0.5).settled(np.zeros((0, 3), int), left=9).tolist() == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("sometimes", "exit is none, exact or a risk such as 0.01; got 'sometimes'"),
        ("1", "a risk must lie between 0 and 1, such as 0.01; got 1"),
        (0.0, "a risk must lie between 0 and 1, such as 0.01; got 0"),
        ("nan", "a risk must lie between 0 and 1, such as 0.01; got nan"),
    ],
)
def test_an_exit_that_is_none_is_refused(asked, words):
    with pytest.raises(ChoiceError, match=words):
        find_exit(asked)


def test_exits_are_found_by_name_by_risk_or_as_they_are():
    own = Likely(0.3)
    assert find_exit(own) is own
    assert isinstance(find_exit("none"), AskAll)
    assert isinstance(find_exit("exact"), Certain)
    assert find_exit(0.01).risk == find_exit("0.01").risk == 0.01

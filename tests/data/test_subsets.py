"""Held-out and smaller splits hold what they promise, class by class."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accord.data import Split, fewer_per_class, hold_out
from accord.errors import ChoiceError

SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=12)
SEEDS = st.integers(0, 2**40)
SHARES = st.floats(0.01, 0.99)


def split_of(sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    labels = np.random.default_rng(0).permutation(labels)
    return Split(np.arange(len(labels), dtype=np.float32)[:, None], labels)


@given(SIZES, SHARES, SEEDS)
def test_every_sample_lands_in_exactly_one_part_in_order(sizes, share, seed):
    split = split_of(sizes)
    assume(round(share * len(split)) > 0 and max(sizes) > 1)
    rest, held = hold_out(split, share, seed)
    kept, taken = (part.inputs[:, 0].astype(int) for part in (rest, held))
    assert sorted([*kept, *taken]) == list(range(len(split)))
    assert sorted(kept) == kept.tolist()
    assert sorted(taken) == taken.tolist()
    np.testing.assert_array_equal(rest.labels, split.labels[kept])
    np.testing.assert_array_equal(held.labels, split.labels[taken])


@given(SIZES, SHARES, SEEDS)
def test_the_share_holds_overall_and_within_each_class(sizes, share, seed):
    split = split_of(sizes)
    assume(round(share * len(split)) > 0 and max(sizes) > 1)
    rest, held = hold_out(split, share, seed)
    wanted = min(round(share * len(split)), len(split) - len(sizes))
    assert len(held) <= wanted
    by_class = np.bincount(held.labels, minlength=len(sizes))
    assert (abs(by_class - share * np.array(sizes)) < 1.0000001).all()
    assert (np.bincount(rest.labels, minlength=len(sizes)) >= 1).all()


def test_many_small_classes_still_give_the_whole_share():
    rest, held = hold_out(split_of([4] * 100), 0.1, seed=0)
    assert (len(rest), len(held)) == (360, 40)


def test_the_rest_goes_to_the_classes_that_rounding_robbed_most():
    _, held = hold_out(split_of([19, 10, 15]), 0.1, seed=0)  # 1.9, 1.0, 1.5: 4 in all
    assert np.bincount(held.labels).tolist() == [2, 1, 1]


@given(SIZES, st.integers(1, 40), SEEDS)
def test_fewer_per_class_keeps_as_many_as_there_are(sizes, count, seed):
    split = split_of(sizes)
    fewer = fewer_per_class(split, count, seed)
    assert np.bincount(fewer.labels).tolist() == [min(size, count) for size in sizes]
    kept = fewer.inputs[:, 0].astype(int)
    assert sorted(kept) == kept.tolist()
    np.testing.assert_array_equal(fewer.labels, split.labels[kept])


DRAWS = [
    lambda split, seed: hold_out(split, 0.5, seed)[1],
    lambda split, seed: fewer_per_class(split, 9, seed),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_same_seed_draws_the_same_and_another_seed_others(draw):
    first, again, other = (draw(split_of([30, 30]), seed).inputs for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("share", [0, 1, 20, float("nan")])
def test_a_share_that_leaves_a_part_empty_is_refused(share):
    with pytest.raises(ChoiceError, match=r"between 0 and 1; got .*percentage"):
        hold_out(split_of([9]), share, seed=0)


def test_a_share_that_rounds_to_nothing_is_refused():
    with pytest.raises(ChoiceError, match=r"0\.01 of 9 samples holds out none"):
        hold_out(split_of([9]), 0.01, seed=0)


def test_no_samples_per_class_is_refused():
    with pytest.raises(ChoiceError, match="at least 1 sample of each class must stay; got 0"):
        fewer_per_class(split_of([9]), 0, seed=0)

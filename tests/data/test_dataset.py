"""Data sets refuse parts that do not fit together; held-out parts are stratified."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accord.data import Dataset, Split, fewer_per_class, hold_out
from accord.data._dataset import assign_folds
from accord.data._image_files import ImageFiles
from accord.errors import ChoiceError, SourceError

IMAGES = np.arange(4 * 3 * 2 * 2, dtype=np.uint8).reshape(4, 3, 2, 2)
TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)
TEXTS = ("a", "b", "c", "d")
PAIRS = (("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"))
LABELS = np.array([0, 1, 0, 1])


def table(labels=LABELS, inputs=TABLE, **more):
    return Split(inputs, np.array(labels), **more)


def dataset(train=None, test=None, *, kind="table"):
    train, test = (table() if split is None else split for split in (train, test))
    return Dataset("mine", kind, ("no", "yes"), train=train, test=test)


@pytest.mark.parametrize("inputs", [IMAGES, TABLE, TEXTS, PAIRS])
def test_chosen_samples_keep_their_labels_truth_and_ids(inputs, tmp_path):
    split = Split(inputs, LABELS, truth=LABELS[::-1], ids=np.array(["p", "q", "r", "s"]))
    chosen = split.choose(np.array([3, 0]))
    assert [len(chosen), *chosen.labels, *chosen.truth, *chosen.ids] == [2, 1, 0, 0, 1, "s", "p"]
    assert np.array_equal(chosen.inputs[0], inputs[3])
    assert np.array_equal(chosen.inputs[1], inputs[0])
    assert type(chosen.inputs) is type(inputs)


def test_a_mask_chooses_where_it_is_true():
    assert table().choose(np.array([False, True, False, True])).labels.tolist() == [1, 1]


def test_image_files_are_chosen_without_reading(tmp_path):
    split = Split(ImageFiles(tmp_path, ("a", "b", "c", "d")), LABELS)
    assert split.choose(np.array([2])).inputs.names == ("c",)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [("image", IMAGES), ("table", TABLE), ("text", TEXTS), ("text", PAIRS)],
)
def test_each_kind_takes_its_inputs_and_no_others(kind, inputs):
    split = Split(inputs, LABELS)
    assert dataset(split, split, kind=kind).kind == kind
    for other in {"image", "table", "text"} - {kind}:
        with pytest.raises(SourceError, match=rf"mine: the train split holds .*kind is '{other}'"):
            dataset(split, split, kind=other)


def test_image_files_are_images(tmp_path):
    split = Split(ImageFiles(tmp_path, TEXTS), LABELS)
    assert dataset(split, split, kind="image").classes == 2


@pytest.mark.parametrize("what", ["labels", "truth", "ids"])
def test_labels_of_another_length_are_refused(what):
    parts = {"labels": LABELS, what: LABELS[:3]}
    with pytest.raises(
        SourceError,
        match=rf"`{what}` must hold one entry for each of the 4 samples; got shape \(3,\)",
    ):
        Split(TABLE, **parts)


def test_an_empty_split_is_refused():
    empty = Split(TABLE[:0], LABELS[:0])
    with pytest.raises(SourceError, match="the train split is empty"):
        dataset(train=empty)


def test_a_single_class_is_refused():
    with pytest.raises(SourceError, match=r"all 4 training samples are of class 1.*two classes"):
        dataset(table([1, 1, 1, 1]))
    assert len(dataset(test=table([1, 1, 1, 1])).test) == 4  # to test on, it will do


@pytest.mark.parametrize(
    ("labels", "cause"), [([1, 2, 1, 2], "counted from 1"), ([-1, 0, 1, 0], "without a class")]
)
def test_labels_out_of_range_are_refused_with_the_likely_cause(labels, cause):
    with pytest.raises(SourceError, match=rf"labels must lie in 0\.\.1 .*{cause}"):
        dataset(table(labels))
    with pytest.raises(SourceError, match=r"test split: truth must lie in 0\.\.1"):
        dataset(test=table(truth=np.array(labels)))


def test_labels_that_are_not_integers_are_refused():
    with pytest.raises(SourceError, match=r"labels must be integers; got float64"):
        dataset(table([0.0, 1.0, 0.0, 1.0]))


def test_numbers_that_are_not_finite_are_refused():
    broken = TABLE.copy()
    broken[2, 1] = np.nan
    with pytest.raises(SourceError, match="train split holds numbers that are not finite"):
        dataset(table(inputs=broken))


@pytest.mark.parametrize(
    ("kind", "train", "test", "words"),
    [
        ("table", TABLE, TABLE[:, :1], r"must have the same shape; got \(2,\) and \(1,\)"),
        ("image", IMAGES, IMAGES[:, :, :1], r"must have the same shape; got \(3, 2, 2\)"),
        ("text", TEXTS, PAIRS, "one split holds single texts, the other pairs"),
    ],
)
def test_splits_of_different_shapes_are_refused(kind, train, test, words):
    with pytest.raises(SourceError, match=words):
        dataset(Split(train, LABELS), Split(test, LABELS), kind=kind)


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


def test_the_rest_goes_to_the_classes_with_the_largest_remainders():
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
def test_the_seed_sets_the_draw(draw):
    first, again, other = (draw(split_of([30, 30]), seed).inputs for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("share", [-0.1, 1, 20, float("nan")])
def test_a_share_that_leaves_nothing_to_train_on_is_refused(share):
    with pytest.raises(ChoiceError, match=r"between 0 and 1; got .*percentage"):
        hold_out(split_of([9]), share, seed=0)


def test_a_share_that_rounds_to_nothing_is_refused():
    with pytest.raises(ChoiceError, match=r"0\.01 of 9 samples holds out none"):
        hold_out(split_of([9]), 0.01, seed=0)


def test_no_samples_per_class_is_refused():
    with pytest.raises(ChoiceError, match="per_class must be at least 1; got 0"):
        fewer_per_class(split_of([9]), 0, seed=0)


@pytest.mark.parametrize(("sizes", "folds"), [([9, 4, 1], 3), ([2, 2], 4), ([7, 6, 5, 1, 1], 5)])
def test_folds_are_stratified_and_drawn_by_the_seed(sizes, folds):
    labels = split_of(sizes).labels
    parts = assign_folds(labels, folds, seed=1)
    for group in (parts, *(parts[labels == one] for one in range(len(sizes)))):
        counts = np.bincount(group, minlength=folds)
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(parts, assign_folds(labels, folds, seed=1))
    assert any((parts != assign_folds(labels, folds, seed)).any() for seed in range(2, 6))


def test_more_folds_than_samples_are_refused():
    with pytest.raises(ChoiceError, match="3 samples can be divided into 2 to 3 folds; got 4"):
        assign_folds(np.array([0, 1, 1]), 4, seed=0)


def test_a_data_set_may_hold_nothing_out():
    rest, held = hold_out(split_of([4, 4]), 0, seed=0)
    dataset = Dataset("all", "table", ("0", "1"), train=rest, test=held)
    assert (len(dataset.train), len(dataset.test)) == (8, 0)

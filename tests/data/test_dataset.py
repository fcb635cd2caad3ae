"""A data set refuses parts that do not fit together."""

import numpy as np
import pytest

from accord.data._dataset import Dataset, Split
from accord.data._images import ImageFiles
from accord.errors import SourceError

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
def test_parts_of_another_length_are_refused(what):
    parts = {"labels": LABELS, what: LABELS[:3]}
    with pytest.raises(SourceError, match=rf"`{what}` for each of its 4 samples; got shape \(3,\)"):
        Split(TABLE, **parts)


def test_an_empty_split_is_refused():
    empty = Split(TABLE[:0], LABELS[:0])
    with pytest.raises(SourceError, match="the test split is empty"):
        dataset(test=empty)


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


def test_labels_that_are_no_integers_are_refused():
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
        ("table", TABLE, TABLE[:, :1], r"a training sample is of shape \(2,\), a test sample"),
        ("image", IMAGES, IMAGES[:, :, :1], r"a training sample is of shape \(3, 2, 2\)"),
        ("text", TEXTS, PAIRS, "one split holds single texts, the other pairs"),
    ],
)
def test_splits_that_are_not_alike_are_refused(kind, train, test, words):
    with pytest.raises(SourceError, match=words):
        dataset(Split(train, LABELS), Split(test, LABELS), kind=kind)

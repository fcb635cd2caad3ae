"""Arrays become images, tables or texts by their types and shapes."""

import contextlib

import numpy as np
import pytest

from accord.data import read_dataset
from accord.errors import AccordError, ChoiceError, SourceError

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), dtype=np.uint8)
LABELS = np.array([0, 1, 0, 1, 0, 1])


@pytest.fixture
def read(tmp_path):
    def read(arrays, **options):
        np.savez(tmp_path / "mine.npz", **arrays)
        return read_dataset("npz", tmp_path / "mine.npz", **options)

    return read


def both(inputs, labels=LABELS, **more):
    parts = {"train_inputs": inputs, "train_labels": labels}
    return {**parts, "test_inputs": inputs, "test_labels": labels, **more}


@pytest.mark.parametrize(
    ("inputs", "kind", "shape"),
    [
        (IMAGES, "image", (6, 3, 8, 8)),
        (IMAGES.transpose(0, 2, 3, 1), "image", (6, 3, 8, 8)),
        (IMAGES[:, 0], "image", (6, 1, 8, 8)),
        (IMAGES[:, 0, 0].astype(np.float64), "table", (6, 8)),
        (IMAGES[:, 0, 0], "table", (6, 8)),
    ],
)
def test_arrays_become_images_or_tables(read, inputs, kind, shape):
    dataset = read(both(inputs))
    assert (dataset.kind, dataset.train.inputs.shape) == (kind, shape)
    if kind == "image":
        np.testing.assert_array_equal(dataset.train.inputs[:, 0], IMAGES[:, 0])
    else:
        assert dataset.train.inputs.dtype == np.float32


def test_arrays_become_texts_or_pairs(read):
    assert read(both(np.array(list("abcdef")))).train.inputs == tuple("abcdef")
    pairs = read(both(np.array([["a", "b"]] * 6))).train.inputs
    assert pairs[0] == ("a", "b")


def test_truth_ids_and_names_are_kept(read):
    more = {"train_truth": 1 - LABELS, "test_ids": np.arange(6), "class_names": ["no", "yes"]}
    dataset = read(both(IMAGES, **more))
    assert dataset.train.truth.tolist() == (1 - LABELS).tolist()
    assert dataset.test.ids.tolist() == list(range(6))
    assert dataset.class_names == ("no", "yes")
    assert read(both(IMAGES)).class_names == ("0", "1")


def test_inputs_alone_are_split(read):
    arrays = {"inputs": IMAGES, "labels": LABELS, "truth": 1 - LABELS}
    dataset = read(arrays, held_out=1 / 3, seed=1)
    assert (len(dataset.train), len(dataset.test)) == (4, 2)
    assert (dataset.test.truth == 1 - dataset.test.labels).all()
    with pytest.raises(ChoiceError, match=r"no test set.*held_out=0\.2"):
        read(arrays)


def test_keras_columns_of_labels_are_flattened(read):
    arrays = {"x_train": IMAGES, "y_train": LABELS[:, None], "x_test": IMAGES, "y_test": LABELS}
    assert read(arrays).train.labels.tolist() == LABELS.tolist()


def test_ambiguous_channels_must_be_named(read):
    either = np.zeros((6, 3, 8, 3), np.uint8)
    with pytest.raises(ChoiceError, match=r"mine\.npz: train_inputs: images .*channels='first'"):
        read(both(either))
    assert read(both(either), channels="last").train.inputs.shape == (6, 3, 3, 8)
    assert read(both(either), channels="first").train.inputs.shape == (6, 3, 8, 3)
    with pytest.raises(ChoiceError, match="'first' or 'last'; got 'middle'"):
        read(both(either), channels="middle")


def test_arrays_that_do_not_fit_are_refused(read):
    with pytest.raises(SourceError, match="holds images; expected train_inputs, train_labels"):
        read({"images": IMAGES})
    with pytest.raises(SourceError, match=r"float64 of shape .*Are the images scaled"):
        read(both(IMAGES / 255))
    with pytest.raises(SourceError, match=r"train_inputs: `labels` must hold one entry for each"):
        read(both(IMAGES, LABELS[:4]))
    for labels, kind in ((LABELS.astype(str), "<U21"), (LABELS / 2, "float64")):
        with pytest.raises(SourceError, match=rf"train_labels must be integers; got {kind}\. Numb"):
            read(both(IMAGES, labels))
    with pytest.raises(ChoiceError, match="test_inputs is the test set; leave out held_out"):
        read(both(IMAGES), held_out=0.5)


def test_labels_far_beyond_any_number_of_classes_are_refused(read):
    words = r"mine\.npz: .*at most 1048576 classes; .*up to 1000000000\. Are the labels ids or hash"
    with pytest.raises(SourceError, match=words):
        read(both(IMAGES, np.array([0, 0, 0, 1, 1, 10**9])))


def test_pickled_objects_and_other_files_are_refused(read, tmp_path):
    with pytest.raises(SourceError, match="pickled objects, which are never loaded"):
        read(both(np.array(["a", 1, 2, 3, 4, 5], dtype=object)))
    (tmp_path / "bad.npz").write_bytes(b"?")
    with pytest.raises(SourceError, match=r"bad\.npz: cannot be read as npz: it is not a zip"):
        read_dataset("npz", tmp_path / "bad.npz")


def test_an_npz_damaged_anywhere_is_refused_or_read(tmp_path):
    path = tmp_path / "damaged.npz"
    np.savez_compressed(path, **both(IMAGES))
    sound = path.read_bytes()
    for position in range(0, len(sound), 2):
        damaged = bytearray(sound)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        with contextlib.suppress(AccordError):
            read_dataset("npz", path)

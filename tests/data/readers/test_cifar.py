"""CIFAR is read from both layouts, with published or human labels."""

import hashlib
import os
import pickle

import numpy as np
import pytest

from accord.data import read_dataset
from accord.data.readers import cifar
from accord.data.readers.cifar import CIFAR100_SUPERCLASSES
from accord.errors import ChoiceError, SourceError


@pytest.fixture
def python_cifar10(tmp_path, tree, python2_pickle):
    """The same images as the binary tree, in the Python layout; both folders."""
    binary, _ = tree("cifar10")
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for file in binary.glob("*.bin"):
        rows = np.fromfile(file, np.uint8).reshape(4, -1)
        batch = {
            "batch_label": b"training batch",
            "labels": rows[:, 0].tolist(),
            "data": rows[:, 1:].copy(),
        }
        (folder / file.stem).write_bytes(python2_pickle(batch))
    return binary, folder


def test_both_layouts_of_cifar10_hold_the_same(python_cifar10):
    binary, python = (read_dataset("cifar10", path, complete=False) for path in python_cifar10)
    assert binary.class_names[3] == "cat"
    for ours, theirs in ((binary.train, python.train), (binary.test, python.test)):
        np.testing.assert_array_equal(ours.inputs, theirs.inputs)
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        assert ours.inputs.dtype == theirs.inputs.dtype == np.uint8


def test_images_are_channel_row_column_in_the_order_of_the_batches(tree):
    path, options = tree("cifar10")
    dataset = read_dataset("cifar10", path.parent, **options)  # the folder above will do
    assert dataset.train.inputs.shape == (20, 3, 32, 32)
    assert dataset.train.labels.tolist() == [i % 10 for i in range(20)]
    raw = (path / "data_batch_2.bin").read_bytes()
    assert dataset.train.inputs[4].tobytes() == raw[1:3073]
    assert dataset.test.labels.tolist() == [0, 1, 2, 3]


def test_a_missing_batch_is_named(tree):
    path, options = tree("cifar10")
    (path / "data_batch_3.bin").unlink()
    with pytest.raises(SourceError, match=r"Missing: data_batch_3\.bin\. The folder holds data_b"):
        read_dataset("cifar10", path, **options)


def test_a_truncated_batch_is_named(tree):
    path, options = tree("cifar10")
    whole = (path / "data_batch_3.bin").read_bytes()
    (path / "data_batch_3.bin").write_bytes(whole[:-5])
    with pytest.raises(SourceError, match=r"data_batch_3\.bin: holds 12,287 bytes.*truncated"):
        read_dataset("cifar10", path, **options)


def test_an_empty_batch_is_named(tree):
    path, options = tree("cifar10")
    (path / "data_batch_3.bin").write_bytes(b"")
    with pytest.raises(SourceError, match=r"data_batch_3\.bin: is empty\. Was it copied"):
        read_dataset("cifar10", path, **options)


def test_a_batch_that_cannot_be_opened_is_named(tree):
    path, options = tree("cifar10")
    (path / "data_batch_3.bin").unlink()
    (path / "data_batch_3.bin").mkdir()
    with pytest.raises(SourceError, match=r"data_batch_3\.bin: cannot be read"):
        read_dataset("cifar10", path, **options)


def test_a_label_out_of_range_is_refused(tree):
    path, options = tree("cifar10")
    (path / "test_batch.bin").write_bytes(b"\x0a" + bytes(3072))
    with pytest.raises(SourceError, match=r"cifar10: the test split: labels must lie in 0\.\.9"):
        read_dataset("cifar10", path, **options)


def test_checksums_are_compared_on_request(tree, monkeypatch):
    path, options = tree("cifar10")
    with pytest.raises(SourceError, match=r"data_batch_1\.bin: its checksum is .*aadd24acce27"):
        read_dataset("cifar10", path, verify=True, **options)
    for file in path.glob("*.bin"):
        true = hashlib.sha1(file.read_bytes()).hexdigest()
        monkeypatch.setitem(cifar._CIFAR10[0].checksums, file.name, true)
    assert len(read_dataset("cifar10", path, verify=True, **options).train) == 20


def test_code_in_a_python_batch_does_not_run(python_cifar10, tmp_path):
    class Malicious:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/victim",)

    _, folder = python_cifar10
    batch = {"data": np.zeros((1, 3072), np.uint8), "labels": Malicious()}
    (folder / "data_batch_1").write_bytes(pickle.dumps(batch))
    with pytest.raises(SourceError, match=r"data_batch_1: refused to load `posix\.system`"):
        read_dataset("cifar10", folder, complete=False)
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"labels": [1]}, "which holds data, labels"),
        ([1, 2], "which holds data, labels"),
        ({"labels": [1], "data": np.zeros((1, 9), np.uint8)}, r"uint8 of shape \(1, 9\)"),
    ],
)
def test_another_pickle_is_refused(python_cifar10, batch, words):
    _, folder = python_cifar10
    (folder / "test_batch").write_bytes(pickle.dumps(batch))
    with pytest.raises(SourceError, match=words):
        read_dataset("cifar10", folder, complete=False)


def test_cifar100_has_classes_and_superclasses(tree):
    path, options = tree("cifar100")
    fine = read_dataset("cifar100", path, **options)
    coarse = read_dataset("cifar100", path, labels="coarse", **options)
    assert (fine.classes, coarse.classes) == (100, 20)
    assert fine.test.labels.tolist() == list(range(8, 16))
    assert coarse.class_names == CIFAR100_SUPERCLASSES
    with pytest.raises(ChoiceError, match="'fine' or 'coarse'; got 'medium'"):
        read_dataset("cifar100", path, labels="medium", **options)


def test_cifar100_binary_has_the_superclass_first(tmp_path):
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    for name in ("train.bin", "test.bin"):
        (folder / name).write_bytes(bytes([4, 0]) + bytes(3072) + bytes([1, 91]) + bytes(3072))
    assert read_dataset("cifar100", tmp_path, complete=False).train.labels.tolist() == [0, 91]
    coarse = read_dataset("cifar100", tmp_path, labels="coarse", complete=False)
    assert coarse.train.labels.tolist() == [4, 1]
    with pytest.raises(ChoiceError, match=r"train\.bin: no checksum was published"):
        read_dataset("cifar100", tmp_path, complete=False, verify=True)


def test_human_labels_are_given_and_clean_labels_are_the_truth(tree):
    path, options = tree("cifar10n")
    dataset = read_dataset("cifar10n", path, **options)
    clean = np.arange(20) % 10
    assert dataset.train.labels.tolist() == ((clean + 1) % 10).tolist()
    assert dataset.train.truth.tolist() == clean.tolist()
    assert dataset.test.truth.tolist() == dataset.test.labels.tolist()
    same = read_dataset("cifar10n", path, labels="aggre_label", **options)
    assert same.train.labels.tolist() == clean.tolist()


def test_human_labels_may_be_in_another_npz_file(tree, tmp_path):
    path, options = tree("cifar10")
    clean = np.arange(20) % 10
    np.savez(tmp_path / "elsewhere.npz", clean_label=clean, random_label2=clean[::-1])
    file = str(tmp_path / "elsewhere.npz")
    dataset = read_dataset("cifar10n", path, labels="random2", labels_file=file, **options)
    assert dataset.train.labels.tolist() == clean[::-1].tolist()


def test_human_labels_of_superclasses(tree):
    path, options = tree("cifar100n")
    fine = read_dataset("cifar100n", path, **options)
    coarse = read_dataset("cifar100n", path, labels="noisy_coarse", **options)
    assert fine.train.labels.tolist() == list(range(50, 58))
    assert (coarse.classes, coarse.train.labels[0]) == (20, 7)


def test_human_labels_in_another_order_are_refused(tree, tmp_path):
    path, options = tree("cifar10")
    clean = np.roll(np.arange(20) % 10, 1)
    np.savez(tmp_path / "a.npz", clean_label=clean, worse_label=clean)
    file = str(tmp_path / "a.npz")
    with pytest.raises(SourceError, match=r"20 of 20 clean labels differ from CIFAR's.*the order"):
        read_dataset("cifar10n", path, labels_file=file, **options)


def test_human_labels_that_are_missing_are_named(tree, tmp_path):
    path, options = tree("cifar10")
    with pytest.raises(SourceError, match=r"Looked for: CIFAR-10_human\.pt, .*labels_file|\.\./"):
        read_dataset("cifar10n", path, **options)
    with pytest.raises(ChoiceError, match=r"no labels are called 'worst'\. Did you mean 'worse'"):
        read_dataset("cifar10n", path, labels="worst", **options)
    np.savez(tmp_path / "a.npz", clean_label=np.arange(3))
    with pytest.raises(SourceError, match="holds no worse_label, but clean_label"):
        read_dataset("cifar10n", path, labels_file=str(tmp_path / "a.npz"), **options)
    np.savez(tmp_path / "a.npz", clean_label=np.arange(3), worse_label=np.arange(3))
    with pytest.raises(SourceError, match=r"for each of 20 training images; got int64 .*\(3,\)"):
        read_dataset("cifar10n", path, labels_file=str(tmp_path / "a.npz"), **options)

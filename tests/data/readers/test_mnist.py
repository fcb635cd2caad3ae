"""Idx files are read with every byte accounted for, gzipped or not."""

import gzip
import hashlib

import numpy as np
import pytest

from accord.data import read_dataset
from accord.data.readers import mnist as idx
from accord.errors import ChoiceError, SourceError


@pytest.mark.parametrize("compress", [True, False])
def test_images_gain_a_channel_and_keep_their_pixels(tree, compress):
    path, options = tree("mnist", compress=compress)
    dataset = read_dataset("mnist", path, **options)
    assert dataset.train.inputs.shape == (6, 1, 28, 28)
    np.testing.assert_array_equal(dataset.train.inputs[0, 0].ravel(), np.arange(784) % 251)
    assert dataset.train.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert len(dataset.test) == 3


def test_fashion_has_its_own_names(tree):
    path, options = tree("fashion-mnist")
    assert read_dataset("fashion-mnist", path, **options).class_names[9] == "Ankle boot"


@pytest.mark.parametrize("folder", ["", "raw"])
def test_other_spellings_are_found(tree, folder):
    path, options = tree("mnist", compress=False)
    (path / folder).mkdir(exist_ok=True)
    for file in list(path.glob("*ubyte")):
        file.rename(path / folder / file.name.replace("-idx", ".idx"))
    assert len(read_dataset("mnist", path, **options).train) == 6


def test_a_missing_file_is_named_with_all_its_spellings(tree):
    path, options = tree("mnist")
    (path / "t10k-labels-idx1-ubyte.gz").unlink()
    words = r"t10k-labels-idx1-ubyte not found.*t10k-labels\.idx1-ubyte\.gz, raw/t10k"
    with pytest.raises(SourceError, match=words):
        read_dataset("mnist", path, **options)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\0\0\x08\x03" + bytes(12)[:5], "is truncated within the lengths of its 3 axes"),
        (b"\0\0\x08\x01\0\0\0\x05abc", r"has shape \(5,\), but 3 bytes of data"),
        (b"\0\0\x0d\x01\0\0\0\x01abcd", "not an idx file of bytes: it starts with '00000d01'"),
        (b"", "not an idx file"),
    ],
)
def test_a_damaged_file_is_named(tree, content, words):
    path, options = tree("mnist")
    (path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
    with pytest.raises(SourceError, match=rf"train-images-idx3-ubyte\.gz: {words}"):
        read_dataset("mnist", path, **options)


def test_a_damaged_archive_is_named(tree):
    path, options = tree("mnist")
    file = path / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(SourceError, match=r"train-images-idx3-ubyte\.gz: cannot be read"):
        read_dataset("mnist", path, **options)


def test_images_without_labels_are_refused(tree):
    path, options = tree("mnist")
    labels = (path / "t10k-labels-idx1-ubyte.gz").read_bytes()
    (path / "train-labels-idx1-ubyte.gz").write_bytes(labels)
    with pytest.raises(SourceError, match=r"one label each; got shapes \(6, 28, 28\) and \(3,\)"):
        read_dataset("mnist", path, **options)


def test_checksums_are_compared_on_request(tree, monkeypatch):
    path, options = tree("mnist")
    with pytest.raises(SourceError, match=r"its checksum is .*f68b3c2dcbe.*compressed again"):
        read_dataset("mnist", path, verify=True, **options)
    for file in path.glob("*.gz"):
        true = hashlib.md5(file.read_bytes()).hexdigest()
        monkeypatch.setitem(idx._MNIST_MD5, file.name, true)
    assert len(read_dataset("mnist", path, verify=True, **options).train) == 6


def test_unpacked_files_cannot_be_verified(tree):
    path, options = tree("fashion-mnist")
    with pytest.raises(ChoiceError, match=r"no checksum was published for this file.*verify=False"):
        read_dataset("fashion-mnist", path, verify=True, **options)

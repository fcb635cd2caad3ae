"""Images in class folders are read, and faults are named."""

import numpy as np
import pytest

from accord.data import read_dataset
from accord.data.readers.image_folder import list_images
from accord.errors import ChoiceError, SourceError


def read(kind, tree, **more):
    path, options = tree(kind)
    return read_dataset(kind, path, **options, **more)


def test_classes_of_an_image_folder_are_numbered_by_sorted_names(tree):
    dataset = read("image-folder", tree)
    assert dataset.class_names == ("cat", "dog")
    assert dataset.train.ids.tolist() == ["train/cat/deep/2.JPG", "train/dog/1.png"]
    assert dataset.test.labels.tolist() == [0, 1]
    assert dataset.notes == ("left out 1 file without an image's ending: train/cat/notes.txt",)


def test_a_folder_of_classes_is_split(tmp_path, picture):
    for number in range(10):
        picture(tmp_path / f"pets/{'cat' if number % 2 else 'dog'}/{number}.png")
    dataset = read_dataset("image-folder", tmp_path / "pets", held_out=0.4)
    assert dataset.name == "pets"
    assert np.bincount(dataset.train.labels).tolist() == [3, 3]
    assert np.bincount(dataset.test.labels).tolist() == [2, 2]
    assert not set(dataset.train.ids) & set(dataset.test.ids)
    assert dataset.test.inputs.read(np.arange(4)).shape == (4, 3, 224, 224)


def test_a_training_folder_alone_is_split(tmp_path, picture):
    for number in range(10):
        picture(tmp_path / f"train/{'cat' if number % 2 else 'dog'}/{number}.png")
    assert len(read_dataset("image-folder", tmp_path, held_out=0.2).test) == 2


def test_faults_of_an_image_folder_are_named(tree, tmp_path, picture):
    path, _ = tree("image-folder")
    with pytest.raises(ChoiceError, match=r"test: is the test set; leave out held_out"):
        read_dataset("image-folder", path, held_out=0.5)
    picture(path / "test/bird/5.png")
    with pytest.raises(SourceError, match=r"test: classes bird are not among the training"):
        read_dataset("image-folder", path)
    with pytest.raises(ChoiceError, match=r"no test set. Looked for train, .*held_out=0.2"):
        read_dataset("image-folder", path / "train")
    with pytest.raises(SourceError, match=r"cat: expected a folder.*it has deep"):
        read_dataset("image-folder", path / "train/cat", held_out=0.5)


def test_hidden_files_and_other_endings_are_not_images(tmp_path, picture):
    picture(tmp_path / "b.jpg")
    picture(tmp_path / "sub/A.PNG")
    picture(tmp_path / "sub/.thumbnails/A.png")
    (tmp_path / "._b.jpg").write_bytes(b"a Mac was here")
    (tmp_path / "c.txt").write_text("text")
    assert list_images(tmp_path) == ["b.jpg", "sub/A.PNG"]

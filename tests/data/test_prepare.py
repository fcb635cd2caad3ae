"""A data set of image files is resized, cached and cleaned as asked."""

import numpy as np
import pytest

from accord.data import read_dataset
from accord.data._image_cache import prepare_images
from accord.errors import ChoiceError, SourceError


@pytest.fixture
def folder(tmp_path, picture):
    for name in ("train/a/1", "train/a/2", "train/b/3", "test/a/4", "test/b/5"):
        picture(tmp_path / "data" / f"{name}.png", (int(name[-1]), 0, 0), size=(60, 40))
    return tmp_path / "data"


def sizes(dataset):
    return [(split.inputs.size, split.inputs.resize) for split in (dataset.train, dataset.test)]


def test_a_new_size_keeps_the_ratio_and_a_new_resize_is_taken(folder):
    assert sizes(read_dataset("image-folder", folder)) == [(224, 256)] * 2
    assert sizes(read_dataset("image-folder", folder, size=28)) == [(28, 32)] * 2
    assert sizes(read_dataset("image-folder", folder, size=28, resize=28)) == [(28, 28)] * 2


def test_unreadable_images_are_left_out_with_their_labels_and_told(folder, tmp_path):
    (folder / "train/a/1.png").write_bytes(b"?")
    for options in ({}, {"cache": tmp_path / "cache"}, {"cache": tmp_path / "cache"}):
        dataset = read_dataset("image-folder", folder, size=16, skip_unreadable=True, **options)
        assert dataset.train.labels.tolist() == [0, 1]
        assert dataset.train.ids.tolist() == ["train/a/2.png", "train/b/3.png"]
        assert dataset.train.inputs.read(np.arange(2))[:, 0, 0, 0].tolist() == [2, 3]
        assert dataset.notes == ("train: left out 1 image that cannot be read: train/a/1.png",)
        assert len(dataset.test) == 2


def test_an_unreadable_image_stops_the_cache_by_default(folder, tmp_path):
    (folder / "test/b/5.png").write_bytes(b"?")
    with pytest.raises(SourceError, match=r"test/b/5\.png: cannot be read as an image"):
        read_dataset("image-folder", folder, size=16, cache=tmp_path / "cache")


def test_data_without_image_files_are_refused():
    with pytest.raises(ChoiceError, match="digits is not read from image files; size, resize"):
        prepare_images(read_dataset("digits"), size=8)

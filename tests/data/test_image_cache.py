"""Image files are resized, cached once, and left out if they are damaged."""

import os
from dataclasses import replace

import numpy as np
import pytest

from accord.data import _image_cache as image_cache
from accord.data import read_dataset
from accord.data._image_cache import cache_images, prepare_images
from accord.data._image_files import ImageFiles
from accord.errors import ChoiceError, SourceError, StorageError


@pytest.fixture
def files(tmp_path, picture):
    names = tuple(f"{number}.png" for number in range(7))
    for number, name in enumerate(names):
        picture(tmp_path / "images" / name, (number, 2 * number, 3 * number))
    return ImageFiles(tmp_path / "images", names, size=8, resize=8)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(image_cache, "_BLOCK", 3)


def test_cached_images_are_the_decoded_ones(files, tmp_path):
    cached = cache_images(files, tmp_path / "deep/cache")
    everything = np.arange(7)
    np.testing.assert_array_equal(cached.read(everything), files.read(everything))
    assert isinstance(cached.pixels, np.memmap)


def test_the_path_of_a_cache_is_expanded(files, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    cache_images(files, "~/cache")
    assert len(list((tmp_path / "home/cache").iterdir())) == 2


def test_a_choice_of_cached_images_shares_the_cache(files, tmp_path):
    cached = cache_images(files, tmp_path / "cache")
    chosen = cached.choose(np.array([6, 2])).choose(np.array([1, 0]))
    assert chosen.pixels is cached.pixels
    assert chosen.read(np.array([0, 1]))[:, 0, 0, 0].tolist() == [2, 6]


def test_a_cache_of_the_same_files_is_used_again(files, tmp_path, monkeypatch):
    cache_images(files, tmp_path / "cache")
    monkeypatch.setattr(ImageFiles, "decode", None)
    again = cache_images(files, tmp_path / "cache")
    assert again.read(np.array([5]))[0, :, 0, 0].tolist() == [5, 10, 15]


@pytest.mark.parametrize("change", ["size", "names", "touched", "content"])
def test_another_size_or_other_files_get_another_cache(files, tmp_path, picture, change):
    cache_images(files, tmp_path / "cache")
    if change == "size":
        files = replace(files, size=4)
    elif change == "names":
        files = files.choose(np.array([1, 0]))
    elif change == "touched":
        os.utime(files.root / "0.png", (1, 1))
    else:
        picture(files.root / "0.png", (99, 99, 99))
    cached = cache_images(files, tmp_path / "cache")
    positions = np.arange(len(files))
    np.testing.assert_array_equal(cached.read(positions), files.read(positions))
    assert len(list((tmp_path / "cache").glob("*.npy"))) == 2


def test_a_damaged_cache_is_written_again(files, tmp_path):
    cache_images(files, tmp_path / "cache")
    [path] = (tmp_path / "cache").glob("*.npy")
    path.write_bytes(path.read_bytes()[:-1])
    assert cache_images(files, tmp_path / "cache").read(np.array([6]))[0, 0, 0, 0] == 6


def test_a_cache_of_another_shape_is_written_again(files, tmp_path):
    cache_images(files, tmp_path / "cache")
    [path] = (tmp_path / "cache").glob("*.npy")
    np.save(path, np.zeros((7, 3, 4, 4), np.uint8))
    assert cache_images(files, tmp_path / "cache").read(np.array([6])).shape == (1, 3, 8, 8)


def test_an_unreadable_file_leaves_no_cache_behind(files, tmp_path):
    (files.root / "4.png").write_bytes(b"?")
    with pytest.raises(SourceError, match=r"4\.png: cannot be read as an image"):
        cache_images(files, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_unreadable_files_are_marked_now_and_later(files, tmp_path, monkeypatch):
    (files.root / "4.png").write_bytes(b"?")
    for _ in range(2):
        cached = cache_images(files, tmp_path / "cache", skip_unreadable=True)
        assert cached.find_unreadable().tolist() == [4]
        assert cached.read(np.array([5]))[0, 0, 0, 0] == 5
        with pytest.raises(SourceError, match=r"4\.png: cannot be read as an image"):
            cached.read(np.array([3, 4]))
        with pytest.raises(SourceError, match=r"4\.png: cannot be read as an image"):
            cache_images(files, tmp_path / "cache")


def test_a_missing_file_is_named(files, tmp_path):
    (files.root / "1.png").unlink()
    with pytest.raises(SourceError, match=r"1\.png: cannot be read as an image: No such file"):
        cache_images(files, tmp_path / "cache")


def test_a_folder_that_cannot_be_written_is_named(files, tmp_path):
    (tmp_path / "cache").write_text("a file is in the way")
    with pytest.raises(StorageError, match=r"cannot write the cache of 7 images \(0\.0 GB\)"):
        cache_images(files, tmp_path / "cache")


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


def test_unreadable_images_are_left_out_with_their_labels_and_noted(folder, tmp_path):
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

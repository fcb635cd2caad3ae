"""ImageNet and TinyImageNet are read as published."""

import pytest

from accord.data import read_dataset
from accord.errors import SourceError


def read(kind, tree, **more):
    path, options = tree(kind)
    return read_dataset(kind, path, **options, **more)


def test_tinyimagenet_is_numbered_by_sorted_wnids(tree):
    dataset = read("tinyimagenet", tree)
    assert dataset.class_names == ("tench, Tinca tinca", "goldfish")  # n01, n02
    assert dataset.train.labels.tolist() == [0, 0, 1, 1]
    assert dataset.train.ids[0] == "train/n01/images/n01_0.JPEG"
    assert dataset.test.labels.tolist() == [1, 0]
    assert dataset.train.inputs.shape == (4, 3, 64, 64)


def test_tinyimagenet_may_be_named_by_the_folder_above(tree):
    path, options = tree("tinyimagenet")
    assert len(read_dataset("tinyimagenet", path.parent, **options).test) == 2


def test_tinyimagenet_with_unknown_or_missing_classes_is_refused(tree):
    path, options = tree("tinyimagenet")
    annotations = path / "val/val_annotations.txt"
    whole = annotations.read_text()
    for cut, wnid in ((whole.replace("n02", "n09"), "n09"), ("val_0.JPEG", "")):
        annotations.write_text(cut)
        with pytest.raises(
            SourceError, match=rf"val_0\.JPEG is of class '{wnid}', which is not in wnids"
        ):
            read_dataset("tinyimagenet", path, **options)
    (path / "wnids.txt").write_text("n01\nn02\nn07\n")
    with pytest.raises(SourceError, match=r"images of class n07 not found.*train/n07/images"):
        read_dataset("tinyimagenet", path, **options)


def test_imagenet_is_numbered_by_the_sorted_class_list(tree):
    dataset = read("imagenet", tree)
    assert dataset.class_names == ("tench", "tiger shark")  # n01, n03; n02 is not listed
    assert dataset.train.labels.tolist() == [0, 0, 1, 1]
    assert dataset.train.ids[2:].tolist() == ["train/n03/a.JPEG", "train/n03/b.JPEG"]
    assert dataset.test.ids.tolist() == ["val/n01/c.JPEG", "val/n03/c.JPEG"]
    assert dataset.train.inputs.shape == (4, 3, 224, 224)


def test_a_class_list_may_have_tabs_and_lie_at_home(tree, tmp_path, monkeypatch):
    path, options = tree("imagenet")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "two.txt").write_text("n03\ttiger  shark\nn01\n")
    dataset = read_dataset("imagenet", path, **{**options, "class_list": "~/two.txt"})
    assert dataset.class_names == ("n01", "tiger  shark")


def test_imagenet_without_a_list_takes_every_folder(tree):
    path, _ = tree("imagenet")
    assert read_dataset("imagenet", path, complete=False).class_names == ("n01", "n02", "n03")


def test_imagenet_names_the_class_folders_that_are_missing(tree):
    path, options = tree("imagenet")
    (path / "imagenet_2.txt").write_text("n01 tench\nn99 unicorn\n")
    with pytest.raises(SourceError, match=r"train: 1 of 2 class folders not found. Missing: n99"):
        read_dataset("imagenet", path, **options)
    (path / "imagenet_2.txt").write_text("n01 tench\n")
    with pytest.raises(SourceError, match=r"imagenet_2\.txt: lists 1 class;"):
        read_dataset("imagenet", path, **options)
    with pytest.raises(SourceError, match=r"none\.txt: cannot be read as text"):
        read_dataset("imagenet", path, class_list="none.txt", complete=False)


def test_imagenet_names_an_empty_class(tree):
    path, options = tree("imagenet")
    (path / "val/n03/c.JPEG").unlink()
    with pytest.raises(SourceError, match=r"val/n03: holds no images"):
        read_dataset("imagenet", path, **options)

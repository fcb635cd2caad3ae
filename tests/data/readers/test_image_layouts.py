"""Published folders of images: labels, order and names as published."""

import numpy as np
import pytest

from accord.data import read_dataset
from accord.data.readers.image_folder import list_images
from accord.errors import ChoiceError, SourceError


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


def test_tinyimagenet_without_a_class_or_its_labels_is_told(tree):
    path, options = tree("tinyimagenet")
    annotations = path / "val/val_annotations.txt"
    whole = annotations.read_text()
    for cut, wnid in ((whole.replace("n02", "n09"), "n09"), ("val_0.JPEG", "")):
        annotations.write_text(cut)
        with pytest.raises(SourceError, match=rf"val_0\.JPEG is of class '{wnid}', which wnids\."):
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


def test_clothing1m_trains_on_noisy_and_tests_on_clean_labels(tree):
    dataset = read("clothing1m", tree)
    assert (dataset.classes, dataset.class_names[13]) == (14, "Underwear")
    assert dataset.train.labels.tolist() == [13, 2]
    assert dataset.test.labels.tolist() == [5]
    assert (dataset.train.inputs.size, dataset.train.inputs.resize) == (224, 256)


def test_clothing1m_may_be_tested_on_its_validation_images(tree):
    assert read("clothing1m", tree, test="clean_val").test.labels.tolist() == [6]


def test_clothing1m_may_be_unpacked_without_its_images_folder(tree):
    path, options = tree("clothing1m")
    for folder in (path / "images").iterdir():
        folder.rename(path / folder.name)
    train = read_dataset("clothing1m", path, **options).train
    assert train.inputs.read(np.array([0, 1])).shape == (2, 3, 224, 224)
    assert train.ids[0] == "images/0/00/a,1.jpg"


def test_clothing1m_tells_what_is_wrong_with_its_lists(tree):
    path, options = tree("clothing1m")
    with pytest.raises(ChoiceError, match="'clean_test' or 'clean_val'; got 'dirty'"):
        read_dataset("clothing1m", path, test="dirty", **options)
    (path / "noisy_label_kv.txt").write_text("images/0/00/a,1.jpg 13\n")
    with pytest.raises(SourceError, match=r"noisy_label_kv.txt: no label for 1 .*images/1/00/b"):
        read_dataset("clothing1m", path, **options)
    (path / "noisy_label_kv.txt").write_text("images/0/00/a,1.jpg\n")
    with pytest.raises(SourceError, match=r"each line must be 'path label'; got 'images/0"):
        read_dataset("clothing1m", path, **options)
    (path / "noisy_train_key_list.txt").write_text("images/5/none.jpg\n")
    (path / "noisy_label_kv.txt").write_text("images/5/none.jpg 1\n")
    with pytest.raises(SourceError, match=r"Looked for images/5/none\.jpg and 5/none\.jpg"):
        read_dataset("clothing1m", path, **options)


def test_animal10n_is_labelled_by_the_first_character_in_sorted_order(tree):
    dataset = read("animal10n", tree)
    assert dataset.train.labels.tolist() == [0, 3, 9]
    assert dataset.train.ids[0] == "training/0_a.jpg"
    assert [dataset.class_names[i] for i in (0, 1, 9)] == ["cat", "lynx", "guinea pig"]


def test_animal10n_names_a_file_without_a_label(tree, picture):
    path, options = tree("animal10n")
    picture(path / "training/cat.jpg")
    with pytest.raises(SourceError, match=r"training/cat\.jpg: a file's label is the first"):
        read_dataset("animal10n", path, **options)


def test_webvision_keeps_the_first_fifty_classes_of_both_sources(tree):
    dataset = read("webvision50", tree)
    assert dataset.train.labels.tolist() == [0, 49, 1]
    assert dataset.train.ids[2] == "flickr/q0002/c.jpg"
    assert dataset.test.ids.tolist() == ["val_images_256/val000001.jpg"]
    assert (dataset.classes, dataset.class_names[49]) == (50, "name 49")


def test_webvision_may_be_google_alone_or_have_more_classes(tree):
    path, _ = tree("webvision50")
    google = read_dataset("webvision50", path, sources=["google"])
    assert google.train.labels.tolist() == [0, 49]
    wider = read_dataset("webvision50", path, classes=51)
    assert wider.train.labels.tolist() == [0, 49, 1, 50]
    with pytest.raises(ChoiceError, match="'google' and 'flickr'; got 'bing'"):
        read_dataset("webvision50", path, sources=["bing"])
    (path / "info/synsets.txt").unlink()
    assert read_dataset("webvision50", path).class_names[49] == "49"


def test_webvision_names_a_line_without_a_label(tree):
    path, options = tree("webvision50")
    (path / "info/val_filelist.txt").write_text("val1.jpg\n")
    with pytest.raises(SourceError, match=r"val_filelist\.txt: each line must be 'path label'"):
        read_dataset("webvision50", path, **options)


def test_image_folder_is_numbered_by_sorted_names_and_looks_deeper(tree):
    dataset = read("image-folder", tree)
    assert dataset.class_names == ("cat", "dog")
    assert dataset.train.ids.tolist() == ["train/cat/deep/2.JPG", "train/dog/1.png"]
    assert dataset.test.labels.tolist() == [0, 1]
    assert dataset.notes == ("left out 1 file that is not named as images: train/cat/notes.txt",)


def test_one_folder_of_classes_is_divided(tmp_path, picture):
    for number in range(10):
        picture(tmp_path / f"pets/{'cat' if number % 2 else 'dog'}/{number}.png")
    dataset = read_dataset("image-folder", tmp_path / "pets", held_out=0.4)
    assert dataset.name == "pets"
    assert np.bincount(dataset.train.labels).tolist() == [3, 3]
    assert np.bincount(dataset.test.labels).tolist() == [2, 2]
    assert not set(dataset.train.ids) & set(dataset.test.ids)
    assert dataset.test.inputs.read(np.arange(4)).shape == (4, 3, 224, 224)


def test_a_training_folder_alone_is_divided(tmp_path, picture):
    for number in range(10):
        picture(tmp_path / f"train/{'cat' if number % 2 else 'dog'}/{number}.png")
    assert len(read_dataset("image-folder", tmp_path, held_out=0.2).test) == 2


def test_image_folder_tells_what_is_missing(tree, tmp_path, picture):
    path, _ = tree("image-folder")
    with pytest.raises(ChoiceError, match=r"test: is there to test on; leave out held_out"):
        read_dataset("image-folder", path, held_out=0.5)
    picture(path / "test/bird/5.png")
    with pytest.raises(SourceError, match=r"test: classes bird are not among the training"):
        read_dataset("image-folder", path)
    with pytest.raises(ChoiceError, match=r"nothing to test on. Looked for train, .*held_out=0.2"):
        read_dataset("image-folder", path / "train")
    with pytest.raises(SourceError, match=r"cat: there must be a folder.*it has deep"):
        read_dataset("image-folder", path / "train/cat", held_out=0.5)


def test_hidden_files_and_other_endings_are_no_images(tmp_path, picture):
    picture(tmp_path / "b.jpg")
    picture(tmp_path / "sub/A.PNG")
    picture(tmp_path / "sub/.thumbnails/A.png")
    (tmp_path / "._b.jpg").write_bytes(b"a Mac was here")
    (tmp_path / "c.txt").write_text("text")
    assert list_images(tmp_path) == ["b.jpg", "sub/A.PNG"]

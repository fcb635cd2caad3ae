"""WebVision, Clothing1M and ANIMAL-10N are read as published."""

import numpy as np
import pytest

from accord.data import read_dataset
from accord.errors import ChoiceError, SourceError


def read(kind, tree, **more):
    path, options = tree(kind)
    return read_dataset(kind, path, **options, **more)


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


def test_faults_in_the_lists_of_clothing1m_are_named(tree):
    path, options = tree("clothing1m")
    with pytest.raises(ChoiceError, match="'clean_test' or 'clean_val'; got 'dirty'"):
        read_dataset("clothing1m", path, test="dirty", **options)
    (path / "noisy_label_kv.txt").write_text("images/0/00/a,1.jpg 13\n")
    with pytest.raises(SourceError, match=r"_kv\.txt: has no label for 1 .*images/1/00/b"):
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
    with pytest.raises(SourceError, match=r"training/cat\.jpg: the name must start with the label"):
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
    with pytest.raises(ChoiceError, match="'google' or 'flickr'; got 'bing'"):
        read_dataset("webvision50", path, sources=["bing"])
    (path / "info/synsets.txt").unlink()
    assert read_dataset("webvision50", path).class_names[49] == "49"


def test_webvision_names_a_line_without_a_label(tree):
    path, options = tree("webvision50")
    (path / "info/val_filelist.txt").write_text("val1.jpg\n")
    with pytest.raises(SourceError, match=r"val_filelist\.txt: each line must be 'path label'"):
        read_dataset("webvision50", path, **options)

"""Every layout is read by name, and refuses unknown options and missing files."""

import re
import subprocess
import sys

import numpy as np
import pytest

from accord.data import READERS, read_dataset
from accord.data._image_files import ImageFiles
from accord.errors import ChoiceError, SourceError

ON_DISK = [kind for kind in READERS if READERS[kind].needs_path]


@pytest.mark.parametrize("kind", READERS)
def test_every_layout_is_read(kind, tree):
    path, options = tree(kind)
    dataset = read_dataset(kind, path, **options)
    assert dataset.classes == len(set(dataset.class_names)) >= 2
    for split in (dataset.train, dataset.test):
        assert len(split.inputs) == len(split.labels) == len(split)
        assert split.labels.dtype.kind in "iu"
    assert isinstance(dataset.train.inputs, ImageFiles) == READERS[kind].image_files


@pytest.mark.parametrize("kind", READERS)
def test_test_labels_are_true_if_published_as_clean_or_verified(kind, tree):
    path, options = tree(kind)
    own = kind in ("image-folder", "npz", "csv", "tsv", "parquet")
    assert (read_dataset(kind, path, **options).test.truth is None) == own
    verified = read_dataset(kind, path, verified=True, **options).test
    assert verified.truth.tolist() == verified.labels.tolist()


def test_samples_held_out_of_published_training_samples_have_given_labels(tmp_path):
    (tmp_path / "train.tsv").write_text("sentence\tlabel\na\t0\nb\t1\nc\t0\nd\t1\n")
    assert read_dataset("sst2", tmp_path, held_out=0.5).test.truth is None


@pytest.mark.parametrize("kind", [kind for kind in READERS if READERS[kind].image_files])
def test_every_image_on_disk_can_be_read_at_its_size(kind, tree):
    path, options = tree(kind)
    train = read_dataset(kind, path, **options).train
    images = train.inputs.read(np.arange(len(train)))
    assert images.shape == train.inputs.shape
    assert abs(images.mean((0, 2, 3)) - (10, 20, 30)).max() < 3  # the colour of the images


@pytest.mark.parametrize("kind", ON_DISK)
def test_a_missing_path_is_refused(kind, tmp_path):
    with pytest.raises((SourceError, ChoiceError), match=r"no such|cannot be read|No such"):
        read_dataset(kind, tmp_path / "nowhere")


@pytest.mark.parametrize("kind", [kind for kind in ON_DISK if kind != "npz"])
def test_the_error_for_an_empty_folder_names_the_expected_files(kind, tmp_path):
    words = r"(Looked for|Missing)[: ].*\w+|folder of images for each"
    with pytest.raises((SourceError, ChoiceError), match=words):
        read_dataset(kind, tmp_path)


@pytest.mark.parametrize("kind", READERS)
def test_every_layout_refuses_an_unknown_option(kind, tmp_path):
    names = ", ".join(READERS[kind].options)
    with pytest.raises(ChoiceError, match=f"{kind} has no option 'xyz'. There are: {names}$"):
        read_dataset(kind, tmp_path, xyz="red")


@pytest.mark.parametrize("kind", ON_DISK)
def test_every_layout_on_disk_needs_a_path(kind):
    with pytest.raises(ChoiceError, match=rf"{kind} needs a path: .*{READERS[kind].layout[:9]}"):
        read_dataset(kind)


@pytest.mark.parametrize("kind", [kind for kind in READERS if "complete" in READERS[kind].options])
def test_a_part_of_published_data_is_refused_by_default(kind, tree):
    path, options = tree(kind)
    options.pop("complete")
    with pytest.raises(SourceError, match=r"published data have [\d,]+.*complete=False"):
        read_dataset(kind, path, **options)


def test_unknown_layout_offers_the_nearest():
    with pytest.raises(ChoiceError, match=r"no data set is called 'cifar-100n'.*'cifar100n'"):
        read_dataset("cifar-100n", "x")
    with pytest.raises(ChoiceError, match=r"no data set is called 'xyz'. There are: cifar10, "):
        read_dataset("xyz", "x")


def test_image_options_are_for_image_files_alone(tree):
    path, options = tree("mnist")
    with pytest.raises(ChoiceError, match="mnist has no option 'size'"):
        read_dataset("mnist", path, size=32, cache="x", **options)


def test_arguments_that_the_kind_sets_are_not_options(tree):
    path, options = tree("tsv")
    with pytest.raises(ChoiceError, match=r"tsv has no option 'ending'\. There are: label, text"):
        read_dataset("tsv", path, ending=".csv", **options)


def test_a_home_folder_is_expanded(tree, monkeypatch):
    path, options = tree("animal10n")
    monkeypatch.setenv("HOME", str(path))
    assert len(read_dataset("animal10n", "~", **options).train) == 3


def test_importing_the_readers_loads_numpy_alone():
    program = """
import sys, accord.data
heavy = {"PIL", "pyarrow", "torch", "zarr", "pandas"} & sys.modules.keys()
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("csv", {"held_out": "0.2"}, "csv: held_out must be of type float | None; got '0.2'"),
        ("csv", {"seed": 1.5}, "seed must be of type int; got 1.5"),
        ("csv", {"features": 3}, "features must be of type str | Sequence[str] | None; got 3"),
        ("csv", {"one_hot": ["a", 1]}, "one_hot must be of type str | Sequence[str]; got ['a', 1]"),
        ("image-folder", {"size": "16"}, "size must be of type int | None; got '16'"),
        ("image-folder", {"size": True}, "size must be of type int | None; got True"),
        ("image-folder", {"skip_unreadable": "yes"}, "skip_unreadable must be of type bool"),
        ("image-folder", {"cache": 3}, "cache must be of type str | os.PathLike[str] | None"),
        ("digits", {"train_share": "a"}, "train_share must be of type float; got 'a'"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused(kind, options, words, tmp_path):
    path = None if kind == "digits" else tmp_path
    with pytest.raises(ChoiceError, match=re.escape(words)):
        read_dataset(kind, path, **options)

"""What a reader needs is known by name: a published tree is whole, and each part is missed."""

import runpy
from pathlib import Path

import pytest

from accord.experiments.paper._protocols import missing_file, protocols

READERS = Path(__file__).parents[2] / "data" / "readers" / "conftest.py"
TREES = runpy.run_path(str(READERS))["TREES"]  # that their readers are tested on
USED = sorted({one["read"]["kind"] for one in protocols()["data"].values()})


def touch(path, size):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


TOOLS = {"python2_pickle": lambda _: b"", "legacy_torch": lambda _: b"", "picture": touch}
PARTS = {
    "cifar10": ["data_batch_1.bin", "data_batch_5.bin", "test_batch.bin"],
    "cifar100": ["train", "test"],
    "cifar10n": ["data_batch_3.bin", "../CIFAR-10_human.pt"],
    "tinyimagenet": ["wnids.txt", "words.txt", "train", "val/val_annotations.txt", "val/images"],
    "imagenet": ["train", "val", "imagenet_2.txt"],
    "clothing1m": [
        "noisy_train_key_list.txt",
        "noisy_label_kv.txt",
        "clean_test_key_list.txt",
        "clean_label_kv.txt",
    ],
    "animal10n": ["training", "testing"],
    "webvision50": [
        "info/train_filelist_google.txt",
        "info/train_filelist_flickr.txt",
        "info/val_filelist.txt",
        "val_images_256",
    ],
    "mnli": ["train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"],
    "qnli": ["train.tsv", "dev.tsv"],
    "qqp": ["train.tsv", "dev.tsv"],
    "sst2": ["train.tsv", "dev.tsv"],
    "fashion-mnist": ["train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"],
}


def grown(kind, root):
    path, options = TREES[kind](root, TOOLS)
    return path, {name: value for name, value in options.items() if name == "class_list"}


def test_every_kind_of_data_says_what_it_needs():
    assert PARTS.keys() == set(USED)


@pytest.mark.parametrize("kind", sorted(TREES))
def test_what_a_reader_reads_is_whole(kind, tmp_path):
    path, options = grown(kind, tmp_path)
    assert missing_file(kind, path, options) is None


@pytest.mark.parametrize("kind", ["cifar10", "cifar100", "tinyimagenet"])
def test_the_folder_above_will_do(kind, tmp_path):
    grown(kind, tmp_path)
    assert missing_file(kind, tmp_path, {}) is None


@pytest.mark.parametrize(("kind", "part"), [(kind, one) for kind in PARTS for one in PARTS[kind]])
def test_each_part_is_missed_by_its_published_name(kind, part, tmp_path):
    path, options = grown(kind, tmp_path)
    (path / part).resolve().rename(tmp_path.parent / f"{tmp_path.name}-aside")
    published = f"{part}.bin" if kind == "cifar100" else part.removeprefix("../")
    assert missing_file(kind, path, options) == published


@pytest.mark.parametrize("kind", ["animal10n", "imagenet", "tinyimagenet"])
def test_an_empty_folder_of_images_is_missed(kind, tmp_path):
    path, options = grown(kind, tmp_path)
    part = PARTS[kind][0] if kind != "tinyimagenet" else "val/images"
    (path / part).rename(tmp_path.parent / f"{tmp_path.name}-aside")
    (path / part).mkdir()
    assert missing_file(kind, path, options) == part


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("qnli", ["train.parquet", "validation-00000-of-00001.parquet"]),
        ("mnli", ["MNLI/train.tsv", "MNLI/dev_matched.tsv", "mnli/validation_mismatched.tsv"]),
        (
            "fashion-mnist",
            [
                f"raw/{part}-{what}.gz"
                for part in ("train", "t10k")
                for what in ("images.idx3-ubyte", "labels-idx1-ubyte")
            ],
        ),
        ("clothing1m", [f"annotations/{name}" for name in PARTS["clothing1m"]]),
    ],
)
def test_other_spellings_serve(kind, names, tmp_path):
    for name in names:
        touch(tmp_path / name, None)
    assert missing_file(kind, tmp_path, {}) is None


def test_what_lies_beside_a_linked_folder_lies_beside_the_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    path, _ = grown("cifar10", tmp_path / "elsewhere")
    linked = tmp_path / "data" / path.name
    linked.symlink_to(path, target_is_directory=True)
    assert missing_file("cifar10n", linked, {}) == "CIFAR-10_human.pt"
    touch(tmp_path / "data" / "CIFAR-10_human.pt", None)
    assert missing_file("cifar10n", linked, {}) is None


def test_a_class_list_may_lie_where_the_command_runs(tmp_path, monkeypatch):
    path, options = grown("imagenet", tmp_path)
    (path / "imagenet_2.txt").rename(tmp_path.parent / "imagenet_2.txt")
    monkeypatch.chdir(tmp_path.parent)
    assert missing_file("imagenet", path, options) is None


def test_data_without_files_need_none(tmp_path):
    assert missing_file("digits", tmp_path, {}) is None

"""Which files each kind of data needs: what is missing is known before anything is read."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

Spellings = tuple[
    str, ...
]  # any of these will do; one that ends in / is a folder that is not empty

_CIFAR10: Final = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_HUMAN: Final = ("CIFAR-10_human.pt", "CIFAR-10_human.npz", "cifar10n_labels.npz")
_IDX: Final = (
    *("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    *("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
_GLUE: Final = {"mnli": "MNLI", "qnli": "QNLI", "qqp": "QQP", "sst2": "SST-2"}


def missing_file(kind: str, folder: Path, options: Mapping[str, Any]) -> str | None:
    """Return the first file that a reader would look for in vain, by its published name, or None.

    Looks at names alone; whether the files are whole, their reader tells.

    Args:
        kind: a key of `accord.data.readers.READERS`.
        folder: where the data should be.
        options: those of the reader.
    """
    for spellings in _needs_of(kind, options):
        if not any(_is_there(folder, spelling) for spelling in spellings):
            return spellings[0].rstrip("/")
    return None


def _is_there(folder: Path, spelling: str) -> bool:
    # The folder may be a link: what lies beside it is beside the link, not beside its end.
    beside = spelling.startswith("../")
    path = folder.parent / spelling.removeprefix("../") if beside else folder / spelling
    if "*" in spelling:
        return any(path.parent.glob(path.name))
    if not spelling.endswith("/"):
        return path.exists()
    if not path.is_dir():
        return False
    with os.scandir(path) as entries:  # one is enough, of a million
        return next(entries, None) is not None


def _needs_of(kind: str, options: Mapping[str, Any]) -> Iterable[Spellings]:
    if kind in _GLUE:
        return _glue(kind)
    if kind == "imagenet" and options.get("class_list"):
        listed = Path(options["class_list"])  # in the folder, or from where the command runs
        return (*NEEDS[kind], (str(listed), str(listed.absolute())))
    return NEEDS.get(kind, ())


def _glue(kind: str) -> list[Spellings]:
    tests = ["dev"] if kind != "mnli" else ["dev_matched", "dev_mismatched"]
    names = [("train", "train"), *((one, one.replace("dev", "validation")) for one in tests)]
    folders = ("", f"{_GLUE[kind]}/", f"{kind}/")
    endings = (".tsv", ".parquet", "-*.parquet")
    return [
        tuple(f"{folder}{name}{end}" for folder in folders for name in both for end in endings)
        for both in names
    ]


def _in_any(folders: Iterable[str], names: Iterable[str]) -> tuple[Spellings, ...]:
    places = tuple(folders)
    return tuple(tuple(f"{place}{name}" for place in places) for name in names)


def _cifar(names: Iterable[str], binary: str, python: str) -> tuple[Spellings, ...]:
    return tuple((f"{one}.bin", one, f"{binary}/{one}.bin", f"{python}/{one}") for one in names)


def _idx(name: str) -> Spellings:
    spellings = (name, name.replace("-idx", ".idx"))
    return tuple(
        f"{place}{spelling}{ending}"
        for place in ("", "raw/")
        for spelling in spellings
        for ending in ("", ".gz")
    )


_CIFAR10_NEEDS: Final = _cifar(_CIFAR10, "cifar-10-batches-bin", "cifar-10-batches-py")

NEEDS: Final[Mapping[str, tuple[Spellings, ...]]] = {
    "cifar10": _CIFAR10_NEEDS,
    "cifar100": _cifar(("train", "test"), "cifar-100-binary", "cifar-100-python"),
    "cifar10n": (*_CIFAR10_NEEDS, (*_HUMAN, *(f"../{name}" for name in _HUMAN))),
    "tinyimagenet": _in_any(
        ("", "tiny-imagenet-200/"),
        ("wnids.txt", "words.txt", "train/", "val/val_annotations.txt", "val/images/"),
    ),
    "imagenet": (("train/",), ("val/",)),
    "clothing1m": _in_any(
        ("", "annotations/"),
        (
            *("noisy_train_key_list.txt", "noisy_label_kv.txt"),
            *("clean_test_key_list.txt", "clean_label_kv.txt"),
        ),
    ),
    "animal10n": (("training/",), ("testing/",)),
    "webvision50": (
        ("info/train_filelist_google.txt",),
        ("info/train_filelist_flickr.txt",),
        ("info/val_filelist.txt",),
        ("val_images_256/", "val_images/", "val_images_resized/"),
    ),
    "fashion-mnist": tuple(_idx(name) for name in _IDX),
}

"""Readers of MNIST and Fashion-MNIST."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import Dataset, Split
from accord.data.readers._find_files import Spellings, check_checksums, check_counts, find
from accord.errors import SourceError

_FASHION: Final = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_FILES: Final = (
    *("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    *("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
_MNIST_MD5: Final = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
_FASHION_MD5: Final = {
    "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
}


def read_mnist(path: Path, *, complete: bool = True, verify: bool = False) -> Dataset:
    """Read the MNIST data set from idx files.

    Args:
        path: the folder of the files, gzipped or not, or one above its `raw`.
        complete: require all 60,000 training and 10,000 test images.
        verify: compare each .gz file with its published checksum.
    """
    names = tuple(str(digit) for digit in range(10))
    return _read("mnist", path, names, _MNIST_MD5 if verify else None, complete)


def read_fashion_mnist(path: Path, *, complete: bool = True, verify: bool = False) -> Dataset:
    """Read the Fashion-MNIST data set from idx files, as `read_mnist` does.

    The files of Debian, which are compressed again, do not match the published checksums.
    """
    return _read("fashion-mnist", path, _FASHION, _FASHION_MD5 if verify else None, complete)


def _read(
    name: str, path: Path, names: tuple[str, ...], checksums: dict[str, str] | None, complete: bool
) -> Dataset:
    files = [find(path, _spellings(file), what=file) for file in _FILES]
    if checksums is not None:
        check_checksums(files, checksums)
    images, labels, test_images, test_labels = (read_idx(file) for file in files)
    if complete:
        check_counts(path, (len(images), len(test_images)), (60_000, 10_000))
    train = _as_split(files[0], images, labels)
    return Dataset(name, "image", names, train, _as_split(files[2], test_images, test_labels))


def _spellings(name: str) -> Spellings:
    # Some tools unpack the archives to dotted names.
    return tuple(
        f"{folder}{spelling}{ending}"
        for folder in ("", "raw/")
        for spelling in (name, name.replace("-idx", ".idx"))
        for ending in ("", ".gz")
    )


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of bytes from an idx file."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise SourceError(f"{path}: not an idx file of bytes: it starts with {data[:4].hex()!r}.")
    axes = data[3]
    if len(data) < 4 + 4 * axes:
        raise SourceError(f"{path}: is truncated within the lengths of its {axes} axes.")
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    values = np.frombuffer(data[4 + 4 * axes :], np.uint8)
    if values.size != math.prod(shape):
        raise SourceError(f"{path}: has shape {shape}, but {values.size:,} bytes of data.")
    return values.reshape(shape)


def _as_split(file: Path, images: NDArray[Any], labels: NDArray[Any]) -> Split:
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise SourceError(
            f"{file}: images must be (sample, row, column) with one label each; "
            f"got shapes {images.shape} and {labels.shape}."
        )
    return Split(images[:, None], labels.astype(np.int64))


NEEDS: Final = tuple(_spellings(name) for name in _FILES)

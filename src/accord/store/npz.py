"""The arrays of an npz file that somebody else wrote."""

import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import SourceError

# What numpy and zipfile raise for a damaged npz; RuntimeError where a flipped bit says "encrypted".
UNREADABLE: Final = (
    ValueError,
    OSError,
    EOFError,
    RuntimeError,
    AttributeError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an npz file into memory. Pickled objects are refused.

    Raises:
        SourceError: the file is missing, damaged, no npz, or holds pickled objects.
    """
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # numpy would call it pickled, or load one array
                raise zipfile.BadZipFile("it is no zip file, as npz files are")
            with np.load(file, allow_pickle=False) as opened:
                return {name: opened[name] for name in opened.files}
    except UNREADABLE as error:
        pickled = "allow_pickle" in str(error)
        cause = "it holds pickled objects, which are never loaded" if pickled else str(error)
        raise SourceError(f"{path}: cannot be read as npz: {cause}") from error

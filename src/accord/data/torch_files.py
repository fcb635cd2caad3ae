"""What torch saved, read without torch."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, Final

from accord.data.unpickle import PlainUnpickler, open_pickle, settle

_MAGIC: Final = 0x1950A86A20F9469CFC6C


def load_torch(path: Path) -> Any:
    """Load what `torch.save` wrote, old stream or zip: plain data and tensors.

    Admits what `accord.data.unpickle.load_pickle` admits; tensors come as numpy arrays.

    Raises:
        SourceError: the file holds something else, or is damaged.
    """
    with open_pickle(path) as file:
        begins = file.read(4)
        file.seek(0)
        return _read_zip(file) if begins == b"PK\x03\x04" else _read_stream(file)


def _read_zip(file: BinaryIO) -> Any:
    with zipfile.ZipFile(file) as archive:
        documents = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(documents) != 1:
            raise pickle.UnpicklingError("a torch file holds one data.pkl")
        value = PlainUnpickler(io.BytesIO(archive.read(documents[0]))).load()
        folder = documents[0].removesuffix("data.pkl")
        blobs = {
            name.removeprefix(f"{folder}data/"): archive.read(name)
            for name in archive.namelist()
            if name.startswith(f"{folder}data/")
        }
    return settle(value, blobs)


def _read_stream(file: BinaryIO) -> Any:
    if PlainUnpickler(file).load() != _MAGIC:
        raise pickle.UnpicklingError("it does not begin as torch files do")
    _version, system = PlainUnpickler(file).load(), PlainUnpickler(file).load()
    if not system["little_endian"]:
        raise pickle.UnpicklingError("it comes from a big-endian machine")
    unpickler = PlainUnpickler(file)
    value = unpickler.load()
    blobs = {}
    for key in PlainUnpickler(file).load():
        count = int.from_bytes(file.read(8), "little")
        size = count * unpickler.storages[key].itemsize
        blobs[key] = file.read(size)
        if len(blobs[key]) < size:
            raise EOFError("it ends too early")
    return settle(value, blobs)

"""Files of early formats, and small images."""

import pickle
import struct

import numpy as np
import pytest
from PIL import Image


def _string(data):
    return b"T" + struct.pack("<I", len(data)) + data  # BINSTRING: a Python 2 str


def _value(value):
    if isinstance(value, bytes):
        return _string(value)
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(_value, value)) + b"e"
    dtype = (
        b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNN"
        + b"J\xff\xff\xff\xff" * 2
        + b"K\x00tb"
    )
    shape = b"(" + b"".join(map(_value, value.shape)) + b"t"
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    return made + b"(K\x01" + shape + dtype + b"I00\n" + _string(value.tobytes()) + b"tb"


@pytest.fixture(scope="session")
def python2_pickle():
    """Pickle a dict like Python 2 and numpy 1: byte strings, protocol 2."""

    def write(values):
        pairs = b"".join(_string(name.encode()) + _value(value) for name, value in values.items())
        return b"\x80\x02}(" + pairs + b"u."

    return write


@pytest.fixture(scope="session")
def legacy_torch():
    """Save like `torch.save` before zip files: a sequence of pickles, of numpy 1."""

    def write(values):
        system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
        parts = [0x1950A86A20F9469CFC6C, 1001, system, values, []]
        stream = b"".join(pickle.dumps(part, protocol=2) for part in parts)
        return stream.replace(b"cnumpy._core.", b"cnumpy.core.")

    return write


@pytest.fixture(scope="session")
def picture():
    """Write an image of one colour, or of given pixels (row, column, channel)."""

    def write(path, colour=(10, 20, 30), *, size=(8, 8), pixels=None):
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.new("RGB", size, colour) if pixels is None else Image.fromarray(pixels)
        image.save(path)
        return np.asarray(image)

    return write

"""Load pickles and torch files safely, without running code.

A restricted unpickler admits a list of names, each with a stand-in that only holds values. Once
the file is read, `settle` turns the stand-ins into numpy arrays. Our own because no library loads
the files of Python 2 and of torch without executing what they name.
"""

import contextlib
import io
import math
import pickle
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import ZIP_DAMAGE
from accord.errors import SourceError

_DAMAGED = (
    *(*ZIP_DAMAGE, pickle.UnpicklingError, ArithmeticError, AttributeError),
    *(ImportError, MemoryError, TypeError),
)


def load_pickle(path: Path) -> Any:
    """Load a pickle of built-in types and numpy arrays.

    Nothing else is admitted, so no code in the file can run. Byte strings of Python 2 become
    str, decoded as latin-1.

    Raises:
        SourceError: the file holds something else, or is damaged.
    """
    with open_pickle(path) as file:
        return settle(PlainUnpickler(file).load())


@contextlib.contextmanager
def open_pickle(path: Path) -> Iterator[BinaryIO]:
    """Context manager for opening a pickle that raises `SourceError` on failure."""
    try:
        with path.open("rb") as file:
            yield file
    except Refused as refused:
        raise SourceError(
            f"{path}: refused to load {refused}. A pickle can run any program; "
            "only numbers, text, lists, dicts and arrays are admitted."
        ) from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    except _DAMAGED as error:
        raise SourceError(f"{path}: damaged, or not a pickle: {error}") from error


class Refused(Exception):
    """Raised if a file contains objects that are not plain data."""


class _StandIn:
    """Placeholder for an array or tensor."""

    __slots__ = ()

    def settle(self, blobs: Mapping[str, bytes]) -> Any:  # noqa: ARG002
        raise Refused("an incomplete array")

    def __setstate__(self, state: Any) -> None:
        raise Refused(f"a modified {type(self).__name__}")


class _Admitted(_StandIn):
    """Safe replacement for a function that a pickle may call."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


class _DType(_StandIn):
    __slots__ = ("order", "spelling")

    def __init__(self, spelling: str, *_flags: Any) -> None:
        if not re.fullmatch(r"[biufSU][0-9]+", spelling):
            raise Refused(f"arrays of type {spelling!r}")
        self.spelling, self.order = spelling, "<"

    def __setstate__(self, state: Any) -> None:
        self.order = ">" if state[1] == ">" else "<"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"{self.order}{self.spelling}")


class _Array(_StandIn):
    __slots__ = ("data", "dtype", "order", "shape")

    def __init__(self, *_arguments: Any) -> None:
        self.data: Any = None

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, by_column, data = state
        self.fill(data, dtype, shape, "F" if by_column else "C")

    def fill(self, data: Any, dtype: _DType, shape: tuple[int, ...], order: str) -> "_Array":
        if isinstance(data, str):  # from Python 2
            data = data.encode("latin-1")
        if not isinstance(data, bytes | bytearray):
            raise Refused(f"an array of {type(data).__name__}")
        self.data, self.dtype, self.shape, self.order = data, dtype.dtype, shape, order
        return self

    def settle(self, blobs: Mapping[str, bytes]) -> NDArray[Any]:  # noqa: ARG002
        if self.data is None:
            raise Refused("an incomplete array")
        array = np.frombuffer(self.data, self.dtype).reshape(self.shape, order=self.order)  # type: ignore[call-overload]
        return np.array(array, self.dtype.newbyteorder("="))


class _Scalar(_StandIn):
    __slots__ = ("_array",)

    def __init__(self, dtype: _DType, data: Any) -> None:
        self._array = _Array().fill(data, dtype, (), "C")

    def settle(self, blobs: Mapping[str, bytes]) -> Any:
        return self._array.settle(blobs).item()


class _Tensor(_StandIn):
    __slots__ = ("dtype", "key", "offset", "shape", "strides")

    def __init__(self, storage: Any, offset: int, shape: Any, strides: Any, *_flags: Any) -> None:
        self.key, self.dtype = storage.key, storage.dtype
        self.offset, self.shape, self.strides = offset, tuple(shape), tuple(strides)

    def settle(self, blobs: Mapping[str, bytes]) -> NDArray[Any]:
        elements = np.frombuffer(blobs[self.key], self.dtype)
        if math.prod(self.shape) > len(elements):
            raise pickle.UnpicklingError("a tensor is larger than its storage")
        # Positions, not strides into memory: a position past the end raises an error.
        positions = np.full(self.shape, self.offset)
        for axis, stride in enumerate(self.strides):
            shape = [-1 if each == axis else 1 for each in range(len(self.shape))]
            positions += (np.arange(self.shape[axis]) * stride).reshape(shape)
        return np.take(elements, positions)


class _Storage(_StandIn):
    """Placeholder for a torch storage or its type."""

    __slots__ = ("dtype", "key")

    def __init__(self, dtype: np.dtype[Any], key: str = "") -> None:
        self.dtype, self.key = dtype, key


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise Refused(f"text encoded as {encoding}")
    return text.encode("latin-1")


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "_codecs.encode": _encode,
    "builtins.bytes": lambda: b"",
    "__builtin__.bytes": lambda: b"",
    "collections.OrderedDict": lambda pairs=(): dict(pairs),
    "numpy.dtype": _DType,
    "numpy.ndarray": _Array,
    "torch._utils._rebuild_tensor_v2": _Tensor,
}
for _module in ("numpy.core", "numpy._core"):
    _FUNCTIONS[f"{_module}.multiarray._reconstruct"] = _Array
    _FUNCTIONS[f"{_module}.multiarray.scalar"] = _Scalar
    _FUNCTIONS[f"{_module}.numeric._frombuffer"] = lambda *values: _Array().fill(*values[:4])
_STORAGES: Final = {
    "torch.BoolStorage": "b1",
    "torch.ByteStorage": "u1",
    "torch.CharStorage": "i1",
    "torch.ShortStorage": "<i2",
    "torch.IntStorage": "<i4",
    "torch.LongStorage": "<i8",
    "torch.HalfStorage": "<f2",
    "torch.FloatStorage": "<f4",
    "torch.DoubleStorage": "<f8",
}


class PlainUnpickler(pickle.Unpickler):
    """Unpickler restricted to plain data."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, encoding="latin-1")
        self.storages: dict[str, np.dtype[Any]] = {}  # the type of each torch storage

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in _STORAGES:
            return _Storage(np.dtype(_STORAGES[full]))
        if full not in _FUNCTIONS:
            raise Refused(f"`{full}`")
        return _Admitted(_FUNCTIONS[full])

    def persistent_load(self, pid: Any) -> Any:
        tag, kind, key = pid[:3]
        if tag != "storage" or not isinstance(kind, _Storage) or not isinstance(key, str):
            raise Refused(f"a reference to {pid!r:.80}")
        self.storages[key] = kind.dtype
        return _Storage(kind.dtype, key)


def settle(value: Any, blobs: Mapping[str, bytes] | None = None) -> Any:
    """Replace placeholders by arrays recursively.

    `blobs` are the bytes of torch storages, by key.
    """
    return _settle(value, blobs or {}, {})


def _settle(value: Any, blobs: Mapping[str, bytes], done: dict[int, Any]) -> Any:
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    if id(value) in done:  # shared objects are settled once, or nested ones could grow without end
        return done[id(value)]
    if type(value) is list:
        settled: Any = [_settle(each, blobs, done) for each in value]
    elif type(value) is tuple:
        settled = tuple(_settle(each, blobs, done) for each in value)
    elif type(value) is dict:
        settled = {_plain_key(key): _settle(each, blobs, done) for key, each in value.items()}
    elif isinstance(value, _StandIn):
        settled = value.settle(blobs)
    else:
        raise Refused(f"a {type(value).__name__}")
    done[id(value)] = settled
    return settled


def _plain_key(key: Any) -> Any:
    if type(key) not in (bool, int, float, str, bytes):
        raise Refused(f"a dict with a {type(key).__name__} for a key")
    return key


def load_torch(path: Path) -> Any:
    """Load a file written by `torch.save`, with tensors as numpy arrays."""
    with open_pickle(path) as file:
        is_zip = file.read(4) == b"PK\x03\x04"
        file.seek(0)
        return _read_zip(file) if is_zip else _read_stream(file)


def _read_zip(file: BinaryIO) -> Any:
    with zipfile.ZipFile(file) as archive:
        documents = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(documents) != 1:
            raise pickle.UnpicklingError("a torch file must hold one data.pkl")
        value = PlainUnpickler(io.BytesIO(archive.read(documents[0]))).load()
        folder = documents[0].removesuffix("data.pkl")
        blobs = {
            name.removeprefix(f"{folder}data/"): archive.read(name)
            for name in archive.namelist()
            if name.startswith(f"{folder}data/")
        }
    return settle(value, blobs)


def _read_stream(file: BinaryIO) -> Any:
    if PlainUnpickler(file).load() != 0x1950A86A20F9469CFC6C:
        raise pickle.UnpicklingError("it does not begin like a torch file")
    _version, system = PlainUnpickler(file).load(), PlainUnpickler(file).load()
    if not system["little_endian"]:
        raise pickle.UnpicklingError("it was written on a big-endian machine")
    unpickler = PlainUnpickler(file)
    value = unpickler.load()
    blobs = {}
    for key in PlainUnpickler(file).load():
        count = int.from_bytes(file.read(8), "little")
        size = count * unpickler.storages[key].itemsize
        blobs[key] = file.read(size)
        if len(blobs[key]) < size:
            raise EOFError("it is truncated")
    return settle(value, blobs)

"""Read files and write them atomically."""

import contextlib
import csv
import errno
import io
import os
import re
import threading
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, SourceError, StorageError, missing_extra

if TYPE_CHECKING:
    import _csv

Columns: TypeAlias = dict[str, Sequence[Any] | NDArray[Any]]  # one value per row

PART: Final = ".part"  # the ending of files that are being written
_CRLF: Final = "\r\n"
_CELL_LIMIT = threading.Lock()
_URL: Final = re.compile(r"[a-zA-Z][\w+.-]+:/")  # a drive, such as C:/, is one letter
_DENIED: Final = "permission denied. Change the permissions, or choose another place"
_CAUSES: Final = {
    errno.ENOSPC: "the disk is full. Rows recorded before are safe; free some space and resume",
    errno.EDQUOT: "the disk quota is used up. Rows recorded before are safe",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENOENT: "its folder is missing. Was the record moved or deleted meanwhile?",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENAMETOOLONG: "a name in it is too long. Most file systems allow 255 bytes; shorten it",
}
# What Python raises for a damaged zip file: an unknown compression or an encryption flag is a
# RuntimeError, a name that is not text a ValueError.
ZIP_DAMAGE: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError),
    *(RuntimeError, ValueError, LookupError),
)


def local_path(path: str | os.PathLike[str]) -> Path:
    if _URL.match(os.fspath(path)):
        raise ChoiceError(
            f"{path}: is a URL, but this file can only be written locally. "
            "Write it to a local path, then copy it there."
        )
    return expand_home(path)


def expand_home(path: str | os.PathLike[str]) -> Path:
    try:
        if b"\0" in os.fsencode(path):
            raise ValueError("it contains a null byte")
        return Path(path).expanduser()
    except ValueError as error:
        raise StorageError(f"{os.fspath(path)!r}: not a valid file name: {error}") from error
    except RuntimeError as error:
        raise StorageError(f"{path}: no such user has a home folder here") from error


def cause_of(error: OSError) -> str:
    return _CAUSES.get(error.errno or 0, error.strerror or str(error))


def unreadable(path: Path, error: Exception) -> SourceError:
    """Create the error for a source that cannot be read."""
    fix = ". Save it as UTF-8" if isinstance(error, UnicodeDecodeError) else ""
    return SourceError(f"{path}: cannot be read: {error}{fix}")


def storage_error(path: Path, error: OSError, verb: str) -> StorageError:
    return StorageError(f"{path}: cannot {verb}: {cause_of(error)}")


@contextlib.contextmanager
def storage_errors(path: Path, verb: str) -> Iterator[None]:
    """Context manager that converts system errors to `StorageError`."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error, verb) from error


def write_file(path: Path, data: bytes, *, flush: bool = True, make: bool = True) -> None:
    with partial_file(path, data, flush=flush, make=make) as part:
        part.replace(path)


@contextlib.contextmanager
def partial_file(
    path: Path, data: bytes, *, flush: bool = True, make: bool = True
) -> Iterator[Path]:
    """Write contents to a temporary file in the folder of `path`."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}{PART}")
    with storage_errors(path, "write"):
        try:
            if make:
                _make_folder(path.parent)
            with part.open("wb") as file:
                file.write(data)
                if flush:
                    file.flush()
                    os.fsync(file.fileno())
            yield part
            if flush:
                flush_folder(path.parent)  # makes the new name durable, too
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def _make_folder(path: Path) -> None:
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        flush_folder(folder.parent)


def flush_folder(path: Path) -> None:
    """Make new and removed names in a folder durable."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Format a header and rows as CSV.

    Cells with a newline or a carriage return are quoted.
    """
    text = io.StringIO(newline="")
    # Before Python 3.13, csv quotes only the characters of its own line ending: hence both here.
    writer = csv.writer(_Lines(text), lineterminator=_CRLF)
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


@contextlib.contextmanager
def open_csv(path: Path, *, delimiter: str = ",") -> "Iterator[_csv.Reader]":
    """Context manager for opening a CSV file that raises `SourceError` on failure."""
    reader = None
    try:
        # csv refuses cells of more than 131,072 characters, by a limit that all threads share.
        with path.open(encoding="utf-8-sig", newline="") as file, _CELL_LIMIT:
            before = csv.field_size_limit(2**31 - 1)  # the largest C long on every platform
            try:
                # Not strict, a quotation mark left open would hide all later rows.
                reader = csv.reader(file, delimiter=delimiter, strict=True)
                yield reader
            finally:
                csv.field_size_limit(before)
    except csv.Error as error:
        line = reader.line_num if reader else 1
        raise SourceError(
            f"{path}: line {line} cannot be read: {error}. Double a quotation mark "
            "inside a cell, and enclose the cell in quotation marks."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error


class _Lines:
    """Text buffer that normalizes the line endings of `csv.writer`."""

    def __init__(self, text: io.StringIO) -> None:
        self._text = text

    def write(self, row: str) -> None:
        self._text.write(row.removesuffix(_CRLF))
        self._text.write("\n")


def load_npy(path: Path) -> NDArray[Any]:
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise SourceError(f"{path}: cannot be read as npy: {_numpy_cause(error)}") from error


def load_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # numpy would load a single array, or report a pickle
                raise zipfile.BadZipFile("it is not a zip file")
            with np.load(file, allow_pickle=False) as opened:
                return {name: opened[name] for name in opened.files}
    except (*ZIP_DAMAGE, OSError, AttributeError) as error:  # the last two by numpy
        raise SourceError(f"{path}: cannot be read as npz: {_numpy_cause(error)}") from error


def _numpy_cause(error: Exception) -> str:
    if "allow_pickle" in str(error):
        return "it holds pickled objects, which are never loaded"
    return str(error)


def read_parquet(path: Path) -> Columns:
    table = _parquet_table(path)
    numeric = ("int", "uint", "float", "double", "halffloat", "bool")
    columns = {name: table.column(name) for name in table.column_names}
    return {
        name: column.to_numpy()
        if str(column.type).startswith(numeric) and not column.null_count
        else column.to_pylist()
        for name, column in columns.items()
    }


def correct_parquet(
    source: Path, path: Path, *, column: str, changed: Mapping[int, str], kept: str
) -> None:
    """Write a Parquet file again with some values of a column changed.

    `changed` maps rows to the text of another value of the column; a further column, `kept`, holds
    the values before.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _parquet_table(source)
    before = table.column(column)
    values = before.to_pylist()
    by_text = {str(value): value for value in values}
    now = [by_text.get(changed[row], changed[row]) if row in changed else value
           for row, value in enumerate(values)]  # fmt: skip
    field = table.schema.field(column)
    place = table.schema.get_field_index(column)
    table = table.set_column(place, field, pa.array(now, field.type)).append_column(kept, before)
    data = io.BytesIO()
    pq.write_table(table, data)
    write_file(path, data.getvalue())


def _parquet_table(path: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise missing_extra(
            f"{path}: reading .parquet files", "pyarrow", extra="parquet", cause=error
        ) from error
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{path}: cannot be read as Parquet: {error}") from error

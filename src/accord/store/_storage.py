"""Storage of records in folders and zip files."""

import contextlib
import os
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from accord._files import (
    PART,
    ZIP_DAMAGE,
    expand_home,
    flush_folder,
    partial_file,
    storage_error,
    storage_errors,
    write_file,
)
from accord.errors import RecordBusy, RecordMissing, RowDamaged, StorageError

CountProgress: TypeAlias = Callable[[int, int], None]  # (done, total)

EXAMPLE: Final = "example://"


class Storage(ABC):
    """Base class for storage of bytes by key, with atomic writes."""

    name: str
    nothing: str = "nothing is stored there"  # the message if a record is missing

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """Read the value of a key if it exists."""

    @abstractmethod
    def put(self, key: str, data: bytes, *, flush: bool = True, make: bool = True) -> None:
        """Write or replace a value atomically.

        With `flush`, wait until the value is durable. With `make`, create missing folders.
        """

    @abstractmethod
    def create(self, key: str, data: bytes, *, make: bool = True) -> bool:
        """Write a value durably and return True unless the key exists."""

    @abstractmethod
    def remove(self, key: str, *, flush: bool = False) -> None:
        """Remove a key if it exists.

        With `flush`, wait until the removal is durable.
        """

    @abstractmethod
    def children(self, prefix: str = "") -> list[str]:
        """List the sorted names directly below a prefix."""

    @abstractmethod
    def zarr_store(self) -> Any:
        """Open a read-only Zarr store."""

    def exists(self) -> bool:
        """Check whether the storage contains any keys."""
        return bool(self.children())

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:  # noqa: ARG002
        """Lock a key against other writers, if supported."""
        yield

    def unfinished(self, prefix: str = "") -> list[str]:  # noqa: ARG002
        """List partially written files below a prefix."""
        return []

    def sweep(self, prefix: str) -> None:  # noqa: B027
        """Remove files left by interrupted writers."""


class Folder(Storage):
    """Storage in a folder of a file system."""

    nothing = "no such file or folder"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def get(self, key: str) -> bytes | None:
        try:
            return (self.path / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise storage_error(self.path / key, error, "read") from error

    def put(self, key: str, data: bytes, *, flush: bool = True, make: bool = True) -> None:
        write_file(self.path / key, data, flush=flush, make=make)

    def create(self, key: str, data: bytes, *, make: bool = True) -> bool:
        """Write a file unless it exists."""
        target = self.path / key
        with partial_file(target, data, make=make) as part:
            try:
                os.link(part, target)  # fails if the target exists, in one step
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links
                if target.exists():
                    return False
                part.replace(target)
        return True

    def remove(self, key: str, *, flush: bool = False) -> None:
        """Remove a file if it exists, and its folder if it is the last one."""
        path = self.path / key
        with storage_errors(path, "remove"), contextlib.suppress(FileNotFoundError):
            path.unlink()
            if flush:
                flush_folder(path.parent)
        with contextlib.suppress(OSError):  # not empty
            path.parent.rmdir()

    def children(self, prefix: str = "") -> list[str]:
        try:
            names = os.listdir(self.path / prefix)  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error(self.path / prefix, error, "list") from error
        return sorted(name for name in names if not name.endswith(PART))

    def exists(self) -> bool:
        with storage_errors(self.path, "read"):
            return self.path.exists()

    def zarr_store(self) -> Any:
        from zarr.storage import LocalStore

        return LocalStore(self.path, read_only=True)

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Lock a file against other writers until the process exits."""
        try:
            import fcntl
        except ImportError:  # Windows: users must ensure one writer per network
            yield
            return
        with storage_errors(self.path / key, "write"):
            opened = (self.path / key).open("r+b")
        with opened as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # An overwriting recorder may have replaced the file since it was opened.
                current = os.path.samestat(os.fstat(file.fileno()), (self.path / key).stat())
            except (BlockingIOError, FileNotFoundError) as error:
                raise busy(self.path / key) from error
            if not current:
                raise busy(self.path / key)
            _held.add(file)
            try:
                yield
            finally:
                _held.discard(file)

    def unfinished(self, prefix: str = "") -> list[str]:
        parts = (self.path / prefix).rglob(f".*{PART}")
        return sorted(part.relative_to(self.path).as_posix() for part in parts)

    def sweep(self, prefix: str) -> None:
        for name in self.unfinished(prefix):
            with storage_errors(self.path / name, "remove"):
                (self.path / name).unlink(missing_ok=True)


_held: set[BinaryIO] = set()  # the open files of locks


def busy(name: object) -> RecordBusy:
    """Create the error for a network that another recorder holds."""
    return RecordBusy(
        f"{name}: another recorder holds this network. If it is in this process, close it first: "
        "recorder.close(), or `with Recorder(…) as recorder`. Two recorders at a time need two "
        "network numbers; if another process hangs, end it."
    )


def _drop_inherited_locks() -> None:
    # A forked child, such as a data loader's worker, shares its parent's locks and would hold
    # them after the parent's death. Closing the child's copies does not release the parent's.
    # Files are closed, not descriptors: a file object would close whatever reuses its number.
    for file in _held:
        with contextlib.suppress(OSError):
            file.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_inherited_locks)


class Zip(Storage):
    """Read-only storage in a zip file."""

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        self.path = path
        self.name = name or str(path)
        try:
            with zipfile.ZipFile(path) as archive:
                self._names = archive.namelist()
        except PermissionError as error:
            raise storage_error(path, error, "read") from error
        except (*ZIP_DAMAGE, OSError) as error:
            raise StorageError(f"{path}: not a readable zip file ({error})") from error

    def get(self, key: str) -> bytes | None:
        if key not in self._names:
            return None
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(key)
        except OSError as error:
            raise StorageError(f"{self.path}: {key} cannot be read ({error})") from error
        except ZIP_DAMAGE as error:
            raise RowDamaged(
                f"{self.path}: {key} is damaged ({error}). Restore the zip file from a copy."
            ) from error

    def put(self, key: str, data: bytes, *, flush: bool = True, make: bool = True) -> None:  # noqa: ARG002
        raise StorageError(f"{self.path}: a record in a zip file is read-only")

    def create(self, key: str, data: bytes, *, make: bool = True) -> bool:
        self.put(key, data, make=make)
        return False

    def remove(self, key: str, *, flush: bool = False) -> None:
        self.put(key, b"", flush=flush)

    def children(self, prefix: str = "") -> list[str]:
        below = f"{prefix}/" if prefix else ""
        rests = (name[len(below) :] for name in self._names if name.startswith(below))
        return sorted({rest.partition("/")[0] for rest in rests} - {""})

    def exists(self) -> bool:
        return True  # even if it is empty

    def zarr_store(self) -> Any:
        from zarr.storage import ZipStore

        return ZipStore(self.path, mode="r")


def open_storage(location: str | os.PathLike[str]) -> Storage:
    """Create the storage for a path or URL.

    `s3://…`, `gs://…`, `az://…` and `memory://…` require `pip install 'accord[cloud]'`;
    `example://NAME` is a record that is installed with Accord.
    """
    text = os.fspath(location)
    if text.startswith(EXAMPLE):
        return _example(text)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if "://" in text:
        from accord.store._object_store import Bucket

        return Bucket(text)
    path = expand_home(text)
    with storage_errors(path, "read"):
        zipped = path.suffix == ".zip" and path.is_file()
    return Zip(path) if zipped else Folder(path)


def _example(url: str) -> Zip:
    folder = Path(__file__).with_name("examples")
    found = {file.stem: file for file in sorted(folder.glob("*.zip"))}
    name = url.removeprefix(EXAMPLE)
    if name not in found:
        have = ", ".join(f"{EXAMPLE}{stem}" for stem in found)
        raise RecordMissing(f"{url}: no such example; there is {have}")
    return Zip(found[name], name=url)

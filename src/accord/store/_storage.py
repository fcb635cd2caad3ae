"""A place that keeps named bytes: a folder on this machine, or one file that packs it."""

import contextlib
import errno
import os
import re
import uuid
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from accord.errors import ChoiceError, RecordBusy, RecordMissing, RowDamaged, StorageError

CountProgress: TypeAlias = Callable[[int, int], None]  # how much is done, of how much


PART: Final = ".part"
EXAMPLE: Final = "example://"
# What Python raises over a damaged zip file: a wrong kind of compression or a flag for a
# password is a RuntimeError, a name that is no text a ValueError.
ZIP_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
)


class Storage(ABC):
    """Named bytes, written whole or not at all."""

    name: str
    nothing: str = "nothing is there"  # how to say so of a place of this kind

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """Return the bytes under `key`, or None."""

    @abstractmethod
    def put(self, key: str, data: bytes, *, flush: bool = True, make: bool = True) -> None:
        """Write atomically, replacing what was there; durably unless `flush` is off.

        Folders are made, where a place has them, unless `make` is off: then they must be there.
        """

    @abstractmethod
    def create(self, key: str, data: bytes, *, make: bool = True) -> bool:
        """Write durably unless `key` exists; tell whether it was written."""

    @abstractmethod
    def children(self, prefix: str = "") -> list[str]:
        """Return the names directly below `prefix`, sorted; none if there is nothing."""

    @abstractmethod
    def zarr_store(self) -> Any:
        """Return a read-only Zarr store over this place."""

    def exists(self) -> bool:
        """Tell whether anything is there."""
        return bool(self.children())

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:  # noqa: ARG002
        """Keep other writers of `key` away while the context lives, where the place can."""
        yield

    def unfinished(self, prefix: str = "") -> list[str]:  # noqa: ARG002
        """Return the names of what is half-written below `prefix`, however deep."""
        return []

    def sweep(self, prefix: str) -> None:  # noqa: B027
        """Remove what writers that died left half-written below `prefix`."""


class Folder(Storage):
    """A folder on a local or shared file system."""

    nothing = "no such file or folder"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def get(self, key: str) -> bytes | None:
        """Return the bytes under `key`, or None."""
        try:
            return (self.path / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise storage_error(self.path / key, error, "read") from error

    def put(self, key: str, data: bytes, *, flush: bool = True, make: bool = True) -> None:
        """Write to a temporary name, flush to the disk, rename, flush the folder."""
        with self._part(key, data, flush=flush, make=make) as part:
            part.replace(self.path / key)

    def create(self, key: str, data: bytes, *, make: bool = True) -> bool:
        """Write as `put` does, but never over an existing file."""
        with self._part(key, data, make=make) as part:
            try:
                os.link(part, self.path / key)
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links
                if (self.path / key).exists():
                    return False
                part.replace(self.path / key)
        return True

    @contextlib.contextmanager
    def _part(
        self, key: str, data: bytes, *, flush: bool = True, make: bool = True
    ) -> Iterator[Path]:
        target = self.path / key
        part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}{PART}")
        try:
            if make:
                _make_folder(target.parent)
            with part.open("wb") as file:
                file.write(data)
                if flush:
                    file.flush()
                    os.fsync(file.fileno())
            yield part
            if flush:
                _flush_folder(target.parent)
        except OSError as error:
            raise storage_error(target, error, "write") from error
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    def children(self, prefix: str = "") -> list[str]:
        """Return the names directly below `prefix`, half-written files left out."""
        try:
            names = os.listdir(self.path / prefix)  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error(self.path / prefix, error, "list") from error
        return sorted(name for name in names if not name.endswith(PART))

    def exists(self) -> bool:
        """Tell whether there is such a folder, be it empty, or a file in its place."""
        with refused(self.path, "read"):
            return self.path.exists()

    def zarr_store(self) -> Any:
        """Return a read-only Zarr store over this folder."""
        from zarr.storage import LocalStore

        return LocalStore(self.path, read_only=True)

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Lock the file under `key`; the system drops the lock when the process dies."""
        try:
            import fcntl
        except ImportError:  # Windows: one writer per network is the user's promise
            yield
            return
        with refused(self.path / key, "write"):
            opened = (self.path / key).open("r+b")
        with opened as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RecordBusy(
                    f"{self.path / key}: another recorder holds this network. Two recorders need "
                    "two network numbers; if the other one hangs, end its process."
                ) from error
            _held.add(file)
            try:
                yield
            finally:
                _held.discard(file)

    def unfinished(self, prefix: str = "") -> list[str]:
        """Return the names of half-written files below `prefix`, however deep."""
        parts = (self.path / prefix).rglob(f".*{PART}")
        return sorted(part.relative_to(self.path).as_posix() for part in parts)

    def sweep(self, prefix: str) -> None:
        """Remove half-written files below `prefix`."""
        for name in self.unfinished(prefix):
            with refused(self.path / name, "remove"):
                (self.path / name).unlink(missing_ok=True)


class Zip(Storage):
    """One zip file that holds a packed record; read-only."""

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
        """Return the bytes under `key`, or None."""
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
        """Refuse: a zip file is read-only."""
        raise StorageError(f"{self.path}: a record in a zip file takes no more rows")

    def create(self, key: str, data: bytes, *, make: bool = True) -> bool:
        """Refuse: a zip file is read-only."""
        self.put(key, data, make=make)
        return False

    def children(self, prefix: str = "") -> list[str]:
        """Return the names directly below `prefix`."""
        below = f"{prefix}/" if prefix else ""
        rests = (name[len(below) :] for name in self._names if name.startswith(below))
        return sorted({rest.partition("/")[0] for rest in rests} - {""})

    def exists(self) -> bool:
        """Tell that there is a file, even if it holds nothing."""
        return True

    def zarr_store(self) -> Any:
        """Return a read-only Zarr store over the zip file."""
        from zarr.storage import ZipStore

        return ZipStore(self.path, mode="r")


def open_storage(location: str | os.PathLike[str]) -> Storage:
    """Return the place a path or URL names; nothing need be there yet.

    `s3://…`, `gs://…`, `az://…` and `memory://…` need `pip install 'accord[cloud]'`;
    `example://NAME` is a record that comes with Accord.
    """
    text = os.fspath(location)
    if text.startswith(EXAMPLE):
        return _example(text)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if "://" in text:
        from accord.store._object_store import Bucket

        return Bucket(text)
    path = _expanded(text)
    with refused(path, "read"):
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


_URL: Final = re.compile(r"[a-zA-Z][\w+.-]+:/")  # a drive, such as C:/, is one letter


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to write, the home folder for `~`; an error if it is a URL."""
    if _URL.match(os.fspath(path)):
        raise ChoiceError(
            f"{path}: a URL; this file can be written to this machine alone. "
            "Write it here, then copy it there."
        )
    return _expanded(path)


def _expanded(path: str | os.PathLike[str]) -> Path:
    try:
        if b"\0" in os.fsencode(path):
            raise ValueError("it holds a null byte")
        return Path(path).expanduser()
    except ValueError as error:
        raise StorageError(f"{os.fspath(path)!r}: no file can have that name: {error}") from error
    except RuntimeError as error:
        raise StorageError(f"{path}: nobody of that name has a home folder here") from error


_held: set[BinaryIO] = set()  # the files of held locks


def _drop_inherited_locks() -> None:
    # A forked child (a data loader's worker) shares its parent's locks and would keep them alive
    # after the parent's death; closing its copies does not unlock the parent's. The files are
    # closed, not their numbers: a file object would close whatever has its number next.
    for file in _held:
        with contextlib.suppress(OSError):
            file.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_inherited_locks)


def _make_folder(path: Path) -> None:
    if path.is_dir():
        return
    _make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    _flush_folder(path.parent)


def _flush_folder(path: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_DENIED: Final = "permission denied. Let its owner give you the rights, or choose another place"
_CAUSES: Final = {
    errno.ENOSPC: "the disk is full. Rows recorded before are safe; free some space and go on",
    errno.EDQUOT: "your disk quota is used up. Rows recorded before are safe",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENOENT: "its folder is gone. Was the record moved or deleted meanwhile?",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENAMETOOLONG: "a name in it is too long. Most file systems take 255 bytes; shorten it",
}


def storage_error(path: Path, error: OSError, verb: str) -> StorageError:
    """Say which file could not be read or written, and why."""
    return StorageError(f"{path}: cannot {verb}: {cause_of(error)}")


def cause_of(error: OSError) -> str:
    """Say why the system refused, and what helps."""
    return _CAUSES.get(error.errno or 0, error.strerror or str(error))


@contextlib.contextmanager
def refused(path: Path, verb: str) -> Iterator[None]:
    """Name the file, and what was tried with it, where the system refuses within the context."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error, verb) from error

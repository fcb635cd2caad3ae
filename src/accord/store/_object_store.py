"""Storage of records in object stores."""

import os
from pathlib import Path
from typing import Any

from accord.errors import StorageError, missing_extra
from accord.store._storage import Storage

_memories: dict[str, Any] = {}  # memory://NAME, for the lifetime of the process
_processes: set[int] = set()  # this process and its forked ancestors that used an object store


class Bucket(Storage):
    """Storage below a prefix of an object store.

    Unpickling connects again. In a forked process every access raises, since it would hang.
    """

    def __init__(self, url: str) -> None:
        self.name = url.rstrip("/")
        try:
            import obstore
        except ImportError as error:
            raise missing_extra(
                f"{url}: an object store", "obstore", extra="cloud", cause=error
            ) from error
        self._obstore = obstore
        _check_process(self.name)
        self._connected = _connect(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Bucket, (self.name,)

    @property
    def _store(self) -> Any:
        _check_process(self.name)
        return self._connected

    def get(self, key: str) -> bytes | None:
        try:
            return bytes(self._obstore.get(self._store, key).bytes())
        except FileNotFoundError:
            return None
        except self._obstore.exceptions.BaseError as error:
            raise self._error(key, error, "read") from error

    def put(self, key: str, data: bytes, *, flush: bool = True, make: bool = True) -> None:  # noqa: ARG002
        try:
            self._obstore.put(self._store, key, data, use_multipart=False)
        except self._obstore.exceptions.BaseError as error:
            raise self._error(key, error, "write") from error

    def create(self, key: str, data: bytes, *, make: bool = True) -> bool:  # noqa: ARG002
        errors = self._obstore.exceptions
        try:
            self._obstore.put(self._store, key, data, mode="create", use_multipart=False)
        except errors.AlreadyExistsError:
            return False
        except (errors.NotSupportedError, errors.NotImplementedError):
            if self.get(key) is not None:
                return False
            self.put(key, data)
        except errors.BaseError as error:
            raise self._error(key, error, "write") from error
        return True

    def remove(self, key: str, *, flush: bool = False) -> None:  # noqa: ARG002
        try:
            self._obstore.delete(self._store, key)
        except FileNotFoundError:
            pass
        except self._obstore.exceptions.BaseError as error:
            raise self._error(key, error, "remove") from error

    def children(self, prefix: str = "") -> list[str]:
        below = f"{prefix}/" if prefix else ""
        try:
            found = self._obstore.list_with_delimiter(self._store, below or None)
        except self._obstore.exceptions.BaseError as error:
            raise self._error(prefix, error, "list") from error
        paths = [*found["common_prefixes"], *(item["path"] for item in found["objects"])]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def zarr_store(self) -> Any:
        from zarr.storage import ObjectStore

        return ObjectStore(self._store, read_only=True)

    def upload(self, folder: Path, *, last: str) -> None:
        """Upload the files of a folder, with `last` after all others."""
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        for file in sorted(files, key=lambda file: file == folder / last):
            self.put(file.relative_to(folder).as_posix(), file.read_bytes())

    def _error(self, key: str, error: Exception, verb: str) -> StorageError:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        where = f"{self.name}/{key}".rstrip("/")
        return StorageError(f"{where}: cannot {verb}: {reason}")


def _check_process(url: str) -> None:
    # obstore's threads exist only in the process that forked, and its child waits for them
    # forever, on old and on new connections (obstore 0.12).
    _processes.add(os.getpid())
    if len(_processes) > 1:
        raise StorageError(
            f"{url}: an object store was used before this process was forked, and its "
            "connections do not survive a fork. Start workers by spawn, not by fork: "
            'multiprocessing.get_context("spawn"), '
            'or DataLoader(…, multiprocessing_context="spawn")'
        )


def _connect(url: str) -> Any:
    import obstore.store

    if url.startswith("memory://"):
        return _memories.setdefault(url, obstore.store.MemoryStore())
    try:
        return obstore.store.from_url(url)
    except (ValueError, obstore.exceptions.BaseError) as error:
        raise StorageError(f"{url}: cannot be opened as an object store ({error})") from error

"""A Zarr store in which a missing chunk is damage; imported where a packed record is opened.

Zarr takes as long to import as all else that a reader needs, and unpacked records need none of it.
"""

from typing import Any

from zarr.abc.store import Store
from zarr.storage import WrapperStore

from accord.store import _layout as layout


class StrictStore(WrapperStore[Store]):
    """Another store, none of whose chunks may be missing."""

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Return what lies under `key`; only metadata may be absent."""
        found = await super().get(key, prototype, byte_range)
        if found is None and not key.endswith(layout.ROOT):
            raise FileNotFoundError(f"{key} is missing")
        return found

"""A Zarr store in which a missing chunk is damage; imported only to open a packed record.

Importing Zarr takes as long as everything else that a reader imports, and unpacked records do not
require it.
"""

from typing import Any

from zarr.abc.store import Store
from zarr.storage import WrapperStore

from accord.store import _layout as layout


class StrictStore(WrapperStore[Store]):
    """A wrapper of another store that raises if a chunk is missing."""

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Return the value of `key`; only metadata may be missing."""
        found = await super().get(key, prototype, byte_range)
        if found is None and not key.endswith(layout.ROOT):
            raise FileNotFoundError(f"{key} is missing")
        return found

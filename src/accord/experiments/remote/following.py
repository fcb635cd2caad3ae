"""Follow a run from afar: what its networks have recorded since one last looked."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from accord.errors import RowDamaged, StorageError
from accord.store.commits import committed_epochs, read_commit
from accord.store.places import Folder


class News(NamedTuple):
    """How far a network has come."""

    network: int
    progress: float
    loss: float


class RunFollower:
    """Tells what networks record, from the commits that appear in their record."""

    def __init__(self, record: Path, networks: Sequence[int]) -> None:
        self._place = Folder(record)
        self._seen = {network: self._epochs(network) or 0 for network in networks}

    def news(self) -> Iterator[News]:
        """Return the latest of each network that has recorded something new."""
        for network, seen in self._seen.items():
            epochs = self._epochs(network)
            if epochs is not None and epochs > seen:
                self._seen[network] = epochs
                facts = read_commit(self._place, network, epochs - 1)
                yield News(network, facts["progress"], facts["told"].get("loss", 0.0))

    def _epochs(self, network: int) -> int | None:
        try:
            return committed_epochs(self._place, network)
        except (RowDamaged, StorageError):  # listed while it grew: the next look will tell
            return None

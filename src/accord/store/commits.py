"""The commits of a network: a row exists only if its commit does."""

from typing import Any

from accord.errors import RowDamaged
from accord.store import layout
from accord.store.places import Place


def committed_epochs(place: Place, network: int) -> int:
    """Return how many rows a network holds; an error if one in between is missing."""
    names = place.children(f"{layout.network_folder(network)}/{layout.COMMITS}")
    numbers = (name.removeprefix("c.") for name in names if name.startswith("c."))
    epochs = {int(number) for number in numbers if number.isdecimal()}
    missing = set(range(len(epochs))) - epochs
    if missing:
        raise RowDamaged(
            f"{place.name}: network {network}, epoch {min(missing)} is missing though later ones "
            f"are there. To see every damaged row: accord check {place.name}"
        )
    return len(epochs)


def read_commit(place: Place, network: int, epoch: int) -> dict[str, Any]:
    """Return the facts of one commit."""
    facts = layout.facts_in_commit(place.get(layout.commit_key(network, epoch)) or b"")
    if not {"progress", "objects"} <= facts.keys():
        raise RowDamaged(
            f"{place.name}: network {network}, epoch {epoch}: its commit cannot be read. "
            f"To see every damaged row: accord check {place.name}"
        )
    return facts

"""What each task may take of a cluster."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accord.errors import ChoiceError, ClusterError

FINEST: Final = 10_000  # Ray counts in such parts of a GPU


@dataclass(frozen=True)
class Node:
    """One machine of a cluster, and how much it lends."""

    name: str
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Share:
    """What one task takes of the machine it runs on."""

    cpus: float
    gpus: float


def share_out(
    tasks: int, nodes: Sequence[Node], *, cpus: float = 1.0, gpus: float | None = None
) -> Share:
    """Say how much each of so many equal tasks takes.

    Unless told, a task takes as much of a GPU as lets all of them run at once, and none where
    the cluster has none.

    Raises:
        ChoiceError: `cpus` or `gpus` cannot be.
        ClusterError: no node is large enough, so that a task would wait for ever.

    >>> share_out(5, [Node("a", cpus=8, gpus=2)])
    Share(cpus=1.0, gpus=0.3333)
    """
    if gpus is None:
        gpus = _equal_part(tasks, nodes)
    share = Share(float(cpus), float(gpus))
    _check_share(share)
    _check_room(share, nodes)
    return share


def units(number: float, what: str) -> str:
    """Return how many units there are, or what part of one.

    >>> units(2, "CPU"), units(1.0, "CPU"), units(0.5, "GPU"), units(0, "GPU")
    ('2 CPUs', '1 CPU', '0.5 GPU', '0 GPUs')
    """
    return f"{number:g} {what if 0 < number <= 1 else f'{what}s'}"


def _equal_part(tasks: int, nodes: Sequence[Node]) -> float:
    total = sum(int(node.gpus) for node in nodes)
    if total == 0:
        return 0.0
    on_one = math.ceil(tasks / total)
    return (FINEST // on_one) / FINEST  # rounded down: three thirds must fit


def _check_share(share: Share) -> None:
    if not 0 <= share.cpus < math.inf:
        raise ChoiceError(f"cpus must be 0 or more for each network; got {share.cpus:g}")
    whole = share.gpus == int(share.gpus) if math.isfinite(share.gpus) else False
    if share.gpus < 0 or not (share.gpus <= 1 or whole):
        raise ChoiceError(
            f"gpus must be a part of one, such as 0.25, or a whole number; got {share.gpus:g}"
        )


def _check_room(share: Share, nodes: Sequence[Node]) -> None:
    if any(node.cpus >= share.cpus and node.gpus >= share.gpus for node in nodes):
        return
    there = "; ".join(
        f"{node.name}: {units(node.cpus, 'CPU')}, {units(node.gpus, 'GPU')}" for node in nodes
    )
    raise ClusterError(
        f"each task wants {units(share.cpus, 'CPU')} and {units(share.gpus, 'GPU')} of one node, "
        f"and no node has that ({there or 'there are no nodes'}). Ask for less, or add a node with "
        "`ray start --address=HOST:PORT`."
    )


def cut_samples(samples: int, *, pieces: int, chunk: int = 1) -> list[slice]:
    """Cut samples into at most so many ranges of nearly equal size, at the bounds of chunks.

    A chunk that two ranges shared would be read twice.

    >>> cut_samples(10, pieces=2, chunk=4)
    [slice(0, 8, None), slice(8, 10, None)]
    """
    if pieces < 1:
        raise ChoiceError(f"at least 1 block of samples is wanted; got {pieces}")
    chunks = math.ceil(samples / chunk)
    step = math.ceil(chunks / pieces) * chunk
    return [slice(start, min(start + step, samples)) for start in range(0, samples, step)]

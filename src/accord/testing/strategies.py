"""Hypothesis strategies that draw labels."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

CLASSES = (1, 2, 3, 13, 256, 257, 100_000, 2**32)  # each side of what types or tables can hold
TYPES = (np.uint8, np.uint16, np.uint32, np.int64)


@st.composite
def labels_and_classes(
    draw: st.DrawFn, *, networks: int = 4, epochs: int = 4, samples: int = 6
) -> tuple[NDArray[np.integer], int]:
    """Draw labels (network, epoch, sample), up to so many of each, with how many classes exist.

    Only a few classes are voted for, so that ties are common. The type varies, as does
    the order in memory; some arrays are read-only.

    >>> from hypothesis import find
    >>> find(labels_and_classes(), lambda drawn: drawn[1] > 1)
    (array([[[0]]], dtype=uint8), 2)
    """
    classes = draw(st.sampled_from(CLASSES))
    voted = draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=4))
    shape = tuple(draw(st.integers(1, most)) for most in (networks, epochs, samples))
    choice = draw(arrays(np.intp, shape, elements=st.integers(0, len(voted) - 1)))
    kind = draw(st.sampled_from([kind for kind in TYPES if np.iinfo(kind).max >= classes - 1]))
    return draw(_laid_out(np.array(voted, kind)[choice])), classes


def _laid_out(labels: NDArray[np.integer]) -> st.SearchStrategy[NDArray[np.integer]]:
    locked = labels.copy()
    locked.flags.writeable = False
    padded = np.repeat(labels, 2, axis=-1)[..., ::2]
    return st.sampled_from([labels, locked, padded, np.asfortranarray(labels)])

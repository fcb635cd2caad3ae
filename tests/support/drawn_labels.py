"""Hypothesis strategy for labels of several networks and epochs."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

CLASSES = (1, 2, 3, 13, 256, 257, 100_000, 2**32)  # around the limits of types and tables
TYPES = (np.uint8, np.uint16, np.uint32, np.int64)


@st.composite
def labels_and_classes(draw, *, networks=4, epochs=4, samples=6):
    """Generate labels (network, epoch, sample) and the number of classes.

    At most four classes get votes, so that ties are common. Type and memory order vary; some
    arrays are read-only.
    """
    classes = draw(st.sampled_from(CLASSES))
    voted = draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=4))
    shape = tuple(draw(st.integers(1, most)) for most in (networks, epochs, samples))
    choice = draw(arrays(np.intp, shape, elements=st.integers(0, len(voted) - 1)))
    kind = draw(st.sampled_from([kind for kind in TYPES if np.iinfo(kind).max >= classes - 1]))
    return draw(_laid_out(np.array(voted, kind)[choice])), classes


def _laid_out(labels):
    locked = labels.copy()
    locked.flags.writeable = False
    padded = np.repeat(labels, 2, axis=-1)[..., ::2]
    return st.sampled_from([labels, locked, padded, np.asfortranarray(labels)])

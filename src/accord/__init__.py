"""Predict the class that an ensemble agreed on, over all its networks and all its epochs.

>>> import accord, numpy as np
>>> labels = np.array([[[0], [0], [1]], [[0], [0], [1]]])  # (network, epoch, sample)
>>> accord.max_agreement(labels, classes=2)
array([0])

Names are imported when first used, so that `import accord` is fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

from accord._version import __version__
from accord.errors import AccordError

if TYPE_CHECKING:
    from accord._predictions import agreement, max_agreement
    from accord._record import Record
    from accord._record import open_record as open  # noqa: A004
    from accord._recorder import Recorder
    from accord.inference import distill
    from accord.rules import Prediction, Rule
    from accord.store import import_arrays
    from accord.store import remove_networks as remove

__all__ = [
    "AccordError",
    "Prediction",
    "Record",
    "Recorder",
    "Rule",
    "__version__",
    "agreement",
    "distill",
    "import_arrays",
    "max_agreement",
    "open",
    "remove",
]


_MODULES = {
    "Prediction": ("accord.rules", "Prediction"),
    "Record": ("accord._record", "Record"),
    "Recorder": ("accord._recorder", "Recorder"),
    "Rule": ("accord.rules", "Rule"),
    "agreement": ("accord._predictions", "agreement"),
    "distill": ("accord.inference", "distill"),
    "import_arrays": ("accord.store", "import_arrays"),
    "max_agreement": ("accord._predictions", "max_agreement"),
    "open": ("accord._record", "open_record"),
    "remove": ("accord.store", "remove_networks"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'accord' has no attribute {name!r}")
    module, attribute = _MODULES[name]
    value = globals()[name] = getattr(importlib.import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Saved checkpoints asked about new samples.

>>> from accord.inference import infer
>>> infer("runs/mine", "photos", exit="exact").labels  # doctest: +SKIP
array([0, 1, 1])
"""

from accord.inference._early_exit import Replayed, replay
from accord.inference._infer import Inferred, infer
from accord.inference._sources import FORMATS

__all__ = ["FORMATS", "Inferred", "Replayed", "infer", "replay"]

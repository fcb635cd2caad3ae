"""Saved checkpoints asked about new samples.

>>> from accord.inference import infer
>>> infer("runs/mine", "photos", exit="exact").labels  # doctest: +SKIP
array([0, 1, 1])
"""

from accord.inference.infer import infer
from accord.inference.outcome import Inferred
from accord.inference.replay import Replayed, replay
from accord.inference.sources import FORMATS

__all__ = ["FORMATS", "Inferred", "Replayed", "infer", "replay"]

"""Predict new samples with the saved checkpoints of a run, and distil them into one network.

>>> from accord.inference import infer
>>> infer("runs/mine", "photos", exit="exact").labels  # doctest: +SKIP
array([0, 1, 1])
"""

from accord.errors import missing_extra

try:
    import torch  # noqa: F401
except ImportError as error:
    raise missing_extra("accord.inference", "torch", extra="train", cause=error) from error

from accord.inference._distill import (
    Distillation,
    Distilled,
    MethodAccuracy,
    distill,
    plan_distillation,
)
from accord.inference._early_exit import Replayed, replay
from accord.inference._infer import Inferred, infer

__all__ = [
    "Distillation",
    "Distilled",
    "Inferred",
    "MethodAccuracy",
    "Replayed",
    "distill",
    "infer",
    "plan_distillation",
    "replay",
]

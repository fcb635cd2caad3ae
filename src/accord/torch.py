"""Record what networks of torch predict: `record_epoch` in a loop of your own."""

from accord.recorders.torch import record_epoch, with_ids

__all__ = ["record_epoch", "with_ids"]

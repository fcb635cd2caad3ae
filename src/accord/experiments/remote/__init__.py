"""Train and predict on the machines of a Ray cluster."""

from accord.experiments.remote.aggregation import predict_remotely
from accord.experiments.remote.cluster import has_gpus
from accord.experiments.remote.training import train_remotely

__all__ = ["has_gpus", "predict_remotely", "train_remotely"]

"""Train and predict on the machines of a Ray cluster."""

from accord.experiments.cluster._cluster import has_gpus
from accord.experiments.cluster._predict import predict_remotely
from accord.experiments.cluster._train import train_remotely

__all__ = ["has_gpus", "predict_remotely", "train_remotely"]

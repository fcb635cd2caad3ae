"""Train and predict on a Ray cluster.

`_ray` starts tasks and holds the one import of ray. `_remote_train` trains one network per task in
the run's shared folder, and watches the record for progress; `_remote_predict` predicts one range
of samples per task.
"""

from accord.experiments.cluster._ray import has_gpus
from accord.experiments.cluster._remote_predict import predict_remotely
from accord.experiments.cluster._remote_train import train_remotely

__all__ = ["has_gpus", "predict_remotely", "train_remotely"]

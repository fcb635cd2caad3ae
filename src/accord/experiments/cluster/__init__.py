"""Train and predict on a Ray cluster.

`_ray` starts tasks and holds the one import of ray. `_train` trains one network per task in the
run's shared folder, and watches the record for progress; `_predict` predicts one range of samples
per task.
"""

from accord.experiments.cluster._predict import predict_remotely
from accord.experiments.cluster._ray import has_gpus
from accord.experiments.cluster._train import train_remotely

__all__ = ["has_gpus", "predict_remotely", "train_remotely"]

"""Time the overhead of recording over training and evaluation: scikit-learn and XGBoost.

python benchmarks/recorders_sklearn.py

Every epoch is trained, then evaluated, then evaluated and recorded. The overhead is the difference
of the medians, as a share of one epoch's training and evaluation in the same run.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

import accord
from accord.boosting import XGBoostRounds
from accord.sklearn import record_epoch

CLASSES, FEATURES, EPOCHS = 10, 100, 9
SIZES = ((2_000, 1_000), (60_000, 10_000))  # training samples, test samples
SETTINGS = {"objective": "multi:softprob", "num_class": CLASSES, "nthread": 2}
Parts = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
Seconds = list[tuple[float, float, float]]  # training, evaluating, evaluating and recording


def main() -> None:
    print(f"{'medians of 9 epochs, ms':26} training  evaluating  recording adds  share")
    for samples, test in SIZES:
        values, labels = make_classification(
            samples + test, FEATURES, n_informative=20, n_classes=CLASSES, random_state=0
        )
        parts = values[:samples], labels[:samples], values[samples:]
        for name, run in (("MLPClassifier", train_perceptron), ("XGBoost", train_boosting)):
            report(f"{name}, {samples} + {test}", measure(run, parts))


def measure(run: Callable[[Parts, accord.Recorder], Seconds], parts: Parts) -> Seconds:
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        path = Path(scratch, "record")
        with accord.Recorder(path, network=0, samples=len(parts[2]), classes=CLASSES) as recorder:
            return run(parts, recorder)


def report(name: str, seconds: Seconds) -> None:
    training, evaluating, both = 1000 * np.median(np.array(seconds), axis=0)
    added = both - evaluating
    share = 100 * added / (training + evaluating)
    print(f"{name:26} {training:8.1f} {evaluating:11.2f} {added:15.2f} {share:5.1f} %", flush=True)


def train_perceptron(parts: Parts, recorder: accord.Recorder) -> Seconds:
    network, seconds = MLPClassifier(random_state=0), []
    for _ in range(EPOCHS):
        times = [time.perf_counter()]
        network.partial_fit(parts[0], parts[1], classes=range(CLASSES))
        times.append(time.perf_counter())
        network.predict(parts[2])
        times.append(time.perf_counter())
        record_epoch(recorder, network, parts[2])
        times.append(time.perf_counter())
        seconds.append(spans(times))
    return seconds


def train_boosting(parts: Parts, recorder: accord.Recorder) -> Seconds:
    held, rounds, seconds = xgboost.DMatrix(parts[2]), XGBoostRounds(recorder, parts[2]), []

    class Watch(xgboost.callback.TrainingCallback):  # type: ignore[misc, unused-ignore]
        def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
            self.times = [time.perf_counter()]
            return False

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            self.times.append(time.perf_counter())
            model.predict(held, output_margin=True)
            self.times.append(time.perf_counter())
            rounds.after_iteration(model, epoch, evals_log)
            self.times.append(time.perf_counter())
            seconds.append(spans(self.times))
            return False

    data = xgboost.DMatrix(parts[0], parts[1])
    xgboost.train(SETTINGS, data, EPOCHS, callbacks=[Watch()])
    return seconds


def spans(times: list[float]) -> tuple[float, float, float]:
    first, second, third = np.diff(times)
    return float(first), float(second), float(third)


if __name__ == "__main__":
    main()

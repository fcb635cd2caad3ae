"""Time one depth of RoG against scikit-learn's linear discriminant analysis on the same matrix.

python benchmarks/rog.py [--samples 50000] [--features 512] [--classes 10] [--rounds 3]

The features are drawn from Gaussians of one covariance, and 40 % of the labels are wrong. Best of
the rounds, all in one process.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from accord.baselines import fit_rog


def main() -> None:
    arguments = parse()
    features, given, truth = draw(arguments.samples, arguments.features, arguments.classes)
    seconds, heads = best_of(
        arguments.rounds,
        lambda: fit_rog({"only": features}, given, classes=arguments.classes, seed=0),
    )
    ours = heads["only"].predict_probabilities(features).argmax(axis=1)
    report: dict[str, Any] = {
        **vars(arguments),
        "rog": {"seconds": seconds, "accuracy": float(np.mean(ours == truth))},
    }
    for solver in ("svd", "lsqr", "eigen"):  # the first is scikit-learn's default
        analysis = LinearDiscriminantAnalysis(solver=solver)
        theirs, _ = best_of(arguments.rounds, partial(analysis.fit, features, given))
        report[f"lda_{solver}"] = {
            "seconds": theirs,
            "rog_takes_times": seconds / theirs,
            "accuracy": float(np.mean(analysis.predict(features) == truth)),
        }
    print(json.dumps(report, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name, default in (("samples", 50_000), ("features", 512), ("classes", 10), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def draw(
    samples: int, features: int, classes: int
) -> tuple[NDArray[np.float32], NDArray[np.intp], NDArray[np.intp]]:
    """Draw features, given labels and true ones."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, classes, samples)
    mixing = generator.normal(size=(features, features)) / np.sqrt(features)
    centres = generator.normal(size=(classes, features)) * 0.01
    table = centres[truth] + generator.normal(size=(samples, features)) @ mixing
    elsewhere = (truth + generator.integers(1, classes, samples)) % classes
    given = np.where(generator.random(samples) < 0.4, elsewhere, truth)
    return table.astype(np.float32), given, truth


def best_of(rounds: int, work: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
    return min(times), result


if __name__ == "__main__":
    main()

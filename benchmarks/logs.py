"""Train the small runs of logs.toml, on which rules, overfitting detection and audit are compared.

python benchmarks/logs.py OUT [NAME …]

Each run OUT/NAME records the test and the training split, on digits, tables from scikit-learn, or
random tables: 15 seconds each on one core, 15 minutes in total. When stopped and started again,
it resumes. Then, for example:

python benchmarks/rules_beyond.py OUT/*/test
python benchmarks/watch.py OUT/*/test
python benchmarks/audit.py OUT/*-sym*/train
"""

import argparse
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification

from accord.training import Spec, dump_spec, train

HERE = Path(__file__).parent
Table = tuple[NDArray[Any], NDArray[np.integer[Any]]]  # inputs, labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="only these")
    options = parser.parse_args()
    for log in read_logs():
        if not options.names or log["name"] in options.names:
            spec = spec_of(log, options.out)
            train(spec, options.out / log["name"], source=dump_spec(spec))
            print(options.out / log["name"], flush=True)


def read_logs() -> list[dict[str, Any]]:
    """Return the runs of logs.toml, in its order."""
    groups = tomllib.loads((HERE / "logs.toml").read_text("utf-8"))
    return [log for logs in groups.values() for log in logs]


def spec_of(log: dict[str, Any], out: Path) -> Spec:
    """Return the spec of one run; write its data to `out`, unless they are embedded."""
    data: dict[str, Any] = {"kind": "digits"}
    if log["data"] != "digits":
        path = out / "data" / f"{log['data']}.npz"
        if not path.exists():
            inputs, labels = DATA[log["data"]]()
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, inputs=inputs, labels=labels)
        data = {"kind": "npz", "path": str(path), "held_out": 0.4, "seed": log["seed"]}
        data["verified"] = True
    noise = {"kind": log["noise"], "rate": log["rate"]} if "noise" in log else {"kind": "none"}
    train = {name: log[name] for name in ("network", "networks", "epochs", "seed")}
    values = {
        "name": log["name"],
        "data": data,
        "noise": noise,
        "train": {**train, "batch": 32},
        "record": {"splits": ["test", "train"], "probabilities": True},
    }
    return Spec.model_validate(values)


def _digits(label: Callable[[NDArray[Any]], NDArray[Any]], *, images: bool = False) -> Table:
    digits = load_digits()
    if images:
        return digits.images.astype(np.uint8) * 15, label(digits.target)
    return (digits.data / 16).astype(np.float32), label(digits.target)


def _scaled(inputs: NDArray[Any], labels: NDArray[Any]) -> Table:
    return ((inputs - inputs.mean(axis=0)) / inputs.std(axis=0)).astype(np.float32), labels


def _clusters(classes: int, *, separation: float, seed: int) -> Table:
    drawn = make_classification(
        1500, 20, n_informative=8, n_classes=classes, class_sep=separation, random_state=seed
    )
    return _scaled(*drawn)


DATA: dict[str, Callable[[], Table]] = {
    "cancer": lambda: _scaled(*load_breast_cancer(return_X_y=True)),
    "wine": lambda: _scaled(*load_wine(return_X_y=True)),
    "digit-rows": lambda: _digits(lambda digit: digit),
    "parity": lambda: _digits(lambda digit: digit % 2),
    "parity-images": lambda: _digits(lambda digit: digit % 2, images=True),
    "remainders": lambda: _digits(lambda digit: digit % 3),
    "threes": lambda: _digits(lambda digit: (digit % 3 == 0).astype(int)),
    "large": lambda: _digits(lambda digit: (digit >= 5).astype(int)),
    "clusters2": lambda: _clusters(2, separation=1.2, seed=6),
    "clusters4": lambda: _clusters(4, separation=1.5, seed=5),
}


if __name__ == "__main__":
    main()

"""Compare a distilled network with its run and with baselines, over several rounds.

    python benchmarks/distill.py OUT [--rounds N] [--only NAME …]

Each round has other label noise and other networks. Runs in OUT are resumed. Fashion-MNIST is read
from the folder of Debian's package `dataset-fashion-mnist`.
"""

import argparse
import statistics
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import accord
from accord.training import parse_spec, train

FASHION = "/usr/share/datasets/fashion-mnist"
SPEC = """
name = "{name}"
[data]
{data}
[noise]
kind = "symmetric"
rate = {rate}
[train]
networks = 5
{network}
epochs = 40
seed = {seed}
[record]
splits = ["test", "train"]
"""
CNN = """network = "small-cnn"
options = { width = 24 }
augment = ["shift"]
batch = 64
optimizer = { lr = 0.02, weight_decay = 0.0 }"""
MLP = """network = "mlp"
batch = 64
optimizer = { lr = 0.02, weight_decay = 0.0 }"""
SETS = {  # data, label noise, network
    "fashion": (
        f'kind = "fashion-mnist"\npath = "{FASHION}"\nper_class = 300\nverify = false',
        0.4,
        MLP,
    ),
    "cancer": ('kind = "npz"\npath = "{out}/cancer.npz"\nheld_out = 0.4', 0.3, MLP),
    "digits": ('kind = "digits"', 0.4, CNN),
}


def measure_round(name: str, seed: int, out: Path) -> dict[str, float]:
    data, rate, network = SETS[name]
    data = data.replace("{out}", str(out))
    spec = parse_spec(SPEC.format(name=name, data=data, rate=rate, network=network, seed=seed))
    run = out / f"{name}-{seed}"
    assert not train(spec, run).failed
    found = accord.distill(run, compare=True)
    return {one.name: 100 * one.accuracy for one in found.methods}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    inputs, labels = load_breast_cancer(return_X_y=True)
    np.savez(options.out / "cancer.npz", inputs=inputs.astype(np.float32), labels=labels)
    for name in options.only:
        rounds = [measure_round(name, seed, options.out) for seed in range(options.rounds)]
        for method in rounds[0]:
            values = [one[method] for one in rounds]
            error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
            print(f"{name:8} {method:24} {statistics.mean(values):5.1f} ± {error:.1f}", flush=True)


if __name__ == "__main__":
    main()

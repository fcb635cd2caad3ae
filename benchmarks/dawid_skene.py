"""Time Dawid and Skene's method against crowd-kit's, with the same start and stopping rule.

python benchmarks/dawid_skene.py [--rounds 10] [--voters 500] [--samples 10000] [--classes 10]
python benchmarks/dawid_skene.py --record example://cifar10-sym40

Needs crowd-kit: pip install crowd-kit
"""

import argparse
import json
import time
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

import accord
from accord.kernels import agreement
from accord.kernels._votes import POSTERIOR_BITS, on_grid
from accord.rules._annotators import Annotators, VoteCounts, small_parts
from accord.store import Block


def main() -> None:
    arguments = parse()
    if arguments.record:
        labels, truth = read_votes(arguments)
    else:
        labels, truth = draw_votes(arguments.voters, arguments.samples, arguments.classes)
    seconds, theirs = time_crowd_kit(labels, rounds=arguments.rounds)
    started = time.perf_counter()
    posterior = plain_dawid_skene(labels, classes=arguments.classes, rounds=arguments.rounds)
    ours = posterior.argmax(axis=1)
    own_seconds = time.perf_counter() - started
    print(
        json.dumps(
            {
                **vars(arguments),
                "crowd_kit_seconds": seconds,
                "accord_seconds": own_seconds,
                "times_faster": seconds / own_seconds,
                "same_labels": float(np.mean(ours == theirs)),
                "accuracy": {
                    "accord": float(np.mean(ours == truth)),
                    "crowd_kit": float(np.mean(theirs == truth)),
                    "majority": float(np.mean(majority(labels, arguments.classes) == truth)),
                },
            },
            indent=1,
        )
    )


def plain_dawid_skene(
    labels: NDArray[Any],  # (voter, sample)
    *,
    classes: int,
    rounds: int,
) -> NDArray[np.float64]:  # (sample, class)
    """Run Dawid and Skene's own method, started from the shares of votes.

    Every voter has its own confusion matrix and a full vote; nothing is smoothed, shared or
    weighted. The rule `dawid-skene` does more.
    """
    voters, samples = labels.shape
    parts = list(small_parts([Block(0, samples, labels[np.newaxis])], classes=classes))
    groups, full = np.arange(voters), np.ones(voters)
    posterior = on_grid(agreement(labels, classes=classes), POSTERIOR_BITS)
    for _ in range(rounds):
        counts = VoteCounts.empty(networks=1, classes=classes, groups=groups)
        counts.add(((part, posterior[part.where]) for part in parts), groups)
        annotators = Annotators(counts.prior(), counts.confusion(shared=0), groups, full)
        posterior = np.concatenate([found for _, found in annotators.posteriors(parts)])
    return posterior


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name, default in (("rounds", 10), ("voters", 500), ("samples", 10_000), ("classes", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--record", help="use its votes instead of drawing them")
    return parser.parse_args()


def read_votes(arguments: argparse.Namespace) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Return a record's votes and truth, and set the sizes to its own."""
    record = accord.open(arguments.record)
    labels = np.asarray(record.labels[:]).reshape(-1, record.samples)
    arguments.voters, arguments.samples = labels.shape
    arguments.classes = record.classes
    return labels, record.reader.truth()


def draw_votes(
    voters: int, samples: int, classes: int
) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Draw hard votes: each voter is right 0 to 12 % beyond chance; some predict the next class."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, classes, samples)
    skill = generator.uniform(0.0, 0.12, (voters, 1))
    chance = generator.random((voters, samples))
    guessed = generator.integers(0, classes, (voters, samples))
    wrong = np.where(chance < skill + 0.05, (truth + 1) % classes, guessed)
    return np.where(chance < skill, truth, wrong).astype(np.uint8), truth


def time_crowd_kit(labels: NDArray[np.uint8], *, rounds: int) -> tuple[float, NDArray[Any]]:
    pandas, crowd_kit = import_module("pandas"), import_module("crowdkit.aggregation")
    voters, samples = labels.shape
    table = pandas.DataFrame(
        {
            "task": np.tile(np.arange(samples), voters),
            "worker": np.repeat(np.arange(voters), samples),
            "label": labels.ravel(),
        }
    )
    # This tolerance disables early stopping.
    method = crowd_kit.DawidSkene(n_iter=rounds, tol=-np.inf)
    started = time.perf_counter()
    found = method.fit_predict(table)
    seconds = time.perf_counter() - started
    return seconds, found.sort_index().to_numpy()


def majority(labels: NDArray[np.uint8], classes: int) -> NDArray[np.intp]:
    return np.asarray(plain_dawid_skene(labels, classes=classes, rounds=0).argmax(axis=1))


if __name__ == "__main__":
    main()

"""Compare overfitting detection, early stopping and the oracle on records with true labels.

python benchmarks/watch.py [RECORD …]

- `rose at`: the epoch of the first alarm while the record grew; `-` for none.
- `epoch`: the last epoch before overfitting, or the best epoch without an alarm, and the loss of
  its majority against the oracle's best epoch, in points.
- `then`: the same, from the epochs up to the alarm.
- `stopping`: half of the samples get symmetric noise at the rate --noise (default 0.4); the epoch
  whose majority scores best on them. Mean over 20 draws.
- `last`: the loss of the last epoch's majority.

Losses are measured on all samples. The oracle's accuracy is the maximum over many epochs on these
samples, and therefore optimistic: by about a point with 1,000 samples. `fairly`: the loss of
`epoch` on half of the samples, against the epoch that is best on the other half. Mean over 20
draws; negative if half of the samples, with their true labels, select a worse epoch.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import accord
from accord.analysis._watch import Watch, watch
from accord.rules import Context
from accord.rules.majority import Majority
from accord.store import RecordReader

DRAWS = 20
HEAD = (
    "record", "epochs", "samples", "oracle", "at", "alarm", "rose at", "fall", "sure",
    "epoch", "loses", "fairly", "then", "loses", "stopping", "loses", "last loses",
)  # fmt: skip


@dataclass(frozen=True)
class MajorityVotes:
    """The majority's labels at each epoch, and the truth."""

    labels: NDArray[np.integer]  # (epoch, sample)
    truth: NDArray[np.integer]  # (sample,)
    classes: int

    @property
    def accuracy(self) -> NDArray[np.float64]:  # (epoch,)
        """The majority's accuracy at each epoch."""
        return np.asarray((self.labels == self.truth).mean(axis=1))

    def loss(self, epoch: int) -> float:
        """The loss of one epoch's majority against the best epoch's, in points."""
        return 100 * float(self.accuracy.max() - self.accuracy[epoch])

    def fair_loss(self, epoch: int) -> float:
        """The loss on samples that did not select the best epoch, in points."""
        generator = np.random.default_rng(0)
        return float(np.mean([self._loss_on_half(epoch, generator) for _ in range(DRAWS)]))

    def _loss_on_half(self, epoch: int, generator: np.random.Generator) -> float:
        hits = (self.labels == self.truth)[:, generator.permutation(len(self.truth))]
        choosing, scoring = np.array_split(hits, 2, axis=1)
        best = int(choosing.sum(axis=1).argmax())
        return 100 * float(scoring[best].mean() - scoring[epoch].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", nargs="*", default=["example://cifar10-sym40"])
    parser.add_argument("--noise", type=float, default=0.4, help="of the validation labels")
    options = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    for path in options.records:
        print("| " + " | ".join(row(path, options.noise)) + " |", flush=True)


def row(path: str, noise: float) -> list[str]:
    rows = accord.open(path, common=True).reader
    right = majority_of(rows)
    found = watch(rows)
    epoch = found.best_epoch
    first = first_alarm(rows)
    rose = None if first is None else len(first.agreement) - 1
    then = None if first is None else first.best_epoch
    stopped, stopping_loss = early_stopping(right, noise)
    return [
        path, str(rows.epochs), str(rows.samples),
        f"{100 * right.accuracy.max():.1f}", str(int(right.accuracy.argmax())),
        "yes" if found.alarm else "no", "-" if rose is None else str(rose),
        f"{100 * found.fall:.1f}", f"{found.sure:.3f}",
        str(epoch), f"{right.loss(epoch):.1f}", f"{right.fair_loss(epoch):.1f}",
        "-" if then is None else str(then), "-" if then is None else f"{right.loss(then):.1f}",
        f"{stopped:.0f}", f"{stopping_loss:.1f}", f"{right.loss(-1):.1f}",
    ]  # fmt: skip


def majority_of(rows: RecordReader) -> MajorityVotes:
    blocks = [block.values for block in Majority().after_each_epoch(rows)]
    return MajorityVotes(np.concatenate(blocks, axis=1), rows.truth(), rows.classes)


def first_alarm(rows: Context) -> Watch | None:
    grown = (watch(rows.select(epochs=range(end))) for end in range(1, rows.epochs + 1))
    return next((found for found in grown if found.alarm), None)


def early_stopping(right: MajorityVotes, noise: float) -> tuple[float, float]:
    generator = np.random.default_rng(0)
    chosen = [stopping_epoch(right, noise, generator) for _ in range(DRAWS)]
    return float(np.mean(chosen)), float(np.mean([right.loss(epoch) for epoch in chosen]))


def stopping_epoch(right: MajorityVotes, noise: float, generator: np.random.Generator) -> int:
    samples = len(right.truth)
    held_out = generator.permutation(samples)[: samples // 2]
    given = right.truth[held_out].astype(np.intp)
    moved = generator.permutation(len(given))[: int(noise * len(given))]
    given[moved] += generator.integers(1, max(right.classes, 2), len(moved))
    given[moved] %= right.classes
    return int((right.labels[:, held_out] == given).sum(axis=1).argmax())


if __name__ == "__main__":
    main()

"""Find wrong training labels, review the most suspicious ones, and train again.

Three small networks in numpy learn digits with 30 % wrong labels. The true labels replace the
reviewer.
"""

import csv
from pathlib import Path

import numpy as np

import accord
from accord.analysis import (
    corrected_labels,
    measure_gain,
    read_decisions,
    review_queue,
    write_labels,
    write_queue,
)
from accord.data import load_digits, split_digits
from accord.data.noise import symmetric_noise

EPOCHS, NETWORKS, FEATURES = 20, 3, 300
train, test = split_digits(load_digits(), seed=0)
given = symmetric_noise(train.labels, rate=0.3, classes=10, seed=0)


def train_networks(path: str, labels: np.ndarray) -> float:
    """Train on some labels and record the training split; return the accuracy on the test split."""
    accuracies = []
    for number in range(NETWORKS):
        generator = np.random.default_rng(number)
        hidden = generator.normal(0, 0.5, (64, FEATURES))
        x, x_test = (np.tanh(part.images.reshape(-1, 64) / 16.0 @ hidden) for part in (train, test))
        weights = np.zeros((FEATURES, 10))
        recorder = accord.Recorder(
            path, network=number, samples=len(labels), classes=10, given=labels, split="train"
        )
        with recorder:
            for epoch in range(EPOCHS):
                for batch in np.array_split(generator.permutation(len(labels)), 40):
                    scores = x[batch] @ weights
                    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
                    gap = powers / powers.sum(axis=1, keepdims=True) - np.eye(10)[labels[batch]]
                    weights -= 0.2 * x[batch].T @ gap / len(batch)
                if epoch >= recorder.epochs:  # after a restart, only missing epochs
                    recorder.record(logits=x @ weights)
        accuracies.append(np.mean((x_test @ weights).argmax(axis=1) == test.labels))
    return float(np.mean(accuracies))


before = train_networks("review-before", given)
record = accord.open("review-before")
found = record.audit()
print(f"{found.flagged.sum()} of {len(found)} labels are probably wrong")

write_queue(found, review_queue(found, 200), "queue.csv", sample_info=record.reader.sample_info)
with Path("queue.csv").open(newline="") as file:
    queue = list(csv.DictReader(file))
for row in queue:  # a reviewer would fill in the column `decided`
    row["decided"] = str(train.labels[int(row["sample"])])
with Path("decided.csv").open("w", newline="") as file:
    writer = csv.DictWriter(file, list(queue[0]))
    writer.writeheader()
    writer.writerows(queue)

decisions = read_decisions("decided.csv", sample_info=record.reader.sample_info)
gain = measure_gain(found, decisions)
print(f"{gain.changed} of {gain.reviewed} were wrong; {gain.expected * gain.reviewed:.0f} expected")

labels = corrected_labels(found, decisions)
write_labels(labels, "labels.npz")  # for a spec: noise = { kind = "file", path = "labels.npz" }
after = train_networks("review-after", labels)
print(f"test accuracy {100 * before:.1f} before, {100 * after:.1f} after")
